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
REMOVED = (
    "compress_stride",
    "mixer_chunk_size",
    "huber_delta",
    "n_difficulty_bins",
    "gradient_clip",
)
"""Parameters that the estimator no longer has; the configs that a file stores still do."""
MISSING_OPTIONS: dict[str, Any] = {
    "repeated_strings": "text",
    "n_bins": 0,
    "text_columns": "joined",
    "n_text_features": 0,
    "target_means": False,
    "select_text": False,
    "n_token_pools": 0,
    "target_transform": "none",
    "linear_residual": False,
    "ema_decay": 0.0,
    "n_ensemble": 1,
}
"""What models were made with whose files do not name these options."""
_TRANSFORMS = {True: "auto", False: "none"}
_TENSORS = {"encoder.pieces": "encoder.bins"}
_PREFIXES = {"model.members.": "model.networks.", "linear.": "target.0."}
_OF_THE_TARGET = ("target_transform", "linear_residual")
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
    if meta["format_version"] <= LAST_FORMAT:
        meta = _with_new_names(meta)
    params = {name: value for name, value in meta["params"].items() if name not in REMOVED}
    meta = dict(meta) | {"params": params}
    return _with_target(meta) if "scaler" in meta else meta


def _with_new_names(meta: Mapping[str, Any]) -> dict[str, Any]:
    encoder = dict(meta["encoder"])
    encoder["config"] = rename_options(encoder["config"])
    return dict(meta) | {
        "params": rename_options(meta["params"]),
        "options": {part: rename_options(values) for part, values in meta["options"].items()},
        "encoder": encoder,
        "n_networks": meta.get("n_members", 1),
    }


def _with_target(meta: Mapping[str, Any]) -> dict[str, Any]:
    """With all that belongs to the target in one place, and an option for its limits."""
    upgraded = {k: v for k, v in meta.items() if k not in ("scaler", "linear_scaler")}
    linear = meta.get("linear_scaler")
    upgraded["target"] = [
        {
            "scaler": _rename_scale(meta["scaler"]),
            "linear_scaler": None if linear is None else _rename_scale(linear),
        }
    ]
    # One option limited the numbers of a table and the predictions.
    params, options = meta["params"], meta["options"]
    upgraded["params"] = {"clip_predictions": params.get("clip_outliers"), **params}
    objective = dict(options["objective"])
    target = {name: objective.pop(name) for name in _OF_THE_TARGET if name in objective}
    target["clip_predictions"] = options["encoder"]["clip_outliers"]
    upgraded["options"] = options | {"target": target, "objective": objective}
    return upgraded


def _rename_scale(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"asinh" if name == "tails" else name: value for name, value in state.items()}


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
