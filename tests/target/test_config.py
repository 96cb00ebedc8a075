from __future__ import annotations

from typing import Any

import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.options import resolve_options
from tabnsm.target import TargetConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_transform": True}, "target_transform must be one of .'auto', 'none'., got True"),
        ({"linear_residual": "yes"}, "linear_residual must be True or False, got 'yes'"),
        ({"clip_predictions": 1}, "clip_predictions must be True or False, got 1"),
    ],
)
def test_options_outside_their_rules(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        TargetConfig(**options)


def test_the_paper_has_none_of_it() -> None:
    assert resolve_options({}).target == TargetConfig()
    paper = resolve_options({"preset": "paper"}).target
    assert paper == TargetConfig("none", linear_residual=False, clip_predictions=False)
