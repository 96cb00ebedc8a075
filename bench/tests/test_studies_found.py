from __future__ import annotations

from dataclasses import replace

import pytest

from bench.tests.made_results import failed, main_results, run, study_results
from tabnsm.errors import InvalidDataError
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies_found import study_table


def variants(name: str, results: list[dict], **options: object) -> dict[tuple[str, str], int]:
    rows = study_table(name, results, **options).rows  # type: ignore[arg-type]
    return {(row["dataset"], row["variant"]): row["n"] for row in rows}


def test_datasets_and_seeds_are_read_off_the_runs() -> None:
    results = study_results("attention", ["cpu_small", "bike"]) + main_results()
    found = variants("attention", results)
    assert found == {(d, v): 3 for d in ("bike", "cpu_small") for v in ("sparse", "full", "mamba")}
    assert "(bike, cpu_small, preset default)" in study_table("attention", results).title


def test_further_seeds_of_one_row_do_not_count() -> None:
    results = study_results("seeds", ["cpu_small"]) + study_results("mixer", ["cpu_small"])
    assert variants("mixer", results) == {
        ("cpu_small", "with FTM"): 3,
        ("cpu_small", "without FTM"): 3,
    }
    assert variants("seeds", results) == {("cpu_small", "tabnsm-default"): 20}


def test_of_several_caps_those_of_most_rows_are_taken() -> None:
    whole = study_results("attention", ["cpu_small"])
    specs = [RunSpec.from_dict(result["spec"]) for result in whole]
    capped = [run(replace(spec, max_epochs=2)) for spec in specs if "mamba" not in spec.method]
    # Rows without a run are not shown.
    assert set(variants("attention", capped)) == {("cpu_small", "sparse"), ("cpu_small", "full")}
    table = study_table("attention", whole + capped)
    means = {row["variant"]: row["rmse"] for row in table.rows}
    assert means == {row["variant"]: row["rmse"] for row in study_table("attention", whole).rows}
    assert means["mamba"] is not None


def test_rows_that_set_a_cap_by_themselves_meet_those_that_do_not() -> None:
    results = study_results("memory", ["cpu_small"])
    found = study_table("memory", results).rows
    assert {row["group"] for row in found if row["n"]} == {"batch 64", "batch 256", "catboost"}
    assert all(row["n"] == 1 for row in found)


def test_shares_of_the_table_are_no_caps() -> None:
    results = study_results("features", ["cpu_small"]) + study_results("seeds", ["cpu_small"])
    assert variants("seeds", results) == {("cpu_small", "tabnsm-default"): 20}
    shares = study_table("features", results).rows
    assert {row["group"]: row["n"] for row in shares} == {"tabnsm-default": 3, "catboost": 3}


def test_methods_beside_tabnsm_can_be_chosen() -> None:
    results = main_results(n_seeds=1)
    rows = study_table("threshold", results, peers=["mlp"]).rows
    assert {row["method"] for row in rows} == {"tabnsm-default", "mlp"}


def test_one_row_alone_is_no_study() -> None:
    only = [run(RunSpec("tabnsm-default", "cpu_small"))]
    only.append(failed(RunSpec("tabnsm-default+mixer=False", "cpu_small"), "no memory"))
    with pytest.raises(InvalidDataError, match="Make them with: tabnsm bench study mixer"):
        study_table("mixer", only)


def test_a_study_without_runs_needs_none() -> None:
    assert study_table("parameters", []).rows
