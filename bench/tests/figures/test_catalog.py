from __future__ import annotations

import builtins
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from bench.tests.figures.reading import texts
from bench.tests.made_results import METHODS, done, main_results, study_results
from tabnsm.errors import InvalidDataError, InvalidOptionError, MissingExtraError
from tabnsm_bench.figures import FIGURES, FigureData, find_figure, save_figure
from tabnsm_bench.figures.style import new_figure
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies import STUDIES

NEED_NOTHING = ("architecture", "parameters", "grid-loss")
MAIN = ("critical-difference", "average-ranks", "rank-heatmap", "bubbles", "training-curves")


@pytest.mark.parametrize("name", [n for n, kind in FIGURES.items() if kind.draw_paper])
def test_what_the_paper_prints_is_drawn(name: str) -> None:
    draw = FIGURES[name].draw_paper
    assert draw is not None
    assert texts(draw())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NEED_NOTHING, *MAIN])
def test_main_results_are_drawn(name: str) -> None:
    results = [] if name in NEED_NOTHING else main_results(METHODS[:4], n_seeds=2)
    shown = " ".join(texts(FIGURES[name].draw(FigureData(results))))
    assert name in NEED_NOTHING or "TabNSM (default)" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FIGURES) - set(NEED_NOTHING) - set(MAIN)))
def test_studies_are_drawn(name: str, table_dir: Path) -> None:
    preset = "default" if name == "departures" else "paper"
    if name == "temperature-by-target":
        data = FigureData(study_results(name, ["toy"]), data_dir=table_dir)
        datasets = ["toy"]
    else:
        datasets = ["toy", "cpu_small"]
        data = FigureData(study_results(name, datasets, preset), preset=preset)
    shown = " ".join(texts(FIGURES[name].draw(data)))
    assert all(dataset in shown for dataset in datasets)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sparse", "features", "temperature"])
def test_datasets_with_nothing_but_the_reference_are_not_drawn(name: str) -> None:
    results = study_results(name, ["toy"], "paper")
    alone = done(RunSpec("tabnsm-paper", "lonely"), 2.0)
    shown = " ".join(texts(FIGURES[name].draw(FigureData([*results, alone], preset="paper"))))
    assert "toy" in shown
    assert "lonely" not in shown


def test_targets_must_be_at_hand() -> None:
    with pytest.raises(InvalidDataError, match="--data-dir"):
        FIGURES["temperature-by-target"].draw(FigureData([]))


@pytest.mark.parametrize("name", sorted(set(FIGURES) - set(NEED_NOTHING)))
def test_without_results_the_error_says_what_to_run(name: str, tmp_path: Path) -> None:
    data = FigureData([], data_dir=tmp_path)
    with pytest.raises(InvalidDataError, match="tabnsm bench"):
        FIGURES[name].draw(data)


@pytest.mark.parametrize("name", ["attention", "rise", "temperature", "sparse", "features"])
def test_a_lone_reference_is_no_study(name: str) -> None:
    """Two methods on one dataset are rows of many studies, and not what one would look at."""
    results = main_results(["tabnsm-default", "catboost"], ["cpu_small"])
    with pytest.raises(InvalidDataError, match=f"tabnsm bench study {name}"):
        FIGURES[name].draw(FigureData(results))


def test_every_study_has_a_figure() -> None:
    assert set(STUDIES) - set(FIGURES) == {"tradeoff"}  # that is the figure "bubbles"
    with pytest.raises(InvalidOptionError, match=r"must be one of architecture, .* got 'los'"):
        find_figure("los")


@pytest.mark.slow
def test_equal_data_give_equal_files(tmp_path: Path) -> None:
    data = FigureData(main_results(METHODS[:3], n_seeds=1))
    for folder in ("one", "two"):
        save_figure(FIGURES["bubbles"].draw(data), tmp_path / folder, "bubbles")
    for ending in ("png", "svg"):
        one, two = ((tmp_path / f / f"bubbles.{ending}").read_bytes() for f in ("one", "two"))
        assert one == two
    png = (tmp_path / "one" / "bubbles.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert min(struct.unpack(">II", png[16:24])) > 300
    root = ElementTree.parse(tmp_path / "one" / "bubbles.svg").getroot()
    assert root.tag.endswith("svg")


def test_bars_say_the_change_of_shared_seeds() -> None:
    results = [
        done(RunSpec("tabnsm-default", "toy", seed=seed), 2.0 if seed < 2 else 50.0)
        for seed in range(5)
    ]
    results += [
        done(RunSpec("tabnsm-default+mixer=False", "toy", seed=seed), 3.0) for seed in range(2)
    ]
    assert "3\n+50.0 %" in texts(FIGURES["mixer"].draw(FigureData(results)))


def test_metric_and_datasets_are_chosen() -> None:
    data = FigureData(main_results(n_seeds=1), metric="mae", datasets=["cpu_small", "toy"])
    with pytest.raises(InvalidOptionError, match="got 'toy'"):
        FIGURES["rank-heatmap"].draw(data)
    data = FigureData(main_results(n_seeds=1), metric="mae", datasets=["cpu_small"])
    shown = " ".join(texts(FIGURES["rank-heatmap"].draw(data)))
    assert "MAE ranks" in shown
    assert "nyc_air_quality" not in shown


def test_bubbles_leave_out_methods_with_gaps() -> None:
    results = main_results(n_seeds=1)
    results = [r for r in results if r["spec"]["method"] != "mlp" or "cpu" in r["spec"]["dataset"]]
    shown = texts(FIGURES["bubbles"].draw(FigureData(results)))
    assert "MLP" not in shown
    assert any("left out for missing results: 1" in " ".join(text.split()) for text in shown)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[plot\]"'):
        new_figure(3, 3)
    for kind in FIGURES.values():
        if kind.draw_paper is not None:
            with pytest.raises(MissingExtraError):
                kind.draw_paper()
