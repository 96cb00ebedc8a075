from __future__ import annotations

from pathlib import Path

import pytest

from bench.tests.made_results import METHODS, main_results
from tabnsm.cli import main
from tabnsm_bench.store import write_result


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of results of four methods on two datasets."""
    for result in main_results(METHODS[:4], ["cpu_small", "nyc_air_quality"], n_seeds=1):
        write_result(result, tmp_path / "results")
    return tmp_path / "results"


def figures(*arguments: str | Path) -> int:
    return main(["bench", "figures", *map(str, arguments)])


@pytest.mark.slow
def test_named_figures_are_written_twice(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    assert figures("rank-heatmap", "average-ranks", "-r", results, "-o", out) == 0
    names = {"rank-heatmap.png", "rank-heatmap.svg", "average-ranks.png", "average-ranks.svg"}
    assert {path.name for path in out.iterdir()} == names
    assert f"rank-heatmap: {out / 'rank-heatmap.png'}" in capsys.readouterr().out


@pytest.mark.slow
def test_all_that_can_be_drawn_is_drawn_and_the_rest_is_named(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures"
    assert figures("-r", results, "-o", out, "-d", tmp_path / "no-data") == 0
    shown = capsys.readouterr().out
    drawn = {path.stem for path in out.iterdir()}
    assert {"critical-difference", "bubbles", "parameters", "training-curves"} <= drawn
    assert "loss" not in drawn
    assert "loss: not drawn. " in shown
    assert "Make them with: tabnsm bench study loss" in shown
    assert "temperature-by-target: not drawn. The targets are needed" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["los"], "A figure must be one of architecture, "),
        (["loss"], "Make them with: tabnsm bench study loss"),
        (["bubbles", "--paper"], "The paper does not print"),
        (["rank-heatmap", "--metric", "r2"], "metric must be one of"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(
    arguments: list[str],
    message: str,
    results: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert figures(*arguments, "-r", results, "-o", tmp_path / "figures") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Error: ")
    assert message in shown
    assert not (tmp_path / "figures").exists()


def test_the_list_has_the_papers_counterparts(capsys: pytest.CaptureFixture[str]) -> None:
    assert figures("--list") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "critical-difference" in shown
    assert "tabnsm explain" in shown
