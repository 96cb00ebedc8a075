"""Sparse matrices, of which a few columns at a time become dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.sources import ArraySource, as_slice, complex_error


def is_sparse(X: Any) -> bool:
    """Whether this is a sparse matrix or array of scipy; scipy is not imported for it.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> is_sparse(eye_array(3)), is_sparse(np.eye(3))
    (True, False)
    """
    return hasattr(X, "tocsc") and hasattr(X, "nnz")


class SparseSource(ArraySource):
    """A sparse matrix or array of scipy, in any of its formats; what is not stored is 0."""

    def __init__(self, matrix: Any) -> None:
        if matrix.dtype.kind == "c":
            raise complex_error(f"got dtype {matrix.dtype}")
        super().__init__(matrix.tocsc())  # columns are read one after the other

    @property
    def is_number(self) -> list[bool]:
        """All: a sparse matrix holds nothing else."""
        return [True] * self.n_columns

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several columns as one dense float matrix."""
        return ArraySource(self._matrix[:, as_slice(positions)].toarray()).numbers(
            range(len(positions))
        )

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        return ArraySource(self.numbers([position])).arrow(0, name)

    def take(self, rows: NDArray[np.int64]) -> SparseSource:
        """Some rows."""
        return SparseSource(self._matrix[rows])
