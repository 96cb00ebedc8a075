"""The encoded table: one float matrix, and one row of features per distinct text."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class TextFeatures:
    """Features of the distinct texts of one column, or of all text columns joined.

    `values`, (n_texts, d), are standardised features of each distinct text; `index`, (N,), is the
    row of `values` that belongs to each row of the table.
    """

    values: Tensor
    index: Tensor


@dataclass(frozen=True)
class EncodedTable:
    """Numbers ready for the model; text is kept once per distinct string.

    `dense`, (N, D_dense), holds numbers, date parts, indicators and categories; `texts` the
    features of all text columns joined, or of each of them.

    Examples
    --------
    >>> encoded = EncodedTable(
    ...     torch.zeros(3, 2), (TextFeatures(torch.ones(1, 4), torch.zeros(3).long()),)
    ... )
    >>> encoded.n_rows, encoded.n_features, encoded.n_texts
    (3, 6, 1)
    >>> encoded.gather(torch.tensor([0, 2])).shape
    torch.Size([2, 6])
    """

    dense: Tensor
    texts: tuple[TextFeatures, ...] = ()
    is_mapped: bool = False
    """Whether the rows are in a file, from which reading takes time."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.dense.shape[0]

    @property
    def n_features(self) -> int:
        """Number of encoded features, text dimensions included."""
        return self.dense.shape[1] + sum(text.values.shape[1] for text in self.texts)

    @property
    def identity(self) -> Tensor:
        """What tells these rows from others of the same encoder, but for their texts."""
        return self.dense

    @property
    def n_texts(self) -> int:
        """Number of distinct texts that are kept."""
        return sum(len(text.values) for text in self.texts)

    def gather(self, rows: Tensor) -> Tensor:
        """Full feature rows for a batch."""
        dense = self.dense[rows]  # (B, D_dense)
        if not self.texts:
            return dense
        parts = [text.values[text.index[rows]] for text in self.texts]
        return torch.cat([dense, *parts], dim=1)  # (B, D)

    def take(self, rows: Tensor) -> EncodedTable:
        """The same table restricted to some rows; the texts' features are shared, not copied."""
        texts = tuple(replace(text, index=text.index[rows]) for text in self.texts)
        return EncodedTable(self.dense[rows], texts)


def join_tables(first: EncodedTable, second: EncodedTable) -> EncodedTable:
    """The rows of two tables of one encoder; features of texts that both share are kept once.

    Examples
    --------
    >>> join_tables(EncodedTable(torch.zeros(2, 1)), EncodedTable(torch.ones(1, 1))).dense.ravel()
    tensor([0., 0., 1.])
    """
    texts = []
    for mine, other in zip(first.texts, second.texts, strict=True):
        values, index = mine.values, other.index
        if other.values is not mine.values:
            values, index = torch.cat([values, other.values]), index + len(values)
        texts.append(TextFeatures(values, torch.cat([mine.index, index])))
    return EncodedTable(torch.cat([first.dense, second.dense]), tuple(texts))
