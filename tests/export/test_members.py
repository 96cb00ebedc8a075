"""Trees, nearest rows and difficulty in operators of ONNX are those of the blend."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.growing import TreeRows, grow_boosted, grow_extra
from tabnsm.blend.neighbors import Neighbors, last_stage
from tabnsm.columns import EncodedTable
from tabnsm.export.members import (
    OnnxDifficulty,
    OnnxForest,
    OnnxNeighbors,
    OnnxTreeColumns,
)
from tabnsm.export.network import OnnxNetwork
from tabnsm.intervals.difficulty import EVEN_SHARE, Difficulty
from tabnsm.nn import TabNSM

SIZES = (0, 4, 0, 300)


@pytest.fixture(scope="module")
def table() -> EncodedTable:
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=200), rng.integers(0, 3, 200), rng.normal(size=200)]
    columns.append(rng.integers(0, 40, 200))
    return EncodedTable(torch.from_numpy(np.stack(columns, 1).astype(np.float32)))


@pytest.fixture(scope="module")
def target(table: EncodedTable) -> np.ndarray:
    x = table.dense.numpy().astype(np.float64)
    return x[:, 0] + x[:, 1] * (x[:, 2] > 0)


def new_rows(table: EncodedTable) -> EncodedTable:
    """Codes that no training row has, too."""
    dense = table.dense.clone()
    dense[:5, 1], dense[:5, 3] = 3.0, 299.0
    return EncodedTable(dense)


@pytest.mark.slow
def test_forests_with_sets_of_categories_and_missing_codes(
    table: EncodedTable, target: np.ndarray
) -> None:
    features, x = TreeFeatures.fit(table, target, None, SIZES, seed=0)
    rows = TreeRows(x, target, None, x[:50], target[:50], None, features.n_categories, 0)
    new = new_rows(table)
    columns = OnnxTreeColumns(features)(new.dense)
    np.testing.assert_array_equal(columns.numpy(), features.transform(new))
    assert np.isnan(columns.numpy()).any()
    boosted = grow_boosted(rows, lambda: 0.0, learning_rate=0.2, max_leaf_nodes=8)
    assert len(boosted.categories)
    for forest in (boosted, grow_extra(rows, lambda: 0.0, min_samples_leaf=3)):
        found = OnnxForest(forest)(columns).numpy()
        np.testing.assert_allclose(found, forest.predict(features.transform(new)), rtol=1e-6)


def test_tables_without_categories() -> None:
    numbers = EncodedTable(torch.randn(20, 3))
    features, _ = TreeFeatures.fit(numbers, np.arange(20.0), None, (0, 0, 0), seed=0)
    assert torch.equal(OnnxTreeColumns(features)(numbers.dense), numbers.dense)


def test_nearest_rows(table: EncodedTable, target: np.ndarray) -> None:
    network = TabNSM(4, category_sizes=SIZES, d_token=16, head_width=32).eval()
    neighbors = Neighbors.fit(network, table, target.astype(np.float32), seed=0).with_count(7)
    new = new_rows(table)
    with torch.no_grad():
        found = OnnxNeighbors(neighbors, OnnxNetwork(network))(new.dense).numpy()
    wanted = neighbors.predict(last_stage(network, new))
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_difficulty(table: EncodedTable, target: np.ndarray) -> None:
    standard = np.stack([target, -target], axis=1).astype(np.float32)
    difficulty = Difficulty.fit(table, standard, target - 1, None, SIZES, seed=0)
    together = torch.cat([table.dense, torch.from_numpy(standard)], dim=1)
    found = OnnxDifficulty([difficulty, difficulty])(together).numpy()
    wanted = difficulty.predict(table, standard) / difficulty.unit - EVEN_SHARE
    np.testing.assert_allclose(found, np.stack([wanted, wanted], axis=1), rtol=1e-5)
