"""Excel workbooks, read by the real reader."""

from __future__ import annotations

import builtins
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.errors import InvalidDataError, MissingExtraError, TabNSMWarning
from tabnsm.files import open_table, read_table
from tests.files.workbook import DATE, MOMENT, TIME, write_workbook

pytestmark = pytest.mark.usefixtures("one_network")

NEW_YEAR = 45292  # 2024-01-01, in days as Excel counts them


def test_cells_have_the_types_that_they_have_in_the_sheet(tmp_path: Path) -> None:
    path = write_workbook(
        tmp_path / "t.xlsx",
        [
            ["whole", "real", "day", "moment", "time", "yes", "name", "formula"],
            [1, 1.5, (NEW_YEAR, DATE), (NEW_YEAR + 0.5, MOMENT), (0.25, TIME), True, "é<", 2],
            [None, 2, (NEW_YEAR + 1, DATE), (NEW_YEAR, MOMENT), None, False, "NA", "#DIV/0!"],
        ],
    )
    assert read_table(path).to_pydict() == {
        "whole": [1, None],
        "real": [1.5, 2.0],
        "day": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
        "moment": [datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1)],
        "time": [datetime.time(6), None],
        "yes": [True, False],
        "name": ["é<", None],
        "formula": [2, None],
    }
    file = open_table(path)
    assert file.n_rows == 2
    assert [piece.num_rows for piece in file.batches(1)] == [1, 1]
    assert read_table(path, columns=["name", "whole"]).column_names == ["name", "whole"]
    (piece,) = file.batches(columns=["name"], as_written=True)
    assert piece.to_pydict() == {"name": ["é<", "NA"]}


def test_a_column_of_several_kinds_is_strings(tmp_path: Path) -> None:
    rows = [["code", "size"], [7, 1.5], ["7a", "n/a"], [(NEW_YEAR, DATE), 2], [True, "big"]]
    table = read_table(write_workbook(tmp_path / "t.xlsx", rows))
    assert table.to_pydict() == {
        "code": ["7", "7a", "2024-01-01", "True"],
        "size": ["1.5", None, "2", "big"],
    }


def test_markers_of_missing_values_leave_numbers_numbers(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["a", "b"], [1, "x"], ["NA", "y"], [None, "z"]])
    assert read_table(path)["a"].to_pylist() == [1, None, None]


def test_the_table_may_begin_anywhere(tmp_path: Path) -> None:
    path = write_workbook(
        tmp_path / "t.xlsx",
        [[], [None, None], [None, 2024, "b"], [None, 1, 2], [], [None, 3, 4], []],
    )
    assert read_table(path).to_pydict() == {"2024": [1, 3], "b": [2, 4]}


def test_columns_without_a_name(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["a", None, None, "b"], [1, None, 2, 3]])
    with pytest.warns(TabNSMWarning, match="without a name, which are called 'column_2'"):
        assert open_table(path).names == ["a", "column_2", "b"]


def test_further_sheets_are_warned_of(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["a"], [1]], [["b"], [2]])
    with pytest.warns(TabNSMWarning, match="has 2 sheets, of which the first, 'Sheet1', was read"):
        assert read_table(path).to_pydict() == {"a": [1]}


def test_workbooks_that_cannot_be_used(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["a", "a"], [1, 2]])
    with pytest.raises(InvalidDataError, match="'a' more than once"):
        read_table(path)
    with pytest.raises(InvalidDataError, match="is blank"):
        read_table(write_workbook(tmp_path / "blank.xlsx", []))
    with pytest.raises(InvalidDataError, match="only a header"):
        read_table(write_workbook(tmp_path / "header.xlsx", [["a", "b"]]))
    (tmp_path / "broken.xlsx").write_bytes(path.read_bytes()[:500])
    with pytest.raises(InvalidDataError, match="is not a whole Excel workbook"):
        read_table(tmp_path / "broken.xlsx")


def test_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_workbook(tmp_path / "t.xlsx", [["a", "y"], [1, 2]])
    real_import = builtins.__import__

    def without_calamine(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("python_calamine"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_calamine)
    with pytest.raises(
        MissingExtraError, match=r'Excel files need .*pip install "tabnsm\[excel\]"'
    ):
        open_table(path)
    assert main(["fit", str(path), "-t", "y", "-o", str(tmp_path / "m.safetensors")]) == 2
    assert 'pip install "tabnsm[excel]"' in capsys.readouterr().err


@pytest.mark.slow
def test_a_workbook_and_a_csv_file_make_the_same_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=80).round(3),
            "n": rng.integers(0, 5, 80),
            "shop": rng.choice(["north", "south"], 80),
            "day": rng.integers(0, 300, 80),
        }
    )
    frame["y"] = (frame["a"] + (frame["shop"] == "north")).round(3)
    rows = [
        [float(a), int(n), shop, (NEW_YEAR + int(day), DATE), float(y)]
        for a, n, shop, day, y in frame.itertuples(index=False)
    ]
    write_workbook(tmp_path / "t.xlsx", [list(frame.columns), *rows])
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["day"], "D")
    frame.assign(day=dates.dt.strftime("%Y-%m-%d")).to_csv(tmp_path / "t.csv", index=False)
    frame.assign(day=dates.dt.strftime("%Y-%m-%d")).to_json(
        tmp_path / "t.jsonl", orient="records", lines=True
    )
    predictions = []
    for kind in ("csv", "xlsx", "jsonl"):
        data, model = str(tmp_path / f"t.{kind}"), str(tmp_path / f"{kind}.safetensors")
        assert main(["fit", data, "-t", "y", "-o", model, "--epochs", "2", "-q"]) == 0
        kinds = [row.kind for row in TabNSMRegressor.load(model).describe_columns()]
        assert kinds == ["numeric", "numeric", "category", "date"]
        out = str(tmp_path / f"{kind}-out.jsonl")
        assert main(["predict", model, data, "-o", out, "--id", "day", "-q"]) == 0
        predictions.append(read_table(out))
    assert predictions[0].equals(predictions[1])
    assert predictions[0].equals(predictions[2])
