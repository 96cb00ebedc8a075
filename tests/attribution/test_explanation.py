from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from tabnsm.attribution import Explanation, ExplanationSummary
from tabnsm.errors import MissingExtraError


def make(n_rows: int, seed: int = 0, *, blocks: bool = True) -> Explanation:
    """Three columns of two features each, two blocks of three."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, 6))
    return Explanation(
        predictions=rng.normal(size=n_rows),
        contributions=features[:, ::2] + features[:, 1::2],
        feature_contributions=features,
        columns=("a", "b", "c"),
        encoded_names=tuple("uvwxyz"),
        column_of_feature=np.array([0, 0, 1, 1, 2, 2]),
        selected_blocks=rng.uniform(size=(n_rows, 2)) if blocks else None,
        selection_block_size=3,
    )


def part(explanation: Explanation, rows: slice) -> Explanation:
    blocks = explanation.selected_blocks
    return Explanation(
        explanation.predictions[rows],
        explanation.contributions[rows],
        explanation.feature_contributions[rows],
        explanation.columns,
        explanation.encoded_names,
        explanation.column_of_feature,
        None if blocks is None else blocks[rows],
        explanation.selection_block_size,
    )


def test_frame_holds_the_attributions() -> None:
    explanation = make(5)
    frame = explanation.to_frame()
    assert list(frame.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(frame.to_numpy(), explanation.attributions)


def test_frame_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(MissingExtraError, match=r"tabnsm\[demo\]"):
        make(1).to_frame()


def test_a_row_without_any_effect_is_zero() -> None:
    explanation = make(2)
    explanation.contributions[0] = 0
    np.testing.assert_array_equal(explanation.attributions[0], 0)
    share = np.abs(explanation.contributions[1])
    np.testing.assert_allclose(explanation.importance, share / share.sum() / 2)


def test_foreground_of_a_column_is_the_mean_of_its_features() -> None:
    explanation = make(4)
    blocks, foreground = explanation.selected_blocks, explanation.foreground
    assert blocks is not None
    assert foreground is not None
    expected = [blocks[:, 0], blocks.mean(axis=1), blocks[:, 1]]
    np.testing.assert_allclose(foreground, np.stack(expected, axis=1))


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_summary_of_parts_is_the_summary_of_all(step: int, blocks: bool) -> None:
    whole = make(50, blocks=blocks)
    summary = ExplanationSummary(n_sampled=20)
    for start in range(0, 50, step):
        summary.add(part(whole, slice(start, start + step)))
    assert summary.n_rows == 50
    assert summary.columns == ("a", "b", "c")
    np.testing.assert_allclose(summary.importance, whole.importance)
    if blocks:
        assert whole.foreground is not None
        np.testing.assert_allclose(summary.foreground, whole.foreground.mean(axis=0))
    else:
        assert summary.foreground is None
    at_once = ExplanationSummary(n_sampled=20)
    at_once.add(whole)
    np.testing.assert_array_equal(summary.sampled_attributions, at_once.sampled_attributions)
    rows = [list(whole.predictions).index(p) for p in summary.sampled_predictions]
    assert len(set(rows)) == 20
    np.testing.assert_array_equal(summary.sampled_attributions, whole.attributions[rows])


def test_every_row_has_the_same_chance_to_be_sampled() -> None:
    whole = make(12)
    counts = np.zeros(12)
    for seed in range(600):
        summary = ExplanationSummary(n_sampled=3, seed=seed)
        summary.add(whole)
        for prediction in summary.sampled_predictions:
            counts[list(whole.predictions).index(prediction)] += 1
    # 150 expected each; 5 standard deviations of a binomial count are 53.
    assert np.abs(counts - 150).max() < 53


def test_fewer_rows_than_asked_for() -> None:
    summary = ExplanationSummary(n_sampled=100)
    summary.add(make(4))
    assert summary.sampled_attributions.shape == (4, 3)
