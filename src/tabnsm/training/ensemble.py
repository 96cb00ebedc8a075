"""The networks of a fit: each begun from a seed of its own and trained on the same rows."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from tabnsm.errors import warn
from tabnsm.nn.ensemble import join_networks
from tabnsm.nn.model import TabNSM
from tabnsm.threads import set_thread_count, thread_count
from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import STOPPED, CallbackList
from tabnsm.training.checkpoint import Checkpoint, CheckpointFolder
from tabnsm.training.history import History, ValidationScores
from tabnsm.training.interrupts import is_one_of_many_fits
from tabnsm.training.jobs import MIN_SECONDS, pays_off, requested_jobs, side_by_side
from tabnsm.training.kept import KeptNetworks
from tabnsm.training.loop import (
    Report,
    Trainer,
    TrainingDivergedError,
    TrainingState,
)
from tabnsm.training.network import fingerprint, initial_state, make_trainer, new_network
from tabnsm.training.network_queue import CUT_SHORT, NetworkQueue, is_finished
from tabnsm.training.workers import (
    EpochDone,
    Event,
    NetworkDone,
    WorkerLost,
    WorkerPool,
    WorkerWarned,
)

if TYPE_CHECKING:
    from tabnsm.training.prepare import PreparedFit
    from tabnsm.training.progress import TrainingProgress


# Beyond the time limit a worker is given up: it only has to validate and to send its network.
_SECONDS_BEYOND_LIMIT = 30.0


class EnsembleTraining:
    """Train the networks of one fit, one after the other or side by side.

    This process trains networks itself; with more than one job, worker processes take others of
    the same queue. The bits of a network do not depend on who trains it.

    Parameters
    ----------
    prepared : PreparedFit
    device : torch.device
    budget : TimeBudget or None
        Time that is left of the fit; None counts the limit from here.
    n_jobs : int or None, default 1
        Networks that are trained side by side, as in `TabNSMRegressor`.

    Attributes
    ----------
    messages : list of str
        Warnings about what was left out; for the caller to give once there is a model.
    """

    def __init__(
        self,
        prepared: PreparedFit,
        device: torch.device,
        budget: TimeBudget | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.prepared = prepared
        self.config = prepared.options.training
        self.device = device
        self.n_networks = cast("int", self.config.n_ensemble)  # resolved
        self.budget = budget or TimeBudget(self.config.time_limit)
        self.n_jobs = side_by_side(n_jobs, self.n_networks, device)
        self.only_if_it_pays = requested_jobs(n_jobs) is None
        self._kept = KeptNetworks(self.n_networks)
        self.messages = self._kept.messages
        self._relayed: set[str] = set()
        self._cut = ""
        self.progress: TrainingProgress | None = None
        self.callbacks = CallbackList()

    @property
    def kept(self) -> list[tuple[TabNSM, History]]:
        """The networks that are finished, or the first as far as it came, with their histories.

        The `stop_reason` of the last history also tells if networks are missing.
        """
        return self._kept.pairs

    @property
    def models(self) -> list[TabNSM]:
        """The networks that are kept."""
        return [model for model, _ in self.kept]

    @property
    def numbers(self) -> list[int]:
        """Which of the networks these are, counted from 0."""
        return self._kept.numbers

    @property
    def histories(self) -> list[History]:
        """Their histories."""
        return [history for _, history in self.kept]

    @property
    def is_cut(self) -> bool:
        """Whether Ctrl-C or the time limit ended it, so that it may be resumed."""
        return any(history.stop_reason.startswith(CUT_SHORT) for history in self.histories)

    def train(
        self,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
        callbacks: CallbackList | None = None,
    ) -> None:
        """Train all networks; what ends it early keeps the finished ones, or the first.

        Ctrl-C goes on to the caller before the first epoch is done, and where the caller fits
        many times.

        Parameters
        ----------
        checkpoint_dir : str, Path or None
            Folder for the state of each network after every epoch.
        resume : bool
            Whether to continue what the folder holds.
        progress : TrainingProgress or None
            Shows every epoch.
        callbacks : CallbackList or None
            Told about every epoch and network; may stop training.
        """
        folder = None
        if checkpoint_dir is not None:
            folder = CheckpointFolder(checkpoint_dir, fingerprint(self.prepared), self.n_networks)
        resumed = {} if folder is None else folder.open(resume)
        n_threads = thread_count()
        self.progress = progress
        self.callbacks = callbacks or self.callbacks
        self.networks = NetworkQueue(self.n_networks, self.budget, self.n_jobs, resumed)
        n_each = max(n_threads // self.n_jobs, 1)
        self.pool = WorkerPool(self.prepared, self.networks, n_each, folder, resume)
        try:
            self._train_all(folder, resume)
        except KeyboardInterrupt:
            self._collect()
            if not self._kept or is_one_of_many_fits():
                raise
            self._cut = "interrupted"
        finally:
            self.pool.close()
            set_thread_count(n_threads)
            if folder is not None:
                folder.remove_leftovers()  # of workers that were ended while they wrote
        if self._cut and len(self._kept) < self.n_networks:
            self._kept.note_cut(self._cut, self.networks.begun)

    def evaluate(self) -> ValidationScores:
        """Scores of all networks together on the validation rows."""
        best = self.histories[0].best
        if len(self.kept) == 1 and best.validation_mae is not None and best.score is not None:
            return ValidationScores(best.validation_rmse, best.validation_mae, best.score)
        return self._trainer(None).evaluate(join_networks(self.models))

    def _trainer(self, report: Report | None) -> Trainer:
        """What trains one network."""
        return make_trainer(self.prepared, self.device, report, self.budget)

    def _train_all(self, folder: CheckpointFolder | None, resume: bool) -> None:
        """Train networks of the queue until none is left, and wait for those of the workers."""
        late = math.inf
        while self._cut != "interrupted":
            n_away = self.networks.n_away  # before the events, which tell what became of them
            self._collect()
            number = self.networks.take_here()
            if number is not None:
                self._train_number(number, None if folder is None else folder.of(number), resume)
                continue
            if not n_away:
                break
            if self.budget.seconds_left() == 0:
                late = min(late, time.monotonic() + _SECONDS_BEYOND_LIMIT)
            if time.monotonic() > late:
                break
            self._handle(self.pool.wait(1.0))
        self._collect()
        if self.networks.is_out_of_time and not self._cut:
            self._cut = self._limit_reached()

    def _train_number(self, number: int, checkpoint: Checkpoint | None, resume: bool) -> None:
        """Train a network in this process, unless there is no time for it."""
        state = self._begin(number, checkpoint if resume else None)
        if self.networks.lacks_time(state.history):
            self.networks.begun.discard(number)
            self._end(self._limit_reached())
            return
        if not self.only_if_it_pays and not is_finished(state.history):
            self._start_workers()
        self._train_one(number, self._trainer(partial(self._at_epoch, number)), state, checkpoint)

    def _end(self, cut: str) -> None:
        """Begin no further network; those that workers train may still be finished."""
        self._cut = cut if cut == "interrupted" else self._cut or cut
        self.networks.close()

    def _report(self, number: int, history: History) -> None:
        """Show an epoch, and let the callbacks know it."""
        if self.progress is not None:
            self.progress.of_network(number)(history)
        self._stop_if(self.callbacks.on_epoch(number + 1, history))

    def _stop_if(self, is_stopped: bool) -> None:
        """End all networks with the epochs that they are in, where a callback wants it."""
        if is_stopped:
            self._end(STOPPED)
            self.pool.stop()

    def _at_epoch(self, number: int, history: History) -> bool:
        """Report an epoch, look what the workers did, and start them where it pays off.

        Returns whether a callback stops training.
        """
        self._report(number, history)
        self._collect()
        n_left, training = self.networks.n_left, self.config
        seconds = [record.seconds for record in history]
        if (
            self.only_if_it_pays
            and self.budget.seconds_left() > MIN_SECONDS
            and pays_off(seconds, n_left, training.max_epochs, training.patience)
        ):
            self._start_workers()
        return self._cut == STOPPED

    def _start_workers(self) -> None:
        """Start as many workers as there are jobs for, once."""
        n_workers = min(self.n_jobs - 1, self.networks.n_left)
        if n_workers and not self.pool.is_started:
            self.pool.start(n_workers)
            set_thread_count(self.pool.n_threads)

    def _begin(self, number: int, resumed: Checkpoint | None) -> TrainingState:
        """A network as it begins, or as an earlier run left it."""
        state = initial_state(self.prepared, number, self.device)
        if resumed is not None:
            resumed.load(state)
        self.networks.charge(state.history)
        return state

    def _train_one(
        self, number: int, trainer: Trainer, state: TrainingState, checkpoint: Checkpoint | None
    ) -> None:
        """Train a network and keep it, if it is finished or the first."""
        try:
            history = trainer.train(state, checkpoint)
            reason = history.stop_reason
        except TrainingDivergedError:
            if number == 0:
                raise
            reason = "diverged"
        if reason == "interrupted" and is_one_of_many_fits():
            raise KeyboardInterrupt
        self._keep(number, reason, cast("TabNSM", state.model), state.history)

    def _keep(self, number: int, reason: str, model: TabNSM | None, history: History) -> None:
        """Keep a network that has ended, or say why not."""
        if reason == "interrupted":
            self._collect()
            if self._kept:  # by workers; a first network is kept if there is no other
                self._end(reason)
                return
        if self._kept.add(number, reason, model, history):
            self.networks.count(history)
            self._stop_if(self.callbacks.on_network(number + 1, history))
        if reason.startswith(CUT_SHORT):
            self._end(reason)

    def _collect(self) -> None:
        """Act on all that the workers have reported; after a stop, once the first is kept."""
        while not self.pool.events.empty() and (self._kept or self._cut != STOPPED):
            self._handle(self.pool.wait(0.0))

    def _handle(self, event: Event | None) -> None:
        if isinstance(event, EpochDone):
            self._report(event.number, event.history)
        elif isinstance(event, NetworkDone):
            model = None
            if event.weights:
                model = new_network(self.prepared, torch.Generator(), self.device)
                model.load_state_dict(event.weights)
                model.eval()
            self._keep(event.number, event.reason, model, event.history)
        elif isinstance(event, WorkerLost):
            self.messages.append(event.message(self.n_networks))
        elif isinstance(event, WorkerWarned) and event.text not in self._relayed:
            self._relayed.add(event.text)
            warn(event.text, event.category)

    def _limit_reached(self) -> str:
        return f"time_limit={self.config.time_limit:g} s reached"
