from __future__ import annotations

import pytest

from bench.tests.made_results import done
from tabnsm.errors import InvalidDataError
from tabnsm_bench.marked_tables import make_table
from tabnsm_bench.paired import paired_table
from tabnsm_bench.protocol import RunSpec


def run(method: str, split: int, score: float, *, seed: int = 0, notes: list[str] | None = None):
    spec = RunSpec(method, "cpu_small", split=split, seed=seed, encoding="default")
    return done(spec, score, notes=notes or [])


def rows(results) -> list[list[str]]:
    return [[cell.text for cell in row] for row in paired_table(results).rows]


def test_only_shared_splits_are_compared() -> None:
    results = [run("tabnsm-default", split, 2.0) for split in (42, 43, 44)]
    results += [run("ridge", 42, 3.0), run("ridge", 43, 1.0), run("ridge", 99, 50.0)]
    ours, ridge = sorted(rows(results), key=lambda row: row[1] != "TabNSM (default)")
    assert ours[:4] == ["cpu_small", "TabNSM (default)", "3", "2.000 ± 0.000"]
    assert ridge[2:] == ["2", "2.000 ± 1.414", "2.000 ± 0.000", "+0.0 ± 70.7", "1 of 2"]


def test_seeds_are_averaged_within_a_split_and_the_best_comes_first() -> None:
    results = [run("tabnsm-default", 42, 2.0), run("tabnsm-default", 42, 4.0, seed=1)]
    results += [run("ridge", 42, 6.0), run("mlp", 42, 1.5, notes=["5 epochs"])]
    found = paired_table(results)
    assert [row[1].text for row in found.rows] == ["MLP", "TabNSM (default)", "Ridge"]
    assert found.rows[2][5].text == "+100.0"
    assert found.rows[0][1].marks == (1,)
    assert list(found.footnotes) == ["5 epochs"]


def test_baselines_with_other_arrays_do_not_count() -> None:
    results = [
        run("tabnsm-default", 42, 2.0),
        done(RunSpec("ridge", "cpu_small", encoding="paper"), 1.0),
    ]
    with pytest.raises(InvalidDataError, match="with --encoding default"):
        paired_table(results)


def test_it_is_a_table_by_name() -> None:
    results = [run("tabnsm-default", 42, 2.0), run("ridge", 42, 3.0)]
    assert make_table("splits", results).rows == paired_table(results).rows
    assert make_table("splits-mae", results).headings[3] == "test MAE"
