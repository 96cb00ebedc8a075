"""Several networks in one model: what they share, what Ctrl-C and a crash leave of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.columns import TableEncoder
from tabnsm.errors import InvalidOptionError, ModelFileError, TabNSMWarning
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.target import LinearFit
from tabnsm.training.config import TrainingConfig
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.loop import Trainer, TrainingDivergedError

pytestmark = pytest.mark.usefixtures("one_network")

SMALL: dict[str, Any] = {"d_token": 8, "max_epochs": 4, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(240, 4))
    return X, X[:, 0] * X[:, 1]


@pytest.fixture(scope="module")
def three(rows: tuple[np.ndarray, np.ndarray]) -> TabNSMRegressor:
    return TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)


def test_networks_differ_and_predict_their_mean(three: TabNSMRegressor) -> None:
    assert isinstance(three.model_, Ensemble)
    x = torch.tensor(np.random.default_rng(1).normal(size=(20, 4)), dtype=torch.float32)
    with torch.no_grad():
        each = torch.stack([network(x) for network in networks_of(three.model_)])
        together = three.model_(x)
    assert torch.allclose(together, each.mean(dim=0), atol=1e-6)
    assert (each.std(dim=0) > 1e-4).all()
    assert len(three.histories_) == 3
    assert three.history_ is three.histories_[0]


@pytest.mark.slow
def test_the_first_network_is_the_one_that_is_trained_alone(
    rows: tuple[np.ndarray, np.ndarray], three: TabNSMRegressor
) -> None:
    alone = TabNSMRegressor(**SMALL, n_ensemble=1).fit(*rows)
    first = networks_of(three.model_)[0].state_dict()
    assert all(torch.equal(first[name], value) for name, value in alone.model_.state_dict().items())
    assert alone.validation_rmse_ == alone.history_.best.validation_rmse


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits(
    rows: tuple[np.ndarray, np.ndarray], three: TabNSMRegressor
) -> None:
    again = TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)
    np.testing.assert_array_equal(again.predict(rows[0]), three.predict(rows[0]))


def test_an_ensemble_can_be_saved_and_loaded(
    rows: tuple[np.ndarray, np.ndarray], three: TabNSMRegressor, tmp_path: Path
) -> None:
    three.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(rows[0]), three.predict(rows[0]))
    assert loaded.histories_ == three.histories_
    assert loaded.validation_rmse_ == three.validation_rmse_


@pytest.mark.slow
def test_the_validation_rmse_is_that_of_the_mean(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = TabNSMRegressor(**SMALL, n_ensemble=2).fit(
        X[:200], y[:200], X_val=X[200:], y_val=y[200:]
    )
    rmse = np.sqrt(np.mean((model.predict(X[200:]) - y[200:]) ** 2))
    assert model.validation_rmse_ == pytest.approx(rmse, rel=1e-6)


def test_explanations_are_the_mean_of_the_networks(
    rows: tuple[np.ndarray, np.ndarray], three: TabNSMRegressor
) -> None:
    together = three.explain(rows[0][:7], method="gradient")
    np.testing.assert_allclose(together.predictions, three.predict(rows[0][:7]), rtol=1e-5)
    networks = networks_of(three.model_)
    parts = []
    for network in networks:
        three.model_ = network
        parts.append(three.explain(rows[0][:7], method="gradient").feature_contributions)
    three.model_ = Ensemble(networks)
    np.testing.assert_allclose(together.feature_contributions, np.mean(parts, axis=0), atol=1e-6)


def test_few_values_get_several_networks() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tabnsm.training.config.MAX_NETWORKS", 3)
        sizes = [(100, 3), (10_000, 400), (10_000, 401)]
        assert [TrainingConfig().resolved_ensemble(*s) for s in sizes] == [3, 3, 1]
    assert TrainingConfig(n_ensemble=7).resolved_ensemble(10**7, 100) == 7
    for wrong in (0, 1.5, True, "many"):
        with pytest.raises(InvalidOptionError, match='n_ensemble must be "auto" or an integer'):
            TrainingConfig(n_ensemble=wrong)  # type: ignore[arg-type]


class Clock:
    """A clock on which every epoch takes a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.n_epochs = 0
        train_epoch = Trainer.train_epoch

        def timed(trainer: Trainer, state: Any) -> None:
            self.now += 1
            self.n_epochs += 1
            train_epoch(trainer, state)

        monkeypatch.setattr(Trainer, "train_epoch", timed)
        monkeypatch.setattr("tabnsm.training.budget.clock", self.monotonic)

    def monotonic(self) -> float:
        return self.now


@pytest.mark.slow
@pytest.mark.parametrize(
    ("time_limit", "epochs", "reason"),
    [
        (2.0, [2], "time_limit=2 s reached: 1 of 3 networks trained"),
        (4.0, [4], "max_epochs=4 reached; time_limit=4 s reached: 1 of 3 networks trained"),
        (9.5, [4, 4], "max_epochs=4 reached; time_limit=9.5 s reached: 2 of 3 networks trained"),
        (12.5, [4, 4, 4], "max_epochs=4 reached"),
    ],
)
def test_networks_that_the_time_limit_has_no_room_for_are_not_begun(
    rows: tuple[np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    time_limit: float,
    epochs: list[int],
    reason: str,
) -> None:
    clock = Clock(monkeypatch)
    model = TabNSMRegressor(**SMALL, n_ensemble=3, time_limit=time_limit).fit(*rows)
    assert [len(history) for history in model.histories_] == epochs
    assert clock.n_epochs == sum(epochs)
    assert model.histories_[-1].stop_reason == reason
    model.save(tmp_path / "m.safetensors")
    assert TabNSMRegressor.load(tmp_path / "m.safetensors").histories_ == model.histories_


def test_a_part_of_the_limit_is_left_for_what_follows_training(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    monkeypatch.setattr("tabnsm.intervals.fitting.SECONDS_PER_VALUE", 1.0)
    options = SMALL | {"max_epochs": 100, "patience": 100, "n_ensemble": 1}
    model = TabNSMRegressor(**options, time_limit=20.0).fit(*rows)
    assert len(model.history_) == 17  # of 20 seconds 15 % are set apart


def test_a_network_that_takes_longer_than_the_others_did_is_left_out(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    epoch = Trainer.train_epoch

    def slower(trainer: Trainer, state: Any) -> None:
        clock.now += 2 * (clock.n_epochs >= 4)
        epoch(trainer, state)

    monkeypatch.setattr(Trainer, "train_epoch", slower)
    model = TabNSMRegressor(**SMALL, n_ensemble=3, time_limit=8.5).fit(*rows)
    assert [len(history) for history in model.histories_] == [4]
    assert clock.n_epochs > 4
    assert model.history_.stop_reason.endswith("time_limit=8.5 s reached: 1 of 3 networks trained")


def test_the_time_limit_counts_from_the_call_of_fit(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    encode = TableEncoder.fit_transform

    def slow(*arguments: Any) -> Any:
        clock.now += 100
        return encode(*arguments)

    monkeypatch.setattr(TableEncoder, "fit_transform", slow)
    monkeypatch.setattr(LinearFit, "fit", lambda *args: pytest.fail("slow"))
    model = TabNSMRegressor(**SMALL, n_ensemble=1, time_limit=50.0).fit(*rows)
    assert len(model.history_) == 1
    assert model.history_.stop_reason == "time_limit=50 s reached"


@pytest.mark.slow
def test_a_resumed_run_trains_no_network_without_time(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Clock(monkeypatch)
    options = SMALL | {"n_ensemble": 3, "checkpoint_dir": tmp_path}
    TabNSMRegressor(**options, time_limit=9.5).fit(*rows)
    less = TabNSMRegressor(**options, time_limit=3.0).fit(*rows, resume=True)
    assert [len(history) for history in less.histories_] == [4, 4]
    more = TabNSMRegressor(**options, time_limit=50.0).fit(*rows, resume=True)
    assert [len(history) for history in more.histories_] == [4, 4, 4]


def interrupt_after(monkeypatch: pytest.MonkeyPatch, n_epochs: int, error: BaseException) -> None:
    train_epoch, seen = Trainer.train_epoch, []

    def interrupted(self: Trainer, state: Any) -> None:
        seen.append(1)
        if len(seen) > n_epochs:
            raise error
        train_epoch(self, state)

    monkeypatch.setattr(Trainer, "train_epoch", interrupted)


@pytest.mark.slow
@pytest.mark.parametrize(("n_epochs", "n_kept"), [(6, 1), (8, 2), (9, 2)])
def test_ctrl_c_keeps_the_finished_networks(
    rows: tuple[np.ndarray, np.ndarray],
    three: TabNSMRegressor,
    monkeypatch: pytest.MonkeyPatch,
    n_epochs: int,
    n_kept: int,
) -> None:
    interrupt_after(monkeypatch, n_epochs, KeyboardInterrupt())
    message = f"interrupted in network {n_kept + 1} of 3, which is left out; the model has the"
    with pytest.warns(TabNSMWarning, match=f"{message} {n_kept} that") as caught:
        model = TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    reason = f"max_epochs=4 reached; interrupted: {n_kept} of 3 networks trained"
    assert model.histories_[-1].stop_reason == reason
    assert len(networks_of(model.model_)) == len(model.histories_) == n_kept
    first, same = (networks_of(each.model_)[0].state_dict() for each in (model, three))
    assert all(torch.equal(first[name], same[name]) for name in first)


def test_ctrl_c_in_the_first_network_keeps_its_best_epoch(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after(monkeypatch, 2, KeyboardInterrupt())
    message = "interrupted in epoch 3; the model keeps the weights"
    with pytest.warns(TabNSMWarning, match=message) as caught:
        model = TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)
    assert len(caught) == 1
    assert len(networks_of(model.model_)) == 1
    assert model.history_.stop_reason == "interrupted: 1 of 3 networks trained"


@pytest.mark.slow
def test_ctrl_c_between_two_networks_keeps_the_finished_ones(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, n_begun = EnsembleTraining._begin, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal n_begun
        n_begun += 1
        if n_begun == 3:
            raise KeyboardInterrupt
        return begin(*arguments)

    monkeypatch.setattr(EnsembleTraining, "_begin", interrupted)
    with pytest.warns(TabNSMWarning, match="in network 3 of 3, which is left out; the model has"):
        model = TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)
    assert len(networks_of(model.model_)) == 2


@pytest.mark.slow
def test_a_second_ctrl_c_before_there_is_a_model_gives_no_warning(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(self: EnsembleTraining) -> Any:
        raise KeyboardInterrupt

    interrupt_after(monkeypatch, 6, KeyboardInterrupt())
    monkeypatch.setattr(EnsembleTraining, "evaluate", again)
    model = TabNSMRegressor(**SMALL, n_ensemble=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            model.fit(*rows)
    assert not caught
    assert not hasattr(model, "model_")


@pytest.mark.slow
@pytest.mark.parametrize("n_epochs", [4, 6])
def test_networks_that_diverge_are_left_out(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, n_epochs: int
) -> None:
    interrupt_after(monkeypatch, n_epochs, TrainingDivergedError(1))
    with pytest.warns(TabNSMWarning) as caught:
        model = TabNSMRegressor(**SMALL, n_ensemble=3).fit(*rows)
    said = [str(warning.message) for warning in caught]
    assert [f"diverged in network {k} of 3" in said[k - 2] for k in (2, 3)] == [True, True]
    assert len(networks_of(model.model_)) == 1


@pytest.mark.slow
def test_all_checkpoints_are_looked_at_before_any_training(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SMALL | {"max_epochs": 1, "checkpoint_dir": tmp_path}
    TabNSMRegressor(**options, n_ensemble=3).fit(*rows)
    with pytest.warns(TabNSMWarning, match="is from an earlier run"):
        TabNSMRegressor(**options, n_ensemble=2).fit(*rows)
    names = sorted(path.name for path in tmp_path.iterdir() if "previous" not in path.name)
    assert names == ["checkpoint-2.safetensors", "checkpoint.safetensors"]
    assert (tmp_path / "checkpoint-3.previous.safetensors").exists()
    (tmp_path / "checkpoint.safetensors").unlink()
    monkeypatch.setattr(Trainer, "train_epoch", lambda self, state: pytest.fail("trained"))
    with pytest.raises(ModelFileError, match=r"checkpoint-2\.safetensors was written with others"):
        TabNSMRegressor(**options, n_ensemble=2, window_size=2).fit(*rows, resume=True)


@pytest.mark.slow
def test_after_a_kill_the_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    code = (
        "import numpy as np; from tabnsm import TabNSMRegressor; import sys\n"
        "X = np.random.default_rng(0).normal(size=(120, 4)); y = X[:, 0] * X[:, 1]\n"
        "folder = sys.argv[1]\n"
        "m = TabNSMRegressor(d_token=8, max_epochs=5, random_state=0, n_ensemble=3,\n"
        "                    checkpoint_dir=folder).fit(X, y, resume=True)\n"
        "print(m.predict(X).tobytes().hex(), len(m.histories_))\n"
    )

    def run(folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, str(tmp_path / folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    second = tmp_path / "killed" / "checkpoint-2.safetensors"
    with run("killed") as process:
        while not second.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    resumed, whole = run("killed").communicate()[0], run("whole").communicate()[0]
    assert resumed == whole
    assert whole.endswith(" 3\n")
