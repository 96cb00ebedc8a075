from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets import (
    ALIASES,
    DESCRIPTORS,
    all_descriptors,
    catalog,
    find_descriptor,
    find_file,
    how_to_get,
    load,
)


def test_the_papers_nine() -> None:
    assert list(ALIASES) == ["SA", "CP", "TO", "SC", "CD", "ChD", "EVP", "AQ", "RES"]
    assert len(DESCRIPTORS) == 9
    for known in DESCRIPTORS.values():
        assert known.target
        assert known.rows
        assert known.features
        assert known.licence
        assert known.sources
        assert all(source.page.startswith("https://") for source in known.sources)


def test_a_descriptor_says_what_its_dataset_is_judged_by(tmp_path: Path) -> None:
    assert {known.judged_by for known in DESCRIPTORS.values()} == {"rmse"}
    for name, shown in (("ct_real_estate_partial", {}), ("mine", {"judged_by": "mae"})):
        (tmp_path / f"{name}.csv").write_text("a,y\n1,2\n")
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name, "target": "y"} | shown))
    found = all_descriptors(tmp_path)
    assert found["ct_real_estate_partial"].judged_by == found["mine"].judged_by == "mae"
    (tmp_path / "mine.json").write_text('{"name": "mine", "target": "y", "judged_by": "mse"}')
    with pytest.raises(InvalidDataError, match="judged_by of mine must be 'rmse' or 'mae'"):
        all_descriptors(tmp_path)


@pytest.mark.slow
def test_every_table_of_the_data_folder_loads(data_dir: Path) -> None:
    found = {k: d for k, d in all_descriptors(data_dir).items() if find_file(k, data_dir)}
    assert len(found) == 16
    parts = {key for key, known in found.items() if known.is_part}
    assert parts == {
        "electric_vehicle_population",
        "sarcos_test4449",
        "us_chronic_disease_partial",
        "us_chronic_disease_2019_2022_subset",
        "la_crime_partial",
        "ct_real_estate_partial",
    }
    for key, known in found.items():
        table = load(key, data_dir)
        assert np.isfinite(table.target).all()
        assert len(table.frame) == len(table.target) > 1000
        assert known.target not in table.frame.columns
        assert not set(known.drop) & set(table.frame.columns)
        assert table.partial == (key in parts)


def test_the_alias_is_the_same_table(data_dir: Path) -> None:
    assert load("AQ", data_dir).sha256 == load("nyc_air_quality", data_dir).sha256
    assert load("AQ", data_dir).n_file_rows == DESCRIPTORS["nyc_air_quality"].rows


def test_the_error_for_a_missing_table_says_how_to_get_it(data_dir: Path) -> None:
    with pytest.raises(InvalidDataError, match=r"tabnsm bench download sarcos.*sarcos_test4449"):
        load("SA", data_dir)


def test_any_file_with_a_target(tmp_path: Path) -> None:
    text = "zip;price;age\n01;1,5;3\n02;?;4\n03;NA;5\n04;2,5;\n"
    (tmp_path / "homes.csv").write_text(text)
    table = load("homes", tmp_path, target="price")
    np.testing.assert_array_equal(table.target, [1.5, 2.5])
    assert list(table.frame.columns) == ["zip", "age"]
    assert table.frame["age"].tolist()[0] == 3
    assert table.n_file_rows == 4
    assert not table.partial
    again = load(tmp_path / "homes.csv", target="price")
    pd.testing.assert_frame_equal(again.frame, table.frame)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [(None, "must be named"), ("cost", "no 'cost'"), ("name", "must have numbers")],
)
def test_targets_that_cannot_be_used(tmp_path: Path, target: str | None, complaint: str) -> None:
    (tmp_path / "homes.csv").write_text("name,price\na,1\nb,2\n")
    with pytest.raises(InvalidDataError, match=complaint):
        load("homes", tmp_path, target=target)


def test_a_file_that_is_not_the_sidecars_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    (tmp_path / "t.json").write_text(json.dumps({"name": "t", "target": "y", "sha256": "0" * 64}))
    with pytest.raises(InvalidDataError, match="SHA-256"):
        load("t", tmp_path)


def test_a_broken_sidecar_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    (tmp_path / "t.json").write_text('{"name": ')
    (tmp_path / "unrelated.json").write_text("no JSON, but no table's sidecar either")
    with pytest.raises(InvalidDataError, match=r"t\.json must be readable JSON"):
        load("t", tmp_path)
    (tmp_path / "t.json").write_text("[1, 2]")
    assert load("t", tmp_path, target="y").target.tolist() == [2.0]


def test_names_that_are_nearly_right() -> None:
    with pytest.raises(InvalidDataError, match="Did you mean 'cpu_small'"):
        find_descriptor("cpu_smal", None)
    with pytest.raises(InvalidDataError, match="Run: tabnsm bench datasets"):
        load("zzz", None)
    with pytest.raises(InvalidDataError, match=r"there is no .*missing\.csv"):
        load("missing.csv", None)


def test_rows_beyond_the_papers_copy_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(DESCRIPTORS["ct_real_estate"], row_limit=2, rows=2)
    monkeypatch.setitem(catalog.DESCRIPTORS, "ct_real_estate", known)
    (tmp_path / "ct_real_estate.csv").write_text("Town,Sales Ratio\na,1\nb,2\nc,3\n")
    table = load("RES", tmp_path)
    assert table.frame["Town"].tolist() == ["a", "b"]
    assert not table.partial


def test_how_to_get_what_has_no_source(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    (tmp_path / "t.json").write_text('{"name": "t", "target": "y"}')
    assert how_to_get(find_descriptor("t", tmp_path)) == "put its file in the data folder"
