"""JSON lines: types as pyarrow gives them, in batches that do not depend on where they are cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError
from tabnsm.files import TableWriter, json_lines, open_table, read_table


def write(folder: Path, content: str | bytes, name: str = "t.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(params=[json_lines.BLOCK_BYTES, 24], ids=["one block", "many blocks"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(json_lines, "BLOCK_BYTES", request.param)
    return int(request.param)


@pytest.mark.parametrize(
    ("lines", "types", "expected"),
    [
        (['{"a":1,"b":"x"}', '{"a":2,"b":null}'], ["int64", "string"], [[1, 2], ["x", None]]),
        (['{"a":1}', '{"b":2.5}', "{}"], ["int64", "double"], [[1, None, None], [None, 2.5, None]]),
        (['{"a":1}', '{"a":2.5}'], ["double"], [[1.0, 2.5]]),
        (['{"a":null}', '{"a":true}'], ["bool"], [[None, True]]),
        (['{"a":1}', '{"a":"n/a"}', '{"a":2.5}'], ["string"], [["1", "n/a", "2.5"]]),
        (['{"a":"2024-01-01"}', '{"a":2024}'], ["string"], [["2024-01-01", "2024"]]),
        (['{"a":"x"}', '{"a":true}'], ["string"], [["x", "true"]]),
        (['{"a":false}', '{"a":1}'], ["string"], [["false", "1"]]),
        (['{"a":"2024-01-01"}', '{"a":"soon"}'], ["string"], [["2024-01-01", "soon"]]),
        (['{"a":"Zürich"}', "", '{"a":"\\u00e9"}', ""], ["string"], [["Zürich", "é"]]),
    ],
)
def test_types(
    tmp_path: Path,
    block_bytes: int,
    lines: list[str],
    types: list[str],
    expected: list[list[Any]],
) -> None:
    path = write(tmp_path, "\n".join(lines))
    table = read_table(path)
    assert [str(t) for t in table.schema.types] == types
    assert list(table.to_pydict().values()) == expected
    file = open_table(path)
    assert file.n_rows == table.num_rows
    assert pa.concat_tables(file.batches(1)).equals(table)
    other = write(tmp_path, "\r\n".join(["\ufeff" + lines[0], *lines[1:]]), "windows.jsonl")
    assert read_table(other).equals(table)


def test_dates_are_dates_unless_they_are_carried_over(tmp_path: Path, block_bytes: int) -> None:
    path = write(tmp_path, '{"a":"2024-01-02","b":1}\n' * 3)
    assert str(read_table(path).schema.field("a").type) == "timestamp[s]"
    (piece,) = open_table(path).batches(columns=["a", "b"], as_written=True)
    assert piece.to_pydict() == {"a": ["2024-01-02"] * 3, "b": [1] * 3}


@pytest.mark.parametrize("name", ["t.ndjson", "t.jsonl.gz", "T.NDJSON.GZ"])
def test_endings(tmp_path: Path, name: str) -> None:
    content = b'{"a":1}\n{"a":2}\n'
    path = write(tmp_path, gzip.compress(content) if "gz" in name.lower() else content, name)
    assert read_table(path).to_pydict() == {"a": [1, 2]}
    if "gz" in name.lower():
        with pytest.raises(InvalidDataError, match="cannot be read"):
            read_table(write(tmp_path, gzip.compress(content)[:-9], "broken.jsonl.gz"))


NESTED = [
    '{"a":{"b":1},"c":1}\n{"a":{"b":2},"c":2}\n',
    '{"a":[1],"c":1}\n{"a":["x"],"c":2}\n',
    '{"a":"x","c":1}\n{"a":{"b":2},"c":2}\n',
    '{"a":{"b":2},"c":1}\n{"a":[3],"c":2}\n',
]


@pytest.mark.parametrize("content", NESTED)
def test_nested_columns_are_refused_unless_left_out(
    tmp_path: Path, block_bytes: int, content: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InvalidDataError, match=r"must hold one value, but the column 'a' .* holds"):
        read_table(path)
    assert read_table(path, columns=["c"]).to_pydict() == {"c": [1, 2]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "must have columns and rows"),
        ("{}\n", "must have columns and rows"),
        ('[{"a":1}]\n', r"must be a JSON object .*but line 1 is not \(it is a list\)"),
        ('{"a":1}\n\n{"a":\n', "but line 3 is not"),
        ('{"a":1}\n2\n', r"line 2 is not \(it is a int\)"),
        ('{"a":1}\n{"a":1,"a":2}\n', "line 2 is not .*the key 'a' occurs twice"),
        (b'{"a":"x"}\n{"a":"\xe9"}\n', "must be UTF-8, but line 2"),
        ('{"a":"x"}\n'.encode("utf-16"), "line 1"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, block_bytes: int, content: str | bytes, message: str
) -> None:
    with pytest.raises(InvalidDataError, match=message) as caught:
        read_table(write(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_an_overlong_line_is_refused(tmp_path: Path) -> None:
    content = '{"a":1}\n[' + '{"a":1},' * 1_200_000 + "{}]"
    with pytest.raises(InvalidDataError, match="shorter than 4 MB, but line 2 is not"):
        read_table(write(tmp_path, content))


@pytest.mark.slow
def test_a_late_string_makes_the_whole_column_strings(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":1,"b":1}\n' * 400_000 + '{"a":"n/a","b":0.5}\n')
    first, *_, last = open_table(path).batches()
    assert first.schema == last.schema
    assert first["a"][0].as_py() == "1"
    assert last.slice(last.num_rows - 1).to_pydict() == {"a": ["n/a"], "b": [0.5]}


values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text()
)


@pytest.mark.slow
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), values, min_size=1), min_size=1),
    size=st.integers(1, 200),
)
def test_no_mix_of_plain_values_crashes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], size: int
) -> None:
    path = tmp_path_factory.mktemp("mix") / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = read_table(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "BLOCK_BYTES", max(size, max(len(json.dumps(r)) for r in rows)))
        assert read_table(path).equals(whole)
    assert whole.num_rows == len(rows)
    for name in whole.column_names:
        for row, read in zip(rows, whole[name].to_pylist(), strict=True):
            value = row.get(name)
            assert read == value or str(read) == json.dumps(value) or isinstance(value, str)


def test_pandas_writes_what_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    assert read_table(tmp_path / "t.jsonl").to_pydict() == {"a": [1.5, None], "b": ["x", "y"]}


def test_written_rows_are_json(tmp_path: Path) -> None:
    table = pa.table(
        {
            "p": [0.1 + 0.2, float("nan"), None],
            "s": ['q"', "é\n", None],
            "d": pa.array([0, 1, None], pa.date32()),
        }
    )
    path = tmp_path / "out.jsonl"
    with TableWriter(path) as writer:
        writer.write(table)
        writer.write(table.slice(0, 1))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"p": 0.1 + 0.2, "s": 'q"', "d": "1970-01-01"},
        {"p": None, "s": "é\n", "d": "1970-01-02"},
        {"p": None, "s": None, "d": None},
        {"p": 0.1 + 0.2, "s": 'q"', "d": "1970-01-01"},
    ]
    assert read_table(path).num_rows == 4
