from __future__ import annotations

import optuna
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.tuning.space import check_space, draw
from tabnsm_bench.baselines.catalog import BASELINES, make
from tabnsm_bench.method_spaces import _SPACES, method_space

# They have no options, or weights that were made elsewhere.
NOTHING_TO_SEARCH = {"linear-regression", "tabpfn-v2"}


def test_every_baseline_with_an_adapter_has_a_space() -> None:
    with_adapter = {key for key, info in BASELINES.items() if info.adapter}
    assert set(_SPACES) == with_adapter - NOTHING_TO_SEARCH


@pytest.mark.parametrize("key", _SPACES)
def test_what_is_drawn_can_be_used(key: str) -> None:
    space = method_space(key)
    check_space(space)
    options = draw(optuna.create_study().ask(), space)
    if BASELINES[key].state != "ready":
        pytest.skip("its package is not installed")
    make(key, options)


def test_what_is_given_is_not_searched() -> None:
    assert "depth" not in method_space("catboost", {"depth": 4})
    assert "window_size" in method_space("tabnsm-paper")
    with pytest.raises(InvalidOptionError, match="got 'linear-regression', which has none left"):
        method_space("linear-regression")
