"""Presets, and how the estimator's flat options become the configs that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tabnsm.columns.config import EncoderConfig
from tabnsm.errors import InvalidOptionError
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.training.config import TrainingConfig
from tabnsm.training.objective import ObjectiveConfig
from tabnsm.training.rise import RiseConfig

# What a preset changes against the defaults of the config classes. An option of the estimator
# that is None takes the preset's value, else the class's.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # NOTE[DIFF]: the default departs from the paper in each of these; docs/paper-map.md says why.
    "paper": {
        "date_encoding": "text",
        "category_encoding": "code",
        "repeated_strings": "text",
        "n_bins": 0,
        "text_columns": "joined",
        "n_text_features": 0,
        "missing_indicators": False,
        "clip_outliers": False,
        "d_token": 64,
        "gates": "feature",
        "n_token_pools": 0,
        "loss": "blend",
        "normalize_grid": False,
        "temperature": 1.0,
        "target_transform": "none",
        "linear_residual": False,
        "rise_sampling": "multinomial",
        "ema_decay": 0.0,
        "n_ensemble": 1,
    },
    "fast": {
        "d_token": 16,
        "n_ensemble": 1,
        "max_epochs": 30,
        "patience": 6,
        "scheduler_patience": 2,
    },
}


@dataclass(frozen=True)
class Options:
    """All resolved options of one fit."""

    architecture: ArchitectureConfig
    encoder: EncoderConfig
    objective: ObjectiveConfig
    rise: RiseConfig
    training: TrainingConfig

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """JSON-able form, one dict per config."""
        return {
            "architecture": asdict(self.architecture),
            "encoder": self.encoder.to_dict(),
            "objective": asdict(self.objective),
            "rise": asdict(self.rise),
            "training": asdict(self.training),
        }


def plain_value(value: Any) -> Any:
    """Python's number for numpy's, which a parameter search may pass; else the value itself."""
    return value.item() if isinstance(value, np.generic) else value


def resolve_options(params: Mapping[str, Any]) -> Options:
    """Build the configs from the estimator's parameters.

    Parameters
    ----------
    params : mapping
        As from ``TabNSMRegressor.get_params()``.

    Examples
    --------
    >>> resolve_options({"preset": "paper"}).architecture.gates
    'feature'
    >>> resolve_options({"preset": "paper", "gates": "head"}).architecture.gates
    'head'
    """
    preset = params.get("preset", "default")
    if preset not in PRESETS:
        raise InvalidOptionError(f"preset must be one of {tuple(PRESETS)}, got {preset!r}.")

    def build(cls: type[Any]) -> Any:
        known = {field.name for field in fields(cls)}
        chosen = {k: v for k, v in PRESETS[preset].items() if k in known}
        chosen |= {k: plain_value(v) for k, v in params.items() if k in known and v is not None}
        return cls(**chosen)

    return Options(
        architecture=build(ArchitectureConfig),
        encoder=build(EncoderConfig),
        objective=build(ObjectiveConfig),
        rise=build(RiseConfig),
        training=build(TrainingConfig),
    )
