"""Rows in tiles of fixed size, as in prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tabnsm.prediction import tile_rows

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable
    from tabnsm.nn.ensemble import Ensemble
    from tabnsm.nn.model import TabNSM


def tiles(table: EncodedTable, model: TabNSM | Ensemble) -> Iterator[tuple[slice, Tensor]]:
    """Places of some rows, and these encoded, (tile, D), on the device of the model.

    A tile is always full, because other shapes may round differently: the last row is repeated.
    """
    device = next(model.parameters()).device
    size = tile_rows(table.n_features)
    for start in range(0, table.n_rows, size):
        stop = min(start + size, table.n_rows)
        rows = torch.arange(start, start + size).clamp_(max=stop - 1)
        yield slice(start, stop), table.gather(rows).to(device)


def mean_of(parts: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape.

    Examples
    --------
    >>> mean_of([torch.tensor([1.0]), torch.tensor([3.0])])
    tensor([2.])
    """
    return parts[0] if len(parts) == 1 else torch.stack(list(parts)).mean(dim=0)
