from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from tabnsm.columns import ColumnReport, EncoderConfig, TableEncoder
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


def make_report() -> ColumnReport:
    rows = [[k, f"[b]<{k}>", f"t{k}", None if k % 2 else float(k), None, k % 3] for k in range(12)]
    config = EncoderConfig(
        text_encoder=FakeTextEncoder(5),
        text_columns="joined",
        text_cache=False,
        column_kinds={"x5": "category"},
    )
    encoder = TableEncoder(config)
    encoder.fit_transform(Table.from_native(rows))
    return encoder.describe()


def test_rows_report_what_was_understood():
    report = make_report()
    assert len(report) == 6
    seen = [(r.name, r.kind, r.n_features, r.missing, r.distinct) for r in report]
    assert seen == [
        ("x0", "numeric", 1, 0.0, 12),
        ("x1", "text", 5, 0.0, 12),
        ("x2", "text", 0, 0.0, 12),
        ("x3", "numeric", 2, 0.5, 6),
        ("x4", "drop", 0, 1.0, 0),
        ("x5", "category", 1, 0.0, 3),
    ]
    assert report.rows[2].note == "joined with x1"
    assert report.rows[4].note == "dropped: empty in the training rows"
    assert report.to_dict()[0]["kind"] == "numeric"


def test_it_prints_in_a_terminal_and_a_notebook():
    report = make_report()
    text = str(report)
    assert repr(report) == text
    lines = text.splitlines()
    assert len(lines) == 7
    assert lines[0].split() == ["column", "kind", "features", "missing", "distinct", "note"]
    assert "<td>x5</td><td>category</td>" in report._repr_html_()
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report)
    assert "category" in console.export_text()


def test_tiny_and_huge_shares_are_not_rounded_away():
    values = np.arange(10_000.0)
    values[0] = np.nan
    rare = np.full(10_000, np.nan)
    rare[:2] = [1, 2]
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native(np.stack([values, rare], axis=1)))
    assert [row.cells()[3] for row in encoder.describe()] == ["<0.1%", ">99.9%"]
