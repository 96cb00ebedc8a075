"""From scikit-learn's fitted trees to a Forest: the only place that looks inside of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.blend.forest import N_CODES, Forest


def boosted_trees(model: Any, first: int = 0) -> Forest:
    """Trees of a HistGradientBoostingRegressor of one target.

    Its categorical features must come first and have the codes 0, 1, 2, ..., which the columns
    that it makes by itself then leave as they are.

    Parameters
    ----------
    model : HistGradientBoostingRegressor
    first : int, default 0
        Leave out the trees before this one.

    Returns
    -------
    Forest
    """
    start = float(np.ravel(model._baseline_prediction)[0])
    trees = [_boosted_tree(stage[0], start) for stage in model._predictors[first:]]
    return Forest.join(trees)


def averaged_trees(model: Any, first: int = 0) -> Forest:
    """Trees of an ExtraTreesRegressor or RandomForestRegressor, to be summed up and not averaged.

    Parameters
    ----------
    model : ExtraTreesRegressor
    first : int, default 0
        Leave out the trees before this one.

    Returns
    -------
    Forest
    """
    return Forest.join([_plain_tree(tree.tree_) for tree in model.estimators_[first:]])


def _boosted_tree(predictor: Any, start: float) -> Forest:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    by_category = nodes["is_categorical"].astype(bool) & ~is_leaf
    words = np.asarray(predictor.raw_left_cat_bitsets, dtype=np.uint32).reshape(-1, 8)
    bits = words[:, :, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    return _forest(
        is_leaf,
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["left"],
        nodes["right"],
        nodes["missing_go_to_left"].astype(bool),
        np.where(by_category, nodes["bitset_idx"].astype(np.int64), -1),
        bits.reshape(-1, N_CODES).astype(bool),
        nodes["value"],
        start=start,
        depth=int(nodes["depth"].max()),
    )


def _plain_tree(tree: Any) -> Forest:
    n_nodes = tree.node_count
    return _forest(
        tree.children_left < 0,
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        np.zeros(n_nodes, bool),
        np.full(n_nodes, -1),
        np.zeros((0, N_CODES), bool),
        tree.value[:, 0, 0],
        start=0.0,
        depth=int(tree.max_depth),
    )


def _forest(
    is_leaf: NDArray[np.bool_],
    feature: NDArray[Any],
    threshold: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    missing_left: NDArray[np.bool_],
    category_set: NDArray[Any],
    categories: NDArray[np.bool_],
    value: NDArray[Any],
    start: float,
    depth: int,
) -> Forest:
    own = np.arange(len(is_leaf))
    return Forest(
        roots=np.zeros(1, np.int32),
        feature=np.where(is_leaf, 0, feature).astype(np.int32),
        threshold=_float32_below(np.where(is_leaf, 0.0, threshold)),
        left=np.where(is_leaf, own, left).astype(np.int32),
        right=np.where(is_leaf, own, right).astype(np.int32),
        missing_left=missing_left,
        category_set=category_set.astype(np.int32),
        categories=categories,
        value=np.where(is_leaf, value, 0.0).astype(np.float32),
        start=start,
        depth=depth,
    )


def _float32_below(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: float32 features compare with it the same way."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    above = rounded > threshold
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded
