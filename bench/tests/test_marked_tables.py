from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.tests.made_results import main_results, study_results
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.marked_tables import TABLES, make_paper_table, make_table, update_tables
from tabnsm_bench.store import UNSEEN, load_results

ROOT = Path(__file__).resolve().parents[2]
PAGE = "Before.\n\n<!-- table: {} -->\nfigures of yesterday\n<!-- end -->\n\nAfter.\n"
PAGES = [ROOT / "README.md", *sorted((ROOT / "bench" / "docs").glob("*.md"))]


def test_only_what_is_between_the_markers_changes() -> None:
    results = main_results()
    text = PAGE.format("results") + PAGE.format("results-mae")
    new = update_tables(text, results)
    assert new.count("Before.\n\n<!-- table: ") == new.count("<!-- end -->\n\nAfter.\n") == 2
    assert "yesterday" not in new
    assert "| TabNSM (default) |" in new
    assert "Test RMSE" in new
    assert "Test MAE" in new
    assert update_tables(new, results) == new
    assert update_tables(new, results[:-1]) != new


@pytest.mark.parametrize("text", ["No table.", "<!-- table: results -->\nnever closed"])
def test_missing_markers_are_named(text: str) -> None:
    with pytest.raises(InvalidDataError, match="between <!-- table: results --> and <!-- end -->"):
        update_tables(text, [])


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"one of results, .*study-NAME.*'result'"):
        update_tables(PAGE.format("result"), [])
    with pytest.raises(InvalidOptionError, match="one of results, families, statistics; got 'x'"):
        make_paper_table("x")


def test_studies_are_tables_too() -> None:
    results = study_results("attention", ["cpu_small"], "paper")
    table = make_table("study-attention@paper", results)
    assert table.headings[:3] == ["dataset", "variant", "runs"]
    assert [row[1].text for row in table.rows] == ["sparse", "full", "mamba"]
    assert "cpu\\_small & sparse & 3 &" in table.to_latex()
    with pytest.raises(InvalidDataError, match="no runs of the study 'attention'"):
        make_table("study-attention", results)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_committed_tables_are_those_of_the_committed_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"<!-- table: (\S+) -->", text)
    if not any(name in TABLES or name.startswith("study-") for name in names):
        pytest.skip(f"{page.name} has no table of results")
    # Runs on few rows show that methods work, and are kept apart.
    folder = ROOT / "bench" / "results" / ("smoke" if page.name == "baselines.md" else "")
    renewed = update_tables(text, load_results(folder), load_results(folder / UNSEEN))
    assert renewed == text, f"run: tabnsm bench tables -r bench/results --into {page.name}"
