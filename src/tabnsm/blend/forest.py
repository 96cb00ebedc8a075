"""Forest: the trees of one member as flat arrays, and their prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

N_CODES = 256
"""Codes that a split by category can tell apart."""
_TILE_VALUES = 2**20  # nodes that are looked up at once


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves are summed up, all of them in one set of arrays.

    A row goes left in a node if its feature is at most the threshold, or if the feature is a
    category of the node's set. A leaf leads to itself.

    Parameters
    ----------
    roots : ndarray of int32, shape (n_trees,)
        First node of each tree.
    feature : ndarray of int32, shape (n_nodes,)
    threshold : ndarray of float32, shape (n_nodes,)
    left, right : ndarray of int32, shape (n_nodes,)
        Numbers of the nodes that follow.
    missing_left : ndarray of bool, shape (n_nodes,)
        Where rows go whose feature is NaN.
    category_set : ndarray of int32, shape (n_nodes,)
        Row of `categories`, -1 where the threshold decides.
    categories : ndarray of bool, shape (n_sets, 256)
        Codes that go left.
    value : ndarray of float32, shape (n_nodes,)
        What a leaf adds to the prediction.
    start : float
        What the prediction begins with.
    depth : int
        Most nodes before a leaf.

    Examples
    --------
    >>> stump = Forest.join([Forest.leaf(1.0), Forest.leaf(2.0)])
    >>> stump.predict(np.zeros((1, 1), np.float32))
    array([3.])
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    categories: NDArray[np.bool_]
    value: NDArray[np.float32]
    start: float = 0.0
    depth: int = 0

    @classmethod
    def leaf(cls, value: float) -> Forest:
        """One tree that is a leaf."""
        zero = np.zeros(1, np.int32)
        return cls(
            zero,
            zero,
            np.zeros(1, np.float32),
            zero,
            zero,
            np.zeros(1, bool),
            zero - 1,
            np.zeros((0, N_CODES), bool),
            np.full(1, value, np.float32),
        )

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """All trees of several forests as one; it begins where the first one does.

        Parameters
        ----------
        forests : sequence of Forest
            At least one.
        """
        n_nodes = np.cumsum([0] + [len(forest.value) for forest in forests])
        n_sets = np.cumsum([0] + [len(forest.categories) for forest in forests])
        moved: dict[str, list[NDArray[np.int32]]] = {
            name: [] for name in ("roots", "left", "right")
        }
        sets = []
        for forest, nodes, first in zip(forests, n_nodes, n_sets, strict=False):
            for name, parts in moved.items():
                parts.append((getattr(forest, name) + nodes).astype(np.int32))
            shifted = np.where(forest.category_set < 0, -1, forest.category_set + first)
            sets.append(shifted.astype(np.int32))
        whole = {
            name: np.concatenate([getattr(forest, name) for forest in forests])
            for name in ("feature", "threshold", "missing_left", "categories", "value")
        }
        whole |= {name: np.concatenate(parts) for name, parts in moved.items()}
        whole["category_set"] = np.concatenate(sets)
        depth = max(forest.depth for forest in forests)
        return cls(**whole, start=forests[0].start, depth=depth)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    def first(self, n_trees: int) -> Forest:
        """The forest of the first trees alone; its trees must be stored one after the other."""
        n_nodes = int(self.roots[n_trees]) if n_trees < self.n_trees else len(self.value)
        kept = self.category_set[:n_nodes]
        n_sets = int(kept.max(initial=-1)) + 1
        cut = {
            field.name: getattr(self, field.name)[:n_nodes]
            for field in fields(self)
            if field.name not in ("roots", "categories", "start", "depth")
        }
        return Forest(
            roots=self.roots[:n_trees],
            categories=self.categories[:n_sets],
            start=self.start,
            depth=self.depth,
            **cut,
        )

    def scaled(self, factor: float) -> Forest:
        """The same forest with `factor` times the prediction."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        parts["value"] = (self.value * factor).astype(np.float32)
        return Forest(**parts | {"start": self.start * factor})

    def leaf_values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """What every tree adds to every row, (n_trees, n), for rows of shape (n, D)."""
        n_rows = len(x)
        columns = np.ascontiguousarray(x.T).reshape(-1)  # (D * n,)
        has_missing = bool(np.isnan(x).any())
        rows = np.arange(n_rows)
        node = np.repeat(self.roots[:, None], n_rows, axis=1)  # (n_trees, n)
        for _ in range(self.depth):
            value = columns[self.feature[node].astype(np.int64) * n_rows + rows]
            goes_left = value <= self.threshold[node]
            if len(self.categories):
                chosen = self.category_set[node]
                by_category = np.nonzero(chosen >= 0)
                codes = np.nan_to_num(value[by_category], nan=0.0).astype(np.int64)
                goes_left[by_category] = self.categories[chosen[by_category], codes]
            if has_missing:
                goes_left = np.where(np.isnan(value), self.missing_left[node], goes_left)
            node = np.where(goes_left, self.left[node], self.right[node])
        return self.value[node]

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sum of the trees for rows of shape (n, D); a row's bits depend on no other row."""
        total = np.full(len(x), self.start)
        size = max(1, _TILE_VALUES // self.n_trees)
        for first in range(0, len(x), size):
            part = total[first : first + size]
            for values in self.leaf_values(x[first : first + size]):
                part += values  # in the order of the trees, whatever the number of rows
        return total

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Tensors, and JSON-able facts; sets of categories are packed to bits."""
        arrays = {
            name: getattr(self, name)
            for name in ("roots", "feature", "threshold", "left", "right", "category_set", "value")
        }
        arrays["missing_left"] = np.packbits(self.missing_left)
        arrays["categories"] = np.packbits(self.categories, axis=1)
        if not len(self.categories):
            del arrays["category_set"], arrays["categories"]
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
        return tensors, {"start": self.start, "depth": self.depth}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, float]) -> Forest:
        """Read back :meth:`to_state`.

        Raises
        ------
        ValueError
            If a node leads to one that is not there.
        """
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        n_nodes = len(arrays["value"])
        arrays["missing_left"] = np.unpackbits(arrays["missing_left"], count=n_nodes).astype(bool)
        if "categories" in arrays:
            arrays["categories"] = np.unpackbits(arrays["categories"], axis=1).astype(bool)
        else:
            arrays["categories"] = np.zeros((0, N_CODES), bool)
            arrays["category_set"] = np.full(n_nodes, -1, np.int32)
        if not 0 <= facts["depth"] < n_nodes:
            raise ValueError(f"depth of trees must be below {n_nodes} nodes, got {facts['depth']}")
        for name in ("roots", "left", "right"):
            if arrays[name].min(initial=0) < 0 or arrays[name].max(initial=0) >= n_nodes:
                raise ValueError(f"{name} of a tree must be below {n_nodes} nodes")
        return cls(**arrays, start=float(facts["start"]), depth=int(facts["depth"]))
