"""Which rows to validate on: at random, by group, or the latest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Generator

from tabnsm.errors import InvalidDataError

MIN_ROWS = 4


def validation_mask(
    n_rows: int,
    fraction: float,
    generator: Generator,
    groups: np.ndarray | None = None,
    time: np.ndarray | None = None,
) -> np.ndarray:
    """Choose about `fraction` of the rows for validation, at least one, never all.

    Parameters
    ----------
    n_rows : int
    fraction : float
        Between 0 and 1, both excluded.
    generator : torch.Generator
        Shuffles rows or groups.
    groups : ndarray of shape (n_rows,) or None
        Labels from `row_labels`; rows of one group stay together.
    time : ndarray of shape (n_rows,) or None
        Labels from `row_labels`; the latest rows validate, equal times stay together.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        True for validation rows.

    Examples
    --------
    >>> time = row_labels([3, 9, 1, 2], 4, "time")
    >>> validation_mask(4, 0.25, torch.Generator(), time=time)
    array([False,  True, False, False])
    """
    if n_rows < MIN_ROWS:
        raise InvalidDataError(
            f"At least {MIN_ROWS} rows with a target and a positive weight are needed to train "
            f"and validate, got n_samples = {n_rows}. Add rows."
        )
    wanted = min(max(1, round(fraction * n_rows)), n_rows - 2)
    if groups is not None:
        return _by_group(_ranks(groups, "validation_groups"), wanted, generator)
    if time is not None:
        return _by_time(_ranks(time, "validation_time"), wanted)
    mask = np.zeros(n_rows, dtype=bool)
    mask[torch.randperm(n_rows, generator=generator)[:wanted].numpy()] = True
    return mask


def row_labels(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Rank of each row's label among all distinct labels.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Anything that can be sorted, without missing values.
    n_rows : int
    name : str
        For the error.

    Returns
    -------
    ndarray of int, shape (n_rows,)

    Examples
    --------
    >>> row_labels(["b", "a", "b"], 3, "validation_groups")
    array([1, 0, 1])
    """
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise InvalidDataError(
            f"{name} must have one value per row ({n_rows}), got shape {array.shape}."
        )
    if array.dtype.kind in "iufb":
        missing = np.isnan(array)
    else:
        missing = np.array([value is None or value != value for value in array.tolist()])
    if missing.any():
        raise InvalidDataError(
            f"{name} must not have missing values, got {int(missing.sum())}. "
            "Fill them or drop these rows."
        )
    try:
        return np.asarray(np.unique(array, return_inverse=True)[1])
    except TypeError as error:
        raise InvalidDataError(
            f"{name} must have values of one kind that can be sorted ({error})."
        ) from error


def _ranks(labels: np.ndarray, name: str) -> np.ndarray:
    distinct, ranks = np.unique(labels, return_inverse=True)
    if len(distinct) < 2:
        raise InvalidDataError(
            f"{name} must have at least 2 distinct values among the usable rows, got 1."
        )
    return np.asarray(ranks)


def _by_group(ranks: np.ndarray, wanted: int, generator: Generator) -> np.ndarray:
    sizes = np.bincount(ranks)
    order = torch.randperm(len(sizes), generator=generator).numpy()
    before = np.cumsum(sizes[order]) - sizes[order]
    chosen = order[: min(int(np.sum(before < wanted)), len(sizes) - 1)]
    return np.isin(ranks, chosen)


def _by_time(ranks: np.ndarray, wanted: int) -> np.ndarray:
    cut = np.partition(ranks, -wanted)[-wanted]
    return np.asarray(ranks >= max(cut, 1))
