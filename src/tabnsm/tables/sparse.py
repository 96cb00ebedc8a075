"""Sparse matrices, of which a few columns at a time become dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.tables.sources import as_slice


def is_sparse(X: Any) -> bool:
    """Whether this is a sparse matrix or array of scipy; scipy is not imported for it.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> is_sparse(eye_array(3)), is_sparse(np.eye(3))
    (True, False)
    """
    return hasattr(X, "tocsc") and hasattr(X, "nnz")


class SparseSource:
    """A sparse matrix or array of scipy, in any of its formats; what is not stored is 0."""

    def __init__(self, matrix: Any) -> None:
        if matrix.dtype.kind == "c":
            raise InvalidDataError(
                f"Complex data not supported, got dtype {matrix.dtype}. "
                "Pass real and imaginary parts as two columns."
            )
        self._matrix = matrix.tocsc()  # columns are read one after the other
        self.n_rows, self.n_columns = matrix.shape

    @property
    def is_number(self) -> list[bool]:
        """All: a sparse matrix holds nothing else."""
        return [True] * self.n_columns

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several columns as one dense float matrix."""
        block = self._matrix[:, as_slice(positions)].toarray()
        return np.asarray(block if block.dtype.kind == "f" else block.astype(np.float64))

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        import pyarrow as pa

        values = self.numbers([position])[:, 0]
        return pa.array(np.ascontiguousarray(values, dtype=np.float64), from_pandas=True)

    def take(self, rows: NDArray[np.int64]) -> SparseSource:
        """Some rows."""
        return SparseSource(self._matrix[rows])
