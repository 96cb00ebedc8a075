from __future__ import annotations

import inspect

import pytest

from tabnsm import TabNSMRegressor
from tabnsm.earlier import MISSING_OPTIONS, RENAMED, rename_options, upgrade_meta
from tabnsm.tuning.config_file import read_config


def test_new_names_are_options_and_old_ones_are_not() -> None:
    options = set(inspect.signature(TabNSMRegressor).parameters)
    assert set(RENAMED.values()) <= options
    assert not set(RENAMED) & options
    assert set(MISSING_OPTIONS) <= options


@pytest.mark.parametrize(("old", "new"), [(True, "auto"), (False, "none"), (None, None)])
def test_a_flag_becomes_a_transform(old: bool | None, new: str | None) -> None:
    assert rename_options({"bend_tails": old}) == {"target_transform": new}


def test_metadata_of_the_newest_format_stays_as_it_is() -> None:
    meta = {"format_version": 4, "params": {"draw": "x"}, "n_networks": 3}
    assert upgrade_meta(meta) == meta


def test_metadata_of_earlier_formats_gets_the_names_of_today() -> None:
    meta = {
        "format_version": 3,
        "params": {"token_parts": None, "d_token": 8},
        "options": {"training": {"weight_averaging": 0.9}, "rise": {"draw": "multinomial"}},
        "encoder": {"config": {"n_pieces": 16}, "columns": []},
        "n_members": 2,
    }
    upgraded = upgrade_meta(meta)
    assert upgraded["params"] == {"n_token_pools": None, "d_token": 8}
    assert upgraded["options"]["training"] == {"ema_decay": 0.9}
    assert upgraded["options"]["rise"] == {"rise_sampling": "multinomial"}
    assert upgraded["encoder"] == {"config": {"n_bins": 16}, "columns": []}
    assert upgraded["n_networks"] == 2


def test_parameters_that_were_removed_are_left_out_but_stay_in_the_options() -> None:
    options = {"training": {"gradient_clip": 0.5}}
    meta = {"format_version": 4, "params": {"gradient_clip": 0.5, "d_token": 8}, "options": options}
    upgraded = upgrade_meta(meta)
    assert upgraded["params"] == {"d_token": 8}
    assert upgraded["options"] == options


@pytest.mark.parametrize("version", [1, 4])
def test_the_target_gets_a_place_and_limits_of_its_own(version: int) -> None:
    tails = {"median": 1.0, "unit": 2.0, "lowest": -1.0, "highest": 3.0}
    meta = {
        "format_version": version,
        "params": {"clip_outliers": None},
        "options": {
            "encoder": {"clip_outliers": False},
            "objective": {"linear_residual": True, "loss": "mse"},
        },
        "encoder": {"config": {"clip_outliers": False}, "columns": []},
        "scaler": {"mean": 0.5, "tails": tails},
        "linear_scaler": {"mean": 0.25, "tails": None},
    }
    upgraded = upgrade_meta(meta)
    assert upgraded["target"] == [
        {
            "scaler": {"mean": 0.5, "asinh": tails},
            "linear_scaler": {"mean": 0.25, "asinh": None},
        }
    ]
    assert "scaler" not in upgraded
    assert upgraded["params"]["clip_predictions"] is None
    options = upgraded["options"]
    assert options["target"] == {"linear_residual": True, "clip_predictions": False}
    assert options["objective"] == {"loss": "mse"}
    assert upgraded["encoder"]["config"] == {"clip_outliers": False}


def test_a_config_of_an_earlier_version_is_read(tmp_path) -> None:
    path = tmp_path / "best.json"
    path.write_text('{"bend_tails": false, "n_pieces": 8}')
    assert read_config(path) == {"target_transform": "none", "n_bins": 8}
