"""ShardCheckpoint: what all processes share in one file, and a file of each for its own rows."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch

from tabnsm.container import read_container, write_container
from tabnsm.distributed.group import Group
from tabnsm.distributed.storage import RunFolder
from tabnsm.errors import TabNSMError
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.loop import TrainingState


class ShardCheckpoint:
    """The state of one network that a group of processes trains.

    Parameters
    ----------
    folder : str or Path
        One that exists.
    fingerprint : str
        Hash of the data and the options.
    number : int
        Of the network, counted from 0.
    group : Group
    """

    def __init__(self, folder: str | Path, fingerprint: str, number: int, group: Group) -> None:
        self.common = Checkpoint(folder, fingerprint, number)
        self.group = group
        self.own = self.common.path.with_suffix(f".rank-{group.rank}.safetensors")

    def save(self, state: TrainingState) -> None:
        """Write this process's part."""
        if self.group.rank == 0:
            self.common.write(state)
        tensors = {"generator": state.generator.get_state(), **state.sampler.state_dict()}
        meta = {"kind": "checkpoint of a process", "size": self.group.size}
        write_container(self.own, tensors, meta | {"epoch": len(state.history)})

    def load(self, state: TrainingState) -> bool:
        """Bring `state` to where the files stand; False if there are none yet.

        Another number of processes begins new random numbers, and weighs all rows alike until
        RISE looks at them again.
        """
        generator = state.generator.get_state()
        if not self.common.load(state):
            return False
        weights, epoch = {"weights": torch.empty(0)}, len(state.history)
        if self.own.exists():
            tensors, meta = read_container(self.own)
            if meta["size"] == self.group.size and meta["epoch"] == epoch:
                generator, weights = tensors.pop("generator"), tensors
        state.sampler.load_state_dict(weights)
        state.generator.set_state(generator)
        return True


RAY_LIST = "checkpoint_manager_snapshot.json"
"""File in which Ray lists the checkpoints of a run."""


def recover_list(folder: RunFolder, network: str) -> str | None:
    """Find the last checkpoint where Ray's list of them is not there or not whole, and remove it.

    A full disk, or a kill at the wrong moment, leaves a part of it, with which Ray would refuse to
    go on.

    Parameters
    ----------
    folder : RunFolder
    network : str
        Its folder in that of the run.

    Returns
    -------
    str or None
        The newest whole checkpoint, to go on from without the list; None where it is not needed.
    """
    try:
        json.loads(bytes(folder.read(f"{network}/{RAY_LIST}") or b""))
    except ValueError:
        folder.delete(f"{network}/{RAY_LIST}")
    else:
        return None
    for name in reversed(folder.inside(network)):
        files = folder.inside(f"{network}/{name}")
        has_common = any(".rank-" not in file for file in files)
        if has_common and all(_is_whole(folder, f"{network}/{name}/{file}") for file in files):
            return f"{network}/{name}"
    return None


def _is_whole(folder: RunFolder, name: str) -> bool:
    with tempfile.NamedTemporaryFile(prefix="tabnsm-") as file:
        file.write(folder.read(name) or b"")
        file.flush()
        try:
            read_container(Path(file.name))
        except TabNSMError:
            return False
    return True
