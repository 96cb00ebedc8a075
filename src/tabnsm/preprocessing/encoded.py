"""The encoded table: one float matrix, and one embedding row per distinct text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class EncodedTable:
    """Numbers ready for the model; text is kept once per distinct string.

    Parameters
    ----------
    dense : Tensor
        Numbers, date parts, indicators and categories, float32.
    text : Tensor or None
        Standardised embedding of each distinct joined text, float32.
    text_index : Tensor or None
        Row of `text` that belongs to each row of the table, int64.

    Shape
    -----
    dense : (N, D_dense)
    text : (U, d_text)
    text_index : (N,)

    Examples
    --------
    >>> encoded = EncodedTable(torch.zeros(3, 2), torch.ones(1, 4), torch.zeros(3).long())
    >>> encoded.n_rows, encoded.n_features
    (3, 6)
    >>> encoded.gather(torch.tensor([0, 2])).shape
    torch.Size([2, 6])
    """

    dense: Tensor
    text: Tensor | None = None
    text_index: Tensor | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.dense.shape[0]

    @property
    def n_features(self) -> int:
        """Number of encoded features, text dimensions included."""
        return self.dense.shape[1] + (0 if self.text is None else self.text.shape[1])

    def gather(self, rows: Tensor) -> Tensor:
        """Full feature rows for a batch.

        Parameters
        ----------
        rows : Tensor
            Row numbers, int64.

        Returns
        -------
        Tensor
            Features of these rows, float32.
        """
        dense = self.dense[rows]  # (B, D_dense)
        if self.text is None or self.text_index is None:
            return dense
        return torch.cat([dense, self.text[self.text_index[rows]]], dim=1)  # (B, D)

    def take(self, rows: Tensor) -> EncodedTable:
        """The same table restricted to some rows; the embeddings are shared, not copied.

        Parameters
        ----------
        rows : Tensor
            Row numbers, int64.

        Returns
        -------
        EncodedTable
            A table of ``len(rows)`` rows.
        """
        index = None if self.text_index is None else self.text_index[rows]
        return EncodedTable(self.dense[rows], self.text, index)
