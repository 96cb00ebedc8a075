from __future__ import annotations

import gzip
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.files import TableWriter, check_output, open_table, read_table

EXAMPLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,x\n2,y\n", {"a": ["1", "2"], "b": ["x", "y"]}),
        ("a,b\r\n1,x\r\n", {"a": ["1"], "b": ["x"]}),
        ("a,b\n1,x", {"a": ["1"], "b": ["x"]}),
        ("\n\na,b\n\n1,x\n\n", {"a": ["1"], "b": ["x"]}),
        ("a\tb\n1\tx,y\n", {"a": ["1"], "b": ["x,y"]}),
        ("a|b\n1|x\n", {"a": ["1"], "b": ["x"]}),
        ("a\n1\n2\n", {"a": ["1", "2"]}),
        ('"a, in EUR";b\n1;2\n', {"a, in EUR": ["1"], "b": ["2"]}),
        ("a, in EUR;b\n1;2\n", {"a, in EUR": ["1"], "b": ["2"]}),
        ('"a\nb",c\n1,2\n', {"a\nb": ["1"], "c": ["2"]}),
        ('a,b\n1,"x\ny"\n2,"say ""hi"", you"\n', {"a": ["1", "2"], "b": ["x\ny", 'say "hi", you']}),
        ('a,b\n1,5" pipe\n', {"a": ["1"], "b": ['5" pipe']}),
        ("a,b\nNA,\n NaN ,NULL\n", {"a": [None, None], "b": [None, None]}),
        ("a;b\n1,5;x\n-2;y,z\n", {"a": ["1.5", "-2"], "b": ["x", "y,z"]}),
        ("a;b\n-1,6e-05;+1,5E+3\n,5;-,25\n", {"a": ["-1.6e-05", ".5"], "b": ["+1.5E+3", "-.25"]}),
        ("a;b\n1.234,5;-1.234.567,89\n7,5; 999,0 \n",
         {"a": ["1234.5", "7.5"], "b": ["-1234567.89", "999.0"]}),
        ("a;b\n1 234,5;1'234,5\n1\u202f234,5;\u22121\u2019234,5\n",
         {"a": ["1234.5", "1234.5"], "b": ["1234.5", "-1234.5"]}),
        # Text, dates, lists, versions and other ways to write numbers stay as they are.
        ("a;b\n1,5 kg;45,5 %\n1,2,3;01.02.2024\n", {"a": ["1,5 kg", "1,2,3"],
                                                   "b": ["45,5 %", "01.02.2024"]}),
        ("a;b\n12.34,5;1.234.567\n1,;1,5e\n", {"a": ["12.34,5", "1,"], "b": ["1.234.567", "1,5e"]}),
        ("a;b\n1 2,5;x,5\n1.2345,6;1.234\n", {"a": ["1 2,5", "1.2345,6"], "b": ["x,5", "1.234"]}),
        ('a,b\n"1,5",x\n', {"a": ["1,5"], "b": ["x"]}),
        ("a,b\nZürich,日本\n", {"a": ["Zürich"], "b": ["日本"]}),
    ],
)  # fmt: skip
def test_csv_as_people_have_them(
    tmp_path: Path, content: str, expected: dict[str, list[str | None]]
) -> None:
    assert read_table(write(tmp_path, content)).to_pydict() == expected


def test_points_of_two_meanings_are_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b\n1.234,5;1.234\n1.234;7,5\n")
    with pytest.warns(
        TabNSMWarning, match=r"Column 'a' .*'1\.234,5'.* beside such as '1\.234'"
    ) as c:
        assert read_table(path).to_pydict() == {"a": ["1234.5", "1.234"], "b": ["1.234", "7.5"]}
    assert len(c) == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "grün,b\n1,é\n".encode(encoding))
    assert read_table(path).to_pydict() == {"grün": ["1"], "b": ["é"]}


@pytest.mark.parametrize(
    ("encoding", "text"), [("cp1252", "a,b\n1,10 € é\n"), ("latin-1", "a,b\n1,é\x81\n")]
)
def test_other_encodings_are_read_with_a_warning(tmp_path: Path, encoding: str, text: str) -> None:
    path = write(tmp_path, text.encode(encoding))
    with pytest.warns(TabNSMWarning, match=f"not UTF-8 and was read as {encoding}"):
        table = read_table(path)
    assert table.to_pydict()["b"] == [text.split("\n")[1].split(",")[1]]


def test_a_late_invalid_byte_changes_the_encoding_of_the_whole_file(tmp_path: Path) -> None:
    rows = b"1,x\n" * 3_000_000  # more than one block of the encoding scan
    path = write(tmp_path, b"a,b\n" + rows + "2,é\n".encode("cp1252"))
    with pytest.warns(TabNSMWarning, match="cp1252"):
        file = open_table(path)
    *_, last = file.batches(1_000_000)
    assert last.column("b")[-1].as_py() == "é"


def test_blank_names_are_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, "column_3,, \n1,2,3\n")
    with pytest.warns(TabNSMWarning, match="'column_2', 'column_3_'"):
        assert open_table(path).names == ["column_3", "column_2", "column_3_"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is blank"),
        ("a,b\n", "only a header"),
        ("a,b", "only a header"),
        ("a,b,a\n1,2,3\n", "'a' more than once"),
        ("a,b\n1,2\n3,4,5\n6\n", r"line 3 has 3, line 4 has 1\. Put quotes"),
        ('a,b\n1,"x\ny"\n3,4,5\n', "line 4 has 3"),
        ('a,b\n1,2\n3,"x\n4,5\n', "line 3 .* is not. Close it"),
        (b"a,b\n\0\1\2", "not a text file"),
        ("aé,b\n1,2\n".encode("utf-16") + b"\0", "cannot be read as a table"),
    ],
)
def test_csv_that_cannot_be_used(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message) as caught:
        read_table(write(tmp_path, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["a,b\n", "a,b", "\n\na,b\n\n", "a;b\n"])
def test_only_a_header_is_a_table_without_rows_where_that_is_allowed(
    tmp_path: Path, content: str
) -> None:
    file = open_table(write(tmp_path, content))
    assert file.names == ["a", "b"]
    (table,) = file.batches(columns=["b"], allow_empty=True)
    assert (table.column_names, table.num_rows) == (["b"], 0)
    (table,) = open_table(write(tmp_path, "a\n1\n")).batches(allow_empty=True)
    assert table.num_rows == 1


def test_an_overlong_row_is_an_unclosed_quote(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match=r"must be shorter than 4 MB.*never closed"):
        read_table(write(tmp_path, 'a,b\n1,"x\n' + "2,y\n" * 5_000_000))


def test_gzip(tmp_path: Path) -> None:
    content = gzip.compress(b"a,b\n1,x\n")
    path = write(tmp_path, content, "t.CSV.gz")
    assert read_table(path).to_pydict() == {"a": ["1"], "b": ["x"]}
    for broken in (content[:-9], b"a,b\n1,x\n", content[:15] + b"xxx" + content[18:]):
        with pytest.raises(InvalidDataError, match="cannot be read as a table"):
            read_table(write(tmp_path, broken, "broken.csv.gz"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.csv", "there is no file"),
        (".", "is an empty folder"),
        ("no*.parquet", "matches no file"),
        ("t.pkl", r"must end in \.csv.*Rename it or convert it"),
        ("t.json", r"got .*t\.json\. Write one object per line to a \.jsonl file"),
        ("t.csv.bz2", "decompress it with bunzip2"),
        ("t.csv.xz", "decompress it with unxz"),
        ("t.CSV.ZIP", "unpack it with unzip"),
        ("t.xls", r"Save it as \.xlsx or \.csv"),
    ],
)
def test_paths_that_are_no_tables(tmp_path: Path, name: str, message: str) -> None:
    if name.startswith("t."):
        write(tmp_path, "x", name)
    with pytest.raises(InvalidDataError, match=message):
        open_table(tmp_path / name)


def save(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, path, chunksize=2)
    else:
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
    return path


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_columnar_files(tmp_path: Path, kind: str) -> None:
    path = save(EXAMPLE, tmp_path / f"t.{kind}")
    assert read_table(path).equals(EXAMPLE)
    assert [t.num_rows for t in open_table(path).batches(2)] == [2, 1]
    assert read_table(path, columns=["b", "a"]).column_names == ["b", "a"]
    with pytest.raises(InvalidDataError, match="only a header"):
        read_table(save(EXAMPLE.slice(0, 0), tmp_path / f"none.{kind}"))
    broken = write(tmp_path, path.read_bytes()[: path.stat().st_size // 2], f"broken.{kind}")
    with pytest.raises(InvalidDataError, match="is not a whole"):
        read_table(broken)
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InvalidDataError, match="'a' more than once"):
        open_table(save(doubled, tmp_path / f"doubled.{kind}"))


def test_nested_columns_are_refused_unless_left_out(tmp_path: Path) -> None:
    path = save(pa.table({"a": [1], "b": [[1, 2]]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidDataError, match=r"the column 'b' .* holds list"):
        read_table(path)
    assert read_table(path, columns=["a"]).num_columns == 1


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=[5, 7])
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_table(tmp_path / "t.parquet").names == ["a"]
    assert open_table(tmp_path / "t.parquet").n_rows == 2


def test_an_unknown_column_gets_a_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path, "price,size\n1,2\n")
    with pytest.raises(InvalidDataError, match=r"no column 'prise'.*Did you mean 'price'"):
        read_table(path, columns=["prise"])
    with pytest.raises(
        InvalidDataError, match=r"--target must name .*Its columns: 'price', 'size'"
    ):
        open_table(path).check_column("zzz", "--target")


@given(n_rows=st.integers(1, 40), batch_rows=st.integers(1, 45))
def test_batches_are_the_table_cut_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, n_rows: int, batch_rows: int
) -> None:
    table = pa.table({"a": range(n_rows)})
    path = save(table, tmp_path_factory.mktemp("pieces") / "t.feather")
    pieces = list(open_table(path).batches(batch_rows))
    assert pa.concat_tables(pieces).equals(table)
    assert {piece.num_rows for piece in pieces[:-1]} <= {batch_rows}
    assert 1 <= pieces[-1].num_rows <= batch_rows


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)


@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    table = pa.table({"a": [f"_{a}" for a, _ in rows], "b": [f"{b}_" for _, b in rows]})
    path = tmp_path_factory.mktemp("written") / "t.csv"
    with TableWriter(path) as writer:
        writer.write(table)
    assert read_table(path).equals(table)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "feather"])
def test_categories_may_differ_between_batches(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    with TableWriter(path) as writer:
        for values in (["a", "b"], ["c", "b"]):
            writer.write(pa.table({"id": pa.array(values).dictionary_encode(), "n": [1, 2]}))
    assert read_table(path).column("id").to_pylist() == ["a", "b", "c", "b"]


def test_cells_can_be_read_as_written(tmp_path: Path) -> None:
    file = open_table(write(tmp_path, "country;b\nNA;1,5\n"))
    (piece,) = file.batches(as_written=True)
    assert piece.to_pydict() == {"country": ["NA"], "b": ["1,5"]}
    assert file.read().to_pydict() == {"country": [None], "b": ["1.5"]}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "ndjson", "parquet", "feather", "arrow"])
def test_writer_is_whole_or_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    with TableWriter(path) as writer:
        writer.write(EXAMPLE)
        assert not path.exists()
        writer.write(EXAMPLE)
    assert read_table(path).num_rows == 6
    assert os.listdir(tmp_path) == [path.name]
    before = path.read_bytes()

    def fail() -> None:
        with TableWriter(path) as writer:
            writer.write(EXAMPLE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_csv_numbers_round_trip(tmp_path: Path) -> None:
    values = [0.1 + 0.2, 1e-300, 12345678.123456789]
    with TableWriter(tmp_path / "out.csv") as writer:
        writer.write(pa.table({"p": values, "s": ["a,b", None, 'q"']}))
    table = read_table(tmp_path / "out.csv")
    assert [float(v) for v in table["p"].to_pylist()] == values
    assert table["s"].to_pylist() == ["a,b", None, 'q"']


def test_outputs_are_checked_before_work(tmp_path: Path) -> None:
    for bad, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "out.csv", "there is no folder"),
    ]:
        with pytest.raises(InvalidDataError, match=message):
            check_output(bad)
    with pytest.raises(InvalidDataError, match=r"must end in \.csv"):
        TableWriter(tmp_path / "out.xlsx")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InvalidDataError, match="must be writable"):
            check_output(tmp_path / "out.csv")
    finally:
        tmp_path.chmod(0o700)
