from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from tabnsm import TabNSMRegressor, __version__
from tabnsm.card import changed_options


@pytest.fixture(scope="module")
def model() -> TabNSMRegressor:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["area | m2", "<b>"])
    X["city"] = rng.choice(["Oslo", "Rome"], 80)
    X.loc[::5, "<b>"] = np.nan
    options = {"max_epochs": 2, "random_state": 0, "n_ensemble": 1, "eval_metric": "mae"}
    return TabNSMRegressor(preset="fast", **options).fit(X, X["area | m2"] + rng.normal(size=80))


def test_markdown_has_all_parts(model: TabNSMRegressor) -> None:
    card = model.card()
    assert card.startswith("# TabNSMRegressor\n")
    assert "**Data:** 3 columns (2 numeric, 1 category); 1 with missing values" in card
    assert f"MAE {model.best_score_:.5g}, RMSE {model.validation_rmse_:.5g}" in card
    assert "preset=fast" in card.replace("\\", "")
    assert "n_heads" not in card
    assert "1 network, " in card
    assert f"tabnsm {__version__}" in card
    assert "**Most important:**" in card
    table = [line for line in card.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    assert r"area \| m2" in table[2]  # one cell, whatever it is called


def test_notebooks_show_the_diagram_and_the_card(model: TabNSMRegressor) -> None:
    shown = model._repr_html_()
    assert "sk-estimator" in shown or "sk-top-container" in shown
    assert shown.count('class="tabnsm-card"') == 1
    assert "&lt;b&gt;" in shown
    assert "MAE " in model._repr_mimebundle_()["text/html"]
    assert "tabnsm-card" not in TabNSMRegressor()._repr_html_()


@pytest.mark.slow
def test_several_targets_are_named_with_the_unit_of_their_score() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = pd.DataFrame({f"y{k}": X[:, 0] * X[:, 1] + k * X[:, 2] for k in range(12)})
    model = TabNSMRegressor(preset="fast", max_epochs=1, random_state=0).fit(X, Y)
    card = model.card()
    assert f"**Targets:** {', '.join(f'y{k}' for k in range(10))} and 2 more" in card
    assert f"RMSE {model.best_score_:.5g}, in standard deviations, mean of the targets" in card


@pytest.mark.slow
def test_blends_have_their_shares() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    options = {"preset": "best", "max_epochs": 1, "d_token": 8, "n_ensemble": 1, "random_state": 0}
    model = TabNSMRegressor(**options).fit(X, X[:, 0] * X[:, 1])
    shares = ", ".join(f"{name} {w:.0%}" for name, w in model.blend_.weights.items())
    assert f"**Blend:** {shares}" in model.card()


def test_only_fitted_models_have_a_card() -> None:
    with pytest.raises(NotFittedError):
        TabNSMRegressor().card()


def test_changed_options_are_named() -> None:
    assert changed_options(TabNSMRegressor()) == []
    changed = changed_options(TabNSMRegressor(column_kinds={"a": "drop"}, n_bins=3))
    assert dict(changed) == {"column_kinds": "{'a': 'drop'}", "n_bins": "3"}
