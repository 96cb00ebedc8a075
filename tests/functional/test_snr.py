"""The paper's proposition on the signal-to-noise ratio of sparse aggregation, simulated.

A row has `s` informative features of fixed value and independent noise of mean zero elsewhere.
Dense aggregation is the mean over all features; sparse aggregation the mean over a support of `m`
blocks of `b` features that covers the informative ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

N_ROWS = 20_000


@dataclass(frozen=True)
class Setting:
    n_features: int
    n_informative: int
    n_selected_blocks: int
    block_size: int
    signal: float = 0.8
    noise: float = 1.5

    @property
    def n_selected(self) -> int:
        return self.n_selected_blocks * self.block_size


def simulate(setting: Setting, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Aggregates of many rows: dense, and sparse over blocks that hold the informative features."""
    rng = np.random.default_rng(seed)
    blocks = rng.permutation(setting.n_features // setting.block_size)
    starts = blocks[: setting.n_selected_blocks] * setting.block_size
    support = np.concatenate([np.arange(start, start + setting.block_size) for start in starts])
    informative = rng.permutation(support)[: setting.n_informative]
    # The signal differs between the features; the proposition speaks of its mean alone.
    values = setting.signal + rng.uniform(-0.5, 0.5, setting.n_informative)
    values += setting.signal - values.mean()
    dense, sparse = [], []
    for _ in range(20):
        rows = rng.normal(0, setting.noise, (N_ROWS // 20, setting.n_features))
        rows[:, informative] = values
        dense.append(rows.mean(axis=1))
        sparse.append(rows[:, support].mean(axis=1))
    return np.concatenate(dense), np.concatenate(sparse)


def snr(aggregates: np.ndarray) -> float:
    return float(abs(aggregates.mean()) / aggregates.std())


def within_error(expected: float) -> object:
    """What equals a ratio up to four standard errors of its estimate from N_ROWS normal draws."""
    return pytest.approx(expected, abs=4 * math.sqrt((1 + expected**2 / 2) / N_ROWS))


SETTINGS = [
    Setting(n_features=200, n_informative=20, n_selected_blocks=3, block_size=10),
    Setting(n_features=400, n_informative=25, n_selected_blocks=3, block_size=10, signal=-0.8),
    Setting(n_features=120, n_informative=30, n_selected_blocks=10, block_size=6, noise=0.5),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_both_ratios_and_their_quotient(setting):
    dense, sparse = simulate(setting)
    s, n_features, n_selected = setting.n_informative, setting.n_features, setting.n_selected
    signal = s * abs(setting.signal) / setting.noise
    # Four standard errors of a variance.
    tolerance = 4 * math.sqrt(2 / N_ROWS)
    dense_variance = (n_features - s) / n_features**2 * setting.noise**2
    sparse_variance = (n_selected - s) / n_selected**2 * setting.noise**2
    assert dense.var() == pytest.approx(dense_variance, rel=tolerance)
    assert sparse.var() == pytest.approx(sparse_variance, rel=tolerance)
    assert snr(dense) == within_error(signal / math.sqrt(n_features - s))
    assert snr(sparse) == within_error(signal / math.sqrt(n_selected - s))
    gain = math.sqrt((n_features - s) / (n_selected - s))
    assert snr(sparse) / snr(dense) == pytest.approx(gain, rel=0.05)


def test_the_noise_vanishes_when_the_support_is_the_informative_set():
    setting = Setting(n_features=200, n_informative=30, n_selected_blocks=3, block_size=10)
    dense, sparse = simulate(setting)
    assert np.ptp(sparse) < 1e-12
    assert sparse[0] == pytest.approx(setting.signal)
    assert dense.std() > 0.01


@pytest.mark.slow
def test_dense_falls_with_the_root_of_the_width_and_sparse_does_not():
    n_informative, surplus, signal, noise = 25, 5, 4.0, 1.5
    widths = [100, 400, 1600]
    settings = [Setting(n_features, n_informative, 3, 10, signal, noise) for n_features in widths]
    ratios = [tuple(map(snr, simulate(setting))) for setting in settings]
    for n_features, (dense, sparse) in zip(widths, ratios, strict=True):
        scale = n_informative * signal / noise
        assert dense == within_error(scale / math.sqrt(n_features - n_informative))
        assert sparse == within_error(scale / math.sqrt(surplus))
    dense_ratios = [dense for dense, _ in ratios]
    slope, _ = np.polyfit(np.log(np.asarray(widths) - n_informative), np.log(dense_ratios), 1)
    assert slope == pytest.approx(-0.5, abs=0.02)
