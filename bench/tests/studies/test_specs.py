"""The runs that the studies ask for."""

from __future__ import annotations

from collections import Counter

import pytest

from tabnsm import TabNSMRegressor
from tabnsm.errors import InvalidOptionError
from tabnsm.options import PRESETS, resolve_options
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies import STUDIES, Scope, find_study
from tabnsm_bench.studies.departures import departure_variants, departures
from tabnsm_bench.studies.variant import preset_options, tabnsm_method


def methods(name: str, preset: str = "default") -> list[str]:
    return [spec.method for spec in find_study(name).specs("t", [0], preset)]


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        (name, preset)
        for name in STUDIES
        for preset in ("default", "paper", "fast")
        if (name, preset) != ("departures", "fast")
    ],
)
def test_every_run_is_one_that_tabnsm_understands(name: str, preset: str) -> None:
    study = STUDIES[name]
    for spec in study.specs("t", [0, 7], preset, max_epochs=3):
        if spec.method_key.startswith("tabnsm-"):
            model = TabNSMRegressor(
                preset=spec.method_key.removeprefix("tabnsm-"), **spec.method_options
            )
            resolve_options(model.get_params(deep=False))
        assert RunSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("name", STUDIES)
def test_rows_have_names_of_their_own_and_one_reference_per_group(name: str, preset: str) -> None:
    rows = STUDIES[name].rows(preset)
    assert len({row.label for row in rows}) == len(rows)
    compared = {row.group for row in rows} if name != "tradeoff" else {""}
    references = Counter(row.group for row in rows if row.is_reference)
    assert references == Counter(compared)


def test_the_paper_s_lists() -> None:
    assert methods("attention") == [
        "tabnsm-default",
        "tabnsm-default+attention=full",
        "tabnsm-default+attention=mamba",
    ]
    assert methods("mixer") == ["tabnsm-default", "tabnsm-default+mixer=False"]
    assert set(methods("loss")) == {
        "tabnsm-default",
        "tabnsm-default+huber_weight=0",
        "tabnsm-default+huber_weight=1",
        *(f"tabnsm-default+loss={loss}" for loss in ("mse", "mae", "log_cosh")),
    }
    weights = [row.value for row in find_study("blend").rows("default")]
    assert weights == [0, 0.3, 0.5, 0.7, 0.9, 1]
    cells = [row.value for row in find_study("grid-cells").rows("paper")]
    assert (cells[0], cells[-1], len(cells)) == (50, 1000, 5)
    temperatures = [row.value for row in find_study("temperature").rows("paper")]
    assert temperatures == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert find_study("temperature").rows("default")[0].value == 0.02
    assert len(find_study("seeds").seeds) == 20


def test_a_value_that_the_preset_has_is_the_preset_itself() -> None:
    assert "tabnsm-paper" in methods("temperature", "paper")
    assert "tabnsm-default" in methods("blend")
    shared = set(methods("blend")) & set(methods("loss"))
    assert {"tabnsm-default", "tabnsm-default+huber_weight=0"} <= shared


def test_sparse_parameters_change_one_at_a_time() -> None:
    study = find_study("sparse")
    for row in study.rows("default"):
        changed = RunSpec(row.method, "t").method_options
        assert changed == ({} if row.is_reference else {row.group: row.value})
    groups = {row.group for row in study.rows("default")}
    assert groups == {
        "n_selected_blocks",
        "selection_block_size",
        "compress_block_size",
        "window_size",
    }


def test_rise_off_is_a_plain_shuffle_in_both_presets() -> None:
    assert methods("rise") == ["tabnsm-default", "tabnsm-default+max_boost=1"]
    assert methods("rise", "paper") == [
        "tabnsm-paper",
        "tabnsm-paper+max_boost=1+rise_sampling=systematic",
        "tabnsm-paper+max_boost=1",
    ]


def test_all_departures_together_lead_from_one_preset_to_the_other() -> None:
    named = [name for group in departures() for name in group]
    assert sorted(named) == sorted(PRESETS["paper"])
    for preset, other in (("default", "paper"), ("paper", "default")):
        rows = departure_variants(preset)
        changes = {}
        for row in rows[1:-1]:
            changes |= RunSpec(row.method, "t").method_options
        together = resolve_options({"preset": preset, **changes})
        assert together == resolve_options({"preset": other})
        assert rows[-1].method == f"tabnsm-{other}"
    with pytest.raises(InvalidOptionError, match="Departures lie between"):
        departure_variants("fast")


def test_specs_have_seeds_caps_and_shares_and_occur_once() -> None:
    specs = find_study("features").specs("t", [3, 4], "paper", max_rows=100)
    assert {spec.feature_fraction for spec in specs} == {0.25, 0.5, 0.75, 1.0}
    assert {spec.method for spec in specs} == {"tabnsm-paper", "catboost"}
    assert {spec.seed for spec in specs} == {3, 4}
    assert {spec.max_rows for spec in specs} == {100}
    assert len(specs) == len(set(specs)) == 16
    sparse = find_study("sparse").specs("t", [0])
    assert sum(spec.method == "tabnsm-default" for spec in sparse) == 1


def test_what_a_row_sets_goes_before_what_all_share() -> None:
    epochs = {
        spec.method_key: spec.max_epochs
        for spec in find_study("memory").specs("t", [0], max_epochs=50)
    }
    assert epochs == {"tabnsm-default": 1, "catboost": 50}


def test_specs_of_several_datasets() -> None:
    scope = Scope(("a", "b"), (0, 1), "fast", {"max_epochs": 2})
    specs = find_study("mixer").all_specs(scope)
    assert [(s.dataset, s.seed) for s in specs[::2]] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_other_peers() -> None:
    study = find_study("samples").against(["lightgbm", "ridge"])
    used = {spec.method for spec in study.specs("t", [0])}
    assert used == {"tabnsm-default", "lightgbm", "ridge"}
    with pytest.raises(InvalidOptionError, match="'loss' has no methods beside TabNSM, got ridge"):
        find_study("loss").against(["ridge"])


def test_a_bad_value_is_refused_when_the_study_is_made() -> None:
    with pytest.raises(InvalidOptionError, match="window_size must be an integer >= 1"):
        tabnsm_method("default", window_size=0)
    with pytest.raises(InvalidOptionError, match="preset must be one of"):
        find_study("loss").specs("t", [0], "papper")
    with pytest.raises(InvalidOptionError, match="metric must be one of"):
        find_study("loss").judged_by("rmsle")


def test_preset_options_are_flat() -> None:
    assert preset_options("paper")["gates"] == "feature"
    assert preset_options("paper")["max_boost"] == 2.0


@pytest.mark.parametrize(
    ("name", "shown"), [("Attention", "'attention'"), ("xyz", "To see all: tabnsm bench studies")]
)
def test_unknown_studies(name: str, shown: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"There is no study {name!r}.*{shown}"):
        find_study(name)
