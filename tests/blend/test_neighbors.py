from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch

from tabnsm.blend import neighbors
from tabnsm.blend.neighbors import Neighbors, last_stage
from tabnsm.columns import EncodedTable
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import eval_mode


@pytest.fixture(scope="module")
def network() -> TabNSM:
    return TabNSM(n_features=5, d_token=8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def table() -> EncodedTable:
    return EncodedTable(torch.randn(300, 5, generator=torch.Generator().manual_seed(1)))


def test_threads_see_their_own_rows(network: TabNSM, table: EncodedTable) -> None:
    parts = [table.take(torch.arange(k, k + 100)) for k in (0, 50, 100)]
    expected = [last_stage(network, part) for part in parts]
    with eval_mode(network), ThreadPoolExecutor(3) as pool:  # as in a fitted model
        for _ in range(5):
            found = list(pool.map(partial(last_stage, network), parts))
            assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_what_the_last_stage_sees(network: TabNSM, table: EncodedTable) -> None:
    seen = last_stage(network, table)
    n_inputs = 5 * (1 + network.n_pools)
    assert seen.shape == (300, (n_inputs + 1) // 2 + 2)
    with torch.inference_mode():
        whole = network.eval()(table.dense)[:, 0]
        again = network.head.fusion(seen)[:, 0] + seen[:, -2] + seen[:, -1]
    np.testing.assert_allclose(again, whole, atol=1e-5)
    for n_rows in (1, 70):
        part = last_stage(network, table.take(torch.arange(n_rows)))
        np.testing.assert_array_equal(part, seen[:n_rows])


def test_a_training_row_is_its_own_neighbour(network: TabNSM, table: EncodedTable) -> None:
    standard = np.random.default_rng(0).normal(size=300).astype(np.float32)
    nearest = Neighbors.fit(network, table, standard, seed=0).with_count(1)
    found = nearest.predict(last_stage(network, table))
    np.testing.assert_allclose(found, standard, atol=1e-6)


def test_neighbours_are_those_of_an_exhaustive_search(network: TabNSM, table: EncodedTable) -> None:
    standard = np.random.default_rng(0).normal(size=200).astype(np.float32)
    nearest = Neighbors.fit(network, table.take(torch.arange(200)), standard, seed=0).with_count(3)
    seen = last_stage(network, table)[200:]
    place = ((seen - nearest.center) @ nearest.axes).numpy()
    points, values = nearest.points.numpy(), nearest.values.numpy()
    tiny = 1e-6 * (points**2).sum(axis=1).mean()
    expected = []
    for row in place.astype(np.float64):
        distance = ((points - row) ** 2).sum(axis=1)
        chosen = np.argsort(distance)[:3]
        expected.append(np.average(values[chosen], weights=1 / (distance[chosen] + tiny)))
    np.testing.assert_allclose(nearest.predict(seen), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(nearest.predict(seen[:1]), nearest.predict(seen)[:1])


def test_rows_are_bounded_and_so_are_neighbours(
    network: TabNSM, table: EncodedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbors, "MAX_POINTS", 10)
    nearest = Neighbors.fit(network, table, np.zeros(300, np.float32), seed=0)
    assert nearest.points.shape == (10, neighbors.N_AXES)
    assert nearest.with_count(64).n_neighbors == 10


def test_the_state_is_the_rows(network: TabNSM, table: EncodedTable) -> None:
    standard = np.arange(300, dtype=np.float32)
    nearest = Neighbors.fit(network, table, standard, seed=0).with_count(7)
    again = Neighbors.from_state(*nearest.to_state())
    seen = last_stage(network, table)
    np.testing.assert_array_equal(again.predict(seen), nearest.predict(seen))
