from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.files import read_table
from tabnsm.metrics import regression_metrics

pytestmark = pytest.mark.usefixtures("one_network")

N_ROWS = 120


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"NA{i}" if i else "NA" for i in range(N_ROWS)],
            "size": rng.normal(size=N_ROWS).round(3),
            "shop": rng.choice(["north", "south", "west"], N_ROWS),
            "sold": pd.date_range("2024-01-01", periods=N_ROWS).strftime("%d.%m.%Y"),
            "weight": rng.uniform(0.5, 2, N_ROWS).round(2),
        }
    )
    table["size"] = table["size"].where(rng.uniform(size=N_ROWS) > 0.1)
    noise = rng.normal(0, 0.1, N_ROWS)
    table["price"] = (2 * table["size"].fillna(1) + (table["shop"] == "west") + noise).round(4)
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, frame: pd.DataFrame) -> Path:
    """A folder with the table as CSV, and a model that was fitted on it by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    frame.to_csv(folder / "data.csv", index=False)
    assert fit(folder, "--drop", "id", "--drop", "weight") == 0
    return folder


def fit(folder: Path, *options: str, out: str = "model.safetensors", epochs: int = 3) -> int:
    where = ["--target", "price", "--out", str(folder / out), "--epochs", str(epochs), "--quiet"]
    return main(["fit", str(folder / "data.csv"), *where, *options])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("Error: ")
    assert captured.out == ""
    return lines[0]


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "info", "demo", "cache", ""])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"] if command else ["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: tabnsm" in shown
    if command in ("fit", "predict", "evaluate", "info", ""):
        assert "tabnsm " + (command or "fit") in shown.split("Examples")[1]


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Usage: tabnsm" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"tabnsm \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_fit_reports_what_it_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "fit",
        str(folder / "data.csv"),
        "-t",
        "price",
        "-o",
        str(folder / "v.safetensors"),
    ]
    assert main([*arguments, "--epochs", "2", "--drop", "id", "--kind", "shop=category", "-v"]) == 0
    captured = capsys.readouterr()
    assert "size" in captured.out
    assert "Columns: 2 numeric, 1 category, 1 date" in captured.out
    assert "Saved" in captured.out
    assert "epoch   2" in captured.err


def test_brackets_in_a_file_name_are_no_markup(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model[bold].safetensors"
    data = str(folder / "data.csv")
    assert main(["fit", data, "-t", "price", "-o", str(model), "--epochs", "1"]) == 0
    assert "model[bold].safetensors (" in capsys.readouterr().out
    assert main(["info", str(model)]) == 0
    assert "model[bold].safetensors: " in capsys.readouterr().out


def test_the_file_and_the_estimator_agree(folder: Path, frame: pd.DataFrame) -> None:
    features = frame[["size", "shop", "sold"]]
    direct = TabNSMRegressor(max_epochs=3, random_state=0).fit(features, frame["price"])
    loaded = TabNSMRegressor.load(folder / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(features), direct.predict(features))


@pytest.mark.parametrize("batch_rows", [7, N_ROWS, 10_000])
def test_streaming_equals_the_whole(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, batch_rows: int
) -> None:
    out = tmp_path / "out.csv"
    paths = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    options = ["--out", str(out), "--id", "id", "--batch-rows", str(batch_rows), "-q"]
    assert main(["predict", *paths, *options]) == 0
    written = pd.read_csv(out, keep_default_na=False)
    assert list(written.columns) == ["id", "prediction"]
    assert list(written["id"]) == list(frame["id"])
    whole = TabNSMRegressor.load(folder / "model.safetensors").predict(frame)
    np.testing.assert_array_equal(written["prediction"], whole)


@pytest.mark.parametrize("kind", ["tsv", "parquet", "feather"])
def test_other_files_in_and_out(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, kind: str
) -> None:
    data, out = tmp_path / f"data.{kind}", tmp_path / f"out.{kind}"
    if kind == "tsv":
        frame.to_csv(data, sep="\t", index=False)
    else:
        getattr(frame, f"to_{kind}")(data)
    assert main(["predict", str(folder / "model.safetensors"), str(data), "-o", str(out)]) == 0
    written = read_table(out)["prediction"].to_pylist()
    whole = TabNSMRegressor.load(folder / "model.safetensors").predict(frame)
    np.testing.assert_array_equal(np.array(written, dtype=float), whole)


@pytest.mark.slow
def test_predictions_go_to_the_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(folder / "model.safetensors"), str(folder / "data.csv")]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == N_ROWS + 1
    assert captured.err == ""


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_only_a_header_in_gives_only_a_header_out(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, ending: str
) -> None:
    data, out = tmp_path / f"none.{ending}", tmp_path / "p.csv"
    if ending == "csv":
        frame[:0].to_csv(data, index=False)
    else:
        frame[:0].to_parquet(data)
    model = str(folder / "model.safetensors")
    assert main(["predict", model, str(data), "--out", str(out), "--id", "id"]) == 0
    assert out.read_text() == "id,prediction\n"
    assert main(["predict", model, str(data), "--out", str(out)]) == 0
    assert out.read_text() == "prediction\n"


def test_a_model_of_an_array_takes_columns_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = TabNSMRegressor(max_epochs=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    model.save(tmp_path / "m.safetensors")
    pd.DataFrame(X, columns=["u", "v"]).assign(key=range(60)).to_csv(
        tmp_path / "d.csv", index=False
    )
    paths = [str(tmp_path / "m.safetensors"), str(tmp_path / "d.csv")]
    assert main(["predict", *paths, "--id", "key"]) == 0
    written = [line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]]
    np.testing.assert_array_equal(np.array(written, dtype=float), model.predict(X))


def test_evaluate(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "test.csv"
    frame.assign(price=frame["price"].where(frame.index > 2)).to_csv(data, index=False)
    arguments = ["evaluate", str(folder / "model.safetensors"), str(data), "--target", "price"]
    assert main([*arguments, "--json", "--batch-rows", "33"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["level"] for entry in shown.pop("intervals")] == [0.5, 0.8]
    prediction = TabNSMRegressor.load(folder / "model.safetensors").predict(frame)
    expected = regression_metrics(frame["price"][3:], prediction[3:])
    assert shown == {"n_rows": N_ROWS - 3, "n_without_target": 3, **expected}
    assert main(arguments) == 0
    assert "within one of 20 bins" in capsys.readouterr().out


def test_info(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder / "model.safetensors"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [column["name"] for column in facts["columns"]] == ["size", "shop", "sold"]
    assert facts["options"]["training"]["max_epochs"] == 3
    assert len(facts["history"]["epochs"]) == 3
    assert facts["has_linear_fit"] is False
    assert facts["bytes"] == (folder / "model.safetensors").stat().st_size
    assert main(["info", str(folder / "model.safetensors")]) == 0
    shown = capsys.readouterr().out
    assert "parameters" in shown
    assert "d_token=32" in shown
    assert "best epoch" in shown


def test_the_best_preset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = str(folder / "best.safetensors"), str(folder / "data.csv")
    base = ["fit", data, "-t", "price", "-o", model, "--epochs", "2", "--drop", "id"]
    assert main([*base, "--preset", "best", "--time-limit", "60"]) == 0
    shown = capsys.readouterr().out
    assert "Blend: networks " in shown
    assert "All members together have a validation RMSE of" in shown
    assert main(["info", model, "--json"]) == 0
    members = json.loads(capsys.readouterr().out)["blend"]
    weights = TabNSMRegressor.load(model).blend_.weights  # type: ignore[union-attr]
    assert {member["name"]: member["weight"] for member in members} == weights
    assert main(["info", model]) == 0
    assert "member: networks, weight" in capsys.readouterr().out
    predictions = str(folder / "best.csv")
    assert main(["predict", model, data, "-o", predictions]) == 0
    assert main(["evaluate", model, data, "-t", "price"]) == 0


def test_another_metric_of_validation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data = str(folder / "mae.safetensors"), str(folder / "data.csv")
    base = ["fit", data, "-t", "price", "-o", model, "--epochs", "2", "--drop", "id"]
    assert main([*base, "--eval-metric", "mae"]) == 0
    assert "with a validation MAE of" in capsys.readouterr().out
    assert main(["info", model]) == 0
    shown = capsys.readouterr().out
    assert "eval_metric='mae'" in shown
    assert "with validation MAE" in shown
    assert main(["info", model, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["best_score"] == TabNSMRegressor.load(model).best_score_ < facts["validation_rmse"]


def test_what_the_time_limit_cut_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = str(folder / "cut.safetensors"), str(folder / "data.csv")
    config = folder / "seven.json"
    config.write_text('{"n_ensemble": 7, "max_epochs": 100000, "patience": 100000}')
    base = ["fit", data, "-t", "price", "-o", model, "--drop", "id", "--config", str(config)]
    assert main([*base, "--time-limit", "0.5"]) == 0
    reason = "time_limit=0.5 s reached: 1 of 7 networks trained"
    assert f"(stopped: {reason})" in capsys.readouterr().out
    assert main(["info", model]) == 0
    assert f"stopped: {reason}" in capsys.readouterr().out


def test_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABNSM_CACHE", str(tmp_path))
    monkeypatch.setenv("TABNSM_CACHE_LIMIT_MB", "100")
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert f"{tmp_path}/text.sqlite3: 0 embeddings" in shown
    assert shown.endswith("of at most 100 MB\n")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == "Removed 0 embeddings.\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--weight", "weight", "--group", "shop"),
        ("--time", "sold"),
        ("--time", "weight"),
        ("--validation", "data.csv"),
        ("--preset", "fast", "--kind", "weight=drop"),
    ],
)
def test_ways_to_validate(folder: Path, options: tuple[str, ...]) -> None:
    given = [str(folder / o) if o.endswith(".csv") else o for o in options]
    assert fit(folder, "--drop", "id", *given, out="way.safetensors", epochs=1) == 0
    model = TabNSMRegressor.load(folder / "way.safetensors")
    features = {"size", "shop", "sold", "weight"}
    if "--weight" in options:
        features -= {"weight", "shop"}
    assert set(model.feature_names_in_) == features


def test_resume_ends_like_one_run(folder: Path, tmp_path: Path) -> None:
    base = ["--drop", "id", "--drop", "weight", "--checkpoint-dir", str(tmp_path / "run")]
    assert fit(folder, *base, out="short.safetensors", epochs=3) == 0
    assert fit(folder, *base, "--resume", out="again.safetensors", epochs=3) == 0
    frame = read_table(folder / "data.csv")
    again = TabNSMRegressor.load(folder / "again.safetensors").predict(frame)
    once = TabNSMRegressor.load(folder / "model.safetensors").predict(frame)
    np.testing.assert_array_equal(again, once)


def test_a_log_has_a_line_per_epoch_and_is_continued(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "epochs.csv"
    base = ["--checkpoint-dir", str(tmp_path / "run"), "--log", str(log)]
    assert fit(folder, *base, out="logged.safetensors", epochs=2) == 0
    lines = log.read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", "1"], ["1", "2"]]
    assert fit(folder, *base, "--resume", out="logged.safetensors", epochs=2) == 0
    assert log.read_text().splitlines() == lines  # there was nothing left to train


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "prise"], "Did you mean 'price'"),
        (["--drop", "nothing"], "--drop must name a column"),
        (["--weight", "price"], "--weight must not name the target"),
        (["--weight", "shop"], "--weight must name a column of numbers, but 'shop' has"),
        (["--time", "shop"], "--time must name a column of numbers or dates"),
        (["--kind", "shop"], "--kind must look like COL=KIND"),
        (["--kind", "shop=colour"], "colour"),
        (["--kind", "price=numeric"], "--kind must name a feature"),
        (["--preset", "worst"], "preset must be one of"),
        (["--text-columns", "apart"], "text_columns must be one of 'joined', 'separate', got 'a"),
        (["--text-precision", "int4"], "text_precision must be one of 'float32', 'int8', got"),
        (["--epochs", "0"], "max_epochs must be an integer >= 1, got 0"),
        (["--epochs", "many"], "'--epochs'"),
        (["--eval-metric", "r2"], "eval_metric must be one of ('rmse', 'mae'), got 'r2'"),
        (["--seed", "-1"], "'--seed'"),
        (["--validation-fraction", "2"], "validation_fraction must be"),
        (["--out", "/no/such/folder/m.safetensors"], "there is no folder"),
        (["--out", "."], "is a folder"),
        (["--resume"], "resume=True needs checkpoint_dir"),
        (["--log", "/no/such/folder/epochs.csv"], "there is no folder"),
        (["--verbose", "--quiet"], "cannot both be given"),
        (["--target", "id", "--kind", "size=numeric"], "target must"),
        (["--drop", "id", "--drop", "size", "--drop", "shop", "--drop", "sold", "--drop", "weight"],
         "At least 1 column"),
        (["--validation", "missing.csv"], "no file missing.csv"),
        (["--no-such-option"], "No such option"),
    ],
)  # fmt: skip
def test_fit_refuses_in_one_line(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "no.safetensors"
    base = ["fit", str(folder / "data.csv"), "--target", "price", "--out", str(out)]
    assert main([*base, *options]) == 2
    assert message in error_line(capsys)
    assert not out.exists()


def test_other_commands_refuse_in_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = str(folder / "model.safetensors"), str(folder / "data.csv")
    part = tmp_path / "part.csv"
    part.write_text("size,shop\n1,west\n")
    blank = tmp_path / "blank.csv"
    blank.write_text("size,shop,sold,price\n1,west,01.01.2024,\n")
    words = tmp_path / "words.csv"
    words.write_text("size,shop,sold\nbig,west,01.01.2024\nvast,west,01.01.2024\n")
    dates = tmp_path / "dates.parquet"
    pd.read_csv(data).assign(price=pd.Timestamp("2024-01-01")).to_parquet(dates)
    for arguments, message in [
        (["predict", "none.safetensors", data], "there is no file none.safetensors"),
        (["predict", data, data], "is not a whole safetensors file"),
        (["predict", model, "none.csv"], "there is no file none.csv"),
        (["predict", model, str(part)], "got none named 'sold'"),
        (["predict", model, str(words)], "'size' must hold numbers"),
        (["predict", model, data, "--id", "Id"], "Did you mean 'id'"),
        (["predict", model, data, "--out", "x.xlsx"], "must end in .csv"),
        (["predict", model, data, "--batch-rows", "0"], "--batch-rows must be >= 1, got 0"),
        (["predict", model], "Missing argument 'DATA'"),
        (["evaluate", model, data], "--target must name the column(s)"),
        (["evaluate", model, data, "-t", "shop"], "--target must name a column of numbers"),
        (["evaluate", model, str(blank), "-t", "price"], "'price' has none"),
        (["evaluate", model, str(dates), "-t", "price"], "of numbers, but 'price' has dates"),
        (["info", data], "is not a whole safetensors file"),
        (["train"], "No such command 'train'"),
    ]:
        assert main(arguments) == 2, arguments
        assert message in error_line(capsys)


def test_an_error_midway_leaves_no_output(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "out.csv"
    broken = frame.astype({"size": object})
    broken.loc[50:, "size"] = "big"  # the second batch holds nothing that can be read
    broken.to_csv(data, index=False)
    arguments = ["predict", str(folder / "model.safetensors"), str(data), "--out", str(out)]
    assert main([*arguments, "--batch-rows", "50"]) == 2
    assert "'big'" in error_line(capsys)
    assert os.listdir(tmp_path) == ["data.csv"]


def test_a_warning_is_one_line_and_given_once(
    folder: Path, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.assign(size=1e6).to_csv(tmp_path / "far.csv", index=False)
    arguments = ["predict", str(folder / "model.safetensors"), str(tmp_path / "far.csv")]
    assert main([*arguments, "--batch-rows", "50"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Warning: 50 value(s) lie far outside")


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys; from tabnsm.cli import main; sys.exit(main())"]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_interrupting_a_fit_saves_the_best_model(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    data = str(folder / "data.csv")
    options = ["--drop", "id", "--epochs", "100000", "--checkpoint-dir", str(tmp_path / "run")]
    process = start("fit", data, "-t", "price", "-o", str(out), *options, "-q")
    while not (tmp_path / "run" / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert re.fullmatch(r"Warning: Training was interrupted in epoch \d+; .*\n", errors)
    assert len(TabNSMRegressor.load(out).history_) >= 1


def test_ctrl_c_while_the_model_is_saved_does_not_lose_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = TabNSMRegressor.save

    def interrupted(self: TabNSMRegressor, path: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        save(self, path)

    monkeypatch.setattr(TabNSMRegressor, "save", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    assert fit(folder, "--drop", "id", out="twice.safetensors", epochs=1) == 0
    assert (folder / "twice.safetensors").exists()
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_while_a_module_is_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which some compiled modules turn into an ImportError."""

    def interrupted(*_: object, **__: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr(TabNSMRegressor, "load", interrupted)
    words = ["predict", str(folder / "model.safetensors"), str(folder / "data.csv"), "--quiet"]
    assert main(words) == 130
    assert capsys.readouterr().err == "Interrupted: no file was written.\n"

    def broken(*_: object, **__: object) -> None:
        raise ImportError("initialization failed") from RuntimeError()

    monkeypatch.setattr(TabNSMRegressor, "load", broken)
    with pytest.raises(ImportError, match="initialization failed"):
        main(words)


@pytest.mark.slow
def test_interrupting_a_prediction_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    paths = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    process = start("predict", *paths, "--out", str(out), "--batch-rows", "1")
    while not list(tmp_path.glob(".out.csv.*.tmp")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.splitlines() == ["Interrupted: no file was written."]
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_killed_prediction_is_cleaned_up_by_the_next(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    paths = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    process = start("predict", *paths, "--out", str(out), "--batch-rows", "1")
    while not list(tmp_path.glob(".out.csv.*.tmp")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert len(os.listdir(tmp_path)) == 1
    assert main(["predict", *paths, "--out", str(out)]) == 0
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.slow
def test_a_fit_that_is_killed_while_it_saves_is_cleaned_up_by_the_next(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.safetensors"
    options = ["-t", "price", "-o", str(out), "--preset", "fast", "--epochs", "1", "-q"]
    arguments = ["fit", str(folder / "data.csv"), *options]
    killed = (
        "import os, signal\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"from tabnsm.cli import main\nmain({arguments!r})\n"
    )
    assert subprocess.run([sys.executable, "-c", killed]).returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".m.safetensors.*.tmp")
    assert left.stat().st_size > 0
    assert main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["m.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "evaluate", "evaluate --json"])
def test_a_closed_pipe_is_no_crash(folder: Path, command: str) -> None:
    name, *options = command.split()
    options += ["--target", "price"] if name == "evaluate" else ["--batch-rows", "1"]
    paths = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    process = start(name, *paths, *options)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert errors == ""


def test_a_missing_standard_output_is_refused(folder: Path) -> None:
    paths = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    code = f"import sys; sys.stdout = None; import tabnsm.cli as c; c.main({['predict', *paths]})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.startswith("Error: The standard output must be open")
