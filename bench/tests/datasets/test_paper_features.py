"""The paper's tables have as many features, of the same kinds, as the paper says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.columns import TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


class _Zeros(FakeTextEncoder):
    def encode(self, texts: list[str]) -> np.ndarray:
        return np.zeros((len(texts), self.d_text), dtype=np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_features"),
    [("nyc_air_quality", 390), ("electric_vehicle_population", 392), ("cpu_small", 12)],
)
def test_the_papers_rule_gives_the_papers_number_of_features(
    data_dir: Path, name: str, n_features: int
) -> None:
    facts = json.loads((data_dir / f"{name}.json").read_text())
    frame = pd.read_parquet(data_dir / f"{name}.parquet").drop(columns=facts["target"])
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
