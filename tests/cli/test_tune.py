"""``tabnsm tune``, and ``tabnsm fit --config`` with what it found."""

from __future__ import annotations

import json
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
from tabnsm.container import read_container

pytestmark = pytest.mark.usefixtures("one_network")

N_ROWS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 3)).round(3), columns=["a", "b", "c"])
    frame["shop"] = rng.choice(["north", "south"], N_ROWS)
    frame["price"] = (frame["a"] * frame["b"] + (frame["shop"] == "north")).round(3)
    frame["id"] = [f"id{k}" for k in range(N_ROWS)]
    frame.to_csv(folder / "data.csv", index=False)
    return folder


def arguments(folder: Path, out: Path, *options: str) -> list[str]:
    where = [str(folder / "data.csv"), "--target", "price", "--drop", "id", "--out", str(out)]
    return ["tune", *where, "--preset", "fast", *options]


def fit(folder: Path, out: Path, *options: str) -> int:
    where = [str(folder / "data.csv"), "--target", "price", "--drop", "id", "--out", str(out)]
    return main(["fit", *where, "--quiet", *options])


@pytest.mark.slow
def test_the_best_options_make_the_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = tmp_path / "best.json"
    options = ["--trials", "3", "--epochs", "2", "--seed", "4", "--kind", "c=numeric"]
    options += ["--text-columns", "separate", "--text-precision", "int8"]
    assert main(arguments(folder, best, *options)) == 0
    captured = capsys.readouterr()
    assert captured.err.count("trial ") == 3
    score = re.search(r"Best validation RMSE (\S+) of 3 trials \(3 complete\)", captured.out)
    assert score is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.journal", "best.json"]
    config = json.loads(best.read_text())
    assert config["preset"] == "fast"
    assert "max_epochs" not in config  # it bounds trials, not the final model
    assert config["column_kinds"] == {"c": "numeric"}
    assert (config["text_columns"], config["text_precision"]) == ("separate", "int8")
    model = tmp_path / "m.safetensors"
    assert fit(folder, model, "--config", str(best), "--seed", "4", "--epochs", "2") == 0
    fitted = TabNSMRegressor.load(model)
    assert f"{fitted.history_.best.validation_rmse:.6g}" == score.group(1)
    assert {name: fitted.get_params()[name] for name in config} == config
    # The study is done: the same command comes back with the same answer at once.
    best.unlink()
    assert main(arguments(folder, best, *options, "--quiet")) == 0
    assert json.loads(best.read_text()) == config


def test_the_command_line_wins_over_the_config(folder: Path, tmp_path: Path) -> None:
    config = {
        "preset": "paper",
        "d_token": 8,
        "max_epochs": 7,
        "random_state": 3,
        "validation_fraction": 0.3,
        "column_kinds": {"a": "numeric", "b": "drop"},
    }
    (tmp_path / "c.json").write_text(json.dumps(config))
    options = ["--config", str(tmp_path / "c.json"), "--epochs", "1", "--kind", "b=numeric"]
    assert fit(folder, tmp_path / "m.safetensors", *options) == 0
    _, meta = read_container(tmp_path / "m.safetensors")
    assert meta["params"]["preset"] == "paper"
    assert meta["params"]["d_token"] == 8
    assert meta["params"]["max_epochs"] == 1
    assert meta["params"]["random_state"] == 3
    assert meta["params"]["validation_fraction"] == 0.3
    assert meta["params"]["column_kinds"] == {"a": "numeric", "b": "numeric"}
    options += ["--preset", "fast", "--seed", "0", "--validation-fraction", "0.1"]
    assert fit(folder, tmp_path / "m.safetensors", *options) == 0
    _, meta = read_container(tmp_path / "m.safetensors")
    assert meta["params"]["preset"] == "fast"
    assert meta["params"]["random_state"] == 0
    assert meta["params"]["validation_fraction"] == 0.1


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys; from tabnsm.cli import main; sys.exit(main())"]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_trials(process: subprocess.Popen[str], journal: Path, n_complete: int) -> None:
    """Wait until the journal says that so many trials are complete (state 1)."""
    while not journal.exists() or journal.read_text().count('"state":1,') < n_complete:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.slow
def test_killed_resumed_and_interrupted(folder: Path, tmp_path: Path) -> None:
    best, journal = tmp_path / "best.json", tmp_path / "study.journal"
    options = ["--trials", "100000", "--epochs", "3", "--storage", str(journal), "-q"]
    process = start(*arguments(folder, best, *options))
    wait_for_trials(process, journal, 2)
    process.kill()
    process.communicate()
    assert not best.exists()
    assert (tmp_path / "study.journal.lock").exists()  # what the kill left
    n_complete = journal.read_text().count('"state":1,')
    process = start(*arguments(folder, best, *options))
    wait_for_trials(process, journal, n_complete + 2)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert (out, errors) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.json", "study.journal"]
    TabNSMRegressor(**json.loads(best.read_text()))


@pytest.mark.slow
def test_interrupted_before_the_first_trial_writes_nothing(folder: Path, tmp_path: Path) -> None:
    best, journal = tmp_path / "best.json", tmp_path / "best.journal"
    process = start(*arguments(folder, best, "--epochs", "1000000", "-q"))
    while not journal.exists() or '"op_code":7' not in journal.read_text():  # an epoch's report
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert errors.splitlines() == ["Interrupted: no file was written."]
    assert not best.exists()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--help"]) == 0
    examples = capsys.readouterr().out.split("Examples")[1]
    assert "tabnsm tune sales.csv" in examples
    assert "--config best.json" in examples


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trials", "0"], "--trials must be >= 1, got 0"),
        (["--trials", "many"], "'--trials'"),
        (["--time-limit", "0"], "time_limit must be None or > 0 seconds"),
        (["--trial-time-limit", "-1"], "time_limit must be None or > 0"),
        (["--preset", "worst"], "preset must be one of"),
        (["--epochs", "0"], "max_epochs must be an integer >= 1, got 0"),
        (["--target", "prise"], "Did you mean 'price'"),
        (["--verbose", "--quiet"], "cannot both be given"),
        (["--out", "/no/such/folder/best.json"], "there is no folder"),
        (["--storage", "/no/such/folder/s.journal"], "which does not exist"),
        (["--storage", "other.csv"], "must be a new file or the journal of a study"),
    ],
)
def test_refuses_in_one_line(
    folder: Path,
    tmp_path: Path,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "other.csv").write_text("a,b\n1,2\n")
    places = {"other.csv": folder / "other.csv"}
    given = [str(places.get(option, option)) for option in options]
    assert main(arguments(folder, tmp_path / "best.json", *given)) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1, captured.err
    assert message in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"d_tokn": 8}', "there is no 'd_tokn'. Did you mean 'd_token'?"),
        ('{"d_token": 7}', "d_token must be a multiple of n_heads (4), got 7"),
        ("[]", "holds a list"),
        (None, "must be a file that can be read"),
    ],
)
def test_a_bad_config_is_refused_in_one_line(
    folder: Path,
    tmp_path: Path,
    content: str | None,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / "c.json").write_text(content)
    model = tmp_path / "m.safetensors"
    assert fit(folder, model, "--config", str(tmp_path / "c.json")) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err
    assert not model.exists()
