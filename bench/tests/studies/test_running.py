"""Studies from the table file to the finished table, with real fits of a tiny table."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.tests.studies.results import done
from tabnsm.cli import main
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.execute import execute
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import write_result
from tabnsm_bench.studies import Scope, find_study
from tabnsm_bench.studies.running import run_study, tabulate

CAPS = {"max_epochs": 2, "target": "y"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one table of eight columns."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=80) for i in range(7)})
    frame["shop"] = rng.choice(["north", "south", "west"], 80)
    frame["y"] = frame["x0"] + frame["x1"] + (frame["shop"] == "west") + rng.normal(0, 0.1, 80)
    frame.to_csv(folder / "tiny.csv", index=False)
    return folder


def bench(*arguments: str) -> int:
    return main(["bench", *arguments])


def shown_text(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_rows"),
    [("attention", 3), ("loss", 6), ("departures", 26), ("temperature-by-target", 1)],
)
def test_in_this_process(name: str, n_rows: int, tables: Path) -> None:
    study = find_study(name)
    preset = "default" if name == "departures" else "fast"
    scope = Scope(("tiny",), (0,), preset, CAPS, tables)
    results = [execute(spec, tables) for spec in study.all_specs(scope)]
    table = study.table(results, scope)
    assert len(table.rows) == n_rows
    if name == "temperature-by-target":
        assert table.rows[0]["best_temperature"] in (0.02, 0.1, 0.3, 1.0, 3.0, 10.0)
        return
    key = study.measures[0].key
    assert all(row["n"] == 1 and np.isfinite(row[key]) for row in table.rows)
    # Different models, not one under different names; a table without dates or gaps has some.
    assert len({row[key] for row in table.rows}) >= min(n_rows, 6)
    if name == "departures":
        assert any("'date_encoding = text' gave the same numbers" in note for note in table.notes)
        assert not any("category_encoding" in note for note in table.notes)


@pytest.mark.parametrize(("max_epochs", "n_different"), [(5, 1), (7, 2)])
def test_rise_begins_after_five_epochs(max_epochs: int, n_different: int, tables: Path) -> None:
    study = find_study("rise")
    scope = Scope(("tiny",), (0,), "fast", CAPS | {"max_epochs": max_epochs}, tables)
    results = [execute(spec, tables) for spec in study.all_specs(scope)]
    table = study.table(results, scope)
    assert len({result["settings"]["history"]["validation_rmse"][-1] for result in results}) == (
        n_different
    )
    assert bool(table.notes) == (n_different == 1)  # "gave the same numbers"


@pytest.mark.slow
def test_threshold_against_catboost(tables: Path) -> None:
    study = find_study("threshold")
    caps = {"target": "y", "max_epochs": 30}
    scope = Scope(("tiny",), (0,), "fast", caps, tables)
    results = [execute(spec, tables) for spec in study.all_specs(scope)]
    table = study.table(results, scope)
    rows = {row["method"]: row for row in table.rows if row["level"] == "all reach"}
    assert set(rows) == {"tabnsm-fast", "catboost"}
    assert all(row["reached"] == "1 of 1" and row["seconds"] > 0 for row in rows.values())
    best = [result["metrics"]["validation"]["rmse"] for result in results]
    # The curves are in the target's units: their best is the validation RMSE of the result.
    assert rows["catboost"]["rmse"] == pytest.approx(1.02 * max(best), rel=1e-3)


def test_memory_and_shares_know_their_features(tables: Path) -> None:
    study = find_study("memory").against([])
    scope = Scope(("tiny",), (0,), "fast", CAPS, tables)
    rows = study.table([execute(s, tables) for s in study.all_specs(scope)], scope).rows
    assert [row["n_features"] for row in rows[:3]] == [2, 4, 8]
    assert all(row["peak_memory_mb"] > 50 for row in rows)


@pytest.mark.slow
def test_from_the_command_line_in_processes_of_their_own(tables: Path, tmp_path: Path) -> None:
    arguments = ["study", "mixer", "--dataset", "tiny", "--seeds", "0", "--preset", "fast"]
    arguments += [
        "--max-epochs",
        "2",
        "--target",
        "y",
        "-d",
        str(tables),
        "-r",
        str(tmp_path / "results"),
        "--json",
    ]
    code = "import sys; from tabnsm.cli import main; sys.exit(main())"

    def call() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "bench", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    first = call()
    shown = json.loads(first.stdout)
    assert [row["variant"] for row in shown["rows"]] == ["with FTM", "without FTM"]
    assert "2 runs: 2 done" in first.stderr
    kept = tmp_path / "results" / "studies" / "mixer-fast-tiny.json"
    assert json.loads(kept.read_text()) == shown
    assert kept.with_suffix(".md").read_text().startswith("### With and without Feature-Token")
    runs = sorted((tmp_path / "results").glob("tabnsm-*/tiny/*.json"))
    assert len(runs) == 2
    again = call()
    assert "2 runs: 2 finished before" in again.stderr
    assert json.loads(again.stdout) == shown


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
def test_an_interrupted_study_reports_how_to_continue(tables: Path, tmp_path: Path) -> None:
    code = "import sys; from tabnsm.cli import main; sys.exit(main())"
    arguments = ["bench", "study", "seeds", "--dataset", "tiny", "-t", "y", "--seeds", "0,1"]
    arguments += ["--max-epochs", "1000000", "-d", str(tables), "-r", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE)
    while not list(tmp_path.glob("tabnsm-default/tiny/.*.claim")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    shown_text = " ".join(errors.decode().split())
    assert "Interrupted. 2 runs: 2 left. Run the same command again to continue." in shown_text


@pytest.mark.slow
def test_two_studies_share_a_run(tables: Path, tmp_path: Path) -> None:
    scope = Scope(("tiny",), (0,), "fast", CAPS, tables)
    seeds = run_study(find_study("seeds"), scope, tmp_path)
    shared = tabulate(find_study("attention"), scope, tmp_path)
    assert shared.rows[0]["rmse"] == seeds.rows[0]["rmse"]
    assert [row["n"] for row in shared.rows] == [1, 0, 0]
    assert "2 of 3 runs have no result" in shared.notes[0]


def test_no_run_shows_what_is_there(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--dataset", "tiny", "-t", "y", "-d", str(tables), "-r", str(tmp_path), "--no-run"]
    assert bench("study", "loss", *options) == 2
    assert "needs at least one finished run, got none of 18" in shown_text(capsys)
    for spec in find_study("loss").specs("tiny", [1], target="y"):
        write_result(done(spec, 2.0), tmp_path)
    out = tmp_path / "tables"
    assert bench("study", "loss", *options, "--metric", "mae", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "test MAE" in shown
    assert "12 of 18 runs have no result" in " ".join(shown.split())
    assert [path.name for path in sorted(out.iterdir())] == [
        "loss-default-tiny.json",
        "loss-default-tiny.md",
    ]


def test_counting_needs_no_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("study", "parameters", "--json", "-r", str(tmp_path)) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["growth"]["is_linear"]


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("studies", "--json") == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["attention"]["n_runs"] == 9
    assert listed["parameters"]["n_runs"] == 0
    assert bench("studies") == 0
    assert "departures" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atention"], "There is no study 'atention'. Did you mean 'attention'?"),
        (["loss"], "needs at least 1 dataset, got none. Add: --dataset"),
        (["loss", "--dataset", " , "], "needs at least 1 dataset, got none"),
        (["loss", "--dataset", "tinny", "-t", "y"], "tinny"),
        (["loss", "--dataset", "tiny"], "--target must be given"),
        (
            ["loss", "--dataset", "tiny", "-t", "y", "--seeds", "a"],
            "--seeds must be whole numbers",
        ),
        (["loss", "--dataset", "tiny", "-t", "y", "--seeds", "3-1"], "--seeds must be whole"),
        (["loss", "--dataset", "tiny", "-t", "y", "--preset", "big"], "preset must be one of"),
        (["loss", "--dataset", "tiny", "-t", "y", "--peers", "ridge"], "no methods beside TabNSM"),
        (["loss", "--dataset", "tiny", "-t", "y", "--level", "1"], "--level is for the study"),
        (["loss", "--dataset", "tiny", "-t", "y", "--metric", "f1"], "metric must be one of"),
        (["samples", "--dataset", "tiny", "-t", "y", "--peers", "catbost"], "mean catboost?"),
    ],
)
def test_what_is_refused_before_any_run(
    arguments: list[str], message: str, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("study", *arguments, "-d", str(tables)) == 2
    assert message in shown_text(capsys)


@pytest.mark.slow
def test_failed_runs_leave_a_reason_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}).to_csv(tmp_path / "two.csv", index=False)
    options = ["--dataset", "two", "-t", "y", "-d", str(tmp_path), "-r", str(tmp_path / "r")]
    assert bench("study", "seeds", *options, "--seeds", "0") == 2
    assert "got none of 1 (the first: tabnsm-default on two, seed 0:" in capsys.readouterr().err
    spec = RunSpec("tabnsm-default", "two", target="y")
    assert json.loads(spec.path(tmp_path / "r").read_text())["state"] == "failed"


def test_tables_are_needed_to_run() -> None:
    with pytest.raises(InvalidOptionError, match="data_dir must be given to run a study"):
        run_study(find_study("loss"), Scope(("tiny",), (0,)), "nowhere")
    with pytest.raises(InvalidDataError, match="needs at least one finished run"):
        tabulate(find_study("loss"), Scope(("tiny",), (0,)), "nowhere")
