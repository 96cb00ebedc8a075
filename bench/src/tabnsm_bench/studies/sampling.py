"""Studies of chance: RISE on and off, and the spread over many seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tabnsm_bench.studies.study import RMSE, VALIDATION_RMSE, Scope, Study
from tabnsm_bench.studies.table import Column, StudyTable
from tabnsm_bench.studies.variant import Variant, preset_options, tabnsm_method

FIVE_NUMBERS = ("least", "lower quartile", "median", "upper quartile", "greatest")


def rise_variants(preset: str) -> list[Variant]:
    """RISE, and a plain shuffle; where RISE draws with replacement, that alone too."""
    rows = [
        Variant("RISE", tabnsm_method(preset), is_reference=True),
        Variant(
            "uniform shuffle", tabnsm_method(preset, max_boost=1.0, rise_sampling="systematic")
        ),
    ]
    if preset_options(preset)["rise_sampling"] == "multinomial":
        rows.append(Variant("uniform with replacement", tabnsm_method(preset, max_boost=1.0)))
    return rows


def seed_variants(preset: str) -> list[Variant]:
    """The preset as it is."""
    return [Variant(f"tabnsm-{preset}", tabnsm_method(preset), is_reference=True)]


class SpreadStudy(Study):
    """A study whose table also shows the five numbers of a box plot."""

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Means, changes and quartiles; see `Study.table`."""
        table = super().table(results, scope)
        first = self.measures[0]
        for row in table.rows:
            row |= five_numbers(list(row["seeds"][first.key].values()))
        shown = [Column(name, name, first.style) for name in FIVE_NUMBERS]
        return replace(table, columns=[*table.columns, *shown])


def five_numbers(values: list[float]) -> dict[str, float | None]:
    """Minimum, quartiles and maximum of some values, as in a box plot.

    Examples
    --------
    >>> list(five_numbers([4.0, 1.0, 3.0, 2.0, 5.0]).values())
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    if not values:
        return dict.fromkeys(FIVE_NUMBERS)
    quartiles = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values
    )
    return dict(zip(FIVE_NUMBERS, (min(values), *quartiles, max(values)), strict=True))


STUDIES = (
    SpreadStudy(
        "rise",
        "RISE sampling on and off, over seeds",
        "ablation on effect of RISE",
        rise_variants,
        measures=(VALIDATION_RMSE, RMSE),
        seeds=(0, 1, 2, 3, 4),
    ),
    SpreadStudy(
        "seeds",
        "Spread over 20 seeds",
        "seed variation",
        seed_variants,
        measures=(RMSE,),
        seeds=tuple(range(20)),
    ),
)
