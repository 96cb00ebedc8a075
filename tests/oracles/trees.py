"""Prediction of one tree, node by node."""

from __future__ import annotations

import math
from typing import Any


def leaf_of(
    row: list[float],
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    category_set: Any,
    categories: Any,
    root: int,
) -> int:
    """Number of the leaf that a row ends in."""
    node = root
    while left[node] != node:
        value = row[feature[node]]
        if math.isnan(value):
            goes_left = bool(missing_left[node])
        elif category_set[node] >= 0:
            goes_left = bool(categories[category_set[node]][int(value)])
        else:
            goes_left = value <= threshold[node]
        node = int(left[node] if goes_left else right[node])
    return node
