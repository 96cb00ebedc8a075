from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabnsm_bench.rank_tests import (
    critical_difference,
    friedman_chi2,
    rank_methods,
    signed_rank_p,
)

# Few values, so that ties are common.
SCORES = st.integers(0, 4)


@given(st.lists(st.lists(SCORES, min_size=4, max_size=4), min_size=3, max_size=6))
def test_friedman_is_scipys_with_ties_and_the_textbooks_without(rows: list[list[int]]) -> None:
    scores = np.array(rows, dtype=float)
    plain, corrected = friedman_chi2(rank_methods(scores))
    k, n = scores.shape
    sums = rank_methods(scores).sum(axis=1)
    assert plain == pytest.approx(12 / (n * k * (k + 1)) * np.sum(sums**2) - 3 * n * (k + 1))
    if np.ptp(scores, axis=0).any():
        expected = stats.friedmanchisquare(*scores).statistic
        assert corrected == pytest.approx(expected, abs=1e-9)
    else:
        assert corrected == 0


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_the_signed_rank_test_counts_all_choices_of_signs(values: list[int]) -> None:
    differences = np.array(values, dtype=float)
    kept = differences[differences != 0]
    ranks = stats.rankdata(np.abs(kept))
    seen = ranks[kept > 0].sum()
    sums = [
        sum(itertools.compress(ranks, signs))
        for signs in itertools.product((0, 1), repeat=len(kept))
    ]
    assert signed_rank_p(differences) == pytest.approx(np.mean(np.array(sums) <= seen + 1e-9))


def test_the_signed_rank_test_is_scipys_exact_one() -> None:
    differences = np.random.default_rng(0).normal(-0.3, 1, 30)
    expected = stats.wilcoxon(differences, alternative="less", method="exact").pvalue
    assert signed_rank_p(differences) == pytest.approx(expected)


@pytest.mark.parametrize(
    # From the table of Demsar (2006): q at 0.05 for 2 to 10 methods.
    ("n_methods", "q"),
    [(2, 1.960), (3, 2.343), (5, 2.728), (7, 2.949), (10, 3.164)],
)
def test_critical_values_are_those_of_the_tables(n_methods: int, q: float) -> None:
    found, cd = critical_difference(n_methods, 20)
    assert found == pytest.approx(q, abs=1e-3)
    assert cd == pytest.approx(found * np.sqrt(n_methods * (n_methods + 1) / 120))


def test_missing_scores_have_the_worst_rank() -> None:
    ranks = rank_methods(np.array([[3.0], [np.nan], [1.0], [np.nan]]))
    assert ranks.ravel().tolist() == [2, 4, 1, 4]
