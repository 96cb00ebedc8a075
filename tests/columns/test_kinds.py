"""The registry: a kind is one class and one line, and nothing else knows its name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.fitting import ColumnToFit, FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.kinds import KINDS
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


class LengthColumns(ColumnGroup):
    """Strings that are told apart by their length alone: a kind of a user's own."""

    kind = "length"

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        if not source.is_asked:
            return None
        values = cls.lengths(source.column.to_factor())
        spec = ColumnSpec(source.position, source.name, cls.kind, distinct=len(set(values)))
        return FittedColumn(spec, Standardizer.fit(source.scope.take(values)[:, None]))

    @staticmethod
    def lengths(factor: Any) -> np.ndarray:
        return np.array([*map(len, factor.values), np.nan])[factor.codes]

    def features(self) -> list[Feature]:
        return [Feature(f"{spec.name}_length", spec.position) for spec in self.specs]

    def write(
        self, table: MatchedTable, layout: Layout, dense: np.ndarray, notes: RowNotes
    ) -> None:
        for k, spec in enumerate(self.specs):
            values = self.lengths(table.column(spec).to_factor())[:, None]
            at = layout.value_at[spec.position]
            self.statistics.select([k]).apply(values, dense[:, at : at + 1], clip=False)

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        return [(1, "length") for _ in specs]


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "words": [f"{'x' * (k % 7)} {k}" for k in range(n)],
            "city": rng.choice(["oslo", "rome"], n),
            "day": pd.date_range("2024-01-01", periods=n),
            "price": [f"${k},000" for k in range(1, n + 1)],
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )


def make_encoder(**options: Any) -> TableEncoder:
    return TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(4), text_cache=False, **options))


def test_the_order_of_the_kinds_is_that_of_saved_weights():
    assert list(KINDS) == ["numeric", "date", "category", "code", "text"]
    assert all(group.kind == kind for kind, group in KINDS.items())


def test_a_new_kind_is_one_class_and_one_registration(monkeypatch):
    monkeypatch.setitem(KINDS, "length", LengthColumns)
    encoder = make_encoder(column_kinds={"words": "length"})
    table = Table.from_native(make_frame())
    encoded = encoder.fit_transform(table)
    assert encoder.feature_names[-1] == "words_length"
    assert encoded.dense[:, -1].std(correction=0) == pytest.approx(1.0)
    assert {row.name: row.kind for row in encoder.describe()}["words"] == "length"
    tensors, meta = encoder.to_state()
    again = TableEncoder.from_state(tensors, json.loads(json.dumps(meta)), FakeTextEncoder(4))
    assert torch.equal(again.transform(table).dense, encoded.dense)


@pytest.mark.parametrize("options", [{}, {"category_encoding": "code"}])
@pytest.mark.parametrize("text_columns", ["joined", "separate"])
def test_every_kind_survives_its_state(options, text_columns):
    encoder = make_encoder(text_columns=text_columns, **options)
    table = Table.from_native(make_frame())
    fitted = encoder.fit_transform(table)
    tensors, meta = encoder.to_state()
    assert set(meta) == {"config", "columns", "has_names", "target_means", "text"}
    again = TableEncoder.from_state(tensors, json.loads(json.dumps(meta)), FakeTextEncoder(4))
    assert again.feature_names == encoder.feature_names
    assert str(again.describe()) == str(encoder.describe())
    encoded = again.transform(table)
    rows = torch.arange(table.n_rows)
    assert torch.equal(encoded.gather(rows), fitted.gather(rows))


def test_each_kind_is_recognised():
    encoder = make_encoder()
    encoder.fit_transform(Table.from_native(make_frame()))
    kinds = [spec.kind for spec in encoder.specs]
    assert kinds == ["text", "category", "date", "numeric", "numeric"]
    dropped = make_encoder(column_kinds={"words": "drop"})
    dropped.fit_transform(Table.from_native(make_frame()))
    assert replace(dropped.specs[0], note="") == ColumnSpec(0, "words", "drop")


@pytest.mark.parametrize(
    ("facts", "varies"),
    [
        ({"kind": "numeric", "distinct": 2}, True),
        ({"kind": "numeric", "distinct": 1}, False),
        ({"kind": "numeric", "distinct": 1, "missing": 0.5}, False),
        ({"kind": "numeric", "distinct": 1, "missing": 0.5, "has_indicator": True}, True),
        ({"kind": "category", "distinct": 1, "missing": 0.5, "missing_code": True}, True),
        ({"kind": "text", "distinct": 1, "missing": 0.5}, True),
        ({"kind": "text", "distinct": 1}, False),
        ({"kind": "numeric", "distinct": 0, "missing": 1.0, "has_indicator": True}, False),
    ],
)
def test_a_column_varies_if_its_features_do(facts, varies):
    assert KINDS[facts["kind"]].varies(ColumnSpec(0, "c", **facts)) is varies
