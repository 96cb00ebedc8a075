"""The networks of a fit: each begun from a seed of its own and trained on the same rows."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from tabnsm.container import content_hash
from tabnsm.nn.ensemble import join_networks
from tabnsm.nn.model import TabNSM
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.budget import TimeBudget
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import History, ValidationScores
from tabnsm.training.interrupts import is_one_of_many_fits
from tabnsm.training.loop import (
    Report,
    Trainer,
    TrainingDivergedError,
    TrainingState,
    make_optimizer,
)
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler

if TYPE_CHECKING:
    from tabnsm.training.prepare import PreparedFit
    from tabnsm.training.progress import TrainingProgress


# Why a network may end before it is trained to its end.
_CUT_SHORT = ("interrupted", "time_limit")
_SAID = {"interrupted": "was interrupted", "diverged": "diverged"}


class EnsembleTraining:
    """Train the networks of one fit, one after the other.

    Parameters
    ----------
    prepared : PreparedFit
    device : torch.device
    budget : TimeBudget or None
        Time that is left of the fit; None counts the limit from here.

    Attributes
    ----------
    kept : list of tuple of TabNSM and History
        The networks that are finished, or the first as far as it came. The `stop_reason` of the
        last history also tells if networks are missing.
    messages : list of str
        Warnings about what was left out; for the caller to give once there is a model.
    """

    def __init__(
        self,
        prepared: PreparedFit,
        device: torch.device,
        budget: TimeBudget | None = None,
    ) -> None:
        self.prepared = prepared
        self.config = prepared.options.training
        self.device = device
        self.n_networks = cast("int", self.config.n_ensemble)  # resolved
        self.kept: list[tuple[TabNSM, History]] = []  # one list: Ctrl-C may come at any moment
        self.messages: list[str] = []
        self.budget = budget or TimeBudget(self.config.time_limit)

    @property
    def models(self) -> list[TabNSM]:
        """The networks that are kept."""
        return [model for model, _ in self.kept]

    @property
    def histories(self) -> list[History]:
        """Their histories."""
        return [history for _, history in self.kept]

    def train(
        self,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
    ) -> None:
        """Train all networks; Ctrl-C or the time limit keep the finished ones, or the first.

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
        """
        checkpoints = self._checkpoints(checkpoint_dir, resume)
        # The first network goes on from the draws of the split.
        generator = self.prepared.generator()
        number, cut = 0, ""
        try:
            for number, checkpoint in enumerate(checkpoints):
                if number:
                    generator = torch.Generator().manual_seed(self.prepared.seed + number)
                state = self._begin(generator, checkpoint if resume else None)
                if self._lacks_time(state.history):
                    cut = self._limit_reached()
                    break
                report = None if progress is None else progress.of_network(number)
                cut = self._train_one(number, self._trainer(report), state, checkpoint)
                if cut:
                    break
        except KeyboardInterrupt:
            if not self.kept or is_one_of_many_fits():
                raise
            cut = "interrupted"
        if cut and len(self.kept) < self.n_networks:
            self._note_cut(cut, number)

    def evaluate(self) -> ValidationScores:
        """Scores of all networks together on the validation rows."""
        best = self.histories[0].best
        if len(self.kept) == 1 and best.validation_mae is not None and best.score is not None:
            return ValidationScores(best.validation_rmse, best.validation_mae, best.score)
        return self._trainer(None).evaluate(join_networks(self.models))

    def _trainer(self, report: Report | None) -> Trainer:
        """What trains one network."""
        return make_trainer(self.prepared, self.device, report, self.budget)

    def _begin(self, generator: torch.Generator, resumed: Checkpoint | None) -> TrainingState:
        """A network as it begins, or as an earlier run left it."""
        state = initial_state(self.prepared, generator, self.device)
        if resumed is not None:
            resumed.load(state)
        self.budget.charge(state.history.seconds)
        return state

    def _lacks_time(self, history: History) -> bool:
        """Whether a network is not worth beginning: it would take longer than the time left.

        The networks so far say how long one takes. The first one is trained in any case.
        """
        if not self.kept or _is_finished(history):
            return False
        mean = sum(trained.seconds for trained in self.histories) / len(self.kept)
        left = self.budget.seconds_left()
        return left == 0 or left < mean - history.seconds

    def _train_one(
        self, number: int, trainer: Trainer, state: TrainingState, checkpoint: Checkpoint | None
    ) -> str:
        """Train a network and keep it, if it is finished or the first; why to stop, or ""."""
        try:
            history = trainer.train(state, checkpoint)
            reason = history.stop_reason
        except TrainingDivergedError:
            if number == 0:
                raise
            reason = "diverged"
        if reason == "interrupted" and is_one_of_many_fits():
            raise KeyboardInterrupt
        is_unfinished = reason == "diverged" or reason.startswith(_CUT_SHORT)
        if number == 0 or not is_unfinished:
            self.kept.append((cast("TabNSM", state.model), state.history))
        if reason in _SAID and number == 0:
            self.messages.append(
                f"Training {_SAID[reason]} in epoch {len(state.history) + 1}; the model keeps the "
                f"weights of epoch {state.history.best_epoch}, the best so far."
            )
        elif reason == "diverged":
            self.messages.append(
                f"Training diverged in network {number + 1} of {self.n_networks}, which is left "
                "out. Lower learning_rate if this happens to many."
            )
        return reason if reason.startswith(_CUT_SHORT) else ""

    def _limit_reached(self) -> str:
        return f"time_limit={self.config.time_limit:g} s reached"

    def _note_cut(self, cut: str, number: int) -> None:
        """Say in the last history, and after Ctrl-C in a warning, that networks are missing."""
        model, last = self.kept[-1]
        n_kept = len(self.kept)
        own = "" if last.stop_reason == cut else f"{last.stop_reason}; "
        reason = f"{own}{cut}: {n_kept} of {self.n_networks} networks trained"
        # A copy, because a checkpoint says why this network stopped, and nothing else.
        self.kept[-1] = (model, dataclasses.replace(last, stop_reason=reason))
        if cut == "interrupted" and own:
            self.messages.append(
                f"Training was interrupted in network {number + 1} of {self.n_networks}, which is "
                f"left out; the model has the {n_kept} that {'is' if n_kept == 1 else 'are'} "
                "finished."
            )

    def _checkpoints(self, folder: str | Path | None, resume: bool) -> list[Checkpoint | None]:
        if folder is None:
            return [None] * self.n_networks
        mark = fingerprint(self.prepared)
        checkpoints = [Checkpoint(folder, mark, number) for number in range(self.n_networks)]
        if resume:
            for checkpoint in checkpoints:
                checkpoint.verify()  # all of them before any training
            return list(checkpoints)
        for checkpoint in checkpoints:
            checkpoint.set_aside()
        number = self.n_networks  # an earlier run may have had more
        while (further := Checkpoint(folder, mark, number)).path.exists():
            further.set_aside()
            number += 1
        return list(checkpoints)


def _is_finished(history: History) -> bool:
    return bool(history.stop_reason) and not history.stop_reason.startswith(_CUT_SHORT)


def make_trainer(
    prepared: PreparedFit,
    device: torch.device,
    report: Report | None = None,
    budget: TimeBudget | None = None,
) -> Trainer:
    """What trains one network; `report` and `budget` as in `Trainer`."""
    objective = prepared.options.objective
    return Trainer(
        prepared.options.training,
        Objective(objective, objective.losses_of(prepared.data.train_target)),
        prepared.target,
        prepared.data,
        device,
        report,
        budget,
    )


def initial_state(
    prepared: PreparedFit, generator: torch.Generator, device: torch.device
) -> TrainingState:
    """A network as `generator` begins it, and all that training it needs."""
    encoder, options = prepared.encoder, prepared.options
    model = TabNSM(
        encoder.n_features,
        category_sizes=encoder.category_sizes,
        bins=encoder.bins,
        n_targets=prepared.target.n_targets,
        generator=generator,
        **options.to_dict()["architecture"],
    ).to(device)
    training = options.training
    return TrainingState(
        model=model,
        optimizer=make_optimizer(model, training),
        average=WeightAverage(model, training.ema_decay),
        sampler=RiseSampler(prepared.data.train.n_rows, options.rise, generator),
        monitor=ValidationMonitor(training.patience, training.scheduler_patience),
        generator=generator,
        best_weights={},
        history=History(eval_metric=training.eval_metric),
    )


def fingerprint(prepared: PreparedFit) -> str:
    """Hash of all that decides the bits of a run, but for how long and how loudly it runs."""
    data = prepared.data
    tensors, meta = prepared.encoder.to_state()
    for part in ("train", "validation"):
        table = getattr(data, part)
        tensors[f"{part}.dense"] = table.dense
        for k, text in enumerate(table.texts):
            tensors[f"{part}.text_index.{k}"] = text.index
            tensors[f"{part}.text.{k}"] = text.values
        tensors[f"{part}.target"] = torch.from_numpy(getattr(data, f"{part}_target"))
        weight = getattr(data, f"{part}_weight")
        if weight is not None:
            tensors[f"{part}.weight"] = torch.from_numpy(weight)
    stated: dict[str, Any] = prepared.options.to_dict()
    stated |= {"seed": prepared.seed, "columns": meta["columns"]}
    for config, name in (
        ("encoder", "verbose"),
        ("encoder", "text_cache"),
        ("training", "time_limit"),
    ):
        del stated[config][name]
    return content_hash(tensors, json.dumps(stated, sort_keys=True))
