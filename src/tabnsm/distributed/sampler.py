"""ShardSampler: RISE over rows that lie in many processes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor

from tabnsm.distributed.group import Group
from tabnsm.distributed.quantiles import global_bins
from tabnsm.functional.difficulty import difficulty_weights
from tabnsm.training.rise import RiseConfig, RiseSampler


class ShardSampler(RiseSampler):
    """Draws this process's rows of each epoch, by weights that compare the rows of all.

    Parameters
    ----------
    n_rows : int
        Rows of this process, which may be none.
    config : RiseConfig
    generator : torch.Generator
        Of this process alone.
    group : Group

    Examples
    --------
    >>> group = Group(torch.device("cpu"))
    >>> sampler = ShardSampler(5, RiseConfig(), torch.Generator().manual_seed(0), group)
    >>> [len(rows) for rows in sampler.epoch_batches(2)], sampler.step_rows
    ([2, 2, 1], [2, 2, 1])
    """

    def __init__(
        self, n_rows: int, config: RiseConfig, generator: torch.Generator, group: Group
    ) -> None:
        super().__init__(max(n_rows, 1), config, generator)
        self.group = group
        self.n_rows = n_rows
        self.weights = self.weights[:n_rows]
        self.step_rows: list[int] = []

    def refresh(self, row_losses: Tensor) -> None:
        """Set the weights by the loss of each row of this process."""
        n_bins = self.config.n_difficulty_bins
        bins = global_bins(row_losses, n_bins, self.group)
        self.weights = difficulty_weights(bins, n_bins, self.config.max_boost)

    def epoch_batches(self, batch_size: int) -> list[Tensor]:
        """Rows of this process in each step of an epoch, as many steps as in any other process.

        A process draws as many rows as its share of the weights says: then each row is drawn as
        often as on one machine. `step_rows` has the rows of all processes in each step.
        """
        n_rows = int(self.group.of_each(self.n_rows).sum())
        parts = _parts(self.group.of_each(float(self.weights.sum())), n_rows)
        n_steps = -(-n_rows // batch_size)
        ends = [min(step * batch_size, n_rows) for step in range(n_steps + 1)]
        # Each process rounds at another place, so that equal parts add up to whole batches.
        size = self.group.size
        positions = [
            [(part * end * size + rank * n_rows) // (n_rows * size) for end in ends]
            for rank, part in enumerate(parts)
        ]
        self.step_rows = [
            sum(own[step + 1] - own[step] for own in positions) for step in range(n_steps)
        ]
        mine = positions[self.group.rank]
        sizes = [after - before for before, after in pairwise(mine)]
        rows = self.draw(mine[-1]) if mine[-1] else torch.empty(0, dtype=torch.int64)
        return list(torch.split(rows, sizes))

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over the weights of this process, or all alike if it had other rows before."""
        weights = state["weights"]
        is_mine = len(weights) == self.n_rows
        self.weights = weights.clone() if is_mine else torch.ones(self.n_rows, dtype=torch.float64)


def _parts(shares: Tensor, total: int) -> list[int]:
    """Whole numbers in proportion to the shares that add up to `total`.

    Examples
    --------
    >>> _parts(torch.tensor([1.0, 2.0, 0.0]).double(), 10)
    [3, 7, 0]
    """
    ends = (shares.cumsum(0) * (total / shares.sum())).round().long()
    ends[-1] = total
    return [int(n) for n in torch.diff(ends, prepend=torch.zeros(1, dtype=torch.int64))]
