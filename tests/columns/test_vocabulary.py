from __future__ import annotations

import numpy as np
import pytest

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.vocabulary import encode_categories, find_vocabulary, n_codes
from tabnsm.tables import Table
from tabnsm.tables.column import Factor


def test_vocabulary_is_sorted_and_from_the_fit_rows_only():
    factor = Factor(np.array([2, 0, 1, -1]), ["b", "later", "a"])
    assert find_vocabulary(factor, np.array([0, 1, 3])) == ("a", "b")
    assert find_vocabulary(factor, None) == ("a", "b", "later")


def test_missing_is_unseen_unless_it_has_a_code():
    factor = Factor(np.array([0, -1]), ["a"])
    assert encode_categories(factor, ("a",), missing_code=False).tolist() == [1, 0]
    assert encode_categories(factor, ("a",), missing_code=True).tolist() == [1, 2]
    assert n_codes(("a",), missing_code=True) == 3


@pytest.mark.parametrize(
    ("encoding", "fit_values", "new_values"),
    [
        ("embedding", [2, 1, 3, 2], [1, 0, 3]),
        ("code", [0.0, -(2**0.5), 2**0.5, 0.0], [-(2**0.5), 0.0, 2**0.5]),
    ],
)
def test_both_encodings_of_a_column(encoding, fit_values, new_values):
    encoder = TableEncoder(EncoderConfig(category_encoding=encoding))
    dense = encoder.fit_transform(Table.from_native([["b"], ["a"], [None], ["b"]])).dense
    np.testing.assert_allclose(dense.ravel(), fit_values, rtol=1e-6)
    dense = encoder.transform(Table.from_native([["a"], ["unseen"], [None]])).dense
    np.testing.assert_allclose(dense.ravel(), new_values, rtol=1e-6)
    assert encoder.category_sizes == ((4,) if encoding == "embedding" else (0,))


def test_missing_that_was_never_seen_is_unseen():
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native([["a"], ["b"]]))
    assert encoder.transform(Table.from_native([[None]])).dense.tolist() == [[0.0]]
    assert encoder.category_sizes == (3,)
