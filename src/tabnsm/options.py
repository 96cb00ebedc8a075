"""Presets, and how the estimator's flat options become the concrete ones that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tabnsm.columns import EncoderConfig
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.rules import is_integer, require, require_one_of
from tabnsm.target import TargetConfig
from tabnsm.training.config import TrainingConfig
from tabnsm.training.jobs import check_jobs
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
        "target_means": False,
        "select_text": False,
        "missing_indicators": False,
        "clip_outliers": False,
        "clip_predictions": False,
        "d_token": 64,
        "gates": "feature",
        "n_token_pools": 0,
        "head_width": 256,
        "loss": "blend",
        "normalize_grid": False,
        "temperature": 1.0,
        "target_transform": "none",
        "linear_residual": False,
        "rise_sampling": "multinomial",
        "ema_decay": 0.0,
        "n_ensemble": 1,
        "max_epochs": 100,
        "patience": 16,
    },
    # NOTE[DIFF]: trees beside the networks, which are those of the default; see `tabnsm.blend`.
    "best": {},
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
    """All options of one fit.

    `resolve_options` makes them from the estimator's, before any data is known, and `for_data`
    makes them concrete.
    """

    architecture: ArchitectureConfig
    encoder: EncoderConfig
    target: TargetConfig
    objective: ObjectiveConfig
    rise: RiseConfig
    training: TrainingConfig

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """JSON-able form, one dict per config."""
        return {
            "architecture": asdict(self.architecture),
            "encoder": self.encoder.to_dict(),
            "target": asdict(self.target),
            "objective": asdict(self.objective),
            "rise": asdict(self.rise),
            "training": asdict(self.training),
        }

    def for_data(
        self, target: np.ndarray, n_features: int, explained: float | None = None
    ) -> Options:
        """The same options with a number in place of each "auto" and each None that means one.

        They depend on the targets of the training rows, (n, t), and on the number of encoded
        features: the loss, the token pools, the stride, the width of the head, the batch size and
        the number of networks.

        Examples
        --------
        >>> options = resolve_options({}).for_data(np.arange(1000.0)[:, None], n_features=80)
        >>> options.training.batch_size, options.training.n_ensemble, options.objective.loss
        (32, 3, 'blend')
        >>> options.architecture.n_token_pools, options.architecture.compress_stride
        (4, 10)
        """
        architecture, training, n_rows = self.architecture, self.training, len(target)
        return replace(
            self,
            architecture=replace(
                architecture,
                n_token_pools=architecture.resolved_pools(n_features),
                compress_stride=architecture.resolved_stride,
                head_width=architecture.resolved_width(n_features, n_rows),
            ),
            objective=self.objective.for_target(target, explained),
            training=replace(
                training,
                batch_size=training.resolved_batch_size(n_rows),
                n_ensemble=training.resolved_ensemble(n_rows, n_features),
            ),
        )


def plain_value(value: Any) -> Any:
    """Python's number for numpy's, which a parameter search may pass; else the value itself."""
    return value.item() if isinstance(value, np.generic) else value


def resolve_options(params: Mapping[str, Any]) -> Options:
    """Build the configs from the estimator's parameters.

    Examples
    --------
    >>> resolve_options({"preset": "paper"}).architecture.gates
    'feature'
    >>> resolve_options({"preset": "paper", "gates": "head"}).architecture.gates
    'head'
    """
    preset = params.get("preset", "default")
    require_one_of("preset", preset, tuple(PRESETS))

    def build(cls: type[Any]) -> Any:
        known = {field.name for field in fields(cls)}
        chosen = {k: v for k, v in PRESETS[preset].items() if k in known}
        chosen |= {k: plain_value(v) for k, v in params.items() if k in known and v is not None}
        return cls(**chosen)

    return Options(
        architecture=build(ArchitectureConfig),
        encoder=build(EncoderConfig),
        target=build(TargetConfig),
        objective=build(ObjectiveConfig),
        rise=build(RiseConfig),
        training=build(TrainingConfig),
    )


def check_run_options(
    verbose: Any, n_jobs: int | None, resume: bool, checkpoint_dir: str | Path | None
) -> None:
    """Refuse what says how a fit runs, rather than what it fits, before any work."""
    is_level = isinstance(verbose, (bool, np.bool_)) or is_integer(verbose, 0)
    require(is_level, "verbose must be an integer >= 0", verbose)
    check_jobs(n_jobs)
    rule = "resume=True needs checkpoint_dir, the folder of the run"
    require(not resume or checkpoint_dir is not None, rule, None)
