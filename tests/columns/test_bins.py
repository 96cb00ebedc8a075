from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.columns import TableEncoder
from tabnsm.columns.bins import find_bins
from tabnsm.columns.config import EncoderConfig
from tabnsm.tables import Table


def test_bins_hold_equally_many_rows():
    values = np.random.default_rng(0).exponential(size=(1001, 1)).astype(np.float32)
    (low, width) = find_bins(values, None, np.array([True]), 1, 4)[0].numpy()
    ends = np.append(low, low[-1] + width[-1])
    counts = np.histogram(values, bins=ends)[0]
    assert counts.sum() == 1001
    assert counts.max() - counts.min() <= 1
    np.testing.assert_allclose(low[1:], low[:-1] + width[:-1], rtol=1e-6)


def test_few_values_are_all_bin_edges():
    dense = np.array([[0, 1, 1, 1, 1, 1, 5, 7]], dtype=np.float32).T
    bins = find_bins(dense, None, np.array([True]), 1, 5)[0]
    assert bins[0].tolist() == [0, 1, 5]
    assert bins[1].tolist() == [1, 4, 2]


def test_a_value_of_most_rows_leaves_fewer_bins():
    dense = np.zeros((1000, 1), dtype=np.float32)
    dense[:50, 0] = np.arange(50)
    bins = find_bins(dense, None, np.array([True]), 1, 8)[0]
    finite = torch.isfinite(bins[0])
    assert 1 <= finite.sum() < 8
    assert (bins[1] > 0).all()


@pytest.mark.slow
def test_categories_text_indicators_and_other_rows_do_not_count():
    frame = pd.DataFrame(
        {
            "n": [*range(20), *range(1000, 1020)],
            "flag": [0.0, 1.0] * 20,
            "gap": [np.nan, *range(39)],
            "word": ["a", "b"] * 20,
            "text": [f"word {k} of many" for k in range(40)],
        }
    )
    encoder = TableEncoder(EncoderConfig(n_bins=4))
    encoder.fit_transform(Table.from_native(frame), np.arange(20))
    binned = torch.isfinite(encoder.bins[:, 0]).any(1)
    named = [name for name, has_bins in zip(encoder.feature_names, binned, strict=True) if has_bins]
    assert named == ["n", "gap"]
    assert encoder.bins.shape == (encoder.n_features, 2, 4)
    low, width = encoder.bins[0]
    assert float(low[-1] + width[-1]) < 2  # the far rows are no fit rows


def test_bins_survive_their_state_and_can_be_switched_off():
    frame = pd.DataFrame({"n": np.arange(30.0) ** 2})
    encoder = TableEncoder(EncoderConfig(n_bins=3))
    encoder.fit_transform(Table.from_native(frame))
    tensors, meta = encoder.to_state()
    again = TableEncoder.from_state(tensors, meta)
    assert torch.equal(again.bins, encoder.bins)
    straight = TableEncoder(EncoderConfig(n_bins=0))
    straight.fit_transform(Table.from_native(frame))
    assert straight.bins is None
    assert "bins" not in straight.to_state()[0]


@pytest.mark.parametrize("value", [-1, 2.5, "16", True])
def test_a_wrong_number_of_bins_is_refused(value):
    with pytest.raises(ValueError, match=r"n_bins must be an integer >= 0, got"):
        EncoderConfig(n_bins=value)


def encoded_pieces(matrix):
    encoder = TableEncoder(EncoderConfig(n_bins=4))
    encoder.fit_transform(Table.from_native(matrix))
    return [ends[torch.isfinite(ends)] for ends in encoder.bins[:, 0]]


def test_repeated_numbers_have_a_bin_between_every_two_values():
    rng = np.random.default_rng(0)
    quantity = rng.permutation(400) / 7
    hour = np.tile(np.arange(16), 25)  # 25 times each
    many = np.repeat(np.arange(100), 4)  # more values than bins, but four times each
    bins = encoded_pieces(np.column_stack([quantity, hour, many]))
    assert [len(ends) for ends in bins] == [4, 15, 16]
    spacing = torch.diff(bins[1])
    assert torch.allclose(spacing, spacing[:1])


@pytest.mark.slow
def test_wide_tables_have_fewer_bins_for_codes():
    hours = np.tile(np.arange(16), 25)[:, None]
    for width, expected in ((2000, 15), (4000, 8), (9000, 4)):
        bins = encoded_pieces(np.repeat(hours, width, axis=1).astype(np.float32))
        assert {len(ends) for ends in bins} == {expected}
