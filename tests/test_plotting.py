from __future__ import annotations

import builtins
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm.errors import MissingExtraError
from tabnsm.plotting import plot_fit
from tabnsm.training.history import EpochRecord, History


def make_history(n_epochs: int) -> History:
    records = [
        EpochRecord(k, 1 / k, 4 + 1 / k, 1e-3, float(k), False) for k in range(1, n_epochs + 1)
    ]
    return History(records, best_epoch=n_epochs)


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
