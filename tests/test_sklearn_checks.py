"""scikit-learn's conformance suite, whole, with the two failures that mini-batches imply."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabnsm import TabNSMRegressor

REASON = (
    "weights and repeated rows give other mini-batches, so they cannot match bit by bit; "
    "tests/test_estimator.py compares them statistically"
)


def expected_failures(_: TabNSMRegressor) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": REASON,
        "check_sample_weight_equivalence_on_sparse_data": REASON,
    }


# The ensemble that ships: three networks on tables as small as these. With all of its epochs the
# suite would take half an hour.
@pytest.mark.slow
@parametrize_with_checks(
    [TabNSMRegressor(max_epochs=12, random_state=0)], expected_failed_checks=expected_failures
)
def test_conformance(estimator: TabNSMRegressor, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("tag", ["non_deterministic", "no_validation"])
def test_no_tag_skips_checks(tag: str) -> None:
    tags = TabNSMRegressor().__sklearn_tags__()
    assert not getattr(tags, tag)
    assert not tags.regressor_tags.poor_score
