"""What a fit sends its workers comes back as it was, and torn messages are none."""

from __future__ import annotations

import io
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tabnsm.errors import warn
from tabnsm.options import resolve_options
from tabnsm.training.exchange import (
    apply_torch_settings,
    read_fit,
    receive,
    send,
    torch_settings,
    write_fit,
)
from tabnsm.training.history import History
from tabnsm.training.loop import Trainer, TrainingDivergedError
from tabnsm.training.prepare import FitRows, PreparedFit
from tabnsm.training.worker import Worker


@pytest.fixture(scope="module")
def prepared() -> PreparedFit:
    X = np.random.default_rng(0).normal(size=(60, 3))
    weight = np.linspace(1, 2, 60)
    rows = FitRows.collect(X, X[:, 0] * X[:, 1], weight, random_state=0)
    return rows.prepare(resolve_options({"d_token": 8, "n_ensemble": 2, "max_epochs": 2}))


def test_a_fit_comes_back(prepared: PreparedFit) -> None:
    file, meta = write_fit(prepared)
    with file:
        same = read_fit(file.fileno(), meta)
    assert torch.equal(same.data.train.dense, prepared.data.train.dense)
    np.testing.assert_array_equal(same.data.validation_target, prepared.data.validation_target)
    np.testing.assert_array_equal(same.data.train_weight, prepared.data.train_weight)
    assert same.options.training == prepared.options.training
    assert same.encoder.category_sizes == list(prepared.encoder.category_sizes)
    assert torch.equal(same.generator_state, prepared.generator_state)
    residual = prepared.data.train_target
    np.testing.assert_array_equal(
        same.target.standardize(residual), prepared.target.standardize(residual)
    )


def test_messages_come_back_whole_or_not_at_all() -> None:
    pipe = io.BytesIO()
    send(pipe, {"kind": "epoch", "score": float("inf")}, None)
    send(pipe, {"kind": "done"}, {"weight": torch.arange(3.0)})
    content = pipe.getvalue()
    whole = io.BytesIO(content)
    assert receive(whole) == ({"kind": "epoch", "score": float("inf")}, {})
    done = receive(whole)
    assert done is not None
    assert done[1]["weight"].tolist() == [0.0, 1.0, 2.0]
    assert receive(whole) is None
    for n_bytes in (3, len(content) - 1):
        torn = io.BytesIO(content[:n_bytes])
        while (message := receive(torn)) is not None:
            assert message[0]["kind"] == "epoch"


def test_settings_of_torch_go_there_and_back() -> None:
    before = torch_settings()
    torch.set_float32_matmul_precision("medium")
    try:
        changed = torch_settings()
        assert changed == before | {"matmul_precision": "medium"}
        apply_torch_settings(before)
        assert torch_settings() == before
    finally:
        torch.set_float32_matmul_precision(before["matmul_precision"])


def messages_of(output: io.BytesIO) -> list[dict[str, Any]]:
    output.seek(0)
    return [message for message, _ in iter(lambda: receive(output), None)]  # type: ignore[misc]


def test_a_worker_passes_warnings_on_once(
    prepared: PreparedFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = Trainer.train_epoch

    def loud(self: Trainer, state: Any) -> None:
        warn("careful")
        warnings.warn("numbers", RuntimeWarning, stacklevel=1)
        epoch(self, state)

    monkeypatch.setattr(Trainer, "train_epoch", loud)
    output = io.BytesIO()
    worker = Worker(prepared, output, None)
    for number in (0, 1):
        worker.train(number, None, resume=False)
    messages = messages_of(output)
    said = [(m["category"], m["text"]) for m in messages if m["kind"] == "warning"]
    assert said == [("TabNSMWarning", "careful"), ("RuntimeWarning", "numbers")]
    assert [m["number"] for m in messages if m["kind"] == "done"] == [0, 1]


def test_a_worker_reports_a_network_that_diverges(
    prepared: PreparedFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(self: Trainer, state: Any) -> None:
        raise TrainingDivergedError(1)

    monkeypatch.setattr(Trainer, "train_epoch", diverge)
    output = io.BytesIO()
    Worker(replace(prepared), output, None).train(1, None, resume=False)
    (done,) = messages_of(output)
    assert (done["kind"], done["reason"]) == ("done", "diverged")
    assert History.from_dict(done["history"]).epochs == []
    assert sys.stdout is not sys.stderr  # nothing here takes over the pipes of this process
