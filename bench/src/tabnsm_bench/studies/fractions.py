"""Studies of size: a share of the features, and a share of the training rows."""

from __future__ import annotations

from functools import partial

from tabnsm_bench.studies.study import FIT_SECONDS, MSE, RMSE, Study
from tabnsm_bench.studies.variant import Variant, tabnsm_method

FRACTIONS = {
    "feature_fraction": (0.25, 0.5, 0.75, 1.0),
    "sample_fraction": (0.1, 0.25, 0.5, 0.75, 1.0),
}


def method_variants(method: str, field: str) -> list[Variant]:
    """A method on shares of the table, against itself on all of it."""
    return [
        Variant(
            f"{method}, {share:.0%}",
            method,
            changes=((field, share),),
            group=method,
            value=share,
            is_reference=share == 1,
        )
        for share in FRACTIONS[field]
    ]


def preset_variants(preset: str, field: str) -> list[Variant]:
    """TabNSM on shares of the table."""
    return method_variants(tabnsm_method(preset), field)


STUDIES = tuple(
    Study(
        name,
        description,
        "sensitivity to feature dimensionality and sample size",
        partial(preset_variants, field=field),
        measures=(MSE, RMSE, FIT_SECONDS),
        beside=partial(method_variants, field=field),
        peers=("catboost",),
    )
    for name, description, field in (
        ("features", "Share of the table's columns", "feature_fraction"),
        ("samples", "Share of the training rows", "sample_fraction"),
    )
)
