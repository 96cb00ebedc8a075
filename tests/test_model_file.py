"""Saved models: bit-equal after load, and nothing but a whole file of ours is read."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

from tabnsm import InvalidOptionError, ModelFileError, TabNSMError, TabNSMRegressor
from tabnsm.container import META_KEY, read_container, write_container
from tabnsm.earlier import MISSING_OPTIONS

pytestmark = pytest.mark.usefixtures("one_network")

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": rng.choice(["x", "y", "z"], 60),
            "when": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 300, 60), "D"),
        }
    )
    frame.loc[3, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TabNSMRegressor:
    y = frame["a"].fillna(0) + (frame["b"] == "x")
    return TabNSMRegressor(max_epochs=2, d_token=8, random_state=0).fit(frame, y)


def test_load_is_bit_equal(model: TabNSMRegressor, frame: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.get_params() == model.get_params()
    assert loaded.history_.to_dict() == model.history_.to_dict()
    assert loaded.options_ == model.options_
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert str(loaded.describe_columns()) == str(model.describe_columns())
    loaded.save(tmp_path / "again.safetensors")
    first, second = (tmp_path / name for name in ("m.safetensors", "again.safetensors"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_load_in_another_process_is_bit_equal(
    model: TabNSMRegressor, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.safetensors")
    frame.to_parquet(tmp_path / "x.parquet")
    code = (
        "import sys, numpy as np, pandas as pd; from tabnsm import TabNSMRegressor;"
        "m = TabNSMRegressor.load(sys.argv[1]); np.save(sys.argv[3],"
        "m.predict(pd.read_parquet(sys.argv[2])))"
    )
    args = [str(tmp_path / name) for name in ("m.safetensors", "x.parquet", "p.npy")]
    subprocess.run([sys.executable, "-c", code, *args], check=True)
    np.testing.assert_array_equal(np.load(args[2]), model.predict(frame))


def test_how_much_a_fit_prints_is_not_saved(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    loud = TabNSMRegressor(max_epochs=1, d_token=8, random_state=0, verbose=2)
    loud.fit(frame, frame["a"].fillna(0) + (frame["b"] == "x")).save(path)
    tensors, meta = read_container(path)
    parts = meta["params"], meta["options"]["encoder"], meta["encoder"]["config"]
    for part in parts:
        assert "verbose" not in part
        part["verbose"] = 2  # as in files of earlier versions
    old = tmp_path / "old.safetensors"
    write_container(old, tensors, meta)
    for file in (path, old):
        loaded = TabNSMRegressor.load(file)
        assert loaded.verbose == 0
        assert loaded.encoder_.config.verbose == loaded.options_.encoder.verbose == 0


def test_no_pickle_in_the_file(model: TabNSMRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    tensors = safetensors.torch.load_file(path)
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors.values())
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    header = json.loads(path.read_bytes()[8 : 8 + length])
    assert json.loads(header["__metadata__"][META_KEY])["format_version"] == 8


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.999])
def test_truncated_files(model: TabNSMRegressor, tmp_path: Path, keep: float) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep < 1 else int(keep)])
    with pytest.raises(TabNSMError, match="truncated or of another kind"):
        TabNSMRegressor.load(path)


def test_any_flipped_bit_is_noticed(model: TabNSMRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    content = path.read_bytes()
    for place in np.random.default_rng(0).integers(8, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(place) % 8
        path.write_bytes(damaged)
        with pytest.raises(TabNSMError):
            TabNSMRegressor.load(path)


def test_files_of_another_kind(tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not written by tabnsm"):
        TabNSMRegressor.load(tmp_path / "other.safetensors")
    (tmp_path / "text.txt").write_text("hello, I am not a model")
    with pytest.raises(ModelFileError, match="another kind"):
        TabNSMRegressor.load(tmp_path / "text.txt")
    with pytest.raises(ModelFileError, match="there is no file"):
        TabNSMRegressor.load(tmp_path / "nothing.safetensors")
    with pytest.raises(ModelFileError, match="is a folder"):
        TabNSMRegressor.load(tmp_path)
    write_container(tmp_path / "c.safetensors", {}, {"kind": "checkpoint"})
    with pytest.raises(ModelFileError, match="holds a checkpoint, not a saved model"):
        TabNSMRegressor.load(tmp_path / "c.safetensors")


def test_a_newer_version_is_named(model: TabNSMRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    tensors, meta = read_container(path)
    write_container(path, tensors, meta | {"format_version": 99})
    with pytest.raises(ModelFileError, match=r"newer tabnsm .*99.*pip install -U"):
        TabNSMRegressor.load(path)


def test_a_whole_file_with_parts_that_do_not_fit_is_refused(
    model: TabNSMRegressor, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    tensors, meta = read_container(path)
    params = meta["params"] | {"unheard_of": 1}
    without_head = {name: x for name, x in tensors.items() if "head" not in name}
    without_target = {name: x for name, x in meta.items() if name != "target"}
    for parts, about, message in (
        (tensors, meta | {"params": params}, "unheard_of"),
        (without_head, meta, "head.mlp1|state_dict"),
        (tensors, without_target, "KeyError: .target"),
        (tensors, meta | {"format_version": None}, "file format by an integer, got None"),
        (tensors, [], "JSON object as metadata, got list"),
    ):
        write_container(path, parts, about)  # type: ignore[arg-type]
        with pytest.raises(ModelFileError, match=message):
            TabNSMRegressor.load(path)


def test_files_without_number_formats_predict_the_same_bits(
    model: TabNSMRegressor, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    tensors, meta = read_container(path)
    for column in meta["encoder"]["columns"]:
        del column["number_format"], column["from_dates"]
    write_container(path, tensors, meta | {"format_version": 3})
    earlier = TabNSMRegressor.load(path)
    np.testing.assert_array_equal(earlier.predict(frame), model.predict(frame))


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(5.0), "a": torch.zeros(0, 2), "é": torch.ones(3, dtype=torch.bool)}
    files = [tmp_path / f"{number}.safetensors" for number in range(16)]
    for path in files:
        write_container(path, tensors, {"kind": 'a "word", ü'})
    assert len({path.read_bytes() for path in files}) == 1
    again, meta = read_container(files[0])
    assert meta == {"kind": 'a "word", ü'}
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)


def test_what_was_read_does_not_change_with_the_file(
    model: TabNSMRegressor, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    tensors, _ = read_container(path)
    before = {name: x.clone() for name, x in tensors.items()}
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"\x01" * size)
    for name, x in tensors.items():
        torch.testing.assert_close(x, before[name], rtol=0, atol=0, equal_nan=True)


def test_a_device_object_can_be_saved(frame: pd.DataFrame, tmp_path: Path) -> None:
    y = frame["a"].fillna(0) + (frame["b"] == "x")
    model = TabNSMRegressor(max_epochs=1, d_token=8, device=torch.device("cpu")).fit(frame, y)
    model.save(tmp_path / "m.safetensors")
    assert TabNSMRegressor.load(tmp_path / "m.safetensors").device == "cpu"


@pytest.mark.slow
def test_kill_while_saving_leaves_the_old_file(
    model: TabNSMRegressor, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    model.save(path)
    before = path.read_bytes()
    code = (
        "import sys, os, time\n"
        "from tabnsm import TabNSMRegressor\n"
        "m = TabNSMRegressor.load(sys.argv[1])\n"
        "real = os.fsync\n"
        "def stall(handle):\n"
        "    print('WRITING', flush=True); time.sleep(60)\n"
        "os.fsync = stall\n"
        "m.save(sys.argv[1])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "WRITING\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert path.read_bytes() == before
    np.testing.assert_array_equal(TabNSMRegressor.load(path).predict(frame), model.predict(frame))
    assert len(list(tmp_path.iterdir())) == 2
    model.save(path)  # removes what the killed process left
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_nothing(model: TabNSMRegressor, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_bad_device_is_refused(model: TabNSMRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(InvalidOptionError, match="device"):
        TabNSMRegressor.load(tmp_path / "m.safetensors", device="abacus")


def _load_fixture(version: int) -> TabNSMRegressor:
    """A model of an earlier file format, after a check of what it predicts."""
    path = FIXTURES / f"model-format-{version}.safetensors"
    expected = json.loads(path.with_suffix(".json").read_text())
    model = TabNSMRegressor.load(path)
    rows = pd.DataFrame(expected["rows"])
    rows["when"] = pd.to_datetime(rows["when"])
    np.testing.assert_allclose(model.predict(rows), expected["predictions"], rtol=1e-4)
    if "levels" in expected:
        found = model.predict(rows, output_type="quantiles", quantiles=expected["levels"])
        np.testing.assert_allclose(found, expected["quantiles"], rtol=1e-4)
    return model


@pytest.mark.parametrize(
    ("version", "n_networks"), [(1, 1), (2, 8), (3, 8), (4, 8), (5, 1), (6, 8), (7, 8), (8, 8)]
)
def test_earlier_files_can_still_be_read(version: int, n_networks: int) -> None:
    assert len(_load_fixture(version).histories_) == n_networks


def test_rows_of_the_fit_are_in_files_of_format_7() -> None:
    assert _load_fixture(6).replay_ is None
    kept = _load_fixture(7).replay_
    assert kept is not None
    assert kept.n_fitted == kept.table.n_rows == 72


def test_days_that_recur_are_in_files_of_format_8() -> None:
    assert "when_recurring" in _load_fixture(8).encoder_.feature_names


def test_options_that_the_first_files_do_not_know() -> None:
    model = _load_fixture(1)
    # What came later is not what they were made with.
    options = {k: v for part in model.options_.to_dict().values() for k, v in part.items()}
    assert {name: options[name] for name in MISSING_OPTIONS} == MISSING_OPTIONS
    assert model.encoder_.config.text_columns == "joined"
    assert model.validation_rmse_ == model.history_.best.validation_rmse


def test_files_of_format_3_watch_the_rmse() -> None:
    model = _load_fixture(3)
    assert model.validation_rmse_ == model.best_score_
    assert model.options_.training.eval_metric == "rmse"
    assert len(model.training_history()) == 24
    assert model.n_iter_ == 3


def test_the_metric_of_validation_is_saved(frame: pd.DataFrame, tmp_path: Path) -> None:
    y = frame["a"].fillna(0) + (frame["b"] == "x")
    options = {"max_epochs": 3, "d_token": 8, "random_state": 0}
    model = TabNSMRegressor(**options, eval_metric="mae").fit(frame, y)
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    assert loaded.eval_metric == loaded.options_.training.eval_metric == "mae"
    assert loaded.best_score_ == model.best_score_ < loaded.validation_rmse_
    assert loaded.histories_ == model.histories_
    assert loaded.n_iter_ == model.n_iter_ == 3
