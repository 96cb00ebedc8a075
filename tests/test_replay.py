from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import TabNSMWarning
from tabnsm.columns import EncodedTable, EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.extending import extend_encoder
from tabnsm.replay import MAX_ROWS, MIN_ROWS, ReplayRows
from tabnsm.tables import Table


def make_table(n_rows: int, n_codes: int = 3) -> EncodedTable:
    """A number that tells rows apart, a category whose last code is rare, and a text."""
    dense = torch.zeros(n_rows, 2)
    dense[:, 0] = torch.linspace(-2, 2, n_rows)
    dense[:, 1] = torch.arange(n_rows) % (n_codes - 1)
    dense[-2:, 1] = n_codes - 1
    texts = TextFeatures(torch.rand(50, 4), torch.arange(n_rows) % 50)
    return EncodedTable(dense, (texts,))


def test_few_rows_are_kept_whole_and_in_half_precision() -> None:
    table = make_table(60)
    kept = ReplayRows.draw(table, [0, 3, 0, 0, 0, 0], 10**6, seed=0)
    assert kept.n_fitted == kept.table.n_rows == 60
    assert kept.table.dense.dtype == torch.float16
    every = torch.arange(60)
    torch.testing.assert_close(kept.rows().gather(every), table.gather(every), atol=1e-3, rtol=0)


def test_large_codes_stay_exact() -> None:
    table = make_table(5000, n_codes=4000)
    kept = ReplayRows.draw(table, [0, 4000, 0, 0, 0, 0], 10**9, seed=0)
    assert set(kept.rows().dense[:, 1].tolist()) <= set(table.dense[:, 1].tolist())
    assert kept.rows().dense[:, 1].max() > 2048


def test_size_follows_the_weights_and_rare_categories_stay() -> None:
    table = make_table(20_000)
    sizes = [0, 3, 0, 0, 0, 0]
    counts = []
    for n_weights in (10, 18_000, 10**9):
        kept = ReplayRows.draw(table, sizes, n_weights, seed=0)
        counts.append(kept.table.n_rows)
        assert 2.0 in kept.rows().dense[:, 1].tolist()  # two of 20,000 rows have it
    assert counts == [MIN_ROWS, 600, MAX_ROWS]  # a tenth of 4 x 18,000 bytes, 6 x 2 per row
    assert kept.table.n_texts <= 50


def test_rows_of_earlier_fits_keep_their_share() -> None:
    first = ReplayRows.draw(make_table(9000), [0, 3, 0, 0, 0, 0], 10**9, seed=0)
    later = make_table(3000)
    later.dense[:, 0] = 9.0
    both = ReplayRows.draw(later, [0, 3, 0, 0, 0, 0], 10**9, seed=1, earlier=first)
    assert both.n_fitted == 12_000
    assert both.table.n_rows == MAX_ROWS
    assert int((both.rows().dense[:, 0] == 9).sum()) == MAX_ROWS // 4


def test_state_keeps_the_bits() -> None:
    kept = ReplayRows.draw(make_table(300), [0, 3, 0, 0, 0, 0], 10**6, seed=0)
    same = ReplayRows.from_state(*kept.to_state())
    assert same.n_fitted == kept.n_fitted
    rows = torch.arange(kept.table.n_rows)
    assert torch.equal(same.table.gather(rows), kept.table.gather(rows))


def test_rows_move_to_a_wider_encoding() -> None:
    """As if they had been encoded anew, with new columns missing."""
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"a": rng.normal(size=40), "city": rng.choice(["Oslo", "Rome"], 40)})
    old.loc[3, "city"] = None
    old["day"] = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(40), "D")
    encoder = TableEncoder(EncoderConfig())
    encoded = encoder.fit_transform(Table.from_native(old))
    new = old.assign(b=rng.normal(size=40), kind=rng.choice(["x", "y"], 40))
    new.loc[5, "city"] = "Lima"
    new.loc[:4, "b"] = np.nan
    with pytest.warns(TabNSMWarning, match="does not know"):
        extended = extend_encoder(encoder, Table.from_native(new), None)
    kept = ReplayRows.draw(encoded, encoder.category_sizes, 10**6, seed=0).extended(extended)
    expected = extended.encoder.transform(Table.from_native(old))
    torch.testing.assert_close(kept.rows().dense, expected.dense, atol=2e-3, rtol=1e-3)
    assert kept.table.dense.shape[1] == extended.encoder.n_features
