"""The reader reads values as the library does, in at most 260 lines and without it."""

from __future__ import annotations

import ast
import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm.export import reader
from tabnsm.export.description import date_patterns
from tabnsm.export.reader import ExportedModel
from tabnsm.files import open_table
from tabnsm.files.delimited import MISSING
from tabnsm.tables.column import Column
from tabnsm.tables.date_format import ANY_DATE, MONTH_NUMBERS, parse_dates
from tabnsm.tables.number_format import REPLACEMENTS, NumberFormat, parse_numbers
from tabnsm.tables.objects import from_objects

SOURCE = Path(reader.__file__)


@pytest.fixture
def model() -> ExportedModel:
    """A reader without a model, for what it makes of single values."""
    made = ExportedModel.__new__(ExportedModel)
    made.facts = {"months": MONTH_NUMBERS, "replacements": REPLACEMENTS, "missing_cells": MISSING}
    made.facts["columns"] = []
    return made


def test_it_is_short_and_needs_little() -> None:
    text = SOURCE.read_text()
    assert len(text.splitlines()) <= 260
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    found = {name.split(".")[0] for name in names if name}
    library = {"contextlib", "csv", "datetime", "json", "pathlib", "re", "sys"}
    assert found == library | {"typing", "numpy", "onnxruntime", "tokenizers"}


NUMBERS = [
    *("12", "1,234.5", "$1,234.50", "($2)", "-$3", "$-3", "+4", "(-5)", "(6", "7)", "1_000"),
    *("1.234,5 kg", "2 kg", "3 g", "45 %", "45%", "1 234,5", "1'234.5", "1\u2019234.5"),
    *("\u22128", " 9 ", "1e3", "1,23", "12,34.5", "true", "False", "nan", "inf", "-inf", "?", "x"),
    *("1\u00a0234", "1\u202f234,5", "٣", ".5", "5.", "--1", "1.2.3", ""),
]
FORMATS = [
    NumberFormat(),
    NumberFormat(prefix="$"),
    NumberFormat(".", ",", suffix="kg"),
    NumberFormat(suffix="%"),
    NumberFormat(" ", ","),
    NumberFormat("'", "."),
    NumberFormat("", "."),
]


@pytest.mark.parametrize("written", FORMATS, ids=str)
def test_numbers_are_read_as_in_the_library(model: ExportedModel, written: NumberFormat) -> None:
    entry = {"takes_infinite": True, "thousands": written.thousands, "decimal": written.decimal}
    entry["pattern"] = written.pattern
    found = [model._read_numeric(text, entry) for text in NUMBERS]
    values = [np.nan if value is None else value[0] for value in found]
    np.testing.assert_array_equal(values, parse_numbers(NUMBERS, written)[0])
    finite = [model._read_numeric(text, entry | {"takes_infinite": False}) for text in ("inf", "1")]
    assert finite == [None, [1.0]]


DATES = [
    *("2024-02-29", "2023-02-29", "2024-1-5T03:04:05.25Z", "2024-01-05 23:59", "2024-01-05 24:00"),
    *("01/31/2024 01:00:00 PM", "31/01/2024", "1/2/69", "1/2/68", "12/31/2024 12:05 am"),
    *("12/31/2024 13:05 pm", "5.6.2024", "05.06.24", "Mon, 5 March 2024", "March 5th, 2024"),
    *("Sept 2024", "Foo 2024", "2024-Mar-05", "2024-01-05 10:00 +05:30", "2024-01-05 10:00-0330"),
    *("2024-01-05 10:00:00.123456789", "0000-01-01", "2024-00-10", "2024-10-00", "soon", ""),
    *("  2024-01-05  ", "1-Jan-24", "2024/12/31", "2024-01-05 1:2", "٢٠٢٤-01-05"),
]


def test_dates_are_read_as_in_the_library(model: ExportedModel) -> None:
    parts = ("days", "year", "month", "day", "weekday", "day_of_year", "hour", "minute")
    for name in (*ANY_DATE.split(", "), ANY_DATE):
        entry = {"patterns": date_patterns(name), "origin": 0, "parts": parts}
        found = [model._read_date(text, entry) for text in DATES]
        micros, valid = parse_dates(DATES, name)
        assert [value is not None for value in found] == valid.tolist(), name
        days = [value[0] for value in found if value is not None]
        np.testing.assert_array_equal(days, micros[valid] / 86_400_000_000)


VALUES: list[list[Any]] = [
    [1, 2, None],
    [1.0, 2.5, float("nan"), 1e300, -0.0],
    [True, False, None],
    ["a", " b ", " ", None, "1"],
    [dt.date(2024, 1, 5), dt.date(1969, 12, 31)],
    [dt.datetime(2024, 1, 5, 3), dt.datetime(2024, 1, 5), dt.datetime(2024, 1, 5, 0, 0, 1, 5)],
    [dt.datetime(2024, 1, 5, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))],
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: type(values[0]).__name__)
def test_values_are_written_as_in_the_library(model: ExportedModel, values: list[Any]) -> None:
    factor = Column("", from_objects("", values)).to_factor()
    wanted = [None if code < 0 else factor.values[code] for code in factor.codes]
    assert [model._written(value) for value in model._plain(values)] == wanted


def test_arrays_and_missing_values_of_pandas(model: ExportedModel) -> None:
    import pandas as pd

    times = np.array(["2024-01-05T01:02", "NaT"], dtype="datetime64[ns]")
    assert model._plain(times) == [dt.datetime(2024, 1, 5, 1, 2), None]
    assert model._plain([pd.NA, pd.NaT, np.nan, 1]) == [None, None, None, 1]
    with pytest.raises(TypeError):
        model._read_numeric(dt.date(2024, 1, 5), {"decimal": "."})
    with pytest.raises(TypeError):
        model._read_date(5, {"parts": [], "origin": 0})


def test_csv_files(model: ExportedModel, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\ufeffa,b\n1,"x, y"\nNA, n/a \n\n2,\n', encoding="utf-8")
    assert model.read_csv(path) == {"a": ["1", None, "2"], "b": ["x, y", None, None]}


COMMAS = ["82,5", "84,038", "-1,6e-05", "1.234,5", "1 234,5", "1'234,5", "\u22128,5", ",5", "7"]


def test_decimal_commas_are_read_as_in_the_library(model: ExportedModel, tmp_path: Path) -> None:
    path = tmp_path / "semi.csv"
    path.write_text("a;b\n" + "".join(f" {cell} ;x, y\n" for cell in COMMAS), encoding="utf-8")
    wanted = [cell.strip() for cell in open_table(path).read(["a"])["a"].to_pylist()]
    assert [cell.strip() for cell in model.read_csv(path, ";")["a"]] == wanted
    assert model.read_csv(path, ";")["b"] == ["x, y"] * 9
    assert model.read_csv(path, ";", ".")["a"][0] == " 82,5 "
    tabs = tmp_path / "tabs.tsv"
    tabs.write_text("a\tb\n1,5\t2\n", encoding="utf-8")
    assert model.read_csv(tabs, "\t", ",") == {"a": ["1.5"], "b": ["2"]}


def test_a_column_that_was_fitted_with_commas_keeps_them(
    model: ExportedModel, tmp_path: Path
) -> None:
    path = tmp_path / "semi.csv"
    path.write_text("a\n84,038\n", encoding="utf-8")
    form = NumberFormat(".", ",")
    entry = {"name": "a", "kind": "numeric", "takes_infinite": True, "pattern": form.pattern}
    entry |= {"thousands": form.thousands, "decimal": form.decimal}
    model.facts["columns"] = [entry]
    (cell,) = model.read_csv(path, ";")["a"]
    assert model._read_numeric(cell, entry) == [84.038]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a;b\n82,5;1\n84,5;2\n86;3\n", "'a' needs numbers, got '82,5'. Set delimiter, decimal"),
        ("a;b\n1;2\n3\n", r"as many cells per row, got \[\['3'\]\]"),
        ("a;b\n1;2;3\n", r"as many cells per row, got \[\['1', '2', '3'\]\]"),
        ("", r"must have a header and as many cells per row, got \[\]"),
    ],
)
def test_files_that_cannot_be_read(
    model: ExportedModel, tmp_path: Path, content: str, message: str
) -> None:
    form = NumberFormat()
    entry = {"name": "a", "kind": "numeric", "takes_infinite": True, "pattern": form.pattern}
    model.facts["columns"] = [entry | {"thousands": form.thousands, "decimal": form.decimal}]
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        model.read_csv(path, ";", ".")


def test_without_arguments_it_shows_its_usage() -> None:
    run = subprocess.run([sys.executable, str(SOURCE)], capture_output=True, text=True)
    assert run.returncode == 1
    assert "FOLDER FILE [DELIMITER [DECIMAL]]" in run.stderr
    assert "Traceback" not in run.stderr
