from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm import MissingExtraError, TabNSMRegressor
from tabnsm.callbacks import TensorBoardLog
from tabnsm.callbacks.tensorboard_log import SCALARS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    X = np.random.default_rng(0).normal(size=(80, 3))
    model = TabNSMRegressor(preset="fast", max_epochs=2, n_ensemble=2, n_jobs=1, random_state=0)
    model.fit(X, X[:, 0] * X[:, 1], callbacks=[TensorBoardLog(tmp_path / "log")])

    def read(name: str) -> Any:
        return EventAccumulator(str(tmp_path / "log" / name)).Reload()

    for number, history in enumerate(model.histories_, 1):
        events = read(f"network-{number}")
        assert set(events.Tags()["scalars"]) == set(SCALARS)
        for name in SCALARS:
            found = [(event.step, event.value) for event in events.Scalars(name)]
            expected = [(record.epoch, np.float32(getattr(record, name))) for record in history]
            assert found == expected
    events = read("model")
    assert events.Scalars("model/validation_rmse")[0].value == np.float32(model.validation_rmse_)
    (text,) = events.Tensors("card/text_summary")
    assert text.tensor_proto.string_val[0].decode() == model.card()


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[tensorboard\]"'):
        TensorBoardLog("log")
