from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pyarrow.parquet
import pytest
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


def read(data_dir, name: str) -> tuple[pd.DataFrame, dict]:
    facts = json.loads((data_dir / f"{name}.json").read_text())
    frame = pd.read_parquet(data_dir / f"{name}.parquet")
    return frame.drop(columns=facts["target"]), facts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_features"),
    [("nyc_air_quality", 390), ("electric_vehicle_population", 392), ("cpu_small", 12)],
)
def test_the_papers_rule_gives_the_papers_number_of_features(data_dir, name, n_features):
    frame, facts = read(data_dir, name)
    # The kinds depend on all rows, the embeddings of most of them on nothing that is tested here.
    paper = resolve_options({"preset": "paper"}).encoder
    encoder = TableEncoder(replace(paper, text_encoder=_Zeros(), text_cache=False))
    encoded = encoder.fit_transform(Table.from_native(frame))
    assert encoder.n_features == encoded.n_features == n_features
    assert encoded.n_rows == facts["rows"]
    by_kind = {
        kind: [spec.name for spec in encoder.specs if spec.kind == kind]
        for kind in ("numeric", "category", "text", "drop")
    }
    assert by_kind["numeric"] == facts["numeric_columns"]
    assert by_kind["category"] == facts["low_cardinality_columns"]
    assert by_kind["text"] == facts["text_columns"]
    assert by_kind["drop"] == facts["all_missing_columns"]


class _Zeros(FakeTextEncoder):
    def encode(self, texts):
        import numpy as np

        return np.zeros((len(texts), self.d_text), dtype=np.float32)


@pytest.mark.parametrize("name", ["la_crime_partial", "ames_housing", "ct_real_estate_partial"])
def test_libraries_agree_on_real_tables(data_dir, name):
    frame, facts = read(data_dir, name)
    frame = frame.head(800)
    arrow = pyarrow.parquet.read_table(data_dir / f"{name}.parquet").slice(0, 800)
    arrow = arrow.drop_columns([facts["target"]])
    config = EncoderConfig(text_encoder=FakeTextEncoder(8), text_cache=False)
    from_pandas = TableEncoder(config).fit_transform(Table.from_native(frame))
    from_arrow = TableEncoder(config).fit_transform(Table.from_native(arrow))
    rows = torch.arange(800)
    assert torch.equal(from_pandas.gather(rows), from_arrow.gather(rows))
    assert from_pandas.dense.isfinite().all()


def test_dates_of_real_tables_are_found(data_dir):
    frame, _ = read(data_dir, "la_crime_partial")
    config = EncoderConfig(text_encoder=_Zeros(), text_cache=False)
    encoder = TableEncoder(config)
    encoder.fit_transform(Table.from_native(frame))
    assert [spec.name for spec in encoder.specs if spec.kind == "date"] == ["Date Rptd", "DATE OCC"]
