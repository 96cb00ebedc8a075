from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.nn.ensemble import networks_of
from tabnsm.options import resolve_options

PRICES = np.arange(1000.0)[:, None]


@pytest.fixture(autouse=True)
def _several_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tabnsm.training.config.MAX_NETWORKS", 3)


def test_no_option_is_left_to_be_found_out() -> None:
    options = resolve_options({}).for_data(PRICES, n_features=80)
    flat = {k: v for part in options.to_dict().values() for k, v in part.items()}
    # What is found per device, per target or while training is no number; no limit is None.
    left = [name for name, value in flat.items() if value == "auto" or value is None]
    assert left == ["target_transform", "patience", "time_limit", "precision"]
    assert options.training.batch_size == 32
    assert options.training.n_ensemble == 3
    assert options.architecture.n_token_pools == 4
    assert options.architecture.compress_stride == options.architecture.compress_block_size


def test_what_was_given_stays() -> None:
    given = {"batch_size": 7, "n_ensemble": 2, "loss": "mae", "compress_stride": 5}
    options = resolve_options(given).for_data(PRICES, n_features=3)
    assert (options.training.batch_size, options.training.n_ensemble) == (7, 2)
    assert (options.objective.loss, options.architecture.compress_stride) == ("mae", 5)
    assert options.for_data(PRICES, n_features=3) == options


def test_options_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        resolve_options({}).training = None  # type: ignore[misc, assignment]


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"preset must be one of .*, got 'worst'"):
        resolve_options({"preset": "worst"})


def test_a_model_and_its_file_have_the_options_that_were_used(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = TabNSMRegressor(max_epochs=1, d_token=8, random_state=0).fit(X, X[:, 0] * X[:, 1])
    training = model.options_.training
    assert training.n_ensemble == len(networks_of(model.model_)) == 3
    assert training.batch_size == 16
    assert model.options_.objective.loss == "blend"
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    assert loaded.options_ == model.options_
    assert json.dumps(loaded.options_.to_dict()) == json.dumps(model.options_.to_dict())
    assert loaded.get_params()["batch_size"] == "auto"  # a further fit finds its own
