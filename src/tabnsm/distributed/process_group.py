"""Training in a process group that exists, such as one that torchrun started."""

from __future__ import annotations

import dataclasses
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
import torch.distributed as dist

# Its functions keep the group that exists at their import as a default, and with it Gloo's threads,
# which abort the process when they outlive Python. DistributedDataParallel imports it: too late.
import torch.distributed.nn

from tabnsm.distributed.checkpoint import ShardCheckpoint
from tabnsm.distributed.group import Group
from tabnsm.distributed.shard import Shard
from tabnsm.distributed.trainer import ShardTrainer, begin_network
from tabnsm.errors import InvalidOptionError
from tabnsm.nn.model import TabNSM
from tabnsm.training.backend import trained_by
from tabnsm.training.callbacks import CallbackList
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.loop import Saves, TrainingDivergedError, TrainingState
from tabnsm.training.network import fingerprint
from tabnsm.training.progress import TrainingProgress


@contextmanager
def process_group() -> Iterator[None]:
    """Share the rows of each fit in this block among the processes that torchrun has started.

    Each of them calls the same ``fit`` with the same table and options, an integer `random_state`
    among them. Each trains on a part of the rows, and gets the same model. Gradients are averaged
    after every step, so that this pays off where a step takes long: for large tables.

    Raises
    ------
    InvalidOptionError
        If this process was not started by torchrun or another launcher of torch.

    Examples
    --------
    >>> process_group().__enter__()
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: process_group() must run under torchrun, which sets RANK and \
WORLD_SIZE, but they are not set. Run: torchrun --nproc-per-node 2 script.py
    """
    is_ours = not dist.is_initialized()
    if is_ours:
        if "RANK" not in os.environ:
            raise InvalidOptionError(
                "process_group() must run under torchrun, which sets RANK and WORLD_SIZE, but they "
                "are not set. Run: torchrun --nproc-per-node 2 script.py"
            )
        uses_gpu = torch.cuda.is_available()
        if uses_gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        dist.init_process_group("nccl" if uses_gpu else "gloo")
    try:
        with trained_by(GroupTraining):
            yield
    finally:
        if is_ours:
            gc.collect()  # networks that share gradients keep the group, too
            dist.destroy_process_group()


class GroupTraining(EnsembleTraining):
    """Trains networks one after the other, each in all processes of the group."""

    def train(
        self,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
        callbacks: CallbackList | None = None,
    ) -> None:
        """Train all networks; arguments as in `EnsembleTraining`.

        Each process needs a `checkpoint_dir` that has the files of the first one to resume.
        """
        group = Group(self.device)
        shard = Shard.whole_fit(self.prepared).cut(group.rank, group.size)
        print_of = fingerprint(self.prepared)
        for number in range(self.n_networks):
            if number and self.budget.seconds_left() == 0:
                break
            checkpoint = None
            if checkpoint_dir is not None:
                checkpoint = ShardCheckpoint(checkpoint_dir, print_of, number, group)
            state = begin_network(shard, number, group, self.device)
            if checkpoint is not None and resume:
                checkpoint.load(state)
            report = None if progress is None else progress.of_network(number)
            trainer = ShardTrainer(shard, group, self.device, report, self.budget)
            trained = train_network(trainer, state, checkpoint)
            self.keep_trained(number, trained)
            if (
                trained
                and callbacks
                and group.any(callbacks.on_network(number + 1, trained.history))
            ):
                break

    def keep_trained(self, number: int, state: TrainingState | None) -> None:
        """Keep a network that was trained; None has diverged before its first epoch."""
        if state is None:
            if number == 0:
                raise TrainingDivergedError(1)
            self._kept.add(number, "diverged", None, dataclasses.replace(self.histories[0]))
            return
        model = cast("TabNSM", state.model)
        self._kept.add(number, state.history.stop_reason, model, state.history)


def train_network(
    trainer: ShardTrainer, state: TrainingState, checkpoint: Saves | None
) -> TrainingState | None:
    """Train a network in all processes of a group; None if it diverges in its first epoch.

    Parameters
    ----------
    trainer : ShardTrainer
    state : TrainingState
        From `begin_network`, or a checkpoint.
    checkpoint : Saves or None
        Saves after every epoch; in all processes equally often.
    """
    try:
        history = trainer.train(state, checkpoint)
    except TrainingDivergedError:
        return None
    if history.stop_reason == "diverged" and checkpoint is not None:
        checkpoint.save(state)  # else nothing would say so
    return state
