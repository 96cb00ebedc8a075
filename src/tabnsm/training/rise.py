"""RISE: rows that the model finds hard are drawn more often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from tabnsm.errors import InvalidDataError, ModelFileError
from tabnsm.functional.difficulty import (
    check_difficulty_options,
    difficulty_bins,
    difficulty_weights,
    draw_multinomial,
    draw_systematic,
)
from tabnsm.rules import is_integer, require, require_one_of

RiseSampling = Literal["systematic", "multinomial"]


@dataclass(frozen=True)
class RiseConfig:
    """Options of `RiseSampler`.

    Parameters
    ----------
    n_difficulty_bins : int, default 5
        Quantile bins of the rows' losses; 1 draws all rows alike.
    max_boost : float, default 2.0
        Weight of the hardest bin, where the easiest has 1; 1 draws all rows alike.
    refresh_every : int, default 5
        Epochs between two measurements of the rows' losses.
    rise_sampling : {"systematic", "multinomial"}, default "systematic"
        How rows are drawn by weight. Both have the same expectation; systematic draws take every
        row floor or ceil of its expected count, multinomial ones, the paper's, are independent.

    Examples
    --------
    >>> RiseConfig(refresh_every=0)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: refresh_every must be an integer >= 1, got 0.
    """

    n_difficulty_bins: int = 5
    max_boost: float = 2.0
    refresh_every: int = 5
    # NOTE[DIFF]: the paper draws independently, which leaves out a third of the rows each epoch.
    rise_sampling: RiseSampling = "systematic"

    def __post_init__(self) -> None:
        check_difficulty_options(self.n_difficulty_bins, self.max_boost)
        every = self.refresh_every
        require(is_integer(every, 1), "refresh_every must be an integer >= 1", every)
        require_one_of("rise_sampling", self.rise_sampling, get_args(RiseSampling))


class RiseSampler:
    """Draws the rows of each epoch, with weights that follow the rows' losses.

    The weights are all 1 until the first refresh, and fixed between two. The sampled gradients
    are not corrected for them: that is the point, the risk that is minimised is the reweighted.

    Parameters
    ----------
    n_rows : int
        Rows of the training table.
    config : RiseConfig
    generator : torch.Generator
        On the CPU; it is the caller's to save and restore.

    Examples
    --------
    >>> sampler = RiseSampler(4, RiseConfig(n_difficulty_bins=2), torch.Generator().manual_seed(0))
    >>> [epoch for epoch in range(12) if sampler.needs_refresh(epoch)]
    [5, 10]
    >>> sampler.refresh(torch.tensor([0.1, 7.0, 0.2, 9.0]))
    >>> sampler.weights
    tensor([1., 2., 1., 2.], dtype=torch.float64)
    >>> sampler.epoch_rows().shape
    torch.Size([4])
    """

    def __init__(self, n_rows: int, config: RiseConfig, generator: torch.Generator) -> None:
        if n_rows < 1:
            raise InvalidDataError(f"n_rows must be >= 1, got {n_rows}.")
        self.config = config
        self.weights = torch.ones(n_rows, dtype=torch.float64)
        self._generator = generator

    def needs_refresh(self, epoch: int) -> bool:
        """Whether `refresh` is due before epoch number ``epoch``, counted from 0.

        Never before the first epoch, whose losses would be those of random weights, and never
        where the weights cannot differ.
        """
        if self.config.max_boost == 1 or self.config.n_difficulty_bins == 1:
            return False
        return epoch > 0 and epoch % self.config.refresh_every == 0

    def refresh(self, row_losses: Tensor) -> None:
        """Set the weights by the loss of each row, on a fixed grid and without sample weights."""
        if row_losses.shape != self.weights.shape:
            raise InvalidDataError(
                f"row_losses must have one loss for each of the {len(self.weights)} rows, got "
                f"shape {tuple(row_losses.shape)}."
            )
        n_bins = self.config.n_difficulty_bins
        bin_index = difficulty_bins(row_losses.cpu(), n_bins)
        self.weights = difficulty_weights(bin_index, n_bins, self.config.max_boost)

    def epoch_rows(self) -> Tensor:
        """Rows of one epoch in the order of their use, int64, shape (n_rows,)."""
        return self.draw(len(self.weights))

    def draw(self, n_draws: int) -> Tensor:
        """So many rows by their weights, int64, shape (n_draws,)."""
        draw = draw_systematic if self.config.rise_sampling == "systematic" else draw_multinomial
        return draw(self.weights, n_draws, self._generator)

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs beside the generator."""
        return {"weights": self.weights.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned for the same table."""
        weights = state.get("weights")
        if weights is None or weights.shape != self.weights.shape:
            found = "none" if weights is None else f"shape {tuple(weights.shape)}"
            raise ModelFileError(
                f"The saved RISE weights must be one for each of the {len(self.weights)} rows, "
                f"got {found}. Resume with the table that the checkpoint was written for."
            )
        self.weights = weights.to("cpu", torch.float64).clone()
