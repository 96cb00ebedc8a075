"""Names and options of earlier versions, for the readers of old files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "weight_averaging": "ema_decay",
    "n_pieces": "n_bins",
    "bend_tails": "target_transform",
    "linear_part": "linear_residual",
    "draw": "rise_sampling",
    "token_parts": "n_token_pools",
}
"""Options by the names that they had in model files of formats 1 to 3."""
MISSING_OPTIONS: dict[str, Any] = {
    "repeated_strings": "text",
    "n_bins": 0,
    "text_columns": "joined",
    "n_text_features": 0,
    "n_token_pools": 0,
    "target_transform": "none",
    "linear_residual": False,
    "ema_decay": 0.0,
    "n_ensemble": 1,
}
"""What models were made with whose files do not name these options."""
_TRANSFORMS = {True: "auto", False: "none"}
_TENSORS = {"encoder.pieces": "encoder.bins"}
_PREFIXES = {"model.members.": "model.networks."}
LAST_FORMAT = 3
"""The last file format with these names."""


def rename_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under the names, and with the values, that they have now.

    Examples
    --------
    >>> rename_options({"bend_tails": False, "draw": "systematic", "d_token": 16})
    {'target_transform': 'none', 'rise_sampling': 'systematic', 'd_token': 16}
    """
    renamed = {RENAMED.get(name, name): value for name, value in options.items()}
    transform = renamed.get("target_transform")
    if isinstance(transform, bool):
        renamed["target_transform"] = _TRANSFORMS[transform]
    return renamed


def upgrade_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a model file of any format, with the names of the newest."""
    if meta["format_version"] > LAST_FORMAT:
        return dict(meta)
    encoder = dict(meta["encoder"])
    encoder["config"] = rename_options(encoder["config"])
    return dict(meta) | {
        "params": rename_options(meta["params"]),
        "options": {part: rename_options(values) for part, values in meta["options"].items()},
        "encoder": encoder,
        "n_networks": meta.get("n_members", 1),
    }


def rename_tensor(name: str) -> str:
    """Name of a tensor of a model file of any format, as in the newest.

    Examples
    --------
    >>> rename_tensor("model.members.0.head.bias"), rename_tensor("encoder.pieces")
    ('model.networks.0.head.bias', 'encoder.bins')
    """
    for old, new in _PREFIXES.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return _TENSORS.get(name, name)
