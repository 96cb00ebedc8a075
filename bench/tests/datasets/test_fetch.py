from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.tests.datasets.server import Site, serve
from tabnsm.errors import InvalidDataError
from tabnsm_bench.claims import Claim
from tabnsm_bench.datasets import catalog, download_dataset, fetch, load, openml
from tabnsm_bench.datasets.descriptor import Source
from tabnsm_bench.datasets.download import DownloadError

ARFF = b"@relation cpu\n@attribute lread integer\n@attribute usr integer\n@data\n1,90\n2,80\n3,?\n"
CSV = b"Name,Message,Data Value\nOzone,,1.5\nNO2,,2.5\nNO2,,\n"


@pytest.fixture
def site() -> Iterator[Site]:
    with serve(Site({"/cpu.arff": ARFF, "/air.csv": CSV})) as running:
        yield running


@pytest.fixture
def openml_site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    description = {
        "name": "cpu_small",
        "url": f"{site.address}/cpu.arff",
        "md5_checksum": hashlib.md5(ARFF).hexdigest(),
    }
    text = json.dumps({"data_set_description": description})
    site.files["/api/v1/json/data/42841"] = text.encode()
    whole = openml.fetch_openml
    monkeypatch.setattr(
        fetch, "fetch_openml", lambda n, f, **o: whole(n, f, server=site.address, **o)
    )
    return site


def put(monkeypatch: pytest.MonkeyPatch, key: str, *sources: Source) -> None:
    """Let a dataset come from the test's own server."""
    changed = replace(catalog.DESCRIPTORS[key], sources=sources)
    monkeypatch.setitem(catalog.DESCRIPTORS, key, changed)


def test_a_csv_becomes_parquet_with_a_sidecar(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = hashlib.sha256(CSV).hexdigest()
    put(monkeypatch, "nyc_air_quality", Source("file", "", f"{site.address}/air.csv", None, sha256))
    path = download_dataset("AQ", tmp_path)
    assert path == tmp_path / "nyc_air_quality.parquet"
    sidecar = json.loads(path.with_suffix(".json").read_text())
    assert sidecar["source"]["source_sha256"] == sha256
    assert sidecar["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sidecar["rows"] == 3
    table = load("AQ", tmp_path)
    assert list(table.frame.columns) == ["Name"]
    np.testing.assert_array_equal(table.target, [1.5, 2.5])
    assert table.partial
    assert list((tmp_path / ".downloads").iterdir()) == []


def test_an_existing_table_is_not_downloaded_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cpu_small.csv").write_text("usr\n1\n")
    assert download_dataset("CP", tmp_path) == tmp_path / "cpu_small.csv"
    assert site.requests == []


def test_the_second_source_helps_out(
    openml_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Source("file", "", f"{openml_site.address}/gone.arff")
    put(monkeypatch, "cpu_small", gone, Source("openml", "", openml_id=42841))
    path = download_dataset("CP", tmp_path)
    assert pd.read_parquet(path)["lread"].tolist() == [1, 2, 3]
    assert json.loads(path.with_suffix(".json").read_text())["source"]["id"] == 42841
    np.testing.assert_array_equal(load("CP", tmp_path).target, [90.0, 80.0])


def test_openml_checks_what_it_sends(
    openml_site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(monkeypatch, "cpu_small", Source("openml", "", openml_id=42841))
    openml_site.files["/cpu.arff"] = ARFF + b"4,70\n"
    with pytest.raises(DownloadError, match="checksum"):
        download_dataset("CP", tmp_path)
    assert not (tmp_path / "cpu_small.parquet").exists()


def test_openml_parquet_where_there_is_no_arff(site: Site, tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0], "usr": [2.0]}).to_parquet(tmp_path / "made.parquet")
    site.files["/t.pq"] = (tmp_path / "made.parquet").read_bytes()
    about = {"data_set_description": {"parquet_url": f"{site.address}/t.pq"}}
    site.files["/api/v1/json/data/7"] = json.dumps(about).encode()
    frame, file, _ = openml.fetch_openml(7, tmp_path, server=site.address)
    assert frame.to_dict("list") == {"a": [1.0], "usr": [2.0]}
    assert file.n_bytes == len(site.files["/t.pq"])


@pytest.mark.parametrize("about", [b"<html>", b"{}", b'{"data_set_description": {}}'])
def test_an_unusable_answer_of_openml(site: Site, tmp_path: Path, about: bytes) -> None:
    site.files["/api/v1/json/data/7"] = about
    with pytest.raises(InvalidDataError, match="OpenML"):
        openml.fetch_openml(7, tmp_path, server=site.address)


def test_a_source_that_changed_its_columns_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/cpu.arff"] = ARFF.replace(b"usr", b"user")
    put(monkeypatch, "cpu_small", Source("file", "", f"{site.address}/cpu.arff"))
    with pytest.raises(DownloadError, match="target 'usr'"):
        download_dataset("CP", tmp_path)


def test_what_is_handed_out_on_request_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match=r"request it at https://scan\.naccdata\.org"):
        download_dataset("SC", tmp_path)


def test_two_downloads_of_one_dataset_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / ".downloads").mkdir()
    claim = Claim.acquire(tmp_path / ".downloads" / "topo_2_1.claim")
    assert claim is not None
    with claim, pytest.raises(InvalidDataError, match="another process"):
        download_dataset("TO", tmp_path)
