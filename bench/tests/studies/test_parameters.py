"""Counting parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.errors import InvalidOptionError
from tabnsm.options import resolve_options
from tabnsm_bench.studies import Scope, find_study
from tabnsm_bench.studies.parameters import N_FEATURES, NoiseTextEncoder, count_parameters, growth


@pytest.mark.parametrize("preset", ["default", "paper", "fast"])
def test_growth_is_linear_up_to_sixteen_thousand_features(preset: str) -> None:
    table = find_study("parameters").table([], Scope((), (), preset))
    found = table.facts["growth"]
    assert found["is_linear"]
    assert found["r2"] > (0.9999 if preset == "paper" else 0.998)  # parts of tokens end at 512
    assert max(found["exponents"]) < 1.15
    assert [row["n_features"] for row in table.rows] == list(N_FEATURES)
    assert "growth is linear there" in table.notes[0]


def test_growth_can_be_other_than_linear() -> None:
    n = [2**k for k in range(4, 10)]
    square = growth(n, [7 * k * k for k in n])
    assert not square["is_linear"]
    assert square["exponents"][-1] == pytest.approx(2.0)
    line = growth(n, [100 + 3 * k for k in n])
    assert line["is_linear"]
    assert line["slope"] == pytest.approx(3)
    assert line["intercept"] == pytest.approx(100)


def test_a_table_s_count_is_that_of_its_fitted_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=200) for i in range(6)})
    frame["shop"] = rng.choice(["a", "b", "c"], 200)
    frame["text"] = [f"row {i} of the table" for i in range(200)]
    y = rng.normal(size=200)
    frame.assign(y=y).to_csv(tmp_path / "mixed.csv", index=False)
    scope = Scope(("mixed",), (), "fast", {"target": "y"}, tmp_path)
    rows = find_study("parameters").table([], scope).rows[len(N_FEATURES) :]
    assert [row["share"] for row in rows] == ["25%", "50%", "75%", "100%"]

    model = TabNSMRegressor(
        preset="fast",
        max_epochs=1,
        text_encoder=NoiseTextEncoder(),
        text_cache=False,
        random_state=0,
    ).fit(frame, y)
    assert rows[-1]["n_features"] == model.encoder_.n_features
    counted = sum(parameter.numel() for parameter in model.model_.parameters())
    assert rows[-1]["n_parameters"] == counted
    # The category's vectors are part of it, and so is the piecewise-linear encoding of the numbers.
    options = resolve_options({"preset": "fast"})
    encoder = model.encoder_
    without = [
        count_parameters(encoder.n_features, options, [0] * encoder.n_features, encoder.bins),
        count_parameters(encoder.n_features, options, encoder.category_sizes),
    ]
    assert counted > max(without)


def test_a_dataset_needs_its_folder() -> None:
    with pytest.raises(InvalidOptionError, match="data_dir must be given"):
        find_study("parameters").table([], Scope(("cp",), ()))
