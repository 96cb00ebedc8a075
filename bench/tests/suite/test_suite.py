from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tabnsm.errors import InvalidDataError
from tabnsm_bench.cli import app
from tabnsm_bench.datasets import load
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import empty_result, write_result
from tabnsm_bench.suite.departures import (
    FOLDER,
    ONE_NETWORK,
    compared_methods,
    departure_specs,
    departures_table,
)
from tabnsm_bench.suite.figure_of_merit import half_summaries, runs_by_table
from tabnsm_bench.suite.page import MARKS, fill_page
from tabnsm_bench.suite.progress import draw_progress
from tabnsm_bench.suite.tables import SHARED, TABLES, names_of, read_table, write_tables

ROOT = Path(__file__).resolve().parents[3]


def put(
    folder: Path, method: str, table: str, rmse: float, seconds: float = 1.0, split: int = 42
) -> None:
    spec = RunSpec(method, table, encoding="default", split=split)
    scores = {"rmse": rmse, "mae": rmse}
    write_result(
        empty_result(spec)
        | {"state": "done", "metrics": {"test": scores}, "fit_cpu_seconds": seconds},
        folder,
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for table in names_of():
        put(tmp_path / "peers", "catboost", table, 2.0)
        put(tmp_path / "peers", "lightgbm", table, 2.5)
        put(tmp_path / "ours", "tabnsm-default", table, 1.0, seconds=3.0)
    (tmp_path / "accepted.json").write_text(json.dumps([{"label": "ours", "what": "the start"}]))
    return tmp_path


def test_halves_are_fixed_and_of_like_size() -> None:
    choose, confirm = names_of("choose"), names_of("confirm")
    assert len(choose) == 22
    assert len(confirm) == 19
    assert set(choose).isdisjoint(confirm)
    assert {"loans", "ames_housing"} <= set(choose)
    assert set(names_of("check")) == set(names_of()) - {*choose, *confirm}
    assert len({(table.package, table.item) for table in TABLES.values()}) == len(TABLES)


def test_target_is_there_and_what_leaks_it_is_left_out(tmp_path: Path) -> None:
    for name, table in TABLES.items():
        if table.package == SHARED:
            continue
        frame, gone = read_table(table, tmp_path)
        assert 1000 <= len(frame) <= (table.max_rows or 50_000), name
        assert table.target not in gone
        assert frame[table.target].notna().all()
        assert "rownames" in gone or "rownames" not in frame


def test_missing_shared_tables_are_an_error_that_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="--shared"):
        read_table(TABLES["cpu_act"], tmp_path)


def test_written_tables_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: TABLES[name] for name in ("concrete", "airfare")}
    monkeypatch.setattr("tabnsm_bench.suite.tables.TABLES", few)
    write_tables(tmp_path, tmp_path)
    table = load("airfare", tmp_path)
    assert "lfare" not in table.frame
    assert len(table.target) == 4596


def test_figure_is_the_geometric_mean_of_ratios(results: Path) -> None:
    put(results / "ours", "tabnsm-default", "loans", 4.0)
    runs = runs_by_table(results / "ours", "tabnsm-default")
    summary = half_summaries(runs, runs_by_table(results / "peers", "catboost"))["choose"]
    assert summary is not None
    assert summary.rmse == pytest.approx((0.5**21 * 2.0) ** (1 / 22))
    assert summary.won == pytest.approx(21 / 22)
    assert summary.seconds == 3.0


def test_page_and_picture_show_the_accepted_changes(results: Path) -> None:
    page = fill_page(f"Before\n\n{MARKS[0]}\nold\n{MARKS[1]}\n", results)
    assert "old" not in page
    assert "| TabNSM (default) | confirm | 19 | 0.500 | 0.500 | 100% | 3 × |" in page
    assert "| LightGBM | choose | 22 | 1.250 |" in page
    assert fill_page(page, results) == page
    half = fill_page(f"<!-- suite: confirm -->\n{MARKS[1]}\n", results)
    assert "| confirm | 19 |" in half
    assert "choose" not in half
    assert len(draw_progress(results).axes[0].lines) == 3
    with pytest.raises(InvalidDataError, match="suite"):
        fill_page("no marks", results)


def test_every_departure_is_reverted_on_every_table_that_chooses() -> None:
    specs = departure_specs()
    assert len(set(specs)) == len(specs) == (len(compared_methods()) + 1) * 22
    assert {spec.max_rows for spec in specs} == {2000}


def test_departures_are_compared_with_one_network(tmp_path: Path) -> None:
    for table in ("loans", "ames_housing"):
        put(tmp_path / FOLDER, ONE_NETWORK, table, 2.0)
        put(tmp_path / FOLDER, "tabnsm-default", table, 1.0)
        put(tmp_path / FOLDER, "tabnsm-paper", table, 9.0 if table == "loans" else 2.0)
    rows = departures_table(tmp_path).splitlines()[2:]
    assert rows == [
        '| `preset = "paper"` | 1 of 2 | 2.121 ± 1.595 | 2.121 | 0 | 4.50, 1.00 |',
        "| `n_ensemble = 1` | 2 of 2 | 2.000 ± 0.000 | 2.000 | 0 | 2.00, 2.00 |",
    ]


def test_splits_are_compared_one_by_one(results: Path) -> None:
    for split, rmse in ((42, 1.0), (43, 4.0)):
        put(results / "new", ONE_NETWORK, "loans", rmse, split=split)
        put(results / "old", ONE_NETWORK, "loans", 2.0, split=split)
    put(results / "new", ONE_NETWORK, "birds", 1.0)  # which the others have not run
    marks = "<!-- splits: new over old -->\n<!-- end of splits -->"
    page = fill_page(f"{MARKS[0]}\n{MARKS[1]}\n{marks}\n", results)
    assert "| loans | choose | 2 | 1.000 | 1.000 | 0.500, 2.000 |" in page
    assert "birds | " not in page[page.index("splits:") :]
    assert fill_page(page, results) == page


def test_report_prints_both_halves(results: Path) -> None:
    out = CliRunner().invoke(app, ["suite", "report", "ours", "-r", str(results), "--tables"])
    assert out.exit_code == 0, out.output
    assert "choose" in out.output
    assert "0.5000" in out.output
    assert "airfare" in out.output


def test_pages_are_up_to_date() -> None:
    results = ROOT / "bench/results/suite"
    for page in (ROOT / "README.md", ROOT / "bench/docs/suite.md"):
        text = page.read_text(encoding="utf-8")
        assert fill_page(text, results) == text
