from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets.arff import read_arff

HEAD = (
    "% about\n@RELATION t\n\n@ATTRIBUTE a REAL\n@attribute 'b c' {x, 'y, z'}\n@attribute d string\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "t.arff"
    path.write_text(text)
    return path


def test_numbers_strings_and_missing_cells(tmp_path: Path) -> None:
    rows = "1.5, x, 'it\\'s'\r\n% a comment between\r\n\r\n?,'y, z',?\r\n-2e3,?,plain\r\n"
    frame = read_arff(write(tmp_path, HEAD + "@DATA\n" + rows))
    assert list(frame.columns) == ["a", "b c", "d"]
    np.testing.assert_array_equal(frame["a"], [1.5, np.nan, -2000.0])
    assert frame["b c"].fillna("-").tolist() == ["x", "y, z", "-"]
    assert frame["d"].fillna("-").tolist() == ["it's", "-", "plain"]


def test_double_quotes(tmp_path: Path) -> None:
    text = '@relation t\n@attribute "a b" integer\n@attribute c string\n@data\n3,"x, y"\n4,z\n'
    frame = read_arff(write(tmp_path, text))
    assert frame.to_dict("list") == {"a b": [3, 4], "c": ["x, y", "z"]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD, "line @data"),
        (HEAD + "@data\n", "rows after @data"),
        (HEAD + "@data\n1,x\n", "row 1 of .* has 2"),
        (HEAD + "@data\n{0 1.5}\n", "sparse"),
        ("a,b\n1,2\n", "line @data"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidDataError, match=complaint):
        read_arff(write(tmp_path, text))


def test_it_reads_what_scipy_reads(tmp_path: Path) -> None:
    from scipy.io import arff

    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3))
    head = "@relation r\n" + "".join(f"@attribute c{k} numeric\n" for k in range(3)) + "@data\n"
    body = "\n".join(",".join(repr(float(v)) for v in row) for row in values)
    path = write(tmp_path, head + body)
    theirs, _ = arff.loadarff(path)
    np.testing.assert_array_equal(read_arff(path).to_numpy(), np.array(theirs.tolist()))
