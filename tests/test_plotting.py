from __future__ import annotations

import builtins
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.plotting import plot_fit, plot_histories
from tabnsm.training.history import EpochRecord, History


def make_history(n_epochs: int) -> History:
    records = [
        EpochRecord(k, 1 / k, 4 + 1 / k, 1e-3, float(k), False) for k in range(1, n_epochs + 1)
    ]
    return History(records, best_epoch=n_epochs)


@pytest.mark.slow
@pytest.mark.parametrize("n_epochs", [1, 30])
@pytest.mark.parametrize("n_methods", [1, 2])
@pytest.mark.parametrize("n_rows", [1, 500])
def test_draws_a_picture(tmp_path: Path, n_epochs: int, n_methods: int, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n_rows)
    predictions = {f"method {k}": truth + rng.normal(size=n_rows) for k in range(n_methods)}
    path = tmp_path / "fit.png"
    plot_fit(truth, predictions, make_history(n_epochs), "price", path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert width > height > 500


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    truth = np.arange(3.0)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[plot\]"'):
        plot_fit(truth, {"m": truth}, make_history(1), "price", tmp_path / "fit.png")
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[plot\]"'):
        plot_histories([make_history(1)])


def falling(n_epochs: int, best: int, metric: str = "rmse") -> History:
    """A learning rate that halves after every third epoch."""
    records = [
        EpochRecord(k, 1 / k, 4 + 1 / k, 1e-3 * 0.5 ** (k // 3), k / 4, False, 2 + 1 / k, 1.0)
        for k in range(1, n_epochs + 1)
    ]
    return History(records, best, "max_epochs", metric)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_networks", [1, 9])
def test_all_networks_best_epochs_and_drops_of_the_rate_are_drawn(n_networks: int) -> None:
    histories = [falling(5 + k, 2 + k, "mae") for k in range(n_networks)]
    validation, loss, rate = plot_histories(histories).axes
    assert validation.get_ylabel() == "validation MAE"
    assert ("stopped: max_epochs" in validation.get_title()) == (n_networks == 1)
    curves = [line for line in validation.lines if len(line.get_xdata()) > 2]
    assert [list(line.get_ydata()) for line in curves] == [
        [record.validation_mae for record in history] for history in histories
    ]
    marks = [
        line for line in validation.lines if line.get_marker() == "D" and len(line.get_xdata())
    ]
    assert [line.get_xdata()[0] for line in marks] == [h.best_epoch for h in histories]
    dotted = [line.get_xdata() for line in validation.lines if line.get_linestyle() == ":"]
    drops = [place[0] for place in dotted if len(place)]
    assert drops == [k for h in histories for k in (3, 6, 9, 12) if k <= len(h)]
    assert len(loss.lines) == len(rate.lines) == n_networks
    assert list(rate.lines[0].get_ydata()) == [1e-3, 1e-3, 5e-4, 5e-4, 5e-4, 5e-4]


def test_the_title_says_what_ended_the_fit_early() -> None:
    histories = [falling(5, 2), falling(5, 3)]
    reason = "time_limit=9 s reached: 2 of 7 networks trained"
    histories[1].stop_reason = f"max_epochs=5 reached; {reason}"
    title = plot_histories(histories).axes[0].get_title()
    assert title == f"2 networks, 2 s of training\nstopped: {reason}"


@pytest.mark.slow
def test_the_picture_of_training_is_written(tmp_path: Path) -> None:
    plot_histories([falling(1, 1)], tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    plot_histories([falling(4, 2)], tmp_path / "h.svg")
    assert b"<svg" in (tmp_path / "h.svg").read_bytes()
    with pytest.raises(InvalidOptionError, match=r"path must end in a format .* got .*h\.doc"):
        plot_histories([falling(4, 2)], tmp_path / "h.doc")
    with pytest.raises(InvalidOptionError, match="must be a file that can be written"):
        plot_histories([falling(4, 2)], tmp_path / "none" / "h.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["h.svg", "one.png"]
