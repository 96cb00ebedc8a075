"""Networks that are written here learn what they are made for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bench.tests.baselines.conftest import make_table
from tabnsm_bench.baselines.catalog import make
from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.ptarl import PrototypeNetwork
from tabnsm_bench.baselines.t2g_former import FeatureGraph
from tabnsm_bench.baselines.tabptm import MetaRepresentation
from tabnsm_bench.baselines.target_statistics import TargetStatistics
from tabnsm_bench.protocol import Part, Prepared


def table(x: NDArray[Any], y: NDArray[Any], category_sizes: tuple[int, ...]) -> Prepared:
    n = len(y)
    parts = [
        Part(x[rows].astype(np.float32), y[rows].astype(np.float64))
        for rows in np.split(np.arange(n), [n * 3 // 5, n * 4 // 5])
    ]
    given = dict(zip(("train", "validation", "test"), parts, strict=True))
    return replace(make_table(category_sizes, n_rows=20), **given, category_sizes=category_sizes)


def r2(key: str, data: Prepared, **options: Any) -> float:
    method = make(key, options)
    method.fit(data, seed=0, time_limit=None, n_threads=1)
    error = method.predict(data.test.x, None) - data.test.y
    return float(1 - error.var() / data.test.y.var())


@pytest.mark.slow
def test_t2g_former_learns_a_relation_of_two_features_among_many() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 8))
    data = table(x, np.where(x[:, 2] > 0, x[:, 5], -x[:, 5]), (0,) * 8)
    options = {"n_layers": 2, "d_token": 32, "n_heads": 4, "max_epochs": 15}
    assert r2("t2g-former", data, **options) > 0.8


def test_edges_are_there_or_not_and_are_learnt() -> None:
    torch.manual_seed(0)
    graph = FeatureGraph(6, d_token=8, n_heads=2, d_column=4)
    with torch.no_grad():
        graph.edge_bias.zero_()
    edges = graph.edges()
    assert set(edges.detach().round(decimals=5).unique().tolist()) == {0.0, 1.0}
    (graph(torch.randn(3, 6, 8)) ** 2).sum().backward()  # type: ignore[no-untyped-call]
    assert graph.column_head.grad is not None
    assert graph.column_head.grad.abs().sum() > 0


def test_a_lone_feature_has_no_neighbours() -> None:
    graph = FeatureGraph(1, d_token=8, n_heads=2, d_column=4)(torch.randn(3, 1, 8))
    assert graph.eq(0).all()


@pytest.mark.slow
def test_amformer_learns_a_product() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2.0, size=(1500, 6))
    data = table(x - x.mean(0), x[:, 0] * x[:, 2] / x[:, 4], (0,) * 6)
    options = {"n_layers": 2, "d_token": 32, "n_heads": 4, "max_epochs": 15}
    assert r2("amformer", data, **options) > 0.9


def test_amformer_reads_wide_tables_by_few_queries() -> None:
    data = make_table((0,) * 30 + (3,), n_rows=60)
    options = {"d_token": 8, "n_heads": 2, "max_queries": 5, "n_strongest": 3, "max_epochs": 1}
    method = make("amformer", options)
    method.fit(data, seed=0, time_limit=None, n_threads=1)
    assert np.isfinite(method.predict(data.test.x, None)).all()


@pytest.mark.slow
def test_ptarl_learns_groups_of_rows() -> None:
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(6, 5))
    group = rng.integers(0, 6, 1200)
    x = centres[group] + 0.5 * rng.normal(size=(1200, 5))
    data = table(x, rng.permutation(6)[group] * 10.0, (0,) * 5)
    assert r2("ptarl", data, d_block=64, max_epochs=24, n_prototypes=8) > 0.95


def test_the_losses_of_ptarl_move_its_prototypes() -> None:
    torch.manual_seed(0)
    weights = ("projection_weight", "diversity_weight", "orthogonality_weight")
    options = dict.fromkeys(weights, 1.0) | {"n_bins": 2}
    network = PrototypeNetwork(torch.nn.Linear(3, 4), torch.randn(5, 4), options)
    network(torch.randn(6, 3))
    loss = network.extra_loss(torch.arange(6.0))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss > 0
    assert network.prototypes.grad is not None
    assert network.prototypes.grad.abs().sum() > 0


@pytest.mark.slow
def test_tabptm_learns_from_the_targets_of_neighbours() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(1500, 3))
    data = table(x, np.sin(x[:, 0]) * 5 + x[:, 1] ** 2, (0, 0, 0))
    assert r2("tabptm", data, d_block=64, max_epochs=12) > 0.9


def test_a_training_row_is_not_described_by_itself() -> None:
    x = np.arange(10, dtype=np.float32)[:, None]
    meta = MetaRepresentation(Columns((0,)), n_neighbours=1).fit(x, x[:, 0])
    described = meta.transform(None)
    assert (described[:, 0] > 0).all()
    assert (described[:, 1] != x[:, 0]).all()


def test_target_statistics_do_not_leak_a_rows_target() -> None:
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=400), rng.integers(0, 300, 400)], axis=1).astype(np.float32)
    y = rng.normal(size=400)
    statistics = TargetStatistics(Columns((0, 300)))
    ordered = statistics.fit(x, y, seed=0)
    assert abs(np.corrcoef(ordered[:, 1], y)[0, 1]) < 0.15
    assert np.corrcoef(statistics.transform(x)[:, 1], y)[0, 1] > 0.7  # what would leak
    np.testing.assert_array_equal(ordered[:, 0], x[:, 0])
