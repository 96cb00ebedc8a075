"""The networks of a fit: each begun from a seed of its own and trained on the same rows."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tabnsm.container import content_hash
from tabnsm.errors import TabNSMWarning
from tabnsm.nn.ensemble import join_members
from tabnsm.nn.model import TabNSM
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.loop import (
    Report,
    Trainer,
    TrainingData,
    TrainingDivergedError,
    TrainingState,
    make_optimizer,
)
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler

if TYPE_CHECKING:
    from tabnsm.preprocessing import TableEncoder, TargetScaler
    from tabnsm.presets import Options
    from tabnsm.training.history import History
    from tabnsm.training.progress import TrainingProgress


# Why a network may end before it is trained to its end.
_CUT_SHORT = ("interrupted", "time_limit")


class MemberTraining:
    """Train the networks of one fit, one after the other.

    Parameters
    ----------
    encoder : TableEncoder
    options : Options
    data : TrainingData
    scaler : TargetScaler
    device : torch.device
    seed : int
        Of the first network; the others' follow from it.
    """

    def __init__(
        self,
        encoder: TableEncoder,
        options: Options,
        data: TrainingData,
        scaler: TargetScaler,
        device: torch.device,
        seed: int,
    ) -> None:
        self.encoder = encoder
        self.options = options
        self.data = data
        self.scaler = scaler
        self.device = device
        self.seed = seed
        self.n_members = options.training.resolved_ensemble(data.train.n_rows, encoder.n_features)
        self.models: list[TabNSM] = []
        self.histories: list[History] = []
        self.seconds_used = 0.0

    def train(
        self,
        generator: torch.Generator,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
    ) -> None:
        """Train all networks; Ctrl-C or the time limit keep the finished ones, or the first.

        Parameters
        ----------
        generator : torch.Generator
            Of the first network, which goes on from the draws of the split.
        checkpoint_dir : str, Path or None
            Folder for the state of each network after every epoch.
        resume : bool
            Whether to continue what the folder holds.
        progress : TrainingProgress or None
            Shows every epoch.
        """
        checkpoints = self._checkpoints(checkpoint_dir, resume)
        for number, checkpoint in enumerate(checkpoints):
            if number:
                generator = torch.Generator().manual_seed(self.seed + number)
            state = initial_state(
                self.encoder, self.options, self.data.train.n_rows, generator, self.device
            )
            if checkpoint is not None and resume:
                checkpoint.load(state)
            time_left = self._time_left()
            if number and time_left == 0 and not _is_finished(state.history):
                return
            report = None if progress is None else progress.of_network(number)
            trainer = self.trainer(time_left, report)
            if number == 0:
                self._keep(state, trainer.train(state, checkpoint))
            else:
                self._train_further(number, trainer, state, checkpoint)
            if len(state.history):
                self.seconds_used += state.history[-1].seconds
            if state.history.stop_reason.startswith(_CUT_SHORT):
                return

    def validation_rmse(self) -> float:
        """RMSE of all networks together on the validation rows, in the target's units."""
        rmse, _ = self.trainer(None, None).evaluate(join_members(self.models))
        return rmse

    def trainer(self, time_limit: float | None, report: Report | None) -> Trainer:
        """What trains one network."""
        return Trainer(
            dataclasses.replace(self.options.training, time_limit=time_limit or None),
            Objective(self.options.objective),
            self.scaler,
            self.data,
            self.device,
            report,
        )

    def _train_further(
        self, number: int, trainer: Trainer, state: TrainingState, checkpoint: Checkpoint | None
    ) -> None:
        """Train one more network, and leave it out unless it is finished."""
        failure = ""
        try:
            with warnings.catch_warnings():
                # What an unfinished network would keep does not count: it is left out.
                warnings.simplefilter("ignore", TabNSMWarning)
                history = trainer.train(state, checkpoint)
        except KeyboardInterrupt:
            state.history.stop_reason = "interrupted"
        except TrainingDivergedError:
            failure = "left the finite numbers"
        else:
            if history.stop_reason == "diverged":
                failure = "left the finite numbers"
            elif not history.stop_reason.startswith(_CUT_SHORT):
                self._keep(state, history)
        if state.history.stop_reason == "interrupted":
            failure = "was interrupted"
        if failure:
            n_kept = len(self.models)
            warnings.warn(
                f"Training {failure} in network {number + 1} of {self.n_members}, which is left "
                f"out; {n_kept} {'is' if n_kept == 1 else 'are'} finished so far.",
                TabNSMWarning,
                stacklevel=4,
            )

    def _keep(self, state: TrainingState, history: History) -> None:
        self.models.append(state.model)  # type: ignore[arg-type]
        self.histories.append(history)

    def _time_left(self) -> float | None:
        """Seconds of the limit that the networks so far have not used, resumed ones included."""
        limit = self.options.training.time_limit
        return None if limit is None else max(limit - self.seconds_used, 0.0)

    def _checkpoints(self, folder: str | Path | None, resume: bool) -> list[Checkpoint | None]:
        if folder is None:
            return [None] * self.n_members
        mark = fingerprint(self.data, self.encoder, self.options, self.seed)
        checkpoints = [Checkpoint(folder, mark, number) for number in range(self.n_members)]
        if resume:
            for checkpoint in checkpoints:
                checkpoint.verify()  # all of them before any training
            return list(checkpoints)
        for checkpoint in checkpoints:
            checkpoint.set_aside()
        number = self.n_members  # an earlier run may have had more
        while (further := Checkpoint(folder, mark, number)).path.exists():
            further.set_aside()
            number += 1
        return list(checkpoints)


def _is_finished(history: History) -> bool:
    return bool(history.stop_reason) and not history.stop_reason.startswith(_CUT_SHORT)


def initial_state(
    encoder: TableEncoder,
    options: Options,
    n_rows: int,
    generator: torch.Generator,
    device: torch.device,
) -> TrainingState:
    """A network as `generator` begins it, and all that training it needs."""
    model = TabNSM(
        encoder.n_features,
        category_sizes=encoder.category_sizes,
        pieces=encoder.pieces,
        generator=generator,
        **options.to_dict()["architecture"],
    ).to(device)
    training = options.training
    return TrainingState(
        model=model,
        optimizer=make_optimizer(model, training),
        average=WeightAverage(model, training.weight_averaging),
        sampler=RiseSampler(n_rows, options.rise, generator),
        monitor=ValidationMonitor(training.patience, training.scheduler_patience),
        generator=generator,
        best_weights={},
    )


def fingerprint(data: TrainingData, encoder: TableEncoder, options: Options, seed: int) -> str:
    """Hash of all that decides the bits of a run, but for how long and how loudly it runs."""
    tensors, meta = encoder.to_state()
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
    stated: dict[str, Any] = options.to_dict() | {"seed": seed, "columns": meta["columns"]}
    for config, name in (
        ("encoder", "verbose"),
        ("encoder", "text_cache"),
        ("training", "time_limit"),
    ):
        del stated[config][name]
    return content_hash(tensors, json.dumps(stated, sort_keys=True))
