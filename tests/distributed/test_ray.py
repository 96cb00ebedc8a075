"""Fits and predictions on a real Ray cluster of two nodes, whose workers are killed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
import torch

from tabnsm import TabNSMRegressor, distributed
from tabnsm.cli import main
from tabnsm.distributed import encoding
from tabnsm.errors import InvalidOptionError, MissingExtraError, TabNSMError
from tests.distributed.local_cluster import LocalCluster

pytestmark = [
    pytest.mark.slow,
    # Of Ray's own: sockets and threads that it leaves to the end of the process.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OPTIONS: dict[str, Any] = {"preset": "fast", "max_epochs": 4, "random_state": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    nodes = LocalCluster()
    before = {name: os.environ.get(name) for name in [*nodes.settings, "RAY_ADDRESS"]}
    try:
        nodes.add_node()
        # Before the first import of Ray, which reads them once.
        os.environ |= {**nodes.settings, "RAY_ADDRESS": nodes.address}
        import ray

        ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
        yield nodes
        ray.shutdown()
    finally:
        nodes.close()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 4)), columns=["x0", "x1", "x2", "x3"])
    frame["kind"] = rng.choice(list("abc"), 600)
    frame["y"] = frame.x0 * frame.x1 + frame.x2 + (frame.kind == "a")
    return frame


def test_networks_have_the_bits_of_a_local_fit(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path
) -> None:
    options = OPTIONS | {"n_ensemble": 3, "max_epochs": 2}
    X, y = table.drop(columns="y"), table["y"]
    local = TabNSMRegressor(**options).fit(X, y)
    found = distributed.fit(table, "y", num_workers=2, storage_path=tmp_path / "runs", **options)
    assert np.array_equal(found.predict(X), local.predict(X))
    assert found.validation_rmse_ == local.validation_rmse_
    assert list((tmp_path / "runs").iterdir()) == []
    found.save(tmp_path / "model.safetensors")
    assert np.array_equal(
        TabNSMRegressor.load(tmp_path / "model.safetensors").predict(X), local.predict(X)
    )


def test_a_killed_worker_is_replaced_and_training_goes_on(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path
) -> None:
    """Two workers on a folder of files; one is killed after the first stored epoch."""
    folder = tmp_path / "data"
    folder.mkdir()
    for k, rows in enumerate((slice(0, 10), slice(10, 11), slice(11, 600))):
        table[rows].to_parquet(folder / f"part-{k}.parquet")
    runs, killed = tmp_path / "runs", []

    def kill_one() -> None:
        give_up = time.monotonic() + 120
        while time.monotonic() < give_up and not killed:
            if list(runs.glob("*/network-1/checkpoint*/*.safetensors")):
                killed.extend(cluster.worker_ids("RayTrainWorker")[:1])
                for process in killed:
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)

    thread = threading.Thread(target=kill_one)
    thread.start()
    options = OPTIONS | {"max_epochs": 12, "patience": 12}
    model = distributed.fit(folder, "y", num_workers=2, storage_path=runs, **options)
    thread.join()
    assert killed
    assert [record.epoch for record in model.history_] == list(range(1, 13))
    assert list(runs.iterdir()) == []
    one = TabNSMRegressor(**options).fit(folder, "y")
    assert model.validation_rmse_ < 1.3 * one.validation_rmse_


def test_one_worker_that_encodes_its_rows_has_the_bits_of_a_local_fit(
    cluster: LocalCluster,
    table: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From files with rows without a target, weights, and means of the target by a column."""
    monkeypatch.setattr(encoding, "encode_mapped", None)  # this process encodes nothing
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    school = rng.integers(0, 100, 600)
    rows = table.assign(school=7919 * school % 997, weight=rng.uniform(1, 2, 600))
    rows["y"] += rng.normal(size=100)[school] * 3
    rows.loc[::50, "y"] = np.nan
    folder = tmp_path / "data"
    folder.mkdir()
    for k in range(3):
        rows[200 * k : 200 * k + 200].to_parquet(folder / f"{k}.parquet", row_group_size=70)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*have no target")
        local = TabNSMRegressor(**OPTIONS).fit(folder, "y", "weight")
        models = [
            distributed.fit(
                "data",
                "y",
                sample_weight="weight",
                num_workers=num_workers,
                parallel="rows",
                storage_path=tmp_path / "runs",
                work_dir=tmp_path / "work",
                **OPTIONS,
            )
            for num_workers in (1, 2)
        ]
    assert len(local.encoder_.target_mean_features) == 1
    for model in models:
        (tensors, meta), (others, other_meta) = (m.encoder_.to_state() for m in (model, local))
        assert meta == other_meta
        assert all(torch.equal(tensors[name], others[name]) for name in others)
        assert not list((tmp_path / "work").iterdir())
    assert np.array_equal(models[0].predict(rows), local.predict(rows))
    assert models[0].predict_interval(rows)[0].tolist() == local.predict_interval(rows)[0].tolist()
    assert models[1].validation_rmse_ < 1.3 * local.validation_rmse_


def test_epochs_are_shown_with_the_time_left(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = OPTIONS | {"max_epochs": 10, "patience": 10, "verbose": 2}
    distributed.fit(table, "y", num_workers=1, parallel="rows", storage_path=tmp_path, **options)
    assert capfd.readouterr().err.count("validation RMSE") >= 3  # the newest at each look
    distributed.fit(
        table, "y", num_workers=1, parallel="networks", storage_path=tmp_path, **options
    )
    assert capfd.readouterr().err.count("validation RMSE") >= 2


def test_the_command_line_has_the_bits_of_a_local_fit(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    table[:70].to_parquet(tmp_path / "data" / "1.parquet")
    command = f"fit {tmp_path}/data -t y --epochs 1 -q -o {tmp_path}"
    assert main(f"{command}/a.safetensors --workers 2 --storage-path {tmp_path}/runs".split()) == 0
    assert main(f"{command}/b.safetensors".split()) == 0
    models = [TabNSMRegressor.load(tmp_path / f"{name}.safetensors") for name in "ab"]
    assert len(models[0].histories_) > 1
    assert np.array_equal(models[0].predict(table), models[1].predict(table))


def test_an_address_needs_workers(
    table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.to_csv(tmp_path / "t.csv")
    command = f"fit {tmp_path}/t.csv -t y -o {tmp_path}/m.safetensors --ray-address auto"
    assert main(command.split()) != 0
    assert "--ray-address needs --workers" in capsys.readouterr().err


def test_workers_without_rows_do_not_hang(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path
) -> None:
    model = distributed.fit(
        table.head(5),
        "y",
        num_workers=3,
        cpus_per_worker=0.5,
        parallel="rows",
        storage_path=tmp_path,
        **OPTIONS | {"max_epochs": 2, "batch_size": 2},
    )
    assert len(model.history_) == 2


def test_predictions_are_those_of_the_model(
    cluster: LocalCluster, table: pd.DataFrame, tmp_path: Path
) -> None:
    X = table.drop(columns="y")
    model = TabNSMRegressor(**OPTIONS | {"max_epochs": 1}).fit(X, table["y"])
    table.assign(key=np.arange(600)).to_parquet(tmp_path / "table.parquet")
    distributed.predict(model, tmp_path / "table.parquet", tmp_path / "out", keep=["key"])
    found = ds.dataset(tmp_path / "out").to_table().to_pandas().sort_values("key")
    assert found["key"].tolist() == list(range(600))
    assert np.array_equal(found["prediction"], model.predict(X))
    with pytest.raises(InvalidOptionError, match="out must be a new or empty folder"):
        distributed.predict(model, tmp_path / "table.parquet", tmp_path / "out")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", place]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)  # a worker may still have it open


@contextmanager
def kept_full(disk: Path, n_free: int, pattern: str) -> Iterator[None]:
    """Fill a disk when a file is there, and again when a removed one has made room."""
    ballast, has_ended = disk / "ballast", threading.Event()

    def fill_again() -> None:
        while not has_ended.wait(0.02):
            n_bytes = shutil.disk_usage(disk).free - n_free
            if n_bytes > 0 and (ballast.exists() or list(disk.glob(pattern))):
                with suppress(OSError), ballast.open("ab") as file:
                    file.write(b"0" * n_bytes)

    thread = threading.Thread(target=fill_again)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
        ballast.unlink(missing_ok=True)


def test_a_disk_too_small_for_the_rows(cluster: LocalCluster, disk: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3000, 20))).rename(columns=str)
    frame["y"] = frame["0"] * frame["1"]
    (disk / "ballast").write_bytes(b"0" * (shutil.disk_usage(disk).free - 200_000))
    with pytest.raises(TabNSMError, match="No space left on device"):
        distributed.fit(frame, "y", num_workers=1, parallel="rows", storage_path=disk, **OPTIONS)


def test_a_disk_that_is_full_after_an_epoch(
    cluster: LocalCluster, table: pd.DataFrame, disk: Path
) -> None:
    """A clear error; once there is space, the same call goes on after the epoch that is stored."""
    options = OPTIONS | {"max_epochs": 12, "patience": 12}
    call = {"num_workers": 1, "parallel": "rows", "storage_path": disk}
    with (
        kept_full(disk, 20_000, "*/network-1/checkpoint*/*.safetensors"),
        pytest.raises(TabNSMError, match=r"No space left on device.*same call goes on"),
    ):
        distributed.fit(table, "y", **call, **options)
    model = distributed.fit(table, "y", **call, **options)
    assert [record.epoch for record in model.history_] == list(range(1, 13))
    assert list(disk.iterdir()) == []


def test_storage_that_cannot_be_reached(cluster: LocalCluster, table: pd.DataFrame) -> None:
    with pytest.raises(InvalidOptionError, match="storage_path must be a folder or URI"):
        distributed.fit(table, "y", storage_path="/proc/no/such/folder", **OPTIONS)
    with pytest.raises(InvalidOptionError, match="storage_path must be given for a cluster of 2"):
        distributed.fit(table, "y", parallel="rows", **OPTIONS)


def test_more_workers_than_cores(cluster: LocalCluster, table: pd.DataFrame) -> None:
    with pytest.raises(InvalidOptionError, match="got 9 with 1 CPU each, where it has 4"):
        distributed.fit(table, "y", num_workers=9, **OPTIONS)


def test_without_ray(monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"tabnsm\[ray\]"):
        distributed.fit(table, "y", ray_address="auto", **OPTIONS)


def test_options_that_cannot_be_used(table: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="num_workers must be an integer >= 1"):
        distributed.fit(table, "y", num_workers=0)
    with pytest.raises(InvalidOptionError, match="checkpoint_dir must not be given"):
        distributed.fit(table, "y", checkpoint_dir=tmp_path)
