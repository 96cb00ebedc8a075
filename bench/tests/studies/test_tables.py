"""Tables from results written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.tests.studies.results import done, failed
from tabnsm.errors import InvalidDataError
from tabnsm_bench.studies import Scope, Study, find_study
from tabnsm_bench.studies.table import Column, StudyTable

SCOPE = Scope(("cp",), (0, 1, 2))


def by_method(study: Study, scope: Scope = SCOPE) -> dict[str, list]:
    grouped: dict[str, list] = {}
    for spec in study.all_specs(scope):
        grouped.setdefault(spec.method.removeprefix("tabnsm-default"), []).append(spec)
    return grouped


def test_means_deviations_and_changes_seed_by_seed() -> None:
    study = find_study("attention")
    runs = by_method(study)
    results = [
        *(done(spec, rmse) for spec, rmse in zip(runs[""], (2.0, 4.0, 3.0), strict=True)),
        *(
            done(spec, rmse)
            for spec, rmse in zip(runs["+attention=full"], (3.0, 5.0), strict=False)
        ),
        failed(runs["+attention=full"][2], "MemoryError: no room [loop.py:7 fit]\nfurther lines"),
    ]
    table = study.table(results, SCOPE)
    sparse, full, mamba = table.rows
    assert (sparse["variant"], sparse["n"], sparse["rmse"], sparse["rmse_sd"]) == (
        "sparse",
        3,
        3.0,
        1.0,
    )
    assert "change" not in sparse
    assert full["rmse"] == 4.0
    # 3/2 and 5/4: the third seed of the reference has no partner and must not count.
    assert full["change"] == pytest.approx(37.5)
    assert full["change_sd"] == pytest.approx(np.std([50, 25], ddof=1))
    assert full["seeds"]["rmse"] == {"0": 3.0, "1": 5.0}
    assert full["mae"] == 2.0
    assert (mamba["n"], mamba["rmse"], mamba["change"]) == (0, None, None)
    (note,) = table.notes
    assert note.startswith("4 of 9 runs have no result: tabnsm-default+attention=mamba on cp, seed")
    assert "seed 2: MemoryError: no room" in note


def test_loss_is_compared_with_gridloss_as_in_the_paper() -> None:
    study = find_study("loss")
    runs = by_method(study)
    results = [done(runs["+huber_weight=0"][0], 2.0), done(runs["+loss=mae"][0], 3.0)]
    rows = {row["variant"]: row for row in study.table(results, SCOPE).rows}
    assert rows["MAE"]["change"] == pytest.approx(50)
    assert rows["MAE"]["change_sd"] is None
    assert "change" not in rows["GridLoss"]


def test_the_metric_decides_what_changes() -> None:
    study = find_study("mixer").judged_by("mse")
    runs = by_method(study)
    results = [done(runs[""][0], 1.0), done(runs["+mixer=False"][0], 2.0)]
    table = study.table(results, SCOPE)
    assert table.rows[1]["change"] == pytest.approx(300)
    assert table.columns[4].header == "test MSE"


def test_runs_under_other_caps_do_not_count() -> None:
    study = find_study("mixer")
    spec = study.specs("cp", [0], max_epochs=2)[0]
    with pytest.raises(InvalidDataError) as caught:
        study.table([done(spec, 1.0)], SCOPE)
    assert "'mixer' needs at least one finished run, got none of 6" in str(caught.value)
    assert "Run: tabnsm bench study mixer --dataset cp" in str(caught.value)
    capped = Scope(("cp",), (0,), caps={"max_epochs": 2})
    assert study.table([done(spec, 1.0)], capped).rows[0]["rmse"] == 1.0


def test_a_change_without_effect_is_reported() -> None:
    study = find_study("departures")
    scope = Scope(("cp",), (0,))
    specs = study.all_specs(scope)
    results = [
        done(spec, 2.0 if "date" in spec.method else 2.0 + i) for i, spec in enumerate(specs)
    ]
    table = study.table(results, scope)
    (note,) = table.notes
    assert "'date_encoding = text' gave the same numbers as 'default'" in note


def test_one_row_per_group_and_dataset() -> None:
    scope = Scope(("a", "b"), (0,))
    study = find_study("samples")
    results = [done(spec, 1 / spec.sample_fraction) for spec in study.all_specs(scope)]
    rows = study.table(results, scope).rows
    assert len(rows) == 2 * 2 * 5
    tenth = next(
        r for r in rows if (r["dataset"], r["group"], r["value"]) == ("b", "catboost", 0.1)
    )
    assert tenth["change"] == pytest.approx(100 * (100 - 1))  # of the MSE


def test_memory_above_the_start_is_a_difference() -> None:
    scope = Scope(("a",), (0,))
    study = find_study("memory")
    results = [done(spec, 1.0) for spec in study.all_specs(scope)]
    del results[0]["memory_before_fit_mb"]  # not known on every system
    rows = study.table(results, scope).rows
    assert (rows[0]["peak_memory_mb"], rows[0]["increase_mb"]) == (300.0, None)
    assert (rows[1]["increase_mb"], rows[1]["n_features"]) == (200.0, 12.0)


def test_spread_over_seeds_has_the_numbers_of_a_box() -> None:
    scope = Scope(("cp",), tuple(range(20)))
    study = find_study("seeds")
    values = np.random.default_rng(0).normal(3, 0.1, 20)
    specs = study.all_specs(scope)
    table = study.table([done(s, v) for s, v in zip(specs, values, strict=True)], scope)
    (row,) = table.rows
    expected = np.percentile(values, [0, 25, 50, 75, 100])
    names = ("least", "lower quartile", "median", "upper quartile", "greatest")
    np.testing.assert_allclose([row[name] for name in names], expected)
    assert row["rmse_sd"] == pytest.approx(values.std(ddof=1))
    one = study.table([done(specs[4], 2.5)], scope).rows[0]
    assert [one[name] for name in names] == [2.5] * 5


def test_rise_is_judged_by_validation() -> None:
    study = find_study("rise")
    runs = by_method(study)
    results = [
        *(done(spec, 9.0, v) for spec, v in zip(runs[""], (1.0, 2.0, 3.0), strict=True)),
        *(
            done(spec, 1.0, v)
            for spec, v in zip(runs["+max_boost=1"], (2.0, 4.0, 6.0), strict=True)
        ),
    ]
    on, off = study.table(results, SCOPE).rows
    assert (on["validation_rmse"], off["validation_rmse"]) == (2.0, 4.0)
    assert (off["change"], off["change_sd"]) == (100.0, 0.0)
    assert off["median"] == 4.0


def test_written_twice_and_read_again(tmp_path: Path) -> None:
    study = find_study("mixer")
    results = [done(spec, 1.0 + spec.seed) for spec in study.all_specs(SCOPE)]
    table = study.table(results, SCOPE)
    as_json, as_markdown = table.write(tmp_path / "new", "mixer-cp")
    read = json.loads(as_json.read_text())
    assert read["rows"] == table.rows
    assert read["study"] == "mixer"
    lines = as_markdown.read_text().splitlines()
    assert lines[2].startswith("| dataset | variant | runs | test RMSE | change % |")
    assert lines[4] == "| cp | with FTM | 3 | 2 ± 1 | - | 1 | 1 | 2.0 |"
    assert lines[5] == "| cp | without FTM | 3 | 2 ± 1 | +0.00 ± 0.00 | 1 | 1 | 2.0 |"
    assert "same numbers" in lines[-1]


@pytest.mark.parametrize(("datasets", "first"), [(("a",), "variant"), (("a", "b"), "dataset")])
def test_a_single_dataset_takes_no_column(datasets: tuple[str, ...], first: str) -> None:
    scope = Scope(datasets, (0,))
    study = find_study("mixer")
    table = study.table([done(spec, 1.0) for spec in study.all_specs(scope)], scope)
    assert table.to_rich().columns[0].header == first
    assert "dataset" in table.to_markdown()


def test_cells_that_would_break_the_table() -> None:
    table = StudyTable("s", "[b]", [Column("a", "a"), Column("n", "n")], [{"a": "x|y", "n": None}])
    assert "| x\\|y |" in table.to_markdown()
    assert "| n" not in table.to_markdown()  # nothing to show in any row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.00012345, "0.0001234"),
        (float("nan"), "-"),
        ("x", "x"),
        (True, "True"),
    ],
)
def test_how_a_value_is_shown(value: object, text: str) -> None:
    assert Column("a", "a").text({"a": value}) == text
