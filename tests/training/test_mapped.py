"""A dataset gives the same model as the same table in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor
from tabnsm.columns import TableEncoder
from tabnsm.errors import TabNSMWarning
from tabnsm.tables import Table
from tabnsm.tables.stored import store_distinct
from tests.fakes import FakeTextEncoder


def mixed_table(n_rows: int = 400) -> pd.DataFrame:
    """Numbers, categories, dates, codes, text, missing values, and written numbers."""
    rng = np.random.default_rng(0)
    size = rng.normal(50, 10, n_rows)
    city = rng.choice(["Oslo", "Rome", "Kyiv", None], n_rows)
    sold = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    words = rng.choice(["bright", "quiet", "old", "new", "large", "garden"], (n_rows, 3))
    shop = rng.integers(0, 100, n_rows)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, size),
            "rooms": rng.integers(1, 6, n_rows),
            "shop": shop,
            "city": city,
            "colour": pd.Categorical(rng.choice(["red", "blue"], n_rows)),
            "sold": sold,
            "written": [f"{day:%d.%m.%Y}" for day in sold],
            "fee": [f"${fee:,.2f}" if fee > 100 else None for fee in rng.uniform(0, 3000, n_rows)],
            "vin": [f"A{k % 7}X{k % 97:03d}{'QRS'[k % 3]}" for k in rng.integers(0, 9999, n_rows)],
            "note": [f"{' '.join(row)} {k}" for k, row in enumerate(words)],
            "empty": [None] * n_rows,
        }
    )
    price = size * (1 + (city == "Oslo")) + 50 * rng.normal(size=100)[shop]
    frame["price"] = np.where(rng.random(n_rows) < 0.02, np.nan, price + (words[:, 0] == "new"))
    return frame


def write_shards(frame: pd.DataFrame, folder, suffix: str = ".parquet") -> None:
    """Several files with uneven row groups, one of them in a folder of its own."""
    (folder / "more").mkdir(parents=True)
    ends = [0, 37, 180, 181, len(frame)]
    names = ["a", "b", "c", "more/d"]
    for name, start, stop in zip(names, ends[:-1], ends[1:], strict=True):
        part = frame[start:stop].reset_index(drop=True)
        path = folder / f"{name}{suffix}"
        if suffix == ".parquet":
            part.to_parquet(path, row_group_size=53)
        else:
            part.to_feather(path)


def regressor(**options) -> TabNSMRegressor:
    options = {"preset": "fast", "max_epochs": 2, "random_state": 0} | options
    return TabNSMRegressor(text_encoder=FakeTextEncoder(), text_cache=False, **options)


def assert_same(one: TabNSMRegressor, other: TabNSMRegressor) -> None:
    """The same encoder, weights and importances, bit for bit."""
    tensors, meta = one.encoder_.to_state()
    others, other_meta = other.encoder_.to_state()
    assert meta == other_meta
    assert tensors.keys() == others.keys()
    assert all(torch.equal(tensors[name], others[name]) for name in tensors)
    weights = other.model_.state_dict()
    assert all(torch.equal(w, weights[name]) for name, w in one.model_.state_dict().items())
    assert one.validation_rmse_ == other.validation_rmse_
    assert (one.feature_importances_ == other.feature_importances_).all()


WARNED = "ignore:.*(no target|row id|not be read|day and month).*"


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize(("suffix", "select"), [(".parquet", False), (".feather", True)])
def test_a_folder_gives_the_bits_of_a_frame(tmp_path, suffix, select):
    frame = mixed_table()
    write_shards(frame, tmp_path / "data", suffix)
    X = frame.drop(columns="price")
    expected = regressor(select_text=select).fit(X, frame["price"])
    found = regressor(select_text=select)
    found.fit(str(tmp_path / "data"), "price", work_dir=tmp_path / "work")
    kinds = {row.kind for row in expected.describe_columns()}
    assert {"numeric", "category", "date"} <= kinds
    assert ({"code", "text"} <= kinds) is not select  # which do not help, and are left out then
    assert any(name.endswith("target_mean") for name in expected.encoder_.feature_names)
    assert_same(expected, found)
    assert (expected.predict(X) == found.predict(X)).all()
    assert list(found.feature_names_in_) == list(X.columns)
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("text_columns", ["separate", "joined"])
def test_strings_in_files_give_the_same_bits(tmp_path, monkeypatch, text_columns):
    frame = mixed_table()
    frame["title"] = [f"{note.split()[0]} {k % 300}" for k, note in enumerate(frame["note"])]
    write_shards(frame, tmp_path / "data")
    options = {"select_text": False, "max_epochs": 1, "text_columns": text_columns}
    X = frame.drop(columns="price")
    expected = regressor(**options).fit(
        X, frame["price"], X_val=X[200:], y_val=frame["price"][200:]
    )
    # Every column of strings counts as one with too many, and is read in small parts.
    monkeypatch.setattr("tabnsm.tables.dataset._MAX_STRING_BYTES", 0)
    monkeypatch.setattr("tabnsm.tables.stored.PART", 50)
    stored = []
    monkeypatch.setattr(
        "tabnsm.tables.dataset.store_distinct",
        lambda *args: stored.append(1) or store_distinct(*args),
    )
    frame[200:].to_parquet(tmp_path / "valid.parquet")
    found = regressor(**options).fit(
        tmp_path / "data",
        "price",
        X_val=tmp_path / "valid.parquet",
        y_val="price",
        work_dir=tmp_path / "work",
    )
    assert len(stored) >= 2 * 6
    assert_same(expected, found)
    assert not list((tmp_path / "work").iterdir())


def interrupted(tmp_path, monkeypatch, name: str, **options) -> None:
    """A fit that is ended by an error in one of its steps, and leaves a folder to resume from."""
    target, attribute = name.rsplit(".", 1)
    with monkeypatch.context() as patch:

        def stop(*_, **__):
            raise RuntimeError("stopped")

        patch.setattr(f"{target}.{attribute}", stop)
        with pytest.raises(RuntimeError, match="stopped"):
            regressor(checkpoint_dir=tmp_path / "run", **options).fit(tmp_path / "data", "price")


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize(
    ("stop_at", "n_read"),
    [
        ("tabnsm.training.mapped.TableEncoder.encode_fitted", 1),  # only the first pass is done
        ("tabnsm.training.ensemble.EnsembleTraining.train", 0),  # all passes are done
    ],
)
def test_a_stopped_fit_reuses_the_passes_that_are_done(tmp_path, monkeypatch, stop_at, n_read):
    frame = mixed_table(200)
    write_shards(frame, tmp_path / "data")
    expected = regressor(select_text=False, max_epochs=1).fit(tmp_path / "data", "price")
    interrupted(tmp_path, monkeypatch, stop_at, select_text=False, max_epochs=1)
    assert (tmp_path / "run" / "encoded" / "manifest.json").exists()
    calls = []
    for name in ("fit_columns", "encode_fitted"):
        method = getattr(TableEncoder, name)

        def counted(self, *args, _method=method, _name=name, **kwargs):
            calls.append(_name)
            return _method(self, *args, **kwargs)

        monkeypatch.setattr(TableEncoder, name, counted)
    found = regressor(checkpoint_dir=tmp_path / "run", select_text=False, max_epochs=1)
    found.fit(tmp_path / "data", "price", resume=True)
    assert calls == ["encode_fitted"] * n_read
    assert_same(expected, found)
    assert not (tmp_path / "run" / "encoded").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stop_at", "name", "n_left"),
    [
        ("tabnsm.training.ensemble.EnsembleTraining.train", "train.dense.bin", None),
        ("tabnsm.training.ensemble.EnsembleTraining.train", "train.dense.bin", 100),
        ("tabnsm.training.ensemble.EnsembleTraining.train", "encoder.safetensors", 100),
        ("tabnsm.training.mapped.TableEncoder.encode_fitted", "columns.safetensors", 100),
    ],
)
def test_damaged_rows_are_encoded_again(tmp_path, monkeypatch, stop_at, name, n_left):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=200), "city": rng.choice(["Oslo", "Rome"], 200)})
    write_shards(frame.assign(price=frame["size"] + rng.normal(size=200)), tmp_path / "data")
    expected = regressor(max_epochs=1).fit(tmp_path / "data", "price")
    interrupted(tmp_path, monkeypatch, stop_at, max_epochs=1)
    file = tmp_path / "run" / "encoded" / name
    content = file.read_bytes()
    file.unlink()
    if n_left is not None:
        file.write_bytes(content[:n_left])
    found = regressor(max_epochs=1, checkpoint_dir=tmp_path / "run")
    with pytest.warns(TabNSMWarning, match=r"cannot be used .*encoded again"):
        found.fit(tmp_path / "data", "price", resume=True)
    assert_same(expected, found)


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
def test_other_options_do_not_reuse_passes(tmp_path, monkeypatch):
    write_shards(mixed_table(200), tmp_path / "data")
    train = "tabnsm.training.ensemble.EnsembleTraining.train"
    interrupted(tmp_path, monkeypatch, train, max_epochs=1)
    expected = regressor(n_bins=4, max_epochs=1).fit(tmp_path / "data", "price")
    found = regressor(n_bins=4, max_epochs=1, checkpoint_dir=tmp_path / "run")
    assert_same(expected, found.fit(tmp_path / "data", "price", resume=True))


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
def test_columns_by_name(tmp_path):
    frame = mixed_table(200).dropna(subset="price")
    frame["city"] = frame["city"].fillna("none")
    write_shards(frame, tmp_path / "data")
    X = frame.drop(columns=["price", "rooms", "city"])
    options = {"select_text": True, "max_epochs": 1}
    expected = regressor(**options).fit(
        X, frame["price"], frame["rooms"], validation_groups=frame["city"]
    )
    found = regressor(**options).fit(tmp_path / "data", "price", "rooms", validation_groups="city")
    assert_same(expected, found)
    expected = regressor(**options).fit(
        X, frame[["price", "rooms"]], validation_time=frame["sold"].astype("int64")
    )
    data = Table.from_native(tmp_path / "data").without(["city"])
    found = regressor(**options).fit(data, ["price", "rooms"], validation_time="sold")
    assert_same(expected, found)
    assert (expected.predict(X) == found.predict(tmp_path / "data")).all()
    assert list(found.target_names_) == ["price", "rooms"]


@pytest.mark.slow
@pytest.mark.filterwarnings(WARNED)
def test_rows_to_validate_on_from_a_dataset(tmp_path):
    frame = mixed_table(200)
    write_shards(frame, tmp_path / "data")
    X, y = frame.drop(columns="price"), frame["price"]
    expected = regressor(max_epochs=1).fit(X, y, X_val=X[:50], y_val=y[:50])
    frame[:50].to_parquet(tmp_path / "valid.parquet")
    found = regressor(max_epochs=1, checkpoint_dir=tmp_path / "run")
    found.fit(tmp_path / "data", "price", X_val=tmp_path / "valid.parquet", y_val="price")
    assert_same(expected, found)
    present = y.notna()
    expected_score = expected.score(X[present], y[present])
    frame[present].to_parquet(tmp_path / "present.parquet")
    assert found.score(tmp_path / "present.parquet", "price") == expected_score


def test_a_wrong_name_of_y_val(tmp_path):
    write_shards(mixed_table(200).dropna(subset="price"), tmp_path / "data")
    with pytest.raises(InvalidDataError, match="y_val must name a column of the dataset, got 'qq'"):
        regressor().fit(tmp_path / "data", "price", X_val=tmp_path / "data", y_val="qq")


def test_what_cannot_be_fitted_is_refused_before_any_work(tmp_path):
    write_shards(mixed_table(200), tmp_path / "data")
    with pytest.raises(InvalidDataError, match="y must name a column of the dataset, got 'prize'"):
        regressor().fit(tmp_path / "data", "prize")
    with pytest.raises(InvalidDataError, match="y must name different columns"):
        regressor().fit(tmp_path / "data", ["price", "price"])
    with pytest.raises(InvalidDataError, match="A dataset must be the path of files, got ''"):
        regressor().fit("", "price")
    with pytest.raises(InvalidDataError, match="sample_weight must name a column of numbers"):
        regressor().fit(tmp_path / "data", "price", "city")
    with pytest.raises(InvalidDataError, match="validation_time must name a column of numbers or"):
        regressor().fit(tmp_path / "data", "price", validation_time="note")
    with pytest.raises(InvalidOptionError, match="work_dir is for a dataset"):
        regressor().fit([[1.0], [2.0]], [1.0, 2.0], work_dir=tmp_path)
