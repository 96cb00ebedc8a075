"""Time to a level of validation RMSE, against CatBoost, both on the CPU.

The paper records training time until a method reaches a predefined validation loss and does not
say which. Here the levels are shares of the spread of the validation targets, which no method
chooses, and one that all methods reach on every seed, since a level that one misses compares
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies.findings import Findings, lookup, summarize
from tabnsm_bench.studies.study import Scope, Study, run_spec
from tabnsm_bench.studies.table import Column, StudyTable
from tabnsm_bench.studies.variant import Variant, tabnsm_method

Curve = list[tuple[float, float]]

SHARES = (0.5, 0.3, 0.2, 0.15, 0.1)
# Room above the worst of the methods' best, so that the level is not passed by luck alone.
MARGIN = 1.02
HISTORY = "settings.history"
PARTS = ("train", "validation", "test")


def seconds_to(curve: Curve, level: float, *, thinned: bool = False) -> float | None:
    """Seconds until the validation RMSE is first at or below a level.

    Parameters
    ----------
    curve : list of (seconds, rmse)
        After each epoch or iteration.
    level : float
    thinned : bool, default False
        Whether iterations between the points were left out; the level was then reached between
        two points, and the time is interpolated linearly.

    Returns
    -------
    float or None
        None if it never is.

    Examples
    --------
    >>> curve = [(0.5, 4.0), (1.0, 2.0), (1.5, 3.0), (2.0, 1.0)]
    >>> seconds_to(curve, 2.5), seconds_to(curve, 2.5, thinned=True)
    (1.0, 0.875)
    """
    place = next((i for i, (_, rmse) in enumerate(curve) if rmse <= level), None)
    if place is None:
        return None
    after, low = curve[place]
    if not (thinned and place):
        return after
    before, high = curve[place - 1]
    return before + (after - before) * (high - level) / (high - low)


def is_thinned(result: Mapping[str, Any]) -> bool:
    """Whether a result kept only some of its iterations.

    Examples
    --------
    >>> history = {"seconds": [0.1, 0.3], "validation_rmse": [3.0, 2.0]}
    >>> is_thinned({"settings": {"iterations": 3, "history": history}})
    True
    """
    total = lookup(result, "settings.iterations") or lookup(result, "settings.epochs") or 0
    return bool(total > len(curve_of(result)))


def curve_of(result: Mapping[str, Any]) -> Curve:
    """Seconds and validation RMSE of a result, in the order of time; empty if not recorded.

    Examples
    --------
    >>> history = {"seconds": [0.5, 1.0], "validation_rmse": [3.0, 2.0]}
    >>> curve_of({"settings": {"history": history}})
    [(0.5, 3.0), (1.0, 2.0)]
    """
    history = lookup(result, HISTORY)
    if not isinstance(history, Mapping):
        return []
    return list(zip(history["seconds"], history["validation_rmse"], strict=True))


def validation_spread(result: Mapping[str, Any]) -> float | None:
    """Standard deviation of the validation targets, from the result's own MSE and R2.

    Examples
    --------
    >>> validation_spread({"metrics": {"validation": {"mse": 1.0, "r2": 0.75}}})
    2.0
    """
    mse, r2 = (lookup(result, f"metrics.validation.{name}") for name in ("mse", "r2"))
    if mse is None or r2 is None or not r2 < 1:
        return None
    return math.sqrt(mse / (1 - r2))


@dataclass(frozen=True)
class ThresholdStudy(Study):
    """A study whose rows are levels and methods.

    Parameters
    ----------
    levels : tuple of float
        Levels of validation RMSE in the target's units; empty for those of the module's head.
    """

    levels: tuple[float, ...] = ()

    def at(self, levels: Sequence[float]) -> ThresholdStudy:
        """The same study at levels of the user's own."""
        if not all(math.isfinite(level) and level > 0 for level in levels):
            raise InvalidOptionError(f"level must be finite and > 0, got {list(levels)}.")
        return replace(self, levels=tuple(levels))

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Seconds of each method to each level; see `Study.table`."""
        findings = Findings(results)
        notes = self.missing(findings, scope)
        rows = []
        for dataset in scope.datasets:
            found: dict[Variant, list[Mapping[str, Any]]] = {}
            for variant in self.rows(scope.preset):
                done = findings.done(
                    run_spec(variant, dataset, seed, scope.caps) for seed in scope.seeds
                )
                found[variant] = [result for result in done if curve_of(result)]
                if len(found[variant]) < len(done):
                    notes.append(f"{variant.method} on {dataset} recorded no validation curve.")
            rows += self._dataset_rows(dataset, found)
        notes.append(
            "Seconds are wall time of training on the CPU, without encoding the table: they mean "
            "something on a machine that is otherwise idle. A mean is over the runs that reached "
            "the level."
        )
        columns = [
            Column("dataset", "dataset"),
            Column("n_rows", "rows"),
            Column("level", "level"),
            Column("rmse", "RMSE"),
            Column("method", "method"),
            Column("reached", "reached"),
            Column("seconds", "seconds", ".2f", "seconds_sd"),
            Column("times", "times TabNSM", ".2f"),
        ]
        return StudyTable(self.name, self.title(scope), columns, rows, notes)

    def _dataset_rows(
        self, dataset: str, found: dict[Variant, list[Mapping[str, Any]]]
    ) -> list[dict[str, Any]]:
        rows = []
        results = [result for group in found.values() for result in group]
        n_rows = sum(results[0]["split"][f"n_{part}"] for part in PARTS) if results else None
        for name, level in self._levels(list(found.values())):
            own: float | None = None
            for variant, group in found.items():
                times = [
                    seconds_to(curve_of(result), level, thinned=is_thinned(result))
                    for result in group
                ]
                summary = summarize([time for time in times if time is not None])
                own = summary.mean if variant.is_reference else own
                rows.append(
                    {
                        "dataset": dataset,
                        "n_rows": n_rows,
                        "level": name,
                        "rmse": level,
                        "method": variant.method,
                        "reached": f"{summary.n} of {len(group)}",
                        "seconds": summary.mean,
                        "seconds_sd": summary.sd,
                        "times": summary.mean / own if summary.mean and own else None,
                    }
                )
        return rows

    def _levels(self, groups: list[list[Mapping[str, Any]]]) -> list[tuple[str, float]]:
        results = [result for group in groups for result in group]
        if not results:
            return []
        if self.levels:
            return [("given", level) for level in self.levels]
        spread = next((s for s in map(validation_spread, results) if s is not None), None)
        shares = [] if spread is None else [(f"{share:g} sd", share * spread) for share in SHARES]
        if not all(groups):
            return shares
        worst = max(min(rmse for _, rmse in curve_of(result)) for result in results)
        return [*shares, ("all reach", MARGIN * worst)]


def method_variants(method: str) -> list[Variant]:
    """One method as it is."""
    return [Variant(method, method)]


def preset_variants(preset: str) -> list[Variant]:
    """TabNSM as it is."""
    return [Variant(tabnsm_method(preset), tabnsm_method(preset), is_reference=True)]


STUDIES = (
    ThresholdStudy(
        "threshold",
        "Training time to a level of validation RMSE",
        "runtime under the validation-loss threshold protocol",
        preset_variants,
        beside=method_variants,
        peers=("catboost",),
    ),
)
