from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tabnsm.blend.blend import Blend, ForestMember, member_predictions
from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.forest import Forest
from tabnsm.blend.neighbors import Neighbors, last_stage
from tabnsm.columns import EncodedTable
from tabnsm.nn.model import TabNSM
from tabnsm.target import TargetConfig, TargetModel

NETWORK = TabNSM(n_features=1, d_token=8)


@pytest.fixture
def table() -> EncodedTable:
    return EncodedTable(torch.arange(6.0)[:, None])


@pytest.fixture
def target() -> TargetModel:
    return TargetModel.fit(np.array([[1.0], [3.0]]), None, TargetConfig(clip_predictions=False))


@pytest.fixture
def blend(table: EncodedTable) -> Blend:
    features, _ = TreeFeatures.fit(table, np.arange(6.0), None, (0,), seed=0)
    raw = TargetModel.fit(np.array([[0.0], [20.0]]), None, TargetConfig(clip_predictions=False))
    members = (
        ForestMember("one", Forest.leaf(1.0)),
        ForestMember("two", Forest.leaf(-1.0), on_raw_scale=True),
    )
    return Blend(0.5, members, (0.3, 0.2), features, raw)


def test_a_blend_is_the_weighted_mean(
    blend: Blend, table: EncodedTable, target: TargetModel
) -> None:
    # The first member predicts 2 + 1, the second, on its own scale, 10 - 10.
    others = member_predictions(blend.members, blend.features, table, target, blend.raw_target)
    np.testing.assert_allclose(others, [[3.0] * 6, [0.0] * 6], atol=1e-12)
    blended = blend.predict(np.full(6, 8.0), table, target, NETWORK)
    np.testing.assert_allclose(blended, 0.5 * 8 + 0.3 * 3)
    assert blend.weights == {"networks": 0.5, "one": 0.3, "two": 0.2}


def test_chunks_do_not_change_a_bit(
    blend: Blend, table: EncodedTable, target: TargetModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = blend.predict(np.arange(6.0), table, target, NETWORK)
    monkeypatch.setattr("tabnsm.blend.blend._CHUNK_VALUES", 2)
    np.testing.assert_array_equal(blend.predict(np.arange(6.0), table, target, NETWORK), whole)


def test_the_state_is_the_blend(blend: Blend, table: EncodedTable, target: TargetModel) -> None:
    again = Blend.from_state(*blend.to_state(), (0,))
    assert again.weights == blend.weights
    networks = np.arange(6.0)
    np.testing.assert_array_equal(
        again.predict(networks, table, target, NETWORK),
        blend.predict(networks, table, target, NETWORK),
    )


def test_networks_alone_are_left_as_they_are(
    blend: Blend, table: EncodedTable, target: TargetModel
) -> None:
    alone = Blend(1.0, (), (), blend.features)
    networks = np.arange(6.0)
    assert alone.predict(networks, table, target, NETWORK) is networks
    assert Blend.from_state(*alone.to_state(), (0,)).weights == {"networks": 1.0}


def test_no_rows(blend: Blend, table: EncodedTable, target: TargetModel) -> None:
    none = table.take(torch.zeros(0, dtype=torch.int64))
    assert blend.predict(np.zeros(0), none, target, NETWORK).shape == (0,)


def test_nearest_rows_have_a_share(blend: Blend, table: EncodedTable, target: TargetModel) -> None:
    standard = np.arange(6, dtype=np.float32)
    nearest = Neighbors.fit(NETWORK, table, standard, seed=0).with_count(1)
    whole = replace(blend, network_weight=0.1, neighbors=nearest, neighbor_weight=0.4)
    assert whole.weights == {"networks": 0.1, "one": 0.3, "two": 0.2, "nearest rows": 0.4}
    networks = np.zeros(6)
    found = whole.predict(networks, table, target, NETWORK)
    added = nearest.predict(last_stage(NETWORK, table))[:, None]
    expected = 0.3 * 3 + 0.4 * target.predict(added, table)[:, 0]
    np.testing.assert_allclose(found, expected)
    again = Blend.from_state(*whole.to_state(), (0,))
    np.testing.assert_array_equal(again.predict(networks, table, target, NETWORK), found)
