from __future__ import annotations

import numpy as np
import pytest

from tabnsm_bench.protocol import Part, Prepared


def make_table(category_sizes: tuple[int, ...], n_rows: int = 360, seed: int = 0) -> Prepared:
    """A table whose target follows from one number, a product and, if any, a category."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(0, size, n_rows) if size else rng.normal(size=n_rows)
        for size in category_sizes
    ]
    x = np.stack(columns, axis=1).astype(np.float32)
    y = 50 + 10 * (2 * x[:, 0] + x[:, 0] * x[:, 1]) + rng.normal(size=n_rows)
    if any(category_sizes):
        y += 20 * (x[:, category_sizes.index(max(category_sizes))] == 1)
    parts = [
        Part(x[rows], y[rows].astype(np.float64))
        for rows in np.split(np.arange(n_rows), [n_rows * 3 // 5, n_rows * 4 // 5])
    ]
    return Prepared(
        *parts,
        category_sizes=category_sizes,
        feature_names=tuple(f"f{j}" for j in range(len(category_sizes))),
        encode_seconds=0.0,
        train_frame=None,
        validation_frame=None,
        test_frame=None,
    )


@pytest.fixture(scope="session")
def numbers() -> Prepared:
    """Numbers alone."""
    return make_table((0, 0, 0, 0))


@pytest.fixture(scope="session")
def mixed() -> Prepared:
    """Numbers and a category."""
    return make_table((0, 0, 3, 0))
