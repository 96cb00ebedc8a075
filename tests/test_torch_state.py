"""What a caller has set in torch changes no bit of a model, and is there afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.torch_state import usual_torch

pytestmark = pytest.mark.usefixtures("one_network")


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def default_device(device: str) -> Iterator[None]:
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


SETTINGS = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "default device": lambda: default_device("meta"),
    "device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


def state() -> tuple[Any, ...]:
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
    )


USUAL = (torch.float32, torch.device("cpu"), True, False, False)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=60), "b": rng.normal(size=60), "c": rng.choice(["x", "y"], 60)}
    )
    words = ["nurse", "truck driver", "owner", "teacher", "clerk", "cook", "pilot", "judge"]
    frame["job"] = [" ".join(rng.choice(words, 3)) for _ in range(60)]
    return frame, (frame["a"] * frame["b"]).to_numpy()


def quick() -> TabNSMRegressor:
    return TabNSMRegressor(max_epochs=2, d_token=8, random_state=0, column_kinds={"job": "text"})


@pytest.fixture(scope="module")
def expected(table: tuple[pd.DataFrame, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    X, y = table
    model = quick().fit(X, y)
    return model.predict(X), model.explain(X).contributions


@pytest.mark.parametrize("name", SETTINGS)
def test_fit_predict_explain_and_load_have_the_usual_bits(
    name: str,
    table: tuple[pd.DataFrame, np.ndarray],
    expected: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
) -> None:
    X, y = table
    setting: AbstractContextManager[Any] = SETTINGS[name]()
    with setting:
        before = state()
        assert before != USUAL
        model = quick().fit(X, y)
        inside = model.predict(X), model.explain(X).contributions
        model.save(tmp_path / "m.safetensors")
        loaded = TabNSMRegressor.load(tmp_path / "m.safetensors").predict(X)
        assert state() == before
    assert state() == USUAL
    np.testing.assert_array_equal(loaded, expected[0])
    for found in (inside, (model.predict(X), model.explain(X).contributions)):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_the_first_of_two_threads_to_leave_changes_nothing_for_the_other() -> None:
    inside, leave = threading.Event(), threading.Event()
    found: list[torch.dtype] = []

    @usual_torch()
    def second() -> None:
        inside.set()
        leave.wait()
        found.append(torch.get_default_dtype())

    with default_dtype(torch.float64):
        thread = threading.Thread(target=second)
        with usual_torch():
            thread.start()
            inside.wait()
        assert torch.get_default_dtype() == torch.float32  # for the other
        leave.set()
        thread.join()
        assert found == [torch.float32]
        assert torch.get_default_dtype() == torch.float64


def test_an_error_gives_the_settings_back() -> None:
    @usual_torch()
    def fail() -> None:
        assert state() == USUAL
        raise ValueError("error")

    with default_dtype(torch.float64), torch.no_grad():
        with pytest.raises(ValueError, match="error"):
            fail()
        assert state()[:3] == (torch.float64, torch.device("cpu"), False)


def test_usual_settings_enter_no_mode() -> None:
    from torch.overrides import _get_current_function_mode_stack

    with usual_torch():
        assert not _get_current_function_mode_stack()
