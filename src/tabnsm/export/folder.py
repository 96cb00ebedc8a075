"""A fitted model as a folder that other runtimes can read."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from tabnsm.columns.text import TextColumns
from tabnsm.errors import InvalidOptionError
from tabnsm.export.description import calibrated_targets, describe_model
from tabnsm.export.members import OnnxDifficulty, OnnxMembers
from tabnsm.export.network import OnnxNetwork
from tabnsm.export.onnx_file import check_file, check_onnx, save, trace
from tabnsm.export.text import OnnxBert, example_tokens, find_bert, tokenizer_file
from tabnsm.nn.ensemble import networks_of

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor
    from tabnsm.text import TextEncoder

READER = "tabnsm_reader.py"
_FEATURES = ("features", "standard")


def export_onnx(model: FittedRegressor, folder: str | Path) -> None:
    """Write a fitted model to a folder: ONNX networks, encoder, and a reader without torch.

    Parameters
    ----------
    model : FittedRegressor
    folder : str or Path
        New or empty; it appears whole or not at all.

    Raises
    ------
    MissingExtraError
        If the extra "onnx" is not installed.
    InvalidOptionError
        If the folder holds something, or the model a part that ONNX cannot have.
    """
    folder = Path(folder)
    check_onnx()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InvalidOptionError(
            f"The folder to export to must be new or empty, got {str(folder)!r}. Name another one, "
            "or remove what is there."
        )
    encoder = _text_encoder(model)
    text = None if encoder is None else find_bert(encoder)  # refuses before any work
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    try:
        names = [f"network-{k + 1}.onnx" for k in range(len(networks_of(model.model_)))]
        facts, arrays = describe_model(model, names)
        _write_networks(model, temporary, names)
        if text is not None:
            bert, tokenizer, max_tokens = text
            network = OnnxBert(bert)
            axes = {0: "n_texts", 1: "n_tokens"}
            program = trace(network, example_tokens(), axes, ("tokens", "embedding"))
            save(program, network, temporary / "text.onnx")
            content = tokenizer_file(tokenizer, max_tokens)
            (temporary / "tokenizer.json").write_text(content, encoding="utf-8")
        np.savez(temporary / "arrays.npz", **arrays)  # type: ignore[arg-type]
        content = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
        (temporary / "model.json").write_text(content, encoding="utf-8")
        shutil.copyfile(Path(__file__).with_name("reader.py"), temporary / READER)
        temporary.chmod(0o755)  # not the private one of a temporary folder
        if folder.is_dir():
            folder.rmdir()
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _text_encoder(model: FittedRegressor) -> TextEncoder | None:
    groups = (group for group in model.encoder_._groups if isinstance(group, TextColumns))
    block = next(groups).block
    return None if block is None else block.encoder


def _write_networks(model: FittedRegressor, folder: Path, names: Sequence[str]) -> None:
    """Write one file per network, and those of what a blend and intervals have beside them."""
    # Copies: the user's model may be on a GPU.
    networks = [OnnxNetwork(copy.deepcopy(n).cpu().eval()) for n in networks_of(model.model_)]
    example = torch.zeros(3, model.encoder_.n_features)
    program = trace(networks[0], example, {0: "n_rows"}, _FEATURES)
    for name, network in zip(names, networks, strict=True):
        save(program, network, folder / name)
        rows = torch.randn(8, model.encoder_.n_features, generator=torch.Generator().manual_seed(0))
        check_file(folder / name, network, rows)
    blend, targets = model.blend_, calibrated_targets(model)
    if blend is not None and (blend.members or blend.neighbors):
        members = OnnxMembers(blend, networks[0])
        save(trace(members, example, {0: "n_rows"}, _FEATURES), members, folder / "members.onnx")
    if targets:
        difficulty = OnnxDifficulty([target.difficulty for target in targets])
        example = torch.zeros(3, model.encoder_.n_features + len(targets))
        program = trace(difficulty, example, {0: "n_rows"}, ("features", "difficulty"))
        save(program, difficulty, folder / "difficulty.onnx")
