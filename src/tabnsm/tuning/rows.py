"""TuningRows: split once, encoded once per set of encoder options, trained on many times."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from tabnsm.columns import TableEncoder
from tabnsm.columns.checks import warn_about_columns
from tabnsm.columns.config import EncoderConfig
from tabnsm.ensemble_training import fingerprint, initial_state
from tabnsm.errors import TabNSMWarning
from tabnsm.estimator import TabNSMRegressor, _resolve_device
from tabnsm.preprocessing import TargetScaler
from tabnsm.presets import Options
from tabnsm.training.history import History
from tabnsm.training.loop import Trainer, TrainingData, TrainingDivergedError
from tabnsm.training.objective import Objective
from tabnsm.training.rows import split_rows, subtract_linear_fit, usable_rows, validation_rows
from tabnsm.training.split import row_labels, validation_mask
from tabnsm.tuning.report import Report


class TuningRows:
    """The rows of a search: split once, encoded once per set of encoder options."""

    def __init__(
        self,
        base: TabNSMRegressor,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        groups: Any,
        time: Any,
        verbose: int,
    ) -> None:
        self.device = _resolve_device(base.device)
        self.verbose = verbose
        self.table, self.target, self.weight, kept = usable_rows(X, y, sample_weight)
        self.given = None if X_val is None else validation_rows(X_val, y_val, self.table)
        self.seed = int(check_random_state(base.random_state).randint(2**31))
        generator = torch.Generator().manual_seed(self.seed)
        self.held_out = np.zeros(self.table.n_rows, dtype=bool)
        if self.given is None:
            labels = [
                None if values is None else row_labels(values, len(kept), name)[kept]
                for name, values in (("validation_groups", groups), ("validation_time", time))
            ]
            self.held_out = validation_mask(
                self.table.n_rows, base.validation_fraction, generator, *labels
            )
        # Every trial goes on from here, as a fit would.
        self.generator_state = generator.get_state()
        self.encoded: dict[str, tuple[TableEncoder, TrainingData]] = {}
        self.rests: dict[str, TrainingData] = {}

    def prepare(self, config: EncoderConfig) -> tuple[TableEncoder, TrainingData]:
        """Encoder and encoded rows; made at the first call with these options."""
        key = _key(config)
        if key not in self.encoded:
            encoder = TableEncoder(dataclasses.replace(config, verbose=min(self.verbose, 1)))
            fit_rows = np.flatnonzero(~self.held_out)
            with self.table.keep_columns():
                encoded = encoder.fit_transform(self.table, fit_rows)
                if not self.encoded:
                    for message in warn_about_columns(self.table, encoder, self.target, fit_rows):
                        warnings.warn(message, TabNSMWarning, stacklevel=4)
            if self.given is None:
                data = split_rows(encoded, self.target, self.weight, self.held_out)
            else:
                given = encoder.transform(self.given[0])
                data = TrainingData(encoded, self.target, self.weight, given, self.given[1], None)
            self.encoded[key] = (encoder, data)
        return self.encoded[key]

    def rest(self, config: EncoderConfig) -> TrainingData:
        """Encoded rows without the linear part of the target, if it has one."""
        key = _key(config)
        if key not in self.rests:
            encoder, data = self.prepare(config)
            self.rests[key], _ = subtract_linear_fit(data, encoder.category_sizes)
        return self.rests[key]

    def fingerprint(self, options: Options) -> str:
        """Hash of the rows and of the options that the search starts from."""
        encoder, data = self.prepare(options.encoder)
        return fingerprint(data, encoder, options, self.seed)

    def score(self, options: Options, report: Report) -> float:
        """Train with these options; the `eval_metric` of the best epoch on the validation rows."""
        encoder, data = self.prepare(options.encoder)
        if options.objective.linear_residual:
            data = self.rest(options.encoder)
        scaler = TargetScaler.fit(
            data.train_target,
            data.train_weight,
            transform=options.objective.target_transform == "auto",
            limit=options.encoder.clip_outliers,
        )
        generator = torch.Generator()
        generator.set_state(self.generator_state)
        state = initial_state(encoder, options, data.train.n_rows, generator, self.device)
        left = report.seconds_left
        limits = [limit for limit in (options.training.time_limit, left) if limit is not None]
        # A trial that begins at the last moment still makes a step.
        limit = max(min(limits), 1e-3) if limits else None

        def at_epoch(history: History) -> None:
            report(len(history), history.metric_of(history.best))

        trainer = Trainer(
            dataclasses.replace(options.training, time_limit=limit),
            Objective(options.objective.for_target(data.train_target)),
            scaler,
            data,
            self.device,
            at_epoch,
        )
        try:
            with warnings.catch_warnings():
                # That it keeps the best epoch after Ctrl-C or a divergence is not the point here.
                warnings.simplefilter("ignore", TabNSMWarning)
                history = trainer.train(state)
        except TrainingDivergedError:
            report.prune()
        if history.stop_reason == "interrupted":
            raise KeyboardInterrupt
        score = history.metric_of(history.best)
        out_of_time = report.seconds_left == 0 and history.stop_reason.startswith("time_limit")
        if out_of_time and score >= report.best_score:
            report.put_back()
        return score if math.isfinite(score) else report.prune()


def _key(config: EncoderConfig) -> str:
    return json.dumps(config.to_dict(), sort_keys=True)
