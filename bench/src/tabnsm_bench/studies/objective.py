"""Studies of the loss: its kind, the blend, the number of grid cells and the temperature."""

from __future__ import annotations

from collections.abc import Iterable

from tabnsm_bench.studies.study import Study
from tabnsm_bench.studies.variant import Variant, preset_options, spelled, tabnsm_method

BLENDS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.0)
GRID_CELLS = (50, 100, 200, 500, 1000)
TEMPERATURES = (0.1, 0.3, 1.0, 3.0, 10.0)


def loss_variants(preset: str) -> list[Variant]:
    """Plain losses, the parts of the blend alone, and the blend; against GridLoss, as the paper."""
    methods = {
        "GridLoss": tabnsm_method(preset, huber_weight=0.0),
        "MSE": tabnsm_method(preset, loss="mse"),
        "MAE": tabnsm_method(preset, loss="mae"),
        "Huber": tabnsm_method(preset, huber_weight=1.0),
        "log-cosh": tabnsm_method(preset, loss="log_cosh"),
        "blend": tabnsm_method(preset),
    }
    return [
        Variant(name, method, is_reference=name == "GridLoss") for name, method in methods.items()
    ]


def blend_variants(preset: str) -> list[Variant]:
    """Shares of Huber from 1 (Huber alone) to 0 (GridLoss alone)."""
    return option_variants(preset, "huber_weight", BLENDS)


def grid_cell_variants(preset: str) -> list[Variant]:
    """Numbers of grid cells, the paper's K."""
    return option_variants(preset, "n_grid_cells", GRID_CELLS)


def temperature_variants(preset: str) -> list[Variant]:
    """Temperatures, the paper's tau: in the preset's units, its own value among them."""
    return option_variants(preset, "temperature", TEMPERATURES)


def option_variants(preset: str, name: str, values: Iterable[float]) -> list[Variant]:
    """One option through its values; the preset's own is the reference.

    Examples
    --------
    >>> [row.label for row in option_variants("paper", "temperature", (0.1, 10.0))]
    ['temperature = 0.1', 'temperature = 1', 'temperature = 10']
    """
    own = preset_options(preset)[name]
    return [
        Variant(
            f"{name} = {spelled(value)}",
            tabnsm_method(preset, **{name: value}),
            value=value,
            is_reference=value == own,
        )
        for value in sorted({*values, own})
    ]


STUDIES = (
    Study(
        "loss",
        "Losses: MSE, MAE, Huber, log-cosh, GridLoss and their blend",
        "loss-function ablation",
        loss_variants,
    ),
    Study(
        "blend",
        "Share of Huber in the objective",
        "effect of the blending coefficient alpha",
        blend_variants,
    ),
    Study(
        "grid-cells",
        "Number of grid cells in GridLoss (K)",
        "sensitivity to GridLoss hyperparameters",
        grid_cell_variants,
    ),
    Study(
        "temperature",
        "Temperature of GridLoss (tau)",
        "normalized RMSE as a function of tau",
        temperature_variants,
    ),
)
