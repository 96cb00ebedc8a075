"""TuningRows: prepared once, scored with many sets of options."""

from __future__ import annotations

import dataclasses
import math
import warnings

import torch

from tabnsm.errors import TabNSMWarning
from tabnsm.options import Options
from tabnsm.training.history import History
from tabnsm.training.loop import TrainingDivergedError
from tabnsm.training.network import fingerprint, initial_state, make_trainer
from tabnsm.training.prepare import FitRows, PreparedFit
from tabnsm.tuning.report import Report


class TuningRows:
    """The rows of a search: split once, encoded once per set of encoder options.

    `verbose` of 1 or more shows a bar while texts are embedded.
    """

    def __init__(self, rows: FitRows, device: torch.device, verbose: int) -> None:
        self.rows = rows
        self.device = device
        self.verbose = verbose

    def prepare(self, options: Options) -> PreparedFit:
        """What a fit with these options trains on."""
        encoder = dataclasses.replace(options.encoder, verbose=min(self.verbose, 1))
        return self.rows.prepare(dataclasses.replace(options, encoder=encoder))

    def fingerprint(self, options: Options) -> str:
        """Hash of the rows and of the options that the search starts from."""
        return fingerprint(self.prepare(options))

    def score(self, options: Options, report: Report) -> float:
        """Train with these options; the `eval_metric` of the best epoch on the validation rows."""
        prepared = self.prepare(options)
        state = initial_state(prepared, 0, self.device)
        limits = [options.training.time_limit, report.seconds_left]
        seconds = min((limit for limit in limits if limit is not None), default=None)

        def at_epoch(history: History) -> None:
            report(len(history), history.metric_of(history.best))

        # A trial that begins at the last moment still makes a step.
        limit = None if seconds is None else max(seconds, 1e-3)
        training = dataclasses.replace(prepared.options.training, time_limit=limit)
        limited = dataclasses.replace(prepared.options, training=training)
        trainer = make_trainer(
            dataclasses.replace(prepared, options=limited), self.device, at_epoch
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
