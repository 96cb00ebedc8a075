"""Peak memory of training, against the number of features and the batch size."""

from __future__ import annotations

from tabnsm_bench.studies.study import FIT_SECONDS, PEAK_MEMORY, Measure, Study
from tabnsm_bench.studies.variant import Variant, tabnsm_method

SHARES = (0.25, 0.5, 1.0)
BATCHES = (64, 256)
N_FEATURES = Measure("n_features", "features", "dataset.features", ".0f")
INCREASE = Measure(
    "increase_mb", "MB above start", "peak_memory_mb", ".0f", minus="memory_before_fit_mb"
)


def preset_variants(preset: str) -> list[Variant]:
    """TabNSM for one epoch, which reaches the peak as well as a hundred."""
    return [
        row
        for batch in BATCHES
        for row in share_variants(
            tabnsm_method(preset, batch_size=batch), f"batch {batch}", (("max_epochs", 1),)
        )
    ]


def share_variants(method: str, group: str, changes: tuple[tuple[str, int], ...]) -> list[Variant]:
    """A method on shares of the columns, against itself on all of them."""
    return [
        Variant(
            f"{group}, {share:.0%} of the columns",
            method,
            changes=(*changes, ("feature_fraction", share)),
            group=group,
            value=share,
            is_reference=share == 1,
        )
        for share in SHARES
    ]


def peer_variants(method: str) -> list[Variant]:
    """Another method on the same shares."""
    return share_variants(method, method, ())


STUDIES = (
    Study(
        "memory",
        "Peak memory against features and batch size",
        "memory increase during training",
        preset_variants,
        measures=(PEAK_MEMORY, INCREASE, N_FEATURES, FIT_SECONDS),
        seeds=(0,),
        beside=peer_variants,
        peers=("catboost",),
    ),
)
