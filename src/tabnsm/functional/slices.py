"""Slices of a batch that are small enough to be worked on at once."""

from __future__ import annotations

from collections.abc import Iterator

import torch

# Numbers held at once by a slice: 64 MB in float32, large enough to keep the loop overhead small.
SLICE_BUDGET = 2**24


def is_exporting() -> bool:
    """Whether torch traces the operators for another runtime; versions before 2.7 never do."""
    return bool(getattr(torch.compiler, "is_exporting", bool)())


def slices(n_items: int, numbers_per_item: int) -> Iterator[slice]:
    """Cut `n_items` so that no slice holds more numbers than the budget, or is one item.

    Examples
    --------
    >>> list(slices(5, SLICE_BUDGET // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    if is_exporting():  # the number of items is not known
        return iter([slice(None)])
    size = max(1, SLICE_BUDGET // numbers_per_item)
    return (slice(start, start + size) for start in range(0, n_items, size))
