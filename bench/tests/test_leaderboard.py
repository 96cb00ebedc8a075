from __future__ import annotations

import pytest

from bench.tests.made_results import done
from tabnsm.errors import InvalidDataError
from tabnsm_bench.leaderboard import leaderboard_table, summary_table
from tabnsm_bench.marked_tables import make_table
from tabnsm_bench.protocol import RunSpec


def run(method: str, dataset: str, score: float, *, split: int = 42):
    return done(RunSpec(method, dataset, split=split, encoding="default"), score)


def test_a_row_per_dataset_and_average_ranks() -> None:
    results = [
        run("tabnsm-default", "cpu_small", 2.0),
        run("tabnsm-default", "cpu_small", 4.0, split=43),
        run("tabnsm-paper", "cpu_small", 1.0),
        run("ridge", "cpu_small", 3.0),
        run("ridge", "cpu_small", 3.0, split=43),
        run("mlp", "cpu_small", 2.1),
        run("tabnsm-default", "ames_housing", 5.0),
        run("ridge", "ames_housing", 4.0),
        run("tabnsm-default", "alone", 5.0),
    ]
    found = leaderboard_table(results)
    texts = [[cell.text for cell in row] for row in found.rows]
    assert texts == [
        ["ames_housing", "RMSE", "1", "5.000", "2 of 2", "Ridge", "4.000", "-20.0"],
        ["cpu_small", "RMSE", "2", "3.000 ± 1.414", "1 of 3", "MLP (1 of the splits)", "2.100",
         "+5.0"],
    ]  # fmt: skip
    assert [found.rows[k][3].emphasis for k in (0, 1)] == ["", "best"]
    shown = "the 2 methods that were run on all 2 datasets: Ridge 1.50, TabNSM (default) 1.50."
    assert found.notes[1].endswith(shown)
    assert make_table("leaderboard", results).rows == found.rows


def test_heavy_tails_are_compared_by_the_mean_absolute_error() -> None:
    name = "ct_real_estate_partial"
    ours, ridge = run("tabnsm-default", name, 9.0), run("ridge", name, 3.0)
    ours["metrics"]["test"]["mae"], ridge["metrics"]["test"]["mae"] = 1.0, 2.0
    (row,) = leaderboard_table([ours, ridge]).rows
    assert [row[1].text, row[3].text, row[4].text] == ["MAE", "1.000", "1 of 2"]


def test_runs_record_what_their_dataset_is_judged_by() -> None:
    results = [run(method, "mine", 2.0) for method in ("tabnsm-default", "ridge")]
    assert leaderboard_table(results).rows[0][1].text == "RMSE"
    results[0]["dataset"]["judged_by"] = "mae"  # as the sidecar of the table said
    assert leaderboard_table(results).rows[0][1].text == "MAE"


def test_rows_of_earlier_code_are_marked() -> None:
    results = [
        run(method, dataset, 2.0)
        for dataset in ("ames_housing", "cpu_small")
        for method in ("tabnsm-default", "ridge")
    ]
    for result in results:
        result["code"] = None
    shown = "All runs are from before results recorded their code and options."
    assert shown in leaderboard_table(results).notes
    new = {"fingerprint": "f", "library": "new", "committed_at": "2026-02-01", "commit": "b" * 40}
    for result in results:
        result["code"] = new
    assert not leaderboard_table(results).footnotes
    old = {"library": "old", "committed_at": "2026-01-01", "commit": "a" * 40, "dirty": True}
    results[2]["code"] = new | old
    results[3]["code"] = None
    found = leaderboard_table(results)
    assert list(found.footnotes) == [
        "by earlier code (commit aaaaaaa and changes)",
        "from before results recorded their code and options",
    ]
    assert [(row[3].marks, row[5].marks) for row in found.rows] == [((), ()), ((1,), (2,))]


def test_nothing_to_compare() -> None:
    with pytest.raises(InvalidDataError, match="needs runs of tabnsm-default"):
        leaderboard_table([run("ridge", "cpu_small", 1.0)])
    presets = [run(f"tabnsm-{preset}", "cpu_small", 1.0) for preset in ("default", "fast")]
    with pytest.raises(InvalidDataError, match="got none of a baseline"):
        leaderboard_table(presets)


def test_footnotes_of_the_best_other_method() -> None:
    spec = RunSpec("mlp", "cpu_small", encoding="default", max_epochs=20)
    found = leaderboard_table([run("tabnsm-default", "cpu_small", 2.0), done(spec, 3.0)])
    assert found.rows[0][5].marks == (1,)
    assert list(found.footnotes) == ["at most 20 epochs"]


def test_a_summary_has_ranks_on_both_groups_and_times() -> None:
    scores = {"tabnsm-default": 2.0, "catboost": 3.0, "ridge": 4.0}
    seconds = {"tabnsm-default": 30.0, "catboost": 10.0, "ridge": 0.5}
    known = [run(method, name, score) for name in "ab" for method, score in scores.items()]
    for result in known:
        result["fit_seconds"] = seconds[result["spec"]["method"]]
    known[0]["fit_seconds"] = 50.0
    unseen = [run("tabnsm-default", "c", 5.0), run("catboost", "c", 4.0)]
    table = summary_table(known, unseen)
    assert table.headings[1:3] == [
        "average rank, 2 tables used in development",
        "average rank, 1 tables never used",
    ]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["TabNSM (default)", "1.0", "2.0", "4 ×"],
        ["CatBoost", "2.0", "1.0", "1 ×"],
        ["Ridge", "3.0", "–", "0.05 ×"],
    ]
    assert make_table("summary", known, unseen=unseen).rows == table.rows
    assert len(summary_table(known, []).headings) == 3


def test_best_is_ranked_in_the_place_of_the_default() -> None:
    scores = {"tabnsm-default": 3.0, "catboost": 2.0, "ridge": 4.0, "tabnsm-best": 1.0}
    known = [run(method, name, score) for name in "ab" for method, score in scores.items()]
    rows = [[cell.text for cell in row] for row in summary_table(known, []).rows]
    assert [row[:2] for row in rows] == [
        ["CatBoost", "1.0"],
        ["TabNSM (default)", "2.0"],
        ["TabNSM (best)", "1.0"],
        ["Ridge", "3.0"],
    ]
    found = make_table("leaderboard-best", known)
    assert found.headings[3] == "TabNSM (best)"
    assert [row[4].text for row in found.rows] == ["1 of 3", "1 of 3"]
    # Without a run on each table there is no average rank.
    rows = [[cell.text for cell in row] for row in summary_table(known[:-1], []).rows]
    assert [row[0] for row in rows] == ["CatBoost", "TabNSM (default)", "Ridge"]
