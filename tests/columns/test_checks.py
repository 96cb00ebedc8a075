from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm.columns import EncoderConfig, TableEncoder, warn_about_columns
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

N = 400
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=N)
Y = RNG.normal(size=N)


def messages(values, y=Y, name: str = "c", rows=None) -> list[str]:
    table = Table.from_native(pd.DataFrame({name: values, "noise": NOISE[: len(values)]}))
    encoder = TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(2), text_cache=False))
    encoder.fit_transform(table, rows)
    return warn_about_columns(table, encoder, y, rows)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("c", np.arange(N)),
        ("c", -7 * np.arange(N)),
        ("c", RNG.permutation(N)),
        ("DOL Vehicle ID", RNG.choice(10**9, N, replace=False)),
        ("vehicleId", RNG.choice(10**9, N, replace=False)),
        ("c", [f"A-{k:05d}" for k in RNG.permutation(N)]),
    ],
)
def test_row_ids_are_noticed(name, values):
    found = messages(values, name=name)
    assert len(found) == 1
    assert found[0].startswith(f"Column {name!r} looks like a row id")


@pytest.mark.parametrize(
    "values",
    [
        NOISE * 2,
        [f"${k:,.2f}" for k in NOISE],
        [f"{k} kg" for k in RNG.permutation(N)],
        RNG.integers(0, 50, N),
        RNG.choice(10**9, N, replace=False),
        [f"a sentence number {k}" for k in range(N)],
        pd.Categorical(pd.date_range("2020-01-01", periods=N).astype(str)),
    ],
)
def test_ordinary_columns_are_left_alone(values):
    assert messages(values) == []


@pytest.mark.parametrize(
    ("values", "y"),
    [
        (Y * 3 + 1, Y),
        (np.sign(Y), np.sign(Y) * 1.7e308),
        (Y, Y * 1e300),
        ([f"{y:.4f} kg" for y in Y], Y),
        (np.exp(-Y), Y),
        (np.linspace(-1, 1, 20_000), np.linspace(-1, 1, 20_000) ** 2),
        (np.where(NOISE < -1, np.nan, Y), Y),
        (np.where(Y > 0, "up", "down"), np.sign(Y)),
        ([f"area {k % 15}" for k in range(N)], np.arange(N) % 15 * 10.0),
    ],
)
def test_columns_that_give_the_target_away_are_noticed(values, y):
    values = np.asarray(values)
    table = Table.from_native(pd.DataFrame({"c": values}))
    encoder = TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(2), text_cache=False))
    encoder.fit_transform(table)
    found = warn_about_columns(table, encoder, np.asarray(y, dtype=float))
    assert len(found) == 1
    assert found[0].startswith("Column 'c' alone predicts the target almost perfectly")


def test_only_the_fit_rows_count():
    y = np.concatenate([Y[:200], NOISE[200:]])
    assert messages(Y, y, rows=np.arange(200))[0].startswith("Column 'c' alone")
    assert messages(Y, y) == []


def test_small_tables_and_missing_targets_are_silent():
    assert messages(np.arange(40), Y[:40]) == []
    assert messages(Y * 2, np.where(np.arange(N) < 380, np.nan, Y)) == []
