"""ReplayRows: some training rows of a fit, by which a refit keeps what the model has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures, join_tables
from tabnsm.columns.extending import ExtendedEncoder

MAX_ROWS, MIN_ROWS = 2000, 100
SIZE_SHARE = 0.1
"""Of the float32 weights, what the rows may take in a file; at least `MIN_ROWS` are kept."""
MAX_CANDIDATES = 50_000
"""Rows that the kept ones are drawn from."""
MAX_HALF_CODE = 2048
"""Integers up to this one are exact in half precision."""


@dataclass(frozen=True, eq=False)
class ReplayRows:
    """Encoded training rows without their targets, which the model predicts itself.

    Parameters
    ----------
    table : EncodedTable
        In half precision, where codes of categories allow it.
    n_fitted : int
        Rows that the model was trained on, of which these are a part.
    """

    table: EncodedTable
    n_fitted: int

    @classmethod
    def draw(
        cls,
        table: EncodedTable,
        category_sizes: Sequence[int],
        n_weights: int,
        seed: int,
        earlier: ReplayRows | None = None,
    ) -> ReplayRows:
        """Choose rows at random, those with rare categories more often.

        Parameters
        ----------
        table : EncodedTable
            The training rows.
        category_sizes : sequence of int
            Of the encoder.
        n_weights : int
            Numbers that the networks consist of, by which the rows' size is limited.
        seed : int
        earlier : ReplayRows or None
            Of fits before this one, in the same encoding; they keep their share.
        """
        rng = np.random.default_rng(seed)
        code_bytes = 2 if max(category_sizes, default=0) <= MAX_HALF_CODE else 4
        room = SIZE_SHARE * 4 * n_weights / (code_bytes * max(table.n_features, 1))
        n_rows = int(min(max(room, MIN_ROWS), MAX_ROWS))
        n_fitted, parts = table.n_rows, []
        if earlier is not None:
            n_fitted += earlier.n_fitted
            n_earlier = round(n_rows * earlier.n_fitted / n_fitted)
            parts.append(_draw_rows(earlier.table, category_sizes, n_earlier, rng))
            n_rows -= parts[0].n_rows
        candidates = table
        if table.n_rows > MAX_CANDIDATES:
            chosen = np.sort(rng.choice(table.n_rows, MAX_CANDIDATES, replace=False))
            candidates = table.take(torch.from_numpy(chosen))
        parts.append(_draw_rows(candidates, category_sizes, n_rows, rng))
        drawn = parts[0] if len(parts) == 1 else join_tables(*(_as_float(each) for each in parts))
        return cls(_in_half(drawn, code_bytes == 2), n_fitted)

    def extended(self, extended: ExtendedEncoder) -> ReplayRows:
        """The same rows for an encoder with further features and codes."""
        dense = extended.move_rows(self.table.dense.float())
        return replace(self, table=replace(self.table, dense=dense))

    def rows(self) -> EncodedTable:
        """The rows in float32."""
        return _as_float(self.table)

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, int]]:
        """Tensors, and JSON-able facts."""
        tensors = {"dense": self.table.dense}
        for k, text in enumerate(self.table.texts):
            tensors |= {f"text.{k}": text.values, f"text_index.{k}": text.index.int()}
        return tensors, {"n_fitted": self.n_fitted, "n_texts": len(self.table.texts)}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, int]) -> ReplayRows:
        """Read back :meth:`to_state`."""
        texts = tuple(
            TextFeatures(tensors[f"text.{k}"], tensors[f"text_index.{k}"].long())
            for k in range(facts["n_texts"])
        )
        return cls(EncodedTable(tensors["dense"], texts), facts["n_fitted"])


def _draw_rows(
    table: EncodedTable, category_sizes: Sequence[int], n_rows: int, rng: np.random.Generator
) -> EncodedTable:
    """Rows drawn without replacement, half evenly and half evenly over the codes of categories."""
    if table.n_rows > n_rows:
        chosen = weighted_choice(row_weights(table.dense, category_sizes), n_rows, rng)
        table = table.take(torch.from_numpy(np.sort(chosen)))
    texts = []
    for text in table.texts:
        used, index = torch.unique(text.index, return_inverse=True)
        texts.append(TextFeatures(text.values[used], index))
    return EncodedTable(table.dense, tuple(texts))


def row_weights(dense: Tensor, category_sizes: Sequence[int]) -> NDArray[np.float64]:
    """How likely each row is kept: more if one of its categories is rare, (n,).

    Examples
    --------
    >>> row_weights(torch.tensor([[0.0], [0.0], [0.0], [1.0]]), [2]).round(3)
    array([0.208, 0.208, 0.208, 0.375])
    """
    n_rows = len(dense)
    even = np.full(n_rows, 1 / n_rows)
    found = []
    for feature, size in enumerate(category_sizes[: dense.shape[1]]):
        if size:
            codes = dense[:, feature].long().numpy()
            counts = np.bincount(codes)
            found.append(1 / (np.count_nonzero(counts) * counts[codes]))
    return (even + np.mean(found, axis=0)) / 2 if found else even


def weighted_choice(
    weight: NDArray[np.float64], n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rows without replacement, each drawn next with a probability in proportion to its weight."""
    keys = rng.exponential(size=len(weight)) / weight
    return np.argpartition(keys, n_rows - 1)[:n_rows] if n_rows else np.empty(0, dtype=np.int64)


def _in_half(table: EncodedTable, with_codes: bool) -> EncodedTable:
    largest = torch.finfo(torch.float16).max

    def half(values: Tensor) -> Tensor:
        return values.clamp(-largest, largest).half()

    texts = tuple(replace(text, values=half(text.values)) for text in table.texts)
    return EncodedTable(half(table.dense) if with_codes else table.dense.float(), texts)


def _as_float(table: EncodedTable) -> EncodedTable:
    texts = tuple(replace(text, values=text.values.float()) for text in table.texts)
    return EncodedTable(table.dense.float(), texts)
