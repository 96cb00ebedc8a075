from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.columns import TableEncoder
from tabnsm.columns.target_means import MAX_FEATURES, TargetMeans
from tabnsm.tables import Table


def routes(noise: float = 0.3) -> tuple[pd.DataFrame, np.ndarray]:
    """A panel: the target is that of the route, whose number says nothing by its size."""
    n_routes, n_years, rng = 200, 5, np.random.default_rng(1)
    route = np.repeat(rng.permutation(10_000)[:n_routes], n_years)
    level = dict(zip(np.unique(route), rng.normal(size=n_routes), strict=True))
    target = np.array([level[k] for k in route]) + noise * rng.normal(size=len(route))
    frame = pd.DataFrame({"route": route, "year": np.tile(np.arange(n_years), n_routes)})
    order = rng.permutation(len(frame))
    return frame.iloc[order].reset_index(drop=True), target[order]


def test_mean_of_a_row_does_not_hold_its_own_target():
    frame, target = routes(noise=0.0)
    dense = frame[["route"]].to_numpy(np.float32)
    _, before = TargetMeans.fit(dense, target[:, None], None, (0,))
    target[7] += 0.5  # within the range, so that no other row is clipped in another way
    _, after = TargetMeans.fit(dense, target[:, None], None, (0,))
    same_route = frame["route"].to_numpy() == frame["route"][7]
    moved = np.abs(after - before)[:, 0]
    assert moved[7] < 0.1 * moved[same_route].max()


def test_noise_gets_no_feature():
    frame, target = routes()
    shuffled = np.random.default_rng(2).permutation(target)
    dense = frame[["route"]].to_numpy(np.float32)
    means, features = TargetMeans.fit(dense, shuffled[:, None], None, (0,))
    assert means.parts == []
    assert features.shape == (len(frame), 0)


def test_smooth_effects_are_left_to_the_bins():
    x = np.repeat(np.arange(300.0), 5)
    target = np.sin(x / 40) + 0.1 * np.random.default_rng(0).normal(size=len(x))
    means, _ = TargetMeans.fit(x[:, None].astype(np.float32), target[:, None], None, (0,))
    assert means.parts == []


def test_only_fit_rows_are_looked_at():
    frame, target = routes()
    dense = frame[["route"]].to_numpy(np.float32)
    rows = np.arange(600)
    other = target.copy()
    other[600:] = 1e6
    first, features = TargetMeans.fit(dense, target[:, None], rows, (0,))
    second, same = TargetMeans.fit(dense, other[:, None], rows, (0,))
    np.testing.assert_array_equal(features, same)
    np.testing.assert_array_equal(first.parts[0].means, second.parts[0].means)


def test_unseen_value_has_the_mean_of_all():
    frame, target = routes()
    means, _ = TargetMeans.fit(frame[["route"]].to_numpy(np.float32), target[:, None], None, (0,))
    assert means.transform(np.array([[-5.0], [1e9]], dtype=np.float32)).tolist() == [[0.0], [0.0]]


def test_missing_targets_are_left_out_and_features_are_few():
    frame, target = routes()
    both = np.stack([target, np.where(np.arange(len(target)) % 3, target, np.nan)], axis=1)
    dense = np.repeat(frame[["route"]].to_numpy(np.float32), 20, axis=1)
    means, features = TargetMeans.fit(dense, both, None, (0,) * 20)
    assert {part.target for part in means.parts} == {0, 1}
    assert len(means.parts) == 2 * MAX_FEATURES
    assert np.isfinite(features).all()


def test_state_encodes_the_same_bits():
    frame, target = routes()
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native(frame), None, None, target[:, None])
    assert encoder.feature_names[-1] == "route_target_mean"
    assert encoder.feature_columns[-1] == 0
    again = TableEncoder.from_state(*encoder.to_state())
    new = Table.from_native(frame.iloc[:50])
    np.testing.assert_array_equal(again.transform(new).dense, encoder.transform(new).dense)


@pytest.mark.slow
def test_a_panel_is_learned_by_its_identifier(tmp_path):
    frame, target = routes()
    options = {"max_epochs": 15, "n_ensemble": 1, "random_state": 0}
    with_means = TabNSMRegressor(**options).fit(frame[:800], target[:800])
    without = TabNSMRegressor(target_means=False, **options).fit(frame[:800], target[:800])
    assert with_means.score(frame[800:], target[800:]) > 0.7
    assert without.score(frame[800:], target[800:]) < 0.5
    with_means.save(tmp_path / "panel.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "panel.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame), with_means.predict(frame))
