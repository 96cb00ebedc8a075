"""TrainableRegressor: how the options and a table become a fitted model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tabnsm.blend import BlendFit
from tabnsm.derived import DerivedRegressor
from tabnsm.errors import warn
from tabnsm.intervals import seconds_after_training
from tabnsm.options import check_run_options, resolve_options
from tabnsm.prediction import resolve_device
from tabnsm.torch_state import usual_torch
from tabnsm.training.backend import new_training
from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import Callback, CallbackList
from tabnsm.training.checkpoint import locked_folder
from tabnsm.training.mapped import fit_folder
from tabnsm.training.prepare import FitRows, Validation
from tabnsm.training.progress import TrainingProgress, show_preparation


class TrainableRegressor(DerivedRegressor):
    """`fit` of the estimator; its options are those of `TabNSMRegressor`."""

    preset: str
    validation_fraction: float
    checkpoint_dir: str | Path | None
    device: str
    n_jobs: int | None
    random_state: Any
    verbose: int
    warm_start: bool

    @usual_torch()
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        validation_groups: Any = None,
        validation_time: Any = None,
        resume: bool = False,
        work_dir: str | Path | None = None,
        callbacks: Iterable[Callback] | None = None,
    ) -> Self:
        """Train on a table.

        Rows without any target, and rows of weight zero, are left out before anything else.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            Or a dataset: the path of a Parquet or Arrow file, a folder or pattern of them, or a
            `pyarrow.dataset.Dataset`; what has a value per row may then be a column's name.
        y : array-like of shape (n_rows,), or DataFrame, dict of columns or array (n_rows, t)
            One target, or several that share tokens and interaction. Of several, a row may lack
            some: these are left out of the loss and of the scores.
        sample_weight : array-like of shape (n_rows,) or None
            Weights in the loss and in the validation score.
        X_val, y_val : as `X` and `y`, or None
            Rows to validate on; else a part of `X` is held out.
        validation_groups : array-like of shape (n_rows,) or None
            Hold out whole groups of rows.
        validation_time : array-like of shape (n_rows,) or None
            Hold out the latest rows.
        resume : bool, default False
            Continue the run whose state is in `checkpoint_dir`, if there is one.
        work_dir : str, Path or None
            Place of a dataset's encoded rows during the fit: `checkpoint_dir`, or a temporary one.
        callbacks : iterable of tabnsm.callbacks.Callback or None
            Called after every epoch and network, and at the end; may stop training.

        Returns
        -------
        TabNSMRegressor
            Itself.
        """
        options = resolve_options(self.get_params(deep=False))
        budget = TimeBudget(options.training.time_limit)
        validation = Validation(
            X_val, y_val, validation_groups, validation_time, self.validation_fraction
        )
        called = CallbackList(callbacks)
        check_run_options(self.verbose, self.n_jobs, resume, self.checkpoint_dir)
        if self.warm_start and hasattr(self, "model_"):
            return self._go_on(X, y, sample_weight, validation, resume, work_dir, called)
        device = resolve_device(self.device)
        place = fit_folder(X, work_dir, self.checkpoint_dir, resume)
        with locked_folder(self.checkpoint_dir), place as folder:
            rows = FitRows.collect(X, y, sample_weight, validation, self.random_state, folder)
            show_preparation(self.verbose, rows.table.n_rows, rows.table.n_columns)
            prepared = rows.prepare(options, budget)
            further = BlendFit(prepared, budget) if self.preset == "best" else None
            training = new_training(prepared, device, budget, self.n_jobs)
            with (
                TrainingProgress.of(prepared.options.training, self.verbose) as progress,
                budget.reserved(seconds_after_training(prepared, budget)),
            ):
                training.train(self.checkpoint_dir, resume, progress, called)
            self._keep(rows.table, prepared, training, further, rows.groups)
            if folder is not None:
                folder.is_needed = training.is_cut
        called.on_end(self)
        for message in training.messages:
            warn(message)  # not before there is a model: a second Ctrl-C would make it untrue
        return self
