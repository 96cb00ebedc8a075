"""Which temperature suits which target: the best tau against IQR/std over datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies.objective import temperature_variants
from tabnsm_bench.studies.study import RMSE, VALIDATION_RMSE, Scope, Study
from tabnsm_bench.studies.table import Column, StudyTable

# Differences below this share are noise of the seeds, not a shape.
FLAT = 0.01


def target_shape(target: Any) -> dict[str, float]:
    """Spread of a target and of its bulk, and the weight of its tails.

    Returns
    -------
    dict
        ``std`` (n - 1 below), ``iqr``, ``iqr_over_std``, ``excess_kurtosis`` (0 for a bell).

    Examples
    --------
    >>> shape = target_shape([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> shape["iqr"], round(shape["std"], 3), round(shape["iqr_over_std"], 3)
    (2.0, 1.581, 1.265)
    """
    values = np.asarray(target, dtype=np.float64)
    lower, upper = np.percentile(values, (25, 75))
    std = float(values.std(ddof=1))
    standard = (values - values.mean()) / values.std()
    return {
        "std": std,
        "iqr": float(upper - lower),
        "iqr_over_std": float(upper - lower) / std,
        "excess_kurtosis": float(np.mean(standard**4) - 3),
    }


def behaviour(errors: Sequence[float]) -> str:
    """The shape of a curve of errors over rising temperatures.

    Examples
    --------
    >>> behaviour([3.0, 2.5, 2.0]), behaviour([2.0, 2.5, 3.0]), behaviour([2.0, 1.0, 2.0])
    ('falls', 'rises', 'best inside')
    >>> behaviour([2.0, 2.001, 2.0]), behaviour([1.0, 2.0, 1.0])
    ('flat', 'several turns')
    """
    values = np.asarray(errors, dtype=np.float64)
    if np.ptp(values) <= FLAT * values.min():
        return "flat"
    steps = np.diff(values)
    signs = np.sign(steps[np.abs(steps) > FLAT * values.min()])
    turns = int(np.count_nonzero(np.diff(signs)))
    if turns == 0:
        return "rises" if len(signs) and signs[0] > 0 else "falls"
    return "best inside" if turns == 1 and signs[0] < 0 else "several turns"


class TargetStudy(Study):
    """A study with one row per dataset."""

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Shape of each target, its best temperature, and the curve; see `Study.table`."""
        if scope.data_dir is None:
            raise InvalidOptionError(
                "data_dir must be given to look at the targets. Add --data-dir."
            )
        from tabnsm_bench.datasets import load

        curves = super().table(results, scope)
        key = self.measures[0].key
        rows = []
        for dataset in scope.datasets:
            found = {
                row["value"]: row[key]
                for row in curves.rows
                if row["dataset"] == dataset and row[key] is not None
            }
            target = load(dataset, scope.data_dir, target=scope.caps.get("target")).target
            row = {"dataset": dataset, **target_shape(target)}
            if found:
                least = min(found.values())
                row |= {
                    "best_temperature": min(found, key=lambda value: found[value]),
                    "behaviour": behaviour(list(found.values())) if len(found) > 1 else None,
                    "temperatures": list(found),
                    "normalized": [value / least if least else None for value in found.values()],
                }
            rows.append(row)
        facts = _correlation(rows)
        notes = [*curves.notes, *facts.pop("notes")]
        columns = [
            Column("dataset", "dataset"),
            Column("std", "std"),
            Column("iqr", "IQR"),
            Column("iqr_over_std", "IQR/std", ".2f"),
            Column("excess_kurtosis", "excess kurtosis", ".1f"),
            Column("best_temperature", "best tau"),
            Column("behaviour", f"{self.measures[0].header} over tau"),
        ]
        return StudyTable(self.name, self.title(scope), columns, rows, notes, facts)


def _correlation(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rank correlation of IQR/std with the best temperature, where that says anything."""
    found = [row for row in rows if row.get("best_temperature") is not None]
    pairs = [(row["iqr_over_std"], row["best_temperature"]) for row in found]
    if len(pairs) < 3 or any(len(set(side)) < 2 for side in zip(*pairs, strict=True)):
        return {"spearman": None, "notes": []}
    from scipy.stats import spearmanr

    result = spearmanr(*zip(*pairs, strict=True))
    value, p = float(result.statistic), float(result.pvalue)
    return {
        "spearman": value,
        "p": p,
        "notes": [
            f"Spearman correlation of IQR/std and the best tau over {len(pairs)} datasets: "
            f"{value:.2f} (p = {p:.2g})."
        ],
    }


STUDIES = (
    TargetStudy(
        "temperature-by-target",
        "Best temperature against the shape of the target",
        "sensitivity of tau to target distribution properties",
        temperature_variants,
        measures=(VALIDATION_RMSE, RMSE),
    ),
)
