from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.tests.made_results import done, failed, main_results, study_results
from tabnsm.cli import main
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import write_result


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of results of seven methods on three datasets, and of a study."""
    for result in [*main_results(n_seeds=2), *study_results("mixer", ["cpu_small"])]:
        write_result(result, tmp_path / "results")
    return tmp_path / "results"


def bench(*arguments: str | Path) -> int:
    return main(["bench", *map(str, arguments)])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert bench(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_the_papers_statistics_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("statistics", "--paper", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["friedman"]["chi2"] == pytest.approx(79.3, abs=0.05)
    assert found["friedman"]["p"] == pytest.approx(4.25e-5, abs=5e-8)
    assert found["friedman"]["chi2_tie_corrected"] == pytest.approx(82.5, abs=0.05)
    assert found["nemenyi"]["cd"] == pytest.approx(26.4, abs=0.05)
    assert found["wilcoxon"]["max_corrected_p"] <= 0.02
    ranks = found["average_ranks"]
    assert len(ranks) == 39
    assert {name: round(ranks[name], 2) for name in ("TabNSM", "ResNet", "AutoInt")} == {
        "TabNSM": 1.89,
        "ResNet": 9.72,
        "AutoInt": 12.61,
    }


def test_the_papers_statistics_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("statistics", "--paper") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "ResNet 9.72 10.90 0.0020 0.0025 0" in shown
    assert "The paper prints CD = 26.8; the formula gives 26.4" in shown


@pytest.mark.parametrize("option", [["--metric", "mae"], ["--ours", "MLP"], ["--datasets", "CP"]])
def test_the_papers_table_is_one(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert f"without {option[0]}" in refused(capsys, "statistics", "--paper", *option)


def test_statistics_of_results(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("statistics", "-r", results, "--json", "--ours", "tabnsm-paper") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["average_ranks"]) == 7
    assert found["wilcoxon"]["ours"] == "tabnsm-paper"
    assert found["datasets"] == ["cpu_small", "nyc_air_quality", "sarcos_test4449"]
    chosen = ["--datasets", "cpu_small,nyc_air_quality", "--methods", "mlp,ridge,tabnsm-default"]
    assert bench("statistics", "-r", results, "--json", "--metric", "mae", *chosen) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["metric"], len(found["average_ranks"])) == ("mae", 3)
    assert found["friedman"]["datasets"] == ["cpu_small", "nyc_air_quality"]


def test_too_few_results_are_refused(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown_text = refused(capsys, "statistics", "-r", results, "--methods", "mlp,tabnsm-default")
    assert "at least 3 methods, got 2 (mlp, tabnsm-default)" in shown_text
    shown_text = refused(capsys, "statistics", "-r", results, "--datasets", "cpu_small")
    assert "at least 2 datasets, got 1 (cpu_small). Run more" in shown_text
    shown_text = refused(capsys, "statistics", "-r", tmp_path / "nothing")
    assert "at least 3 methods, got 0 (none)" in shown_text
    shown_text = refused(capsys, "statistics", "-r", results, "--metric", "r2")
    assert "metric must be one of" in shown_text
    assert "got 'bike'" in refused(capsys, "statistics", "-r", results, "--datasets", "bike")


def test_tables_in_both_styles(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("tables", "-r", results) == 0
    assert capsys.readouterr().out.startswith("| method | average rank | cpu_small (CP) |")
    assert bench("tables", "study-mixer", "-r", results, "--format", "latex") == 0
    assert r"cpu\_small & without FTM & 3 &" in capsys.readouterr().out
    assert bench("tables", "families", "--paper", "-f", "latex") == 0
    assert r"\textbf{2.617}" in capsys.readouterr().out
    assert "got 'x'" in refused(capsys, "tables", "x", "-r", results)
    assert "at least 1 finished run" in refused(capsys, "tables", "-r", results / "nothing")


def test_tables_go_into_a_page(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Results ±\n\n<!-- table: results -->\n<!-- end -->\nEnd.\n", encoding="utf-8"
    )
    assert bench("tables", "--into", page, "-r", results) == 0
    assert "renewed" in capsys.readouterr().out
    first = page.read_text(encoding="utf-8")
    assert first.startswith("# Results ±\n\n<!-- table: results -->\n\n| method |")
    assert bench("tables", "--into", page, "-r", results) == 0
    assert "up to date" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8") == first
    assert "No such file" in refused(capsys, "tables", "--into", tmp_path / "no.md", "-r", results)


def test_datasets_by_the_papers_abbreviation(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("statistics", "-r", results, "--datasets", "CP,AQ", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["datasets"] == ["cpu_small", "nyc_air_quality"]
    assert "got 'XX'" in refused(capsys, "statistics", "-r", results, "--datasets", "CP,XX")


def test_a_lost_method_is_in_the_table_with_its_reason(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_result(failed(RunSpec("saint", "cpu_small"), "out of memory"), results)
    default = done(RunSpec("ridge", "cpu_small", encoding="default"), 2.0)
    write_result(default, results)
    assert bench("tables", "-r", results) == 0
    shown = capsys.readouterr().out
    assert "| SAINT | 8.00 | – <sup>1</sup> |" in shown
    assert "<sup>1</sup> failed: out of memory" in shown
    assert "Not counted: 1 runs of baselines on the other encoding." in shown
    assert bench("statistics", "-r", results) == 0
    assert "--encoding default" in capsys.readouterr().out
