from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.tuning import read_config, write_config


def test_round_trip(tmp_path: Path) -> None:
    options = {"preset": "paper", "d_token": 16, "learning_rate": 1e-3, "batch_size": "auto"}
    path = tmp_path / "best.json"
    write_config(path, options)
    assert read_config(path) == options
    assert json.loads(path.read_text()) == options
    assert TabNSMRegressor(**read_config(path)).d_token == 16
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"d_tokens": 16}', "there is no 'd_tokens'. Did you mean 'd_token'"),
        ('{"colour": "red"}', "there is no 'colour'. There are: preset, n_ensemble"),
        ("[1, 2]", "holds a list"),
        ("d_token: 16", "is not JSON"),
        ("\xff", "is not JSON"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "best.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(InvalidOptionError, match=message):
        read_config(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="must be a file that can be read"):
        read_config(tmp_path / "best.json")


def test_only_options_are_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no 'd_head'"):
        write_config(tmp_path / "best.json", {"d_head": 8})
    assert not list(tmp_path.iterdir())
