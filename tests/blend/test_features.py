from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.blend.features import TreeFeatures
from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures

SIZES = (0, 4, 400)


def make_table(n: int, seed: int = 0) -> EncodedTable:
    rng = np.random.default_rng(seed)
    dense = np.column_stack([rng.normal(size=n), rng.integers(1, 4, n), rng.integers(0, 400, n)])
    text = TextFeatures(torch.ones(2, 3), torch.zeros(n, dtype=torch.int64))
    return EncodedTable(torch.from_numpy(dense.astype(np.float32)), (text,))


def test_columns_are_codes_statistics_and_numbers() -> None:
    table = make_table(200)
    y = table.dense[:, 1].numpy().astype(np.float64)
    features, x = TreeFeatures.fit(table, y, None, (*SIZES, 0, 0, 0), seed=0)
    assert (features.n_categories, x.shape) == (1, (200, 1 + 2 * 2 + 1 + 3))
    new = features.transform(table)
    np.testing.assert_array_equal(new[:, 0], table.dense[:, 1].numpy() - 1)  # no row has code 0
    np.testing.assert_array_equal(new[:, 5], table.dense[:, 0].numpy())
    np.testing.assert_array_equal(new[:, 6:], 1.0)
    count = np.bincount(table.dense[:, 1].numpy().astype(int))
    np.testing.assert_array_equal(new[:, 2], count[table.dense[:, 1].numpy().astype(int)])
    # Apart from the target statistics, training rows are encoded as new ones.
    np.testing.assert_array_equal(np.delete(x, [1, 3], axis=1), np.delete(new, [1, 3], axis=1))


def test_a_rows_own_target_is_not_in_its_statistics() -> None:
    table = make_table(50)
    table.dense[:, 2] = torch.arange(50)  # every row has a category of its own
    y = np.random.default_rng(1).normal(size=50)
    _, x = TreeFeatures.fit(table, y, None, (*SIZES, 0, 0, 0), seed=0)
    fold_means = np.unique(x[:, 3])
    assert len(fold_means) <= 5


def test_rows_of_large_weight_count_more() -> None:
    table = EncodedTable(torch.ones(400, 1))
    y, weight = np.repeat([0.0, 1.0], 200), np.repeat([1.0, 3.0], 200)
    features, _ = TreeFeatures.fit(table, y, weight, (2,), seed=0)
    assert features.means[0][1] == pytest.approx(0.75)


def test_unseen_codes_are_missing() -> None:
    table = make_table(100)
    features, _ = TreeFeatures.fit(table, np.arange(100.0), None, (*SIZES, 0, 0, 0), seed=0)
    new = table.take(torch.tensor([0]))
    new.dense[0, 1] = 0
    x = features.transform(new)
    assert np.isnan(x[0, 0])
    assert x[0, 1] == pytest.approx(49.5)  # the mean of all rows


@pytest.mark.parametrize("sizes", [(0, 4, 400), (0, 0, 0), (0, 256, 400)])
def test_the_state_is_the_features(sizes: tuple[int, ...]) -> None:
    table = make_table(60)
    whole = (*sizes, 0, 0, 0)
    features, _ = TreeFeatures.fit(table, np.arange(60.0), None, whole, seed=0)
    again = TreeFeatures.from_state(features.to_state(), whole)
    np.testing.assert_array_equal(again.transform(table), features.transform(table))


def test_values_that_are_not_those_of_the_table_are_refused() -> None:
    features, _ = TreeFeatures.fit(make_table(9), np.arange(9.0), None, (*SIZES, 0, 0, 0), seed=0)
    with pytest.raises(ValueError, match="codes must have 13 values, got 4"):
        TreeFeatures.from_state(features.to_state(), (9, *SIZES[1:], 0, 0, 0))


def test_the_same_seed_is_the_same_folds() -> None:
    table, y = make_table(80), np.arange(80.0)
    first, second = (TreeFeatures.fit(table, y, None, (*SIZES, 0, 0, 0), seed=3) for _ in range(2))
    np.testing.assert_array_equal(first[1], second[1])


def test_two_rows() -> None:
    table = make_table(2)
    _, x = TreeFeatures.fit(table, np.array([1.0, 2.0]), None, (*SIZES, 0, 0, 0), seed=0)
    assert np.isfinite(x[:, 1:]).all()
