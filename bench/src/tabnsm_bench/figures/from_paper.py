"""Figures of the figures that the paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabnsm_bench.figures.ablation import draw_ablation
from tabnsm_bench.figures.average_ranks import draw_average_ranks
from tabnsm_bench.figures.critical_difference import draw_critical_difference
from tabnsm_bench.figures.memory import draw_memory_bars
from tabnsm_bench.figures.rank_heatmap import draw_rank_heatmap
from tabnsm_bench.figures.temperature import TargetPoint, draw_temperatures
from tabnsm_bench.figures.thresholds import TimedTable, draw_thresholds
from tabnsm_bench.paper import OURS, paper_facts, paper_families, paper_scores
from tabnsm_bench.statistics import analyse_paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def critical_difference() -> Figure:
    """The critical-difference diagram of the paper's table."""
    return draw_critical_difference(analyse_paper(), paper_families())


def average_ranks() -> Figure:
    """Average ranks of the paper's table."""
    return draw_average_ranks(analyse_paper(), paper_families())


def rank_heatmap() -> Figure:
    """Ranks of the paper's table."""
    return draw_rank_heatmap(paper_scores())


def mixer() -> Figure:
    """The paper's ablation of Feature-Token Mixing."""
    printed = paper_facts()["mixer_ablation"]
    names = {OURS: "with FTM", "without FTM": "without FTM"}
    scores = {
        dataset: {name: [float(printed[key][dataset])] for key, name in names.items()}
        for dataset in printed[OURS]
    }
    return draw_ablation(scores, "with FTM", "The paper: ablation of the FTM pathway", "test RMSE")


def thresholds() -> Figure:
    """The paper's times to a level of validation loss."""
    facts = paper_facts()
    seconds = facts["seconds_to_threshold"]
    tables = [
        TimedTable(name, facts["datasets"][name]["rows"], {m: seconds[m][name] for m in seconds})
        for name in seconds[OURS]
    ]
    return draw_thresholds(
        tables, "The paper: CatBoost on a CPU, TabNSM on a GPU, to a level that it does not state"
    )


def memory() -> Figure:
    """The paper's memory during training."""
    facts = paper_facts()
    bars = {f"{method}, CPU": by_dataset for method, by_dataset in facts["cpu_memory_mb"].items()}
    bars |= {f"{method}, GPU": by_dataset for method, by_dataset in facts["gpu_memory_mb"].items()}
    return draw_memory_bars(bars, "The paper: increase of CPU memory, peak of GPU memory")


def temperatures() -> Figure:
    """The paper's preferred temperatures."""
    points = [
        TargetPoint(dataset, entry["iqr_over_std"], entry["preferred"])
        for dataset, entry in paper_facts()["temperature"].items()
    ]
    return draw_temperatures(points, "The paper: preferred temperature of GridLoss")
