"""DerivedRegressor: models that are made from a fitted one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tabnsm.hub import HubRegressor
from tabnsm.sklearn_base import check_is_fitted
from tabnsm.torch_state import usual_torch
from tabnsm.training.callbacks import Callback, CallbackList
from tabnsm.training.prepare import Validation


class DerivedRegressor(HubRegressor):
    """Distillation and refit of the estimator."""

    @usual_torch()
    def distill(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Train one small network to predict what this model predicts.

        The student has this model's encoder and target, and one network of width 16 in place of
        several of width 32, or of the blend of ``preset="best"``. It learns this model's
        predictions for nine tenths of `X` and for rows that are mixed from them: the values of one
        row in some columns and of another in the others. The predictions for the last tenth choose
        the best epoch.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            Rows such as this model was fitted on, best those of the fit; targets are not needed.
        y : as for `fit`, or None, default None
            True values, for the student's `validation_rmse_` and `best_score_`, which are else its
            distance from this model's predictions. Nothing is trained on them.
        **options
            Options of the student that differ from its usual ones, such as ``d_token=32`` or
            ``time_limit=60``.

        Returns
        -------
        TabNSMRegressor
            A new model; this one stays as it is.
        """
        from tabnsm.distillation import distill_model

        check_is_fitted(self, "model_")
        return distill_model(self, X, y, options)

    @usual_torch()
    def refit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        validation_groups: Any = None,
        validation_time: Any = None,
        X_old: Any = None,
        y_old: Any = None,
        callbacks: Iterable[Callback] | None = None,
    ) -> Self:
        """Go on with new rows, from the weights of the last fit.

        Scales and bins stay as they are, so that what was learned stays true. New categories, wider
        ranges and new columns get room; a column that the rows lack counts as missing, here and in
        `predict`. All networks are trained on the new rows and on rows of the earlier fits that
        the model keeps, with its own predictions for these as targets, at half of the learning
        rate. Then the model goes back towards its earlier weights, as far as the score on the
        validation rows stays within half a percent. The trees of ``preset="best"`` are grown again
        on the same rows, and keep less of earlier ones than networks do.

        Parameters
        ----------
        X, y, sample_weight, X_val, y_val, validation_groups, validation_time
            As in `fit`, of rows that the model was not fitted on. The rows to validate on must be
            new to it, too; with `validation_time` they are the latest.
        X_old, y_old : as `X` and `y`, or None
            Rows of earlier fits to train on in place of those that the model keeps, for a model
            that was saved without them or by an earlier version. None of them validates.
        callbacks : iterable of tabnsm.callbacks.Callback or None
            As in `fit`.

        Returns
        -------
        TabNSMRegressor
            Itself.
        """
        from tabnsm.refit import refit_model

        check_is_fitted(self, "model_")
        fraction: float = self.validation_fraction
        validation = Validation(X_val, y_val, validation_groups, validation_time, fraction)
        called = CallbackList(callbacks)
        old = {"X_old": X_old, "y_old": y_old}
        refit_model(self, X, y, sample_weight, validation, **old, callbacks=called)
        return self

    def _go_on(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: Validation,
        resume: bool,
        work_dir: str | Path | None,
        callbacks: CallbackList,
    ) -> Self:
        """A second `fit` with warm_start=True."""
        from tabnsm.refit import refit_model

        run: dict[str, Any] = {"resume": resume, "work_dir": work_dir, "callbacks": callbacks}
        refit_model(self, X, y, sample_weight, validation, warm_start=True, **run)
        return self
