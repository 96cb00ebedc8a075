"""Checkpoints are found without Ray's list of them, where that is not whole."""

from __future__ import annotations

from pathlib import Path

import torch

from tabnsm.container import write_container
from tabnsm.distributed.checkpoint import RAY_LIST, recover_list
from tabnsm.distributed.storage import RunFolder


def test_a_list_that_is_not_whole_is_replaced_by_the_newest_checkpoint(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "run").make()
    network = tmp_path / "run" / "network-1"
    assert recover_list(folder, "network-1") is None
    for k in range(4):
        place = network / f"checkpoint_{k}"
        place.mkdir(parents=True)
        for name in ("checkpoint", "checkpoint.rank-0"):
            write_container(place / f"{name}.safetensors", {"a": torch.ones(k + 1)}, {})
    cut = network / "checkpoint_2" / "checkpoint.safetensors"
    cut.write_bytes(cut.read_bytes()[:20])
    for file in (network / "checkpoint_3").iterdir():
        file.unlink()
    (network / RAY_LIST).write_text("{}")
    assert recover_list(folder, "network-1") is None
    assert (network / RAY_LIST).exists()
    (network / RAY_LIST).write_text('{"checkpoint_res')
    assert recover_list(folder, "network-1") == "network-1/checkpoint_1"
    assert not (network / RAY_LIST).exists()
    assert recover_list(folder, "network-1") == "network-1/checkpoint_1"
