from __future__ import annotations

import numpy as np
import pytest

from tabnsm.blend.weights import blend_weights, greedy_weights


@pytest.fixture
def target() -> np.ndarray:
    return np.random.default_rng(0).normal(size=2000)


def noisy(target: np.ndarray, size: float, seed: int) -> np.ndarray:
    return target + size * np.random.default_rng(seed).normal(size=len(target))


def test_weights_are_shares(target: np.ndarray) -> None:
    members = [noisy(target, size, k) for k, size in enumerate((0.5, 1.0, 3.0))]
    for found in (greedy_weights(members, target), blend_weights(members, target)):
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        # By the inverse of the variance, as theory has it for errors of their own.
        np.testing.assert_allclose(found, [0.78, 0.2, 0.02], atol=0.06)


def test_greedy_is_no_worse_than_the_best_member(target: np.ndarray) -> None:
    members = np.stack([noisy(target, 0.5, 1), noisy(target, 0.6, 2)])
    blended = greedy_weights(list(members), target) @ members
    assert np.mean((blended - target) ** 2) < ((members - target) ** 2).mean(axis=1).min()


def test_rows_of_large_weight_decide(target: np.ndarray) -> None:
    half = np.arange(len(target)) % 2 == 0
    members = [np.where(half, target, 0.0), np.where(half, 0.0, target)]
    found = greedy_weights(members, target, np.where(half, 1.0, 1e-6))
    np.testing.assert_array_equal(found, [1.0, 0.0])


def test_the_metric_decides() -> None:
    target = np.zeros(10)
    often, seldom = np.full(10, 1.0), np.array([5.0] + [0.0] * 9)
    assert greedy_weights([often, seldom], target, metric="mae", n_steps=1).tolist() == [0, 1]
    assert greedy_weights([often, seldom], target, metric="rmse", n_steps=1).tolist() == [1, 0]


def test_few_rows_do_not_choose_one_member(target: np.ndarray) -> None:
    members = [noisy(target, 0.5, 1)[:3], noisy(target, 0.5, 2)[:3], noisy(target, 50.0, 3)[:3]]
    found = blend_weights(members, target[:3])
    assert found.max() < 0.9
    assert found[2] < 0.01


def test_members_without_error_have_all(target: np.ndarray) -> None:
    np.testing.assert_array_equal(blend_weights([target, target + 1], target), [1.0, 0.0])
    np.testing.assert_array_equal(blend_weights([target + 1], target), [1.0])


def test_undefined_predictions_have_no_weight(target: np.ndarray) -> None:
    found = blend_weights([np.full(len(target), np.nan), target + 1], target)
    np.testing.assert_array_equal(found, [0.0, 1.0])
