from __future__ import annotations

from bench.tests.made_results import done, failed, main_results, study_results
from tabnsm_bench.main_table import (
    DATASETS,
    METHODS,
    main_table,
    missing_studies_table,
    to_run_table,
)
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.table_text import TextTable


def column(table: TextTable, heading: str) -> dict[str, str]:
    place = list(table.headings).index(heading)
    return {row[0].text: row[place].text for row in table.rows}


def test_ours_stands_beside_the_papers() -> None:
    alone = done(RunSpec("tabnsm-paper", "la_crime_partial", max_epochs=10), 0.25)
    lost = [
        failed(RunSpec("saint", "cpu_small"), "MemoryError: saint ran out of memory"),
        failed(RunSpec("node", "cpu_small"), "killed after 400 s", "timeout"),
        failed(RunSpec("snn", "cpu_small"), "InvalidDataError: diverged"),
    ]
    table = main_table([*main_results(n_seeds=1), alone, *lost])
    assert len(table.rows) == len(METHODS) == 42
    ours, paper = column(table, "CP: cpu_small"), column(table, "CP in the paper")
    assert (paper["CatBoost"], paper["TabNSM (paper)"], paper["TabNSM (default)"]) == (
        "2.739",
        "2.842",
        "–",
    )
    assert float(ours["CatBoost"]) > 2
    assert [ours[name] for name in ("SAINT", "NODE", "SNN", "TabR")] == ["‡", "†", "§", "–"]
    assert column(table, "CD: la_crime_partial")["TabNSM (paper)"] == "0.2500"
    assert "at most 10 epochs" in table.footnotes
    assert any("no regressor" in note for note in table.footnotes)
    assert table.notes[1].startswith(f"25 of {42 * len(DATASETS)} cells are ours.")


def test_what_is_left_comes_with_a_command_and_an_estimate() -> None:
    results = main_results(n_seeds=1)
    table = to_run_table(results)
    left = column(table, "methods left")
    assert left["CP: cpu_small"] == str(41 - 7 - 2)  # two baselines have nothing to run
    assert "--datasets cpu_small" in column(table, "command")["CP: cpu_small"]
    assert float(column(table, "hours of one core")["CP: cpu_small"]) > 1
    before = missing_studies_table(results)
    after = missing_studies_table([*results, *study_results("mixer", ["cpu_small"], "paper")])
    assert len(before.rows) == len(after.rows) + 1
    assert "ablation of the FTM pathway" in column(before, "command")
