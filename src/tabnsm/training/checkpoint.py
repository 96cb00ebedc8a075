"""Checkpoint: the whole state of training in one atomically replaced file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from tabnsm.atomic import remove_leftovers
from tabnsm.container import read_container, write_container
from tabnsm.errors import InvalidOptionError, ModelFileError, warn
from tabnsm.training.history import History

if TYPE_CHECKING:
    from tabnsm.training.loop import TrainingState

FILE_NAME = "checkpoint.safetensors"
LOCK_NAME = ".lock"
FORMAT_VERSION = 1


class Checkpoint:
    """Where and under which fingerprint the state of a training run is kept.

    Parameters
    ----------
    folder : str or Path
        One that exists; `locked_folder` makes and locks it.
    fingerprint : str
        Hash of the data and the options; a file with another one is refused.
    number : int, default 0
        Which of several networks it is for; each has a file of its own.
    """

    def __init__(self, folder: str | Path, fingerprint: str, number: int = 0) -> None:
        name = FILE_NAME if number == 0 else f"checkpoint-{number + 1}.safetensors"
        self.path = Path(folder) / name
        self.fingerprint = fingerprint
        self.saved_epoch = 0
        self.has_failed = False
        remove_leftovers(self.path)

    def set_aside(self) -> None:
        """Keep an earlier run's file under another name when a new run begins."""
        if self.path.exists():
            kept = self.path.with_suffix(".previous.safetensors")
            self.path.replace(kept)
            warn(
                f"{self.path} is from an earlier run and was kept as {kept.name}; a new run "
                "begins. Pass resume=True to continue an earlier run instead."
            )

    def save(self, state: TrainingState) -> None:
        """Write everything that the next epoch depends on.

        A disk that is full or gone is no reason to lose the run: the last file that could be
        written stays, the first failure in a row is reported, and the next epoch tries again.
        """
        try:
            self.write(state)
        except OSError as error:
            if not self.has_failed:
                self._report_failure(error)
            self.has_failed = True
        else:
            self.saved_epoch, self.has_failed = len(state.history), False

    def _report_failure(self, error: OSError) -> None:
        kept = (
            f"the file keeps the state after epoch {self.saved_epoch}"
            if self.saved_epoch
            else "there is no state to resume from yet"
        )
        warn(
            f"The checkpoint {self.path} could not be written ({error.strerror or error}). "
            f"Training goes on; {kept}. Free space on the disk, or set checkpoint_dir to a folder "
            "on another one."
        )

    def write(self, state: TrainingState) -> None:
        """Write everything that the next epoch depends on, or raise why not."""
        tensors: dict[str, Tensor] = {"generator": state.generator.get_state()}
        tensors |= {f"model.{k}": v for k, v in state.model.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in state.best_weights.items()}
        tensors |= {f"average.{k}": v for k, v in state.average.state_dict().items()}
        tensors |= {f"rise.{k}": v for k, v in state.sampler.state_dict().items()}
        for name, parameter in state.model.named_parameters():
            for key, value in state.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{key}.{name}"] = value
        meta = {
            "kind": "checkpoint",
            "format_version": FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "monitor": state.monitor.state_dict(),
            "history": state.history.to_dict(),
        }
        write_container(self.path, tensors, meta)

    def verify(self) -> History:
        """Refuse a file of another run; how far this one came, if there is a file yet."""
        if not self.path.exists():
            return History()
        meta = read_container(self.path)[1]
        self._check(meta)
        return History.from_dict(meta["history"])

    def load(self, state: TrainingState) -> bool:
        """Bring `state` to where the file stands; False if there is no file yet."""
        if not self.path.exists():
            return False
        tensors, meta = read_container(self.path)
        self._check(meta)
        state.model.load_state_dict(_part(tensors, "model."))
        state.best_weights = _part(tensors, "best.")
        state.average.load_state_dict(_part(tensors, "average."))
        state.sampler.load_state_dict(_part(tensors, "rise."))
        state.generator.set_state(tensors["generator"])
        _load_optimizer(state.optimizer, state.model, _part(tensors, "optimizer."))
        state.monitor.load_state_dict(meta["monitor"])
        state.history = History.from_dict(meta["history"])
        self.saved_epoch = len(state.history)
        return True

    def _check(self, meta: Any) -> None:
        if meta.get("kind") != "checkpoint":
            raise ModelFileError(f"{self.path} is not a checkpoint, but a {meta.get('kind')}.")
        if meta["format_version"] > FORMAT_VERSION:
            raise ModelFileError(
                f"{self.path} was written by a newer tabnsm (checkpoint format "
                f"{meta['format_version']}, this version reads up to {FORMAT_VERSION}). "
                'Update with: pip install -U "tabnsm"'
            )
        if meta["fingerprint"] != self.fingerprint:
            raise ModelFileError(
                f"resume=True needs the same data and options as the interrupted run, but "
                f"{self.path} was written with others. Restore them, or fit without resume=True. "
                "random_state must have been a number: None and RandomState give another each time."
            )


class CheckpointFolder:
    """The checkpoints of all networks of a fit.

    Parameters
    ----------
    path : str or Path
        A folder that exists.
    fingerprint : str
    n_networks : int
    """

    def __init__(self, path: str | Path, fingerprint: str, n_networks: int) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.n_networks = n_networks

    def of(self, number: int) -> Checkpoint:
        """Where the state of a network is kept, counted from 0."""
        return Checkpoint(self.path, self.fingerprint, number)

    def open(self, resume: bool) -> dict[int, History]:
        """Set files of an earlier run aside, or check all of them; how far its networks came."""
        if resume:
            return {number: self.of(number).verify() for number in range(self.n_networks)}
        number = 0
        while number < self.n_networks or self.of(number).path.exists():
            self.of(number).set_aside()  # an earlier run may have had more
            number += 1
        return {}

    def remove_leftovers(self) -> None:
        """Remove what a process was writing that is gone."""
        for number in range(self.n_networks):
            remove_leftovers(self.of(number).path)


@contextmanager
def locked_folder(folder: str | Path | None) -> Iterator[None]:
    """Make the folder and keep other fits out of it, or say before any training why not.

    The system releases the lock when the process ends, however it ends; the file that carries it
    is removed where the process ends in order. None does nothing.

    Raises
    ------
    InvalidOptionError
        If another fit uses the folder, or it cannot be made or written.
    """
    if folder is None:
        yield
        return
    path = Path(folder) / LOCK_NAME
    lock = FileLock(path)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _acquire(lock, path)
    except Timeout as error:
        raise InvalidOptionError(
            f"checkpoint_dir must be a folder that no other fit uses, got {str(folder)!r}, which "
            "another fit, in this or another process, is writing to. Wait for it to end, or give "
            "each fit a folder of its own."
        ) from error
    except OSError as error:
        raise InvalidOptionError(
            f"checkpoint_dir must be a folder that can be written, or a path where one can be "
            f"made, got {str(folder)!r} ({error.strerror or error})."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes it only after the release, by itself
            path.unlink()
        lock.release()


def _acquire(lock: FileLock, path: Path) -> None:
    lock.acquire(timeout=0)
    while not path.exists():
        # The fit that held it removed the file between our opening and our locking it.
        lock.release()
        lock.acquire(timeout=0)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _load_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        slot, name = key.split(".", 1)
        # AdamW keeps its step counter on the CPU unless it is fused on the parameter's device.
        optimizer.state[parameters[name]][slot] = value.to(parameters[name].device)
