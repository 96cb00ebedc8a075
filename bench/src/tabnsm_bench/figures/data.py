"""What figures are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabnsm_bench.main_runs import Result
from tabnsm_bench.naming import display_name, family
from tabnsm_bench.scores import ScoreTable, collect_scores
from tabnsm_bench.statistics import check_size, choose_ours


@dataclass(frozen=True)
class FigureData:
    """Results, and which of them to draw.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    metric : {"rmse", "mae"}
        Score of the figures that rank methods.
    encoding : {"paper", "default"}
        Whose arrays the baselines had.
    preset : str
        Preset of TabNSM that studies vary.
    ours : str or None
        Method that others are tested against; None takes the first of TabNSM's presets.
    datasets : sequence of str or None
        Datasets of the figures that rank methods; None takes all.
    data_dir : Path or None
        Folder of the tables, for the figures that look at them.
    """

    results: Sequence[Result]
    metric: str = "rmse"
    encoding: str = "paper"
    preset: str = "default"
    ours: str | None = None
    datasets: Sequence[str] | None = None
    data_dir: Path | None = None

    def scores(self) -> ScoreTable:
        """Scores of all methods, under their own keys."""
        return collect_scores(self.results, self.metric, self.encoding).select(
            datasets=self.datasets
        )

    def named_scores(self) -> tuple[ScoreTable, str, dict[str, str]]:
        """Scores under names for readers, the name of ours, and the families by name."""
        table = self.scores()
        check_size(table)
        names = {method: display_name(method) for method in table.methods}
        families = {names[method]: family(method) for method in table.methods}
        return table.renamed(names), names[choose_ours(table.methods, self.ours)], families
