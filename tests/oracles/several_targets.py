"""GridLoss of several targets on one grid over all of them: every anchor of the product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def grid_loss(
    prediction: Sequence[float],
    target: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    n_grid_cells: int,
    temperatures: Sequence[float],
) -> list[float]:
    """Distance in each direction between the mean anchors of one row's prediction and target.

    Anchors are tuples of one place per target, weighted by a softmax of the negative sum of the
    distances in each direction, each over its temperature.
    """
    steps = [(upper - lower + 1e-8) / n_grid_cells for lower, upper in bounds]

    def mean_anchor(point: Sequence[float]) -> list[float]:
        anchors = list(itertools.product(range(n_grid_cells + 1), repeat=len(bounds)))
        weights = [
            math.exp(
                -math.fsum(
                    abs(x - lower - place * step) / temperature
                    for x, (lower, _), place, step, temperature in zip(
                        point, bounds, anchor, steps, temperatures, strict=True
                    )
                )
            )
            for anchor in anchors
        ]
        total = math.fsum(weights)
        return [
            math.fsum(weight * anchor[k] for weight, anchor in zip(weights, anchors, strict=True))
            / total
            for k in range(len(bounds))
        ]

    pairs = zip(mean_anchor(prediction), mean_anchor(target), strict=True)
    return [abs(a - b) for a, b in pairs]


def row_losses(
    prediction: Sequence[Sequence[float]],
    target: Sequence[Sequence[float | None]],
    n_grid_cells: int,
    temperature: float,
    *,
    normalize: bool,
    huber_weight: float,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> list[float]:
    """The blend of each row, entry by entry; None is a missing target."""
    n_targets = len(prediction[0])
    if bounds is None:
        bounds = []
        for k in range(n_targets):
            rows = [i for i, row in enumerate(target) if row[k] is not None]
            values = [prediction[i][k] for i in rows] + [target[i][k] for i in rows]
            bounds.append((min(values, default=0.0), max(values, default=0.0)))
    losses = []
    for y_hat, y in zip(prediction, target, strict=True):
        own = [k for k in range(n_targets) if y[k] is not None]
        if not own:
            losses.append(0.0)
            continue
        widths = [bounds[k][1] - bounds[k][0] + 1e-8 for k in own]
        distances = grid_loss(
            [y_hat[k] for k in own],
            [y[k] for k in own],
            [bounds[k] for k in own],
            n_grid_cells,
            [temperature * width if normalize else temperature for width in widths],
        )
        total = 0.0
        for k, width, distance in zip(own, widths, distances, strict=True):
            residual = abs(y_hat[k] - y[k])
            huber = residual**2 / 2 if residual <= 1 else residual - 0.5
            grid = distance * width / n_grid_cells if normalize else distance
            total += huber_weight * huber + (1 - huber_weight) * grid
        losses.append(total / len(own))
    return losses
