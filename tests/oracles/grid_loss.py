"""GridLoss as the paper writes it: one value at a time, one anchor at a time, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence


def soft_index(
    x: float, lower: float, upper: float, n_grid_cells: int, temperature: float
) -> tuple[float, float]:
    """Soft index and its slope, from the softmax and its covariance formula.

    Positions are taken relative to `lower`: the same distances, without the rounding that a
    large offset would put into the anchors.
    """
    step = (upper - lower + 1e-8) / n_grid_cells
    offsets = [(x - lower) - k * step for k in range(n_grid_cells + 1)]
    nearest = min(abs(offset) for offset in offsets)
    weights = [math.exp(-(abs(offset) - nearest) / temperature) for offset in offsets]
    total = math.fsum(weights)
    weights = [weight / total for weight in weights]
    signs = [math.copysign(1.0, offset) for offset in offsets]
    index = math.fsum(k * weight for k, weight in enumerate(weights))
    mean_sign = math.fsum(weight * sign for weight, sign in zip(weights, signs, strict=True))
    covariance = math.fsum(
        weight * (k - index) * (sign - mean_sign)
        for k, (weight, sign) in enumerate(zip(weights, signs, strict=True))
    )
    return index, -covariance / temperature


def grid_loss(
    prediction: Sequence[float],
    target: Sequence[float],
    n_grid_cells: int,
    temperature: float,
    *,
    normalize: bool = False,
    bounds: tuple[float, float] | None = None,
) -> tuple[list[float], list[float]]:
    """Loss of each row, and the slope of each row's loss in its prediction."""
    lower, upper = bounds or (min(*prediction, *target), max(*prediction, *target))
    width = upper - lower + 1e-8
    unit = width / n_grid_cells if normalize else 1.0
    if normalize:
        temperature = temperature * width
    losses, slopes = [], []
    for y_hat, y in zip(prediction, target, strict=True):
        index, slope = soft_index(y_hat, lower, upper, n_grid_cells, temperature)
        difference = index - soft_index(y, lower, upper, n_grid_cells, temperature)[0]
        losses.append(unit * abs(difference))
        slopes.append(unit * slope * ((difference > 0) - (difference < 0)))
    return losses, slopes
