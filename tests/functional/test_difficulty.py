"""RISE's bins, weights and draws against exact fractions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.functional.difficulty import (
    difficulty_bins,
    difficulty_weights,
    draw_multinomial,
    draw_systematic,
)
from tests.oracles import difficulty as oracle

# Few distinct values, so that ties are common; the odd ones included.
loss_lists = st.lists(
    st.one_of(
        st.integers(0, 5).map(float),
        st.floats(0, 1e30),
        st.sampled_from([0.0, -0.0, math.inf, math.nan]),
    ),
    min_size=1,
    max_size=40,
)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class TestBins:
    @given(losses=loss_lists, n_bins=st.integers(1, 12))
    def test_equal_to_the_oracle(self, losses, n_bins):
        bins = difficulty_bins(torch.tensor(losses, dtype=torch.float64), n_bins)
        assert bins.dtype == torch.int64
        assert bins.tolist() == oracle.difficulty_bins(losses, n_bins)

    @given(losses=loss_lists, n_bins=st.integers(1, 12), seed=st.integers(0, 1000))
    def test_ties_share_a_bin_harder_is_never_lower_and_order_does_not_matter(
        self, losses, n_bins, seed
    ):
        values = torch.tensor(losses, dtype=torch.float64)
        bins = difficulty_bins(values, n_bins)
        order = torch.randperm(len(losses), generator=seeded(seed))
        assert torch.equal(difficulty_bins(values[order], n_bins), bins[order])
        for i, loss in enumerate(losses):
            for j, other in enumerate(losses):
                if loss == other:
                    assert bins[i] == bins[j]
                elif loss < other:
                    assert bins[i] <= bins[j]

    @given(n_rows=st.integers(1, 200), n_bins=st.integers(1, 12), seed=st.integers(0, 1000))
    def test_without_ties_the_bins_differ_by_at_most_one_row(self, n_rows, n_bins, seed):
        losses = torch.randperm(n_rows, generator=seeded(seed)).float()
        sizes = difficulty_bins(losses, n_bins).bincount(minlength=n_bins)
        assert sizes.max() - sizes.min() <= 1

    def test_all_equal_is_the_easiest_bin(self):
        assert difficulty_bins(torch.full((7,), 3.0), 5).tolist() == [0] * 7

    def test_fewer_rows_than_bins(self):
        assert difficulty_bins(torch.tensor([2.0, 1.0]), 5).tolist() == [2, 0]

    def test_nan_is_the_hardest_bin_and_moves_no_other_row_up(self):
        losses = torch.tensor([math.nan, 1.0, 2.0, math.nan, 3.0, 4.0])
        assert difficulty_bins(losses, 3).tolist() == [2, 0, 0, 2, 1, 1]

    @pytest.mark.parametrize("shape", [(0,), (3, 1)])
    def test_shapes_that_are_not_rows(self, shape):
        with pytest.raises(InvalidDataError, match=r"losses must have shape \(n_rows,\)"):
            difficulty_bins(torch.zeros(shape), 3)


class TestWeights:
    @given(
        bins=st.lists(st.integers(0, 4), min_size=1, max_size=20),
        extra=st.integers(0, 3),
        max_boost=st.floats(1, 50),
    )
    def test_equal_to_the_paper_in_fractions(self, bins, extra, max_boost):
        n_bins = max(bins) + 1 + extra
        weights = difficulty_weights(torch.tensor(bins), n_bins, max_boost)
        expected = oracle.difficulty_weights(bins, n_bins, max_boost)
        assert weights.dtype == torch.float64
        np.testing.assert_allclose(weights, [float(w) for w in expected], rtol=1e-14)

    def test_one_bin_is_uniform(self):
        assert difficulty_weights(torch.zeros(3, dtype=torch.int64), 1, 4.0).tolist() == [1.0] * 3

    def test_the_easiest_weighs_one_and_the_hardest_the_boost(self):
        weights = difficulty_weights(torch.arange(5), 5, 3.0)
        assert weights.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]

    @pytest.mark.parametrize(
        ("n_bins", "max_boost", "message"),
        [
            (0, 2.0, "n_difficulty_bins must be an integer >= 1, got 0"),
            (2.0, 2.0, "n_difficulty_bins must be an integer >= 1, got 2.0"),
            (5, 0.9, "max_boost must be finite and >= 1, got 0.9"),
            (5, math.inf, "max_boost must be finite and >= 1, got inf"),
            (5, math.nan, "max_boost must be finite and >= 1, got nan"),
        ],
    )
    def test_options_outside_their_rules(self, n_bins, max_boost, message):
        with pytest.raises(InvalidOptionError, match=message):
            difficulty_weights(torch.zeros(2, dtype=torch.int64), n_bins, max_boost)

    def test_bins_that_do_not_exist(self):
        with pytest.raises(InvalidDataError, match=r"bin_index must lie in 0\.\.2, got 0\.\.3"):
            difficulty_weights(torch.tensor([0, 3]), 3, 2.0)


weight_lists = st.lists(
    st.one_of(st.sampled_from([1.0, 1.25, 1.5, 2.0]), st.floats(0.01, 100)),
    min_size=1,
    max_size=60,
)


class TestSystematic:
    @given(weights=weight_lists, n_draws=st.integers(1, 200), seed=st.integers(0, 2**31))
    def test_each_row_appears_floor_or_ceil_of_its_expected_count(self, weights, n_draws, seed):
        rows = draw_systematic(torch.tensor(weights, dtype=torch.float64), n_draws, seeded(seed))
        assert rows.dtype == torch.int64
        assert rows.shape == (n_draws,)
        counts = rows.bincount(minlength=len(weights)).tolist()
        for count, expected in zip(counts, oracle.expected_counts(weights, n_draws), strict=True):
            # A count a hair below a whole number is that number.
            assert math.floor(expected + 1e-9) <= count <= math.ceil(expected - 1e-9)

    @given(
        n_rows=st.integers(1, 500),
        weight=st.floats(0.001, 1000),
        times=st.integers(1, 4),
        seed=st.integers(0, 2**31),
    )
    def test_equal_weights_give_every_row_equally_often(self, n_rows, weight, times, seed):
        weights = torch.full((n_rows,), weight, dtype=torch.float64)
        rows = draw_systematic(weights, times * n_rows, seeded(seed))
        assert (rows.bincount(minlength=n_rows) == times).all()

    @pytest.mark.parametrize("weight", [0.1, 1 / 3, 1.0])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_a_million_equal_rows_are_shuffled(self, weight, dtype):
        n_rows = 1_000_000
        rows = draw_systematic(torch.full((n_rows,), weight, dtype=dtype), n_rows, seeded(0))
        assert (rows.bincount(minlength=n_rows) == 1).all()
        assert not torch.equal(rows, torch.arange(n_rows))

    @pytest.mark.parametrize("n_rows", [999_999, 1_000_000])
    def test_a_million_rows_with_few_weights_keep_floor_or_ceil(self, n_rows):
        bins = torch.randint(0, 5, (n_rows,), generator=seeded(1))
        weights = difficulty_weights(bins, 5, 3.0)
        counts = draw_systematic(weights, n_rows, seeded(2)).bincount(minlength=n_rows)
        expected = weights * (n_rows / weights.sum())
        assert counts.sum() == n_rows
        assert (counts >= expected.floor()).all()
        assert (counts <= expected.ceil()).all()

    def test_the_order_is_random(self):
        rows = draw_systematic(torch.ones(1000), 1000, seeded(0)).double()
        neighbours = torch.corrcoef(torch.stack((rows[:-1], rows[1:])))[0, 1]
        assert abs(neighbours) < 0.1

    def test_rows_side_by_side_are_drawn_independently(self):
        # Expected count 1/2 each: a fixed order would draw exactly one of the first two.
        both = sum(
            set(draw_systematic(torch.ones(40), 20, seeded(seed)).tolist()) >= {0, 1}
            for seed in range(400)
        )
        assert both / 400 == pytest.approx(0.25, abs=0.1)


@pytest.mark.parametrize("draw", [draw_systematic, draw_multinomial])
class TestBothDraws:
    def test_mean_counts_are_the_expected_ones(self, draw):
        weights = torch.tensor([1.0, 1.5, 2.0, 0.1, 7.0], dtype=torch.float64)
        n_draws, n_repeats = 7, 1000
        generator = seeded(0)
        counts = torch.zeros(5)
        for _ in range(n_repeats):
            counts += draw(weights, n_draws, generator).bincount(minlength=5)
        probability = weights / weights.sum()
        # Five standard errors of independent draws, which bound those of systematic ones.
        error = 5 * (n_draws * probability * (1 - probability) / n_repeats).sqrt()
        assert ((counts / n_repeats - n_draws * probability).abs() <= error).all()

    def test_the_generator_decides(self, draw):
        weights = torch.rand(50, generator=seeded(3)) + 0.1
        assert torch.equal(draw(weights, 50, seeded(1)), draw(weights, 50, seeded(1)))
        assert not torch.equal(draw(weights, 50, seeded(1)), draw(weights, 50, seeded(2)))

    def test_one_row(self, draw):
        assert draw(torch.tensor([3.0]), 4, seeded(0)).tolist() == [0] * 4

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
    def test_weights_that_are_no_weights(self, draw, bad):
        with pytest.raises(InvalidDataError, match="weights must be positive and finite"):
            draw(torch.tensor([1.0, bad]), 2, seeded(0))

    def test_shapes_and_counts(self, draw):
        with pytest.raises(InvalidDataError, match=r"weights must have shape \(n_rows,\)"):
            draw(torch.ones(2, 2), 2, seeded(0))
        with pytest.raises(InvalidOptionError, match="n_draws must be an integer >= 1, got 0"):
            draw(torch.ones(2), 0, seeded(0))


def test_multinomial_draws_repeat_and_leave_out():
    counts = draw_multinomial(torch.ones(10_000), 10_000, seeded(0)).bincount(minlength=10_000)
    # With replacement, 1/e of the rows are left out.
    assert (counts == 0).double().mean().item() == pytest.approx(math.exp(-1), abs=0.02)
