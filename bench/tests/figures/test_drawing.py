from __future__ import annotations

import numpy as np
import pytest

from bench.tests.figures.reading import overlaps, texts
from tabnsm_bench.figures import FIGURES
from tabnsm_bench.figures.ablation import draw_ablation
from tabnsm_bench.figures.bubble import Bubble, draw_bubbles
from tabnsm_bench.figures.critical_difference import draw_critical_difference, indistinct_groups
from tabnsm_bench.figures.rank_heatmap import draw_rank_heatmap
from tabnsm_bench.figures.sensitivity import draw_sensitivity
from tabnsm_bench.figures.style import FAMILIES
from tabnsm_bench.figures.thresholds import TimedTable, draw_thresholds
from tabnsm_bench.figures.training_curves import draw_training_curves
from tabnsm_bench.paper import paper_families, paper_scores
from tabnsm_bench.statistics import analyse, analyse_paper


def test_all_39_methods_can_be_read() -> None:
    names = set(paper_families())
    draw = FIGURES["critical-difference"].draw_paper
    assert draw is not None
    figure = draw()
    assert len(set(texts(figure)) & names) == 37
    assert not overlaps(figure, names - set(FAMILIES))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_names_of_bubbles_do_not_cover_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bubbles = [
        Bubble(name, family, 1 + rng.gamma(2, 0.2), 10 ** rng.uniform(-1, 3), rng.uniform(200, 2e3))
        for name, family in paper_families().items()
    ]
    figure = draw_bubbles(bubbles, "bubbles")
    assert not overlaps(figure, {bubble.name for bubble in bubbles} - set(FAMILIES))


def test_ticks_are_plain_numbers() -> None:
    bubbles = [Bubble(str(k), "Other", 1.0 + k, 10.0**k / 100, 100.0) for k in range(6)]
    shown = texts(draw_bubbles(bubbles, "title"))
    assert {"0.01", "1", "1,000", "5"} <= set(shown)
    assert not any("mathdefault" in text for text in shown)


def test_methods_in_one_place_are_drawn() -> None:
    draw_bubbles([Bubble("a", "Other", 1.0, 5.0, 9.0)] * 2, "t").draw_without_rendering()


def test_groups_of_the_diagram_are_the_longest() -> None:
    ranks = {"a": 1.0, "b": 1.5, "c": 3.0, "d": 3.5, "e": 9.0}
    assert indistinct_groups(ranks, 2.1) == [("a", "c"), ("b", "d")]
    assert indistinct_groups(ranks, 0.4) == []
    assert indistinct_groups(ranks, 99) == [("a", "e")]


@pytest.mark.parametrize("n_methods", [3, 20])
def test_the_diagram_is_drawn_for_few_and_many_methods(n_methods: int) -> None:
    table = paper_scores().select(datasets=["SA", "CP"])
    table = table.select(methods=["TabNSM", *table.methods[: n_methods - 1]])
    found = analyse(table, "TabNSM")
    shown = " ".join(texts(draw_critical_difference(found, paper_families())))
    assert f"CD = {found.nemenyi.cd:.2f}" in shown
    assert all(method in shown for method in table.methods)


def test_ours_may_be_far_behind() -> None:
    found = analyse(paper_scores(), "SVR-Linear", ["SA", "CP", "AQ", "TO", "SC"])
    figure = draw_critical_difference(found, paper_families())
    assert f"CD = {analyse_paper().nemenyi.cd:.2f}" in " ".join(texts(figure))


def test_bars_over_decades_are_logarithmic() -> None:
    small, large = {"a": [1.0, 1.1], "b": [2.0]}, {"a": [1.0], "b": [500.0, 510.0]}
    figure = draw_ablation({"x": small, "y": large}, "a", "t", "RMSE")
    assert [axis.get_yscale() for axis in figure.axes] == ["linear", "log"]


def test_many_variants_are_drawn_horizontally() -> None:
    values = {f"option_{k} = a long value": [1.0 + k] for k in range(9)} | {"base": [2.0]}
    figure = draw_ablation({"x": values}, "base", "t", "RMSE")
    names = set(values) - {"base"}
    assert names <= set(texts(figure))
    assert not overlaps(figure, names)


def test_curves_are_relative_to_the_best_value() -> None:
    figure = draw_sensitivity({"x": {1.0: [4.0], 2.0: [2.0]}}, "option", 1.0, "t")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [2.0, 1.0]


def test_a_level_that_was_not_reached_is_marked() -> None:
    tables = [TimedTable("x", 100, {"a": 1.0, "b": None}), TimedTable("y", 200, {"a": 2.0})]
    assert "b: not reached" in texts(draw_thresholds(tables, "t"))
    assert "b: not reached" not in texts(draw_thresholds(tables[1:], "t"))


def test_a_long_title_of_bubbles_stays_inside_and_the_front_is_explained() -> None:
    bubbles = [Bubble(str(k), "Other", 1.0 + k, 10.0**k, 100.0) for k in range(3)]
    figure = draw_bubbles(bubbles, ", ".join(["a_dataset_with_a_name"] * 12))
    figure.draw_without_rendering()
    title = figure._suptitle  # type: ignore[attr-defined]
    box = title.get_window_extent().transformed(figure.transFigure.inverted())
    assert title.get_text().count("\n") >= 1
    assert box.x0 > 0
    assert box.x1 < 1
    assert any("no method is both" in text for text in texts(figure))


def test_training_curves_of_twenty_methods_have_twenty_colours() -> None:
    curves = {f"method {k}": [[(1.0, 2.0 + k), (2.0, 1.0 + k)]] for k in range(20)}
    [axis] = draw_training_curves({"data": curves}, "title").axes
    assert len({line.get_color() for line in axis.lines}) == 20


def test_ranks_of_one_dataset_are_no_wide_column() -> None:
    one, many = (paper_scores().select(datasets=names) for names in (["CP"], ["CP", "AQ", "SA"]))
    widths = []
    for table in (one, many):
        figure = draw_rank_heatmap(table)
        figure.draw_without_rendering()
        axis = figure.axes[0]
        widths.append(axis.get_window_extent().width / len(table.datasets))
    assert widths[0] < 3 * widths[1]
