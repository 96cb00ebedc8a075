from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines import info as info_module
from tabnsm_bench.baselines.catalog import BASELINES, TABNSM_METHODS, make
from tabnsm_bench.baselines.environment import ENVIRONMENTS
from tabnsm_bench.baselines.info import BaselineInfo
from tabnsm_bench.baselines.tabpfn import check_weights
from tabnsm_bench.paper import paper_families
from tabnsm_bench.protocol import Prepared


def test_the_paper_s_names_families_and_order() -> None:
    found = [(info.name, info.family) for info in BASELINES.values()]
    paper = [entry for entry in paper_families().items() if entry[1] != "TabNSM"]
    assert len(paper) == 38
    assert found[:38] == paper
    assert [name for name, _ in found[38:]] == ["RealMLP"]


def test_every_adapter_exists() -> None:
    for info in BASELINES.values():
        module, _, factory = info.adapter.partition(":")
        assert bool(info.adapter) == bool(info.provider) != bool(info.why_not and not info.weights)
        if info.adapter:
            path = Path(info_module.__file__).with_name(f"{module}.py")
            assert f"def {factory}(" in path.read_text() or f"class {factory}" in path.read_text()
        assert not info.environment or info.environment in ENVIRONMENTS


def test_states_come_with_reason_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for info in BASELINES.values():
        assert (info.state == "ready") == (info.reason == "") == (info.remedy == "")
    assert BASELINES["ridge"].state == "ready"
    assert BASELINES["tabebm"].state == "unavailable"
    assert "no regressor" in BASELINES["tabebm"].reason
    missing = BaselineInfo("X", "Other", "no-such-package", "x:x")
    assert missing.state == "unavailable"
    assert "pip install" in missing.remedy
    clashing = BaselineInfo("X", "Other", "no-such-package", "x:x", "deeptab")
    assert clashing.state == "needs environment"  # tests have a cache folder of their own
    assert clashing.remedy == "Run: tabnsm bench env deeptab"


def test_weights_must_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    weights = tmp_path / "weights.ckpt"
    monkeypatch.setenv("TABNSM_TABPFN_WEIGHTS", str(weights))
    assert BASELINES["tabpfn-v2"].state == "unavailable"
    weights.write_text("not the weights")
    assert BASELINES["tabpfn-v2"].state == "unavailable"
    assert "must name a checkpoint of torch" in BASELINES["tabpfn-v2"].reason
    assert "tabpfn-v2-regressor.ckpt" in BASELINES["tabpfn-v2"].remedy
    torch.save({"state_dict": {}, "config": {}}, weights)
    assert BASELINES["tabpfn-v2"].state in ("ready", "needs environment")
    check_weights(str(weights))


def test_a_checkpoint_of_something_else_is_no_weights(tmp_path: Path) -> None:
    other = tmp_path / "other.ckpt"
    torch.save({"weight": torch.zeros(2)}, other)
    for path in (other, tmp_path / "none.ckpt", None):
        with pytest.raises(InvalidOptionError, match=r"tabpfn-v2-regressor\.ckpt of https://hugg"):
            check_weights(None if path is None else str(path))


def test_unknown_methods_get_a_hint() -> None:
    with pytest.raises(InvalidOptionError, match="Did you mean lightgbm"):
        make("ligthgbm")
    with pytest.raises(InvalidOptionError, match="there is no regressor to run"):
        make("tabebm")


@pytest.mark.parametrize("key", TABNSM_METHODS)
def test_tabnsm_takes_frames(key: str, mixed: Prepared) -> None:
    import pandas as pd

    frames = []
    for part in (mixed.train, mixed.validation, mixed.test):
        frame = pd.DataFrame(part.x, columns=list("abcd"))
        frames.append(frame.assign(c=frame["c"].map({0: "x", 1: "y", 2: "z"})))
    names = ("train_frame", "validation_frame", "test_frame")
    data = Prepared(**{**vars(mixed), **dict(zip(names, frames, strict=True))})
    method = make(key, {"max_epochs": 3, "huber_weight": 1.0})
    assert method.takes_frames
    facts = method.fit(data, seed=0, time_limit=None, n_threads=1)
    assert facts["epochs"] == 3
    assert facts["options"]["objective"]["huber_weight"] == 1.0
    assert (
        facts["options"]["architecture"]["d_token"] == {"d": 32, "b": 32, "p": 64, "f": 16}[key[7]]
    )
    assert len(facts["history"]["seconds"]) == 3
    predicted = method.predict(mixed.test.x, frames[2])
    assert predicted.shape == mixed.test.y.shape
    again = make(key, {"max_epochs": 3, "huber_weight": 1.0})
    again.fit(data, seed=0, time_limit=None, n_threads=1)
    np.testing.assert_array_equal(predicted, again.predict(mixed.test.x, frames[2]))


def test_options_of_the_run_are_no_options_of_the_method() -> None:
    with pytest.raises(InvalidOptionError, match="got 'random_state'"):
        make("tabnsm-paper", {"random_state": 1})
