from __future__ import annotations

import re
from pathlib import Path

import pytest

from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.datasets import DESCRIPTORS
from tabnsm_bench.paper import OURS, paper_facts, paper_families, paper_printed, paper_scores

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper" / "tabnsm.tex"
MARKS = {r"\dag": "†", r"\ddag": "‡", r"\S": "§", r"\ast": "*", r"\diamondsuit": "◇"}


def printed_rows() -> list[list[str]]:
    """Cells of the paper's full table, without its typesetting."""
    if not PAPER.is_file():
        pytest.skip("the paper is not available (../shared/paper)")
    text = PAPER.read_text()
    start = text.index(r"\label{tab:regression_results}")
    body = text[start : text.index(r"\end{tabular}", start)]
    lines = [line for line in body.splitlines() if line.startswith("& ") and "Model" not in line]
    rows = []
    for line in lines:
        cells = [cell.strip() for cell in line.rstrip("\\ ").split("&")[1:]]
        cells = [re.sub(r"\\(?:best|second|textbf)\{(.*?)\}", r"\1", cell) for cell in cells]
        rows.append([re.sub(r"[$, ]", "", c) if "$" in c else c.strip() for c in cells])
    return rows


def test_every_figure_is_the_one_that_the_paper_prints() -> None:
    rows = printed_rows()
    assert len(rows) == 39
    for name, *cells in rows:
        method = OURS if name == "Ours" else name
        for dataset, cell in zip(paper_facts()["datasets"], cells, strict=True):
            found = re.sub(r"\\[a-zA-Z]+", lambda mark: MARKS[mark.group()], cell)
            assert paper_printed(method, dataset) == found, (method, dataset)


def test_names_and_families_are_those_of_the_baselines() -> None:
    families = paper_families()
    assert len(families) == 39
    theirs = {info.name: info.family for info in BASELINES.values()}
    assert {name: family for name, family in families.items() if name != OURS} == {
        name: theirs[name] for name in families if name != OURS
    }
    assert set(theirs) - set(families) == {"RealMLP"}


def test_datasets_are_the_paper_nine_with_their_sizes() -> None:
    known = {d.paper: (d.rows, d.features) for d in DESCRIPTORS.values()}
    datasets = paper_facts()["datasets"]
    assert {name: (d["rows"], d["features"]) for name, d in datasets.items()} == known


def test_missing_figures_are_missing_with_their_reason() -> None:
    table = paper_scores()
    gaps = {method: len(table.missing(method)) for method in table.methods if table.missing(method)}
    assert len(gaps) == 14
    assert sum(gaps.values()) == 49
    assert gaps["SAINT"] == gaps["DNNR"] == 7
    assert table.notes["SVR-Linear", "RES"] == ("complexity prohibitive", "more than 24 hours")
    assert all(table.notes[m, d] for m in table.methods for d in table.missing(m))
