"""The training objective: a blend of the Huber loss and GridLoss, or a plain loss beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import huber_loss, softplus

from tabnsm import kernels
from tabnsm.columns.large import count_distinct
from tabnsm.errors import InvalidDataError
from tabnsm.functional.grid_loss import (
    Bounds,
    check_grid_options,
    grid_bounds,
    grid_loss,
    grid_range,
)
from tabnsm.functional.several_targets import (
    fill_missing,
    grids_of_targets,
    mean_over_targets,
)
from tabnsm.rules import require, require_one_of

TargetLoss = Literal["blend", "mse", "mae", "log_cosh"]
Loss = Literal["auto"] | TargetLoss
MAX_LEVELS = 12
"""Distinct values up to which a target is taken for a rating or a small count."""
MIN_EXPLAINED = 0.6
"""Share of a target's variance that can be explained, below which it is mostly noise."""


def log_cosh(residual: Tensor) -> Tensor:
    """Logarithm of the hyperbolic cosine: half a square near zero, linear far from it.

    Examples
    --------
    >>> log_cosh(torch.tensor([0.0, 1.0, -30.0]))
    tensor([ 0.0000,  0.4338, 29.3069])
    """
    size = residual.abs()
    return size + softplus(-2 * size) - math.log(2)  # cosh itself overflows


BLEND_OPTIONS = ("huber_weight", "huber_delta", "n_grid_cells", "temperature", "normalize_grid")
PLAIN_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "mse": torch.square,
    "mae": torch.abs,
    "log_cosh": log_cosh,
}


@dataclass(frozen=True)
class ObjectiveConfig:
    """Options of `Objective`, for standardised targets.

    Parameters
    ----------
    loss : {"auto", "blend", "mse", "mae", "log_cosh"}, default "auto"
        The blend that the options below describe, or a plain loss of the residual instead: the
        paper's ablation. "auto" is the blend, but for targets of at most 12 distinct values,
        ratings and small counts, and for those that are mostly noise and validated by RMSE: there
        it is squared error, unless an option of the blend is set.
        Each of several targets has its own.
    huber_weight : float, default 0.5
        Share of the Huber loss: 1 is Huber alone, 0 GridLoss alone.
    huber_delta : float, default 1.0
        Residual at which the Huber loss turns from squared to linear.
    n_grid_cells : int, default 100
        Cells of GridLoss's grid.
    temperature : float, default 0.02
        Softness of GridLoss; relative to the grid's range if normalised, else in the units of
        the standardised target.
    normalize_grid : bool, default True
        Whether GridLoss is in target units; False is the paper's, in index units.

    Examples
    --------
    >>> ObjectiveConfig(huber_weight=2)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: huber_weight must be between 0 and 1, got 2.
    """

    # NOTE[DIFF]: the paper has the blend for every target. It leans towards the median, which is
    # one of a rating's few values where their mean is wanted.
    loss: Loss = "auto"
    huber_weight: float = 0.5
    huber_delta: float = 1.0
    n_grid_cells: int = 100
    # NOTE[DIFF]: the paper's GridLoss is K / range times an absolute error, so that it swamps the
    # Huber loss; in target units both parts weigh what huber_weight says. With a
    # temperature of two cells its slope is 1 within 5 % inside the range, and at the ends, where
    # a softer grid loses its gradient, still 0.39.
    temperature: float = 0.02
    normalize_grid: bool = True

    def __post_init__(self) -> None:
        require_one_of("loss", self.loss, ("auto", "blend", *PLAIN_LOSSES))
        require(
            isinstance(self.huber_weight, int | float) and 0 <= self.huber_weight <= 1,
            "huber_weight must be between 0 and 1",
            self.huber_weight,
        )
        require(
            isinstance(self.huber_delta, int | float) and 0 < self.huber_delta < math.inf,
            "huber_delta must be finite and > 0",
            self.huber_delta,
        )
        require(
            isinstance(self.normalize_grid, bool),
            "normalize_grid must be True or False",
            self.normalize_grid,
        )
        check_grid_options(self.n_grid_cells, self.temperature, normalize=self.normalize_grid)

    def losses_of(self, target: np.ndarray) -> tuple[TargetLoss, ...]:
        """The loss of each of these training targets, (n, t), NaN where missing.

        Examples
        --------
        >>> stars, prices = np.tile([5.0, 4.0, 5.0, 1.0], 25), np.arange(100.0)
        >>> ObjectiveConfig().losses_of(np.stack([stars, prices], axis=1))
        ('mse', 'blend')
        """
        if self.loss != "auto":
            return tuple(self.loss for _ in target.T)
        counts = [count_distinct(column[~np.isnan(column)]) for column in target.T]
        return tuple("mse" if n <= MAX_LEVELS and self.is_open else "blend" for n in counts)

    @property
    def is_open(self) -> bool:
        """Whether the loss is to be chosen, and no option of the blend is set."""
        usual = ObjectiveConfig()
        return self.loss == "auto" and all(
            getattr(self, name) == getattr(usual, name) for name in BLEND_OPTIONS
        )

    def for_target(self, target: np.ndarray, explained: float | None = None) -> ObjectiveConfig:
        """The same options with "auto" replaced by the loss for these training targets, (n, t).

        It stays where they differ in it. `explained` is the share of a target's variance that can
        be explained, if known.

        Examples
        --------
        >>> stars, prices = np.array([[5.0], [4.0], [5.0], [1.0]]), np.arange(100.0)[:, None]
        >>> [ObjectiveConfig().for_target(y).loss for y in (stars, prices)]
        ['mse', 'blend']
        >>> ObjectiveConfig(huber_weight=0.8).for_target(stars).loss
        'blend'
        >>> ObjectiveConfig().for_target(prices, explained=0.2).loss
        'mse'
        """
        if self.is_open and explained is not None and explained < MIN_EXPLAINED:
            return replace(self, loss="mse")
        losses = set(self.losses_of(target))
        return replace(self, loss=losses.pop()) if len(losses) == 1 else self


class Objective:
    """Loss of a batch for training, and of each row for evaluation and RISE.

    Parameters
    ----------
    config : ObjectiveConfig
    losses : sequence of str or None, default None
        Of each target, from `ObjectiveConfig.losses_of`. None is the config's loss for all, and
        the blend where that is "auto".

    Notes
    -----
    Shape: prediction and target (N, t); sample_weight (N,); batch loss (), row losses (N,). The
    loss of a row is the mean of those of its targets, each of which has a grid of its own. Targets
    that are NaN are missing: they count neither in that mean nor in the range of a grid. A row
    without any has the loss 0. Losses are at least float32 whatever the precision of the
    predictions.

    Examples
    --------
    >>> objective = Objective(ObjectiveConfig(huber_weight=1.0))
    >>> prediction, target = torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0], [3.0]])
    >>> objective.batch_loss(prediction, target)
    tensor(0.2500)
    >>> objective.batch_loss(prediction, target, sample_weight=torch.tensor([1.5, 0.5]))
    tensor(0.3750)
    >>> objective.row_losses(prediction, target, bounds=[(0.0, 3.0)])
    tensor([0.5000, 0.0000])
    """

    def __init__(self, config: ObjectiveConfig, losses: Sequence[TargetLoss] | None = None) -> None:
        self.config = config
        self.losses = losses

    def batch_loss(
        self,
        prediction: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        bounds: Sequence[Bounds] | None = None,
    ) -> Tensor:
        """Mean of the weighted losses of a batch, with the grid on the batch's own range.

        Parameters
        ----------
        prediction, target : Tensor
        sample_weight : Tensor or None, default=None
            Positive weights, of mean 1 over all training rows; None weighs all rows alike.
        bounds : sequence of (lower, upper) or None, default=None
            The batch's range of each target, where these rows are a part of it.
        """
        losses = self._row_losses(prediction, target, bounds)
        if sample_weight is None:
            return losses.mean()
        if sample_weight.shape != losses.shape:
            raise InvalidDataError(
                f"sample_weight must have one weight for each of the rows {tuple(losses.shape)}, "
                f"got {tuple(sample_weight.shape)}."
            )
        return (sample_weight.to(losses.dtype) * losses).mean()

    def uses_grid(self, n_targets: int) -> bool:
        """Whether the loss of one of the targets has a grid."""
        losses = self.losses or (self.config.loss,) * n_targets
        return self.config.huber_weight < 1 and any(loss not in PLAIN_LOSSES for loss in losses)

    def row_losses(self, prediction: Tensor, target: Tensor, bounds: Sequence[Bounds]) -> Tensor:
        """Unweighted loss of each row, with the grid on a fixed range.

        Parameters
        ----------
        prediction, target : Tensor
        bounds : sequence of (lower, upper), floats
            The range of each of the training targets, so that a row's loss does not depend on its
            batch. GridLoss is constant outside of it; the Huber loss keeps growing.
        """
        return self._row_losses(prediction, target, bounds)

    def _row_losses(
        self, prediction: Tensor, target: Tensor, bounds: Sequence[Bounds] | None
    ) -> Tensor:
        """Mean over the targets of each row's losses, (N, t) -> (N,)."""
        if prediction.shape != target.shape or prediction.ndim != 2 or prediction.numel() == 0:
            raise InvalidDataError(
                "prediction and target must both have shape (n_rows, n_targets), both >= 1, got "
                f"{tuple(prediction.shape)} and {tuple(target.shape)}."
            )
        prediction = prediction.to(torch.promote_types(prediction.dtype, torch.float32))
        target = target.to(prediction.dtype)
        n_targets = target.shape[1]
        losses = self.losses or (self.config.loss,) * n_targets
        if n_targets == 1:
            only = None if bounds is None else bounds[0]
            return self._entry_losses(prediction[:, 0], target[:, 0], only, losses[0])
        prediction, target, present = fill_missing(prediction, target)  # (N, t) each
        if bounds is None:
            lower, upper = grids_of_targets(prediction, target, present)  # (t,)
        else:
            ranges = [torch.as_tensor(pair, dtype=torch.float64) for pair in bounds]
            lower, upper = torch.stack(ranges).to(target.device).unbind(1)
        entries = torch.empty_like(target)
        for loss in set(losses):
            of = [k for k in range(n_targets) if losses[k] == loss]
            own = (lower[of], upper[of])
            entries[:, of] = self._entry_losses(prediction[:, of], target[:, of], own, loss)
        return mean_over_targets(entries, present)

    def _entry_losses(
        self, prediction: Tensor, target: Tensor, bounds: Bounds | None, loss: str
    ) -> Tensor:
        """Losses of one target, (N,), or of several, (N, t) with bounds (t,)."""
        config = self.config
        if loss in PLAIN_LOSSES:
            return PLAIN_LOSSES[loss](prediction - target)
        if prediction.requires_grad and kernels.serves_blend(prediction, target):
            return self._compiled_losses(prediction, target, bounds)
        if config.huber_weight == 0:
            return self._grid_losses(prediction, target, bounds)
        huber = huber_loss(prediction, target, reduction="none", delta=config.huber_delta)
        if config.huber_weight == 1:
            return huber
        grid = self._grid_losses(prediction, target, bounds)
        return config.huber_weight * huber + (1 - config.huber_weight) * grid

    def _compiled_losses(self, prediction: Tensor, target: Tensor, bounds: Bounds | None) -> Tensor:
        """The blend for a step of training: torch's many operators take long on few values."""
        config = self.config
        lower, width = grid_range(*(bounds or grid_bounds(prediction, target)))
        scale = float(width) if config.normalize_grid else 1.0
        return kernels.blend_losses(
            prediction,
            target,
            lower=float(lower),
            width=float(width),
            n_grid_cells=config.n_grid_cells,
            temperature=config.temperature * scale,
            normalize=config.normalize_grid,
            huber_weight=config.huber_weight,
            huber_delta=config.huber_delta,
        )

    def _grid_losses(self, prediction: Tensor, target: Tensor, bounds: Bounds | None) -> Tensor:
        return grid_loss(
            prediction,
            target,
            n_grid_cells=self.config.n_grid_cells,
            temperature=self.config.temperature,
            normalize=self.config.normalize_grid,
            bounds=bounds,
            reduction="none",
        )
