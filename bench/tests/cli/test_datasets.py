from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tabnsm.errors import InvalidDataError
from tabnsm_bench.cli import app


def bench(*arguments: str) -> Any:
    return app(list(arguments), prog_name="tabnsm bench", standalone_mode=False)


def test_the_list_shows_what_is_there_and_how_to_get_the_rest(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    bench("datasets", "--data-dir", str(data_dir))
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "found" in lines["cpu_small"]
    assert "8,192" in lines["cpu_small"]
    assert "part" in lines["electric_vehicle_population"]
    assert "part" in lines["sarcos_test4449"]
    assert "tabnsm bench download topo_2_1" in lines["topo_2_1"]
    assert "https://scan.naccdata.org/" in lines["nacc_scan"]
    assert "found" in lines["ames_housing"]


def test_json_has_all_details(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sales.csv").write_text("a,y\n1,2\n")
    (tmp_path / "sales.json").write_text('{"name": "sales", "target": "y", "rows": 1}')
    bench("datasets", "-d", str(tmp_path), "--json")
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 10
    assert rows["sales"]["state"] == "found"
    assert rows["sales"]["file"] == str(tmp_path / "sales.csv")
    assert rows["us_chronic_disease"]["drop"] == ["DataValueAlt"]
    assert "AREA NAME" in rows["la_crime"]["leaks"]


def test_a_folder_that_is_not_there_lists_the_papers_nine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench("datasets", "-d", str(tmp_path / "none"), "--json")
    rows = json.loads(capsys.readouterr().out)
    assert [row["state"] for row in rows] == ["missing"] * 9


def test_download_of_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cpu_small.csv").write_text("usr\n1\n")
    bench("download", "CP", "-d", str(tmp_path))
    assert capsys.readouterr().out == f"cpu_small: {tmp_path / 'cpu_small.csv'}\n"


def test_download_of_an_unknown_name_begins_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="no dataset 'XY'"):
        bench("download", "TO", "XY", "-d", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
