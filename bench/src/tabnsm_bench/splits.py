"""The paper's split: 72 % of the rows to learn from, 8 % to choose by, 20 % to be judged by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError

Rows = NDArray[np.int64]
TEST_SHARE, VALIDATION_SHARE = 0.2, 0.1
MIN_ROWS = 10


@dataclass(frozen=True)
class Split:
    """Row numbers of the three roles, in the order of the draw.

    Parameters
    ----------
    train, validation, test : ndarray of int64
        Row numbers; no row is in two of them.
    """

    train: Rows
    validation: Rows
    test: Rows

    @property
    def test_sha256(self) -> str:
        """Fingerprint of the test rows: equal in two runs that were judged by the same rows."""
        return hashlib.sha256(self.test.astype("<i8").tobytes()).hexdigest()


def paper_split(n_rows: int, random_state: int = 42) -> Split:
    """Draw test rows, then validation rows among the others, both with one random state.

    Parameters
    ----------
    n_rows : int
        Rows of the table, at least 10.
    random_state : int
        Same number, same rows.

    Returns
    -------
    Split

    Examples
    --------
    >>> split = paper_split(8192)
    >>> len(split.train), len(split.validation), len(split.test)
    (5897, 656, 1639)
    """
    from sklearn.model_selection import train_test_split

    if n_rows < MIN_ROWS:
        raise InvalidDataError(f"A table must have at least {MIN_ROWS} rows, got {n_rows}.")
    rows = np.arange(n_rows, dtype=np.int64)
    rest, test = train_test_split(rows, test_size=TEST_SHARE, random_state=random_state)
    train, validation = train_test_split(
        rest, test_size=VALIDATION_SHARE, random_state=random_state
    )
    return Split(train, validation, test)


def subset(n: int, size: int, random_state: int) -> Rows:
    """Choose `size` of `n` items; a smaller choice is a subset of a larger one.

    Parameters
    ----------
    n : int
        How many there are.
    size : int
        How many to choose.
    random_state : int
        Same number, same choice.

    Returns
    -------
    ndarray of int64
        Ascending.

    Examples
    --------
    >>> small, large = subset(9, 3, 0), subset(9, 5, 0)
    >>> set(small) < set(large)
    True
    """
    order = np.random.default_rng(random_state).permutation(n)
    return np.sort(order[:size])
