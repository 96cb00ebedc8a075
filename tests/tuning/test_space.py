from __future__ import annotations

from dataclasses import asdict

import optuna
import pytest

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.options import PRESETS, resolve_options
from tabnsm.tuning import Choice, Integer, Real, search_space
from tabnsm.tuning.regressor import estimator_options
from tabnsm.tuning.space import check_space, contains, draw


def trials(n: int) -> list[optuna.Trial]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask() for _ in range(n)]


@pytest.fixture(autouse=True)
def _silent() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_whatever_is_drawn_is_valid_and_inside(preset: str) -> None:
    space = search_space(preset)
    check_space(space)
    for trial in trials(60):
        drawn = draw(trial, space)
        assert contains(space, drawn)
        assert 2 <= drawn["selection_block_size"] <= drawn["compress_block_size"]
        options = estimator_options(drawn, n_heads=4)
        assert options["d_token"] == drawn["d_head"] * drawn["n_heads"]
        model = TabNSMRegressor(preset=preset, **options)  # type: ignore[arg-type]
        resolve_options(model.get_params(deep=False))


def test_the_papers_ranges() -> None:
    space = search_space("paper")
    assert space["d_head"] == Integer(8, 64, step=8)
    assert space["n_heads"] == Integer(1, 8)
    assert space["window_size"] == Integer(1, 8)
    assert space["compress_block_size"] == Integer(4, 16)
    assert space["selection_block_size"] == Integer(2, "compress_block_size")
    assert space["n_selected_blocks"] == Integer(1, 4)
    assert {"n_grid_cells", "temperature", "huber_weight", "max_boost"} <= set(space)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_the_presets_own_options_are_inside(preset: str) -> None:
    options = resolve_options({"preset": preset})
    flat = {k: v for part in options.to_dict().values() for k, v in part.items()}
    flat["d_head"] = options.architecture.d_head
    space = search_space(preset)
    assert contains(space, {name: flat[name] for name in space})


def test_contains() -> None:
    space = {"a": Integer(2, 8, step=2), "b": Integer(1, "a"), "c": Real(0, 1), "d": Choice("x", 1)}
    inside = {"a": 4, "b": 4, "c": 1.0, "d": 1}
    assert contains(space, inside)
    for name, value in [("a", 3), ("a", 10), ("b", 5), ("c", 1.1), ("d", True), ("d", "y")]:
        assert not contains(space, inside | {name: value}), (name, value)
    assert not contains(space, {"a": 4})
    assert asdict(space["d"]) == {"values": ("x", 1)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Integer(4, 2), r"high must be >= low \(4\), got 2"),
        (lambda: Integer(0, 9, log=True), "log needs low >= 1 and step 1"),
        (lambda: Integer(0, 9, step=0), "step must be >= 1, got 0"),
        (lambda: Real(1, 0), r"high must be >= low \(1\), got 0"),
        (lambda: Real(0, 1, log=True), "log needs low > 0"),
        (lambda: Real(0, 1, step=-1), "step must be None or > 0, got -1"),
        (lambda: Choice(), "at least 1 value"),
        (lambda: check_space({}), "space must have at least 1 parameter"),
        (lambda: check_space({"a": 3}), r"space\['a'\] must be an Integer, Real or Choice"),
        (lambda: check_space({"a": Integer(1, "b"), "b": Integer(1, 2)}), "Integer before it"),
    ],
)
def test_invalid_arguments_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        make()  # type: ignore[operator]
