"""Studies of the network: its attention, its mixer, and the parameters of sparse attention."""

from __future__ import annotations

from tabnsm_bench.studies.study import Study
from tabnsm_bench.studies.variant import Variant, preset_options, tabnsm_method

# One at a time around the paper's settings, within the range that the paper searched.
SPARSE_VALUES: dict[str, tuple[int, ...]] = {
    "n_selected_blocks": (1, 2, 3, 4, 5),
    "selection_block_size": (4, 6, 8, 10, 12, 16),
    "compress_block_size": (4, 7, 10, 13, 16),
    "window_size": (1, 2, 4, 6, 8),
}


def attention_variants(preset: str) -> list[Variant]:
    """Sparse attention, full attention and Mamba in the same network."""
    return [
        Variant(kind, tabnsm_method(preset, attention=kind), is_reference=kind == "sparse")
        for kind in ("sparse", "full", "mamba")
    ]


def mixer_variants(preset: str) -> list[Variant]:
    """With and without Feature-Token Mixing."""
    return [
        Variant("with FTM", tabnsm_method(preset), is_reference=True),
        Variant("without FTM", tabnsm_method(preset, mixer=False)),
    ]


def sparse_variants(preset: str) -> list[Variant]:
    """Each parameter of sparse attention through its values, the others as in the preset."""
    own = preset_options(preset)
    return [
        Variant(
            f"{name} = {value}",
            tabnsm_method(preset, **{name: value}),
            group=name,
            value=value,
            is_reference=value == own[name],
        )
        for name, values in SPARSE_VALUES.items()
        for value in sorted({*values, own[name]})
    ]


STUDIES = (
    Study(
        "attention",
        "Sparse attention, full attention and Mamba over the features",
        "ablation of sparse interaction modeling",
        attention_variants,
    ),
    Study(
        "mixer",
        "With and without Feature-Token Mixing",
        "ablation of the FTM pathway",
        mixer_variants,
    ),
    Study(
        "sparse",
        "The four parameters of sparse attention, one at a time",
        "component-wise ablation of sparse attention parameters",
        sparse_variants,
    ).judged_by("validation_rmse"),
)
