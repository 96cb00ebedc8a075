from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tabnsm import TabNSMRegressor
from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table
from tabnsm.tables.sparse import SparseSource, is_sparse

pytestmark = pytest.mark.usefixtures("one_network")

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@pytest.fixture(scope="module")
def dense() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.where(rng.random((120, 30)) < 0.2, rng.normal(size=(120, 30)), 0.0)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_every_format_reads_like_the_dense_array(dense: np.ndarray, kind: str, make: Any) -> None:
    matrix = make(dense).asformat(kind)
    assert is_sparse(matrix)
    table = Table.from_native(matrix)
    assert (table.n_rows, table.n_columns, table.has_names) == (120, 30, False)
    assert table.names[:2] == ["x0", "x1"]
    np.testing.assert_array_equal(table.numbers([3, 4, 5]), dense[:, 3:6])
    np.testing.assert_array_equal(table.numbers([7, 2]), dense[:, [7, 2]])
    np.testing.assert_array_equal(table.column("x9").to_float(), dense[:, 9])
    rows = np.array([5, 1, 1])
    np.testing.assert_array_equal(table.take(rows).numbers([0, 1]), dense[rows][:, :2])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.float64])
def test_numbers_of_every_type(dense: np.ndarray, dtype: Any) -> None:
    values = dense.astype(dtype)
    block = SparseSource(sp.csr_array(values)).numbers([0, 1])
    assert block.dtype.kind == "f"
    np.testing.assert_array_equal(block, values[:, :2])


def test_stored_nan_is_missing_and_what_is_not_stored_is_zero() -> None:
    table = Table.from_native(sp.csr_array([[np.nan, 0.0], [1.0, 2.0]]))
    np.testing.assert_array_equal(table.column("x0").to_float(), [np.nan, 1.0])
    np.testing.assert_array_equal(table.column("x1").to_float(), [0.0, 2.0])


@pytest.mark.slow
def test_a_fit_has_the_bits_of_the_dense_one(dense: np.ndarray) -> None:
    y = dense[:, 0] - dense[:, 1]
    y[3] = np.nan  # rows are taken, too
    options = {"max_epochs": 2, "d_token": 8, "random_state": 0}
    matrix = sp.csr_array(dense)
    with pytest.warns(UserWarning, match="no target"):
        expected = TabNSMRegressor(**options).fit(dense, y).predict(dense)
    with pytest.warns(UserWarning, match="no target"):
        model = TabNSMRegressor(**options).fit(matrix, y, X_val=matrix[:20], y_val=np.arange(20.0))
    with pytest.warns(UserWarning, match="no target"):
        model = TabNSMRegressor(**options).fit(matrix, y)
    np.testing.assert_array_equal(model.predict(matrix), expected)
    np.testing.assert_array_equal(model.predict(dense), expected)
    np.testing.assert_array_equal(
        model.explain(matrix[:5]).contributions, model.explain(dense[:5]).contributions
    )


@pytest.mark.slow
def test_the_whole_table_is_never_dense_in_float64() -> None:
    matrix = sp.random(20_000, 500, density=0.001, random_state=0, format="csr")
    encoder = TableEncoder(EncoderConfig(n_bins=0))
    tracemalloc.start()
    encoder.fit_transform(Table.from_native(matrix))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The result is float32; as much again would be needed for half of the table in float64.
    assert peak < 1.9 * 4 * 20_000 * 500


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (sp.csr_array(np.eye(3) * 1j), "Complex data not supported"),
        (sp.coo_array(np.arange(3)), "Expected 2D array, got 1D"),
        (sp.csr_array((0, 3)), r"0 sample\(s\)"),
        (sp.csr_array((3, 0)), r"0 feature\(s\)"),
    ],
)
def test_what_is_no_table_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        Table.from_native(bad)


def test_a_sparse_target_is_refused(dense: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"must be dense.*toarray"):
        TabNSMRegressor().fit(dense, sp.csr_array(dense[:, :1]))
