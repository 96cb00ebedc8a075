"""Difficulty tells hard rows from easy ones, and is the same after a round trip."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.columns import EncodedTable
from tabnsm.intervals.difficulty import Difficulty


def make_rows(n_rows: int) -> tuple[EncodedTable, np.ndarray, np.ndarray]:
    """A number and a category, either of which makes errors large."""
    rng = np.random.default_rng(0)
    number, code = rng.normal(size=n_rows), rng.integers(1, 4, n_rows)
    error = rng.normal(size=n_rows) * np.where(number > 0, 5.0, 1.0) * np.where(code == 3, 3, 1)
    table = EncodedTable(torch.tensor(np.column_stack([number, code]), dtype=torch.float32))
    return table, np.zeros((n_rows, 1), dtype=np.float32), error


def fit(n_rows: int = 600, scale: float = 1.0, **given: object) -> Difficulty:
    table, standard, error = make_rows(n_rows)
    options: dict[str, object] = {"weight": None, "category_sizes": (0, 4), "seed": 0} | given
    return Difficulty.fit(table, standard, scale * error, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def difficulty() -> Difficulty:
    return fit()


def test_follows_the_errors(difficulty: Difficulty) -> None:
    rows = EncodedTable(torch.tensor([[-1.0, 1.0], [1.0, 1.0], [-1.0, 3.0], [1.0, 3.0]]))
    found = difficulty.predict(rows, np.zeros((4, 1), dtype=np.float32))
    assert found[1] > 1.5 * found[0]
    assert found[2] > 1.2 * found[0]
    assert found[3] == found.max()


def test_is_in_units_of_the_target(difficulty: Difficulty) -> None:
    table, standard, error = make_rows(600)
    plain = difficulty.predict(table, standard)
    assert plain.min() > 0
    assert plain.mean() == pytest.approx(np.abs(error).mean(), rel=0.2)
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(fit(scale=scale).predict(table, standard), scale * plain)


def test_rows_do_not_depend_on_each_other(difficulty: Difficulty) -> None:
    table, standard, _ = make_rows(50)
    alone = difficulty.predict(table.take(torch.tensor([7])), standard[7:8])
    assert alone[0] == difficulty.predict(table, standard)[7]
    assert difficulty.predict(table.take(torch.arange(0)), standard[:0]).shape == (0,)


def test_weights_count(difficulty: Difficulty) -> None:
    table, standard, error = make_rows(600)
    easy = np.abs(error) < np.median(np.abs(error))
    weighted = fit(weight=np.where(easy, 10.0, 0.1)).predict(table, standard)
    assert (weighted < difficulty.predict(table, standard)).all()


@pytest.mark.parametrize("n_rows", [1, 2, 15])
def test_few_rows_and_no_errors(n_rows: int) -> None:
    table, standard, error = make_rows(n_rows)
    for errors in (error, np.zeros(n_rows)):
        found = Difficulty.fit(table, standard, errors, None, (0, 4), 0).predict(table, standard)
        assert (found > 0).all()
        assert np.isfinite(found).all()


def test_round_trip(difficulty: Difficulty) -> None:
    table, standard, _ = make_rows(80)
    again = Difficulty.from_state(*difficulty.to_state(), category_sizes=(0, 4))
    np.testing.assert_array_equal(
        again.predict(table, standard), difficulty.predict(table, standard)
    )
