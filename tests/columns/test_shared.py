"""An encoder that is fitted in shares of the columns has the state of one machine."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from tabnsm.columns import EncoderConfig, TableEncoder, warn_about_columns
from tabnsm.columns.shared import FitInput, SharedEncoder, dense_state, encode_dense
from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

N_ROWS = 1200


class WordEncoder(FakeTextEncoder):
    """Alike where texts share words, so that they say something about the target."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        return np.stack([super(WordEncoder, self).encode(text.split()).mean(0) for text in texts])


def run(title: str, function: Callable[..., Any], given: FitInput, shares: Sequence[Any]) -> Any:
    """Tasks get copies of what they need, as those of a cluster do."""
    sent = pickle.dumps((given, list(shares)))
    return [function(pickle.loads(sent)[0], share) for share in pickle.loads(sent)[1]]


def frame() -> pd.DataFrame:
    """All kinds of columns: numbers, codes with means of the target, dates, text, dropped ones."""
    rng = np.random.default_rng(0)
    school = rng.integers(0, 150, N_ROWS)
    days = pd.to_timedelta(rng.integers(0, 2000, N_ROWS), "D")
    words = ["old", "house", "sea", "street", "roof", "garden", "noisy", "new"]
    table = pd.DataFrame(
        {
            "a": rng.normal(size=N_ROWS) * 1e6,
            "b": np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.normal(size=N_ROWS)),
            "school": 7919 * school % 997,
            "count": rng.integers(0, 5, N_ROWS),
            "constant": 3,
            "empty": np.full(N_ROWS, np.nan),
            "kind": rng.choice(["x", "y", "z", None], N_ROWS),
            "when": pd.Timestamp("2020-01-01") + days,
            "price": [f"${k:,.2f}" for k in rng.gamma(2, 1000, N_ROWS)],
            "text": [" ".join(rng.choice(words, 6)) for _ in range(N_ROWS)],
            "code": [f"{k % 7}{'ABC'[k % 3]}{k % 10}" for k in rng.integers(0, 10**6, N_ROWS)],
            "id": np.arange(N_ROWS),
        }
    )
    noise = rng.normal(size=N_ROWS)
    table["y"] = rng.normal(size=150)[school] + table["count"] + 0.1 * noise
    table["y"] += table["text"].str.contains("sea") * 2.0
    table["z"] = np.where(noise > 1, np.nan, table["b"].fillna(0) + noise)
    return table


def write(table: pd.DataFrame, folder: Path) -> Table:
    for k, rows in enumerate((slice(0, 5), slice(5, 700), slice(700, None))):
        table.drop(columns=["y", "z"])[rows].to_parquet(folder / f"{k}.parquet", row_group_size=200)
    return Table.from_native(folder)


def same_state(first: TableEncoder, second: TableEncoder) -> None:
    (tensors, meta), (others, other_meta) = first.to_state(), second.to_state()
    assert meta == other_meta
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, others[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("n_shares", [1, 5])
def test_state_features_and_warnings_are_those_of_one_machine(
    tmp_path: Path, n_shares: int, n_targets: int
) -> None:
    everything = frame()
    table = write(everything, tmp_path)
    fit_rows = np.flatnonzero(np.arange(N_ROWS) % 10 > 0)
    target = everything[["y", "z"][:n_targets]].to_numpy(np.float64)
    config = EncoderConfig(text_encoder=WordEncoder(32), text_cache=False)
    one = TableEncoder(config)
    encoded = one.fit_transform(table, fit_rows, None, target)
    assert len(one.target_mean_features) >= 1
    assert {"numeric", "date", "category", "text", "drop"} <= {spec.kind for spec in one.specs}

    shared = SharedEncoder(config, FitInput(table, fit_rows, target), run, n_shares)
    texts, means = shared.fit(None)
    same_state(shared, one)
    assert shared.suspects() == warn_about_columns(table, one, target, fit_rows)
    assert len(shared.suspects()) >= 1
    for found, wanted in zip(texts, encoded.texts, strict=True):
        assert torch.equal(found.values, wanted.values)
        assert torch.equal(found.index, wanted.index)

    state = pickle.loads(pickle.dumps(dense_state(shared)))
    for rows in (np.arange(3, 900), np.array([0, 6, 7, 1199])):
        dense = encode_dense(state, table.take(rows), rows, means, np.empty)
        assert np.array_equal(dense.astype(np.float32), encoded.dense.numpy()[rows])


def test_tables_without_any_value_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [np.nan] * 9, "b": [np.nan] * 9}).to_parquet(tmp_path / "t.parquet")
    given = FitInput(Table.from_native(tmp_path), np.arange(9), np.zeros((9, 1)))
    with pytest.raises(InvalidDataError, match="must have a column with values"):
        SharedEncoder(EncoderConfig(), given, run, 2).fit(None)


def test_text_without_time_is_left_out(tmp_path: Path) -> None:
    table = write(frame(), tmp_path)
    config = EncoderConfig(text_encoder=FakeTextEncoder(), text_cache=False)
    given = FitInput(table, np.arange(N_ROWS), frame()[["y"]].to_numpy())
    shared = SharedEncoder(config, given, run, 3)
    with pytest.warns(TabNSMWarning, match="left out of this fit"):
        texts, _ = shared.fit(lambda: 1e-9)
    assert texts == ()
