from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabnsm.errors import InvalidDataError
from tabnsm_bench.evidence import empty_code
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import (
    empty_result,
    is_finished,
    load_results,
    read_result,
    result_paths,
    write_result,
)

RESULTS = Path(__file__).resolve().parents[1] / "results"


def test_results_come_back_in_the_order_of_their_paths(tmp_path: Path) -> None:
    specs = [RunSpec("b", "t"), RunSpec("a", "t", seed=1), RunSpec("a", "t")]
    for spec in specs:
        write_result(empty_result(spec) | {"state": "done"}, tmp_path)
    found = [RunSpec.from_dict(result["spec"]) for result in load_results(tmp_path)]
    assert found == [specs[2], specs[1], specs[0]]


def test_files_under_way_are_no_results(tmp_path: Path) -> None:
    path = write_result(empty_result(RunSpec("a", "t")), tmp_path)
    path.with_name(f".{path.name}.claim").write_text("{}")
    path.with_name(".other.json").write_text("half")
    assert len(load_results(tmp_path)) == 1


@pytest.mark.parametrize(("state", "finished"), [("done", 1), ("timeout", 1), ("failed", 0)])
def test_what_is_finished(tmp_path: Path, state: str, finished: int) -> None:
    spec = RunSpec("a", "t")
    assert not is_finished(spec, tmp_path, "f")
    code = empty_code() | {"fingerprint": "f"}
    write_result(empty_result(spec) | {"state": state, "code": code}, tmp_path)
    assert is_finished(spec, tmp_path, "f") == bool(finished)
    assert not is_finished(spec, tmp_path, "other options")
    assert not is_finished(spec, tmp_path, None)


def test_a_name_alone_is_not_finished(tmp_path: Path) -> None:
    spec = RunSpec("a", "t")
    result = empty_result(spec) | {"state": "done"}
    write_result(result, tmp_path)
    assert not is_finished(spec, tmp_path, "f")
    del result["code"]  # as results were before
    write_result(result, tmp_path)
    assert not is_finished(spec, tmp_path, "f")


def test_a_number_that_json_lacks_never_reaches_the_disk(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_result(empty_result(RunSpec("a", "t")) | {"fit_seconds": float("nan")}, tmp_path)
    assert load_results(tmp_path) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 99}'])
def test_other_files_are_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a" / "t" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(InvalidDataError, match=r"x\.json must be"):
        load_results(tmp_path)


def test_committed_results_are_where_their_spec_says() -> None:
    paths = result_paths(RESULTS)
    assert paths
    for path in paths:
        result = read_result(path)
        spec = RunSpec.from_dict(result["spec"])
        assert spec.path(RESULTS) == path
        assert result.keys() == empty_result(spec).keys(), path
        assert result["code"].keys() == empty_code().keys(), path
        assert result["code"]["commit"] or result["code"]["commit_added"], path
        assert json.dumps(result, indent=1, ensure_ascii=False) + "\n" == path.read_text(), path
