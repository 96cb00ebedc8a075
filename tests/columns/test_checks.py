from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm.columns import EncoderConfig, TableEncoder, warn_about_columns
from tabnsm.tables import Table
from tabnsm.tables.sources import PandasSource
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
def test_ordinary_columns_give_no_warning(values):
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
def test_columns_that_leak_the_target_are_noticed(values, y):
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


def mixed_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "plain": NOISE,
            "price": [f"${y:.3f}" for y in Y],
            "code": [f"A-{k:05d}" for k in range(N)],
            "day": pd.date_range("2024-01-01", periods=N).astype(str),
            "when": pd.date_range("2024-01-01", periods=N),
            "city": RNG.choice(["oslo", "rome"], N),
            "zip": RNG.integers(0, 5, N),
            "count": pd.Series(RNG.integers(0, 5, N), dtype=object),
        }
    )


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """Names of the columns that are converted, one entry each time."""
    names: list[str] = []
    convert = PandasSource.arrow

    def counted(self: PandasSource, position: int, name: str) -> object:
        names.append(name)
        return convert(self, position, name)

    monkeypatch.setattr(PandasSource, "arrow", counted)
    return names


def test_checks_read_no_column_again(reads):
    table = Table.from_native(mixed_frame())
    encoder = TableEncoder(
        EncoderConfig(
            text_encoder=FakeTextEncoder(2), text_cache=False, column_kinds={"zip": "category"}
        )
    )
    with table.keep_columns():
        encoder.fit_transform(table, np.arange(N // 2))
        found = warn_about_columns(table, encoder, Y, np.arange(N // 2))
    assert [message.split()[1] for message in found] == ["'code'", "'price'"]
    assert sorted(reads) == ["city", "code", "count", "day", "price", "when", "zip"]


def test_kept_columns_change_no_message():
    table = Table.from_native(mixed_frame())
    encoder = TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(2), text_cache=False))
    with table.keep_columns():
        encoder.fit_transform(table)
        kept = warn_about_columns(table, encoder, Y)
    assert kept == warn_about_columns(table, encoder, Y)
    assert len(kept) == 2
