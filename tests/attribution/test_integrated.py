"""Integrated gradients: they add up, agree with Captum, and are right where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.attribution import Explanation
from tabnsm.attribution.integrated import MAX_BACKGROUND, TokenPath
from tabnsm.nn.ensemble import networks_of
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


def quick(**options: Any) -> TabNSMRegressor:
    small = {"max_epochs": 3, "d_token": 8, "head_width": 16, "random_state": 0, "n_ensemble": 1}
    return TabNSMRegressor(**(small | options))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 260
    words = np.array([f"word{k}" for k in range(40)])
    table = pd.DataFrame({f"x{k}": rng.normal(size=n) for k in range(14)})
    table.loc[::7, "x1"] = np.nan
    return table.assign(
        city=rng.choice(["Oslo", "Rome", "Lima"], n),
        sold=pd.date_range("2024-01-01", periods=n, freq="3D"),
        notes=[" ".join(rng.choice(words, 5)) for _ in range(n)],
        more=[" ".join(rng.choice(words, 3)) for _ in range(n)],
    )


def target_of(frame: pd.DataFrame) -> pd.Series:
    return 3 * frame["x0"] * frame["x2"] + (frame["city"] == "Oslo")


def assert_adds_up(explanation: Explanation, spread: float) -> None:
    total = explanation.base_values + explanation.contributions.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-6, atol=1e-5 * spread)


# What predictions go through: ensembles, heavy tails (asinh), a linear fit, limits, joined texts.
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "one network": ({}, lambda frame: target_of(frame)),
    "ensemble": ({"n_ensemble": 3}, lambda frame: target_of(frame)),
    "paper": ({"preset": "paper"}, lambda frame: target_of(frame)),
    "full attention": ({"attention": "full"}, lambda frame: target_of(frame)),
    "heavy tail": ({}, lambda frame: np.where(frame.index == 5, 1e5, target_of(frame))),
    "linear fit": (
        {"column_kinds": {"notes": "drop", "more": "drop"}},
        lambda frame: frame["x0"] - 2 * frame["x2"],
    ),
    "joined text": (
        {"text_columns": "joined", "n_text_features": 0},
        lambda frame: target_of(frame),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("with_background", [False, True])
def test_contributions_add_up(frame: pd.DataFrame, case: str, with_background: bool) -> None:
    options, make = CASES[case]
    y = np.asarray(make(frame), dtype=float)
    encoder = FakeTextEncoder(d_text=12)
    model = quick(text_encoder=encoder, text_cache=False, **options).fit(frame, y)
    assert model.target_.is_transformed == (case == "heavy tail")
    assert model.target_.has_linear_fit == (case == "linear fit")
    background = frame[50:58] if with_background else None
    explanation = model.explain(frame[:20], background=background, n_steps=3)
    assert_adds_up(explanation, y.std())
    np.testing.assert_array_equal(explanation.predictions, model.predict(frame[:20]))
    assert len(np.unique(explanation.base_values)) == 1
    if background is not None:
        assert explanation.base_values[0] == pytest.approx(model.predict(background).mean())
    features = explanation.feature_contributions.sum(axis=1)
    np.testing.assert_allclose(features, explanation.contributions.sum(axis=1), rtol=1e-4,
                               atol=1e-4 * y.std())  # fmt: skip


def test_predictions_at_their_limits_still_add_up() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = quick(linear_residual=False).fit(X, X[:, 0] * X[:, 1])
    scaler = model.target_.scalers[0]
    assert scaler.limits is not None
    tight = type(scaler)(scaler.pre_scale, scaler.mean, scaler.scale, None, (-0.01, 0.01))
    model.target_ = type(model.target_)((tight,), model.target_.linear_fits)
    explanation = model.explain(X)
    assert len(np.unique(explanation.predictions)) < len(X)
    assert_adds_up(explanation, 1.0)


@pytest.fixture(scope="module")
def numbers() -> tuple[TabNSMRegressor, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(150, 12))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    return quick(n_ensemble=2, linear_residual=False).fit(X, y), X


def test_equal_to_captum(numbers: tuple[TabNSMRegressor, np.ndarray]) -> None:
    from captum.attr import LayerIntegratedGradients

    model, X = numbers
    encoded = model.encoder_.transform(Table.from_native(X[:9]))
    x = encoded.gather(torch.arange(9))
    start = torch.zeros(1, x.shape[1])
    for network in networks_of(model.model_):
        captum = LayerIntegratedGradients(network, network.tokenizer)
        expected = captum.attribute(x, start, n_steps=4, method="riemann_middle")
        path = TokenPath(network, x, start)
        found = torch.stack([path.contributions((k + 0.5) / 4) for k in range(4)]).mean(dim=0)
        torch.testing.assert_close(found, expected.sum(dim=-1).detach(), rtol=1e-3, atol=1e-5)


def test_more_steps_leave_less_to_share_out(numbers: tuple[TabNSMRegressor, np.ndarray]) -> None:
    model, X = numbers
    errors = [np.mean(model.explain(X, n_steps=steps).path_errors) for steps in (1, 4, 16)]
    assert errors[0] > 4 * errors[1] > 16 * errors[2]
    assert errors[2] < 1e-3


def test_a_row_does_not_depend_on_its_neighbours(
    numbers: tuple[TabNSMRegressor, np.ndarray],
) -> None:
    model, X = numbers
    whole = model.explain(X, n_steps=2)
    np.testing.assert_allclose(
        model.explain(X[[17]], n_steps=2).contributions, whole.contributions[[17]], atol=1e-5
    )
    np.testing.assert_allclose(whole[17].contributions, whole.contributions[[17]])


def test_one_of_many_background_rows_is_a_path_from_it(
    numbers: tuple[TabNSMRegressor, np.ndarray],
) -> None:
    model, X = numbers
    both = model.explain(X[:5], background=X[10:12], n_steps=3).contributions
    alone = [model.explain(X[:5], background=X[[k]], n_steps=3).contributions for k in (10, 11)]
    np.testing.assert_allclose(both, np.mean(alone, axis=0), atol=1e-6)
    same = model.explain(X[[3]], background=X[[3]]).contributions
    np.testing.assert_allclose(same, 0, atol=1e-6)


def test_a_large_background_is_sampled(
    numbers: tuple[TabNSMRegressor, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X = numbers
    assert len(X) > MAX_BACKGROUND
    monkeypatch.setattr("tabnsm.attribution.integrated.MAX_BACKGROUND", 4)
    explanation = model.explain(X[:3], background=X)
    assert_adds_up(explanation, 1.0)
    every_four = [model.predict(X[list(rows)]).mean() for rows in ((0, 1, 2, 3), range(len(X)))]
    assert explanation.base_values[0] not in every_four


def test_no_rows(numbers: tuple[TabNSMRegressor, np.ndarray]) -> None:
    model, X = numbers
    explanation = model.explain(X[:0])
    assert explanation.contributions.shape == (0, 12)
    assert explanation.base_values is not None
    assert explanation.base_values.shape == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "shap"}, r"method must be one of .* got 'shap'"),
        ({"baseline": "zero"}, r'"zero" is for "gradient"'),
        ({"n_steps": 0}, r"n_steps must be None or an integer >= 1, got 0"),
        ({"method": "gradient", "n_steps": 4}, r'n_steps must be None with method="gradient"'),
        ({"method": "gradient", "background": True}, "background must be None with method"),
    ],
)
def test_options_are_checked(
    numbers: tuple[TabNSMRegressor, np.ndarray], options: dict[str, Any], message: str
) -> None:
    model, X = numbers
    if options.get("background"):
        options = options | {"background": X[:2]}
    with pytest.raises(InvalidOptionError, match=message):
        model.explain(X[:2], **options)


@pytest.mark.slow
def test_known_contributions_are_found() -> None:
    """Of a sum of functions of one column each, contributions are these, up to the base."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(1200, 3)), columns=list("abc"))
    X["city"] = rng.choice(["Oslo", "Rome"], len(X))
    parts = np.stack(
        [2 * np.abs(X["a"]), np.sin(3 * X["b"]), 0 * X["c"], 1.0 * (X["city"] == "Oslo")], axis=1
    )
    model = TabNSMRegressor(preset="fast", random_state=0).fit(X, parts.sum(axis=1))
    found = model.explain(X[:200], background=X[200:]).contributions
    expected = parts[:200] - parts.mean(axis=0)
    assert np.abs(found - expected).max() < 0.6
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.12
