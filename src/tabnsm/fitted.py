"""FittedRegressor: predictions, intervals, score and file of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tabnsm.attribution import column_importances
from tabnsm.blend import Blend
from tabnsm.columns import EncodedTable, TableEncoder
from tabnsm.errors import ModelFileError
from tabnsm.intervals import Calibration, calibrate, interval_levels, quantile_levels
from tabnsm.metrics import target_metrics
from tabnsm.model_file import load_model, save_model
from tabnsm.nn.ensemble import Ensemble, join_networks
from tabnsm.nn.model import TabNSM
from tabnsm.options import Options
from tabnsm.prediction import predict_rows, resolve_device
from tabnsm.replay import ReplayRows
from tabnsm.sklearn_base import BaseEstimator, RegressorMixin, check_is_fitted
from tabnsm.tables import Table
from tabnsm.tables.column import Column
from tabnsm.tables.dataset import is_dataset
from tabnsm.target import TargetModel, read_targets
from tabnsm.target.checks import check_target
from tabnsm.torch_state import usual_torch
from tabnsm.training.history import History
from tabnsm.training.named import read_target

if TYPE_CHECKING:
    from tabnsm.blend import BlendFit
    from tabnsm.columns import EncodedTable
    from tabnsm.precision import StoredDtype
    from tabnsm.text import TextEncoder
    from tabnsm.training.ensemble import EnsembleTraining
    from tabnsm.training.prepare import PreparedFit


# Rows of a dataset that are predicted at a time.
BATCH_VALUES, MIN_BATCH_ROWS = 2**22, 1024


class FittedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction, score and file of the estimator; it keeps what `fit` makes."""

    model_: TabNSM | Ensemble
    encoder_: TableEncoder
    target_: TargetModel
    blend_: Blend | None
    calibration_: Calibration | None
    replay_: ReplayRows | None
    histories_: tuple[History, ...]
    options_: Options
    validation_rmse_: float
    best_score_: float
    n_features_in_: int
    feature_names_in_: np.ndarray
    target_names_: np.ndarray
    feature_importances_: np.ndarray

    def _keep(
        self,
        table: Table,
        prepared: PreparedFit,
        training: EnsembleTraining,
        further: BlendFit | None = None,
        groups: np.ndarray | None = None,
        earlier: ReplayRows | None = None,
    ) -> None:
        """Set all that is fitted; `earlier` are rows of fits before this one."""
        model, blend = join_networks(training.models).eval(), None
        if further is None:
            scores = training.evaluate()
        else:
            blend, scores = further.finish(model, training.device, training.budget)
        self.n_features_in_ = table.n_columns
        if table.has_names:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.model_ = model
        self.blend_ = blend
        self.calibration_ = calibrate(
            prepared, model, blend, training.device, groups, training.budget
        )
        self.encoder_ = prepared.encoder
        n_weights = sum(weight.numel() for weight in model.parameters())
        self.replay_ = ReplayRows.draw(
            prepared.data.train, self.encoder_.category_sizes, n_weights, prepared.seed, earlier
        )
        self.target_ = prepared.target
        if self.target_.names is not None:
            self.target_names_ = np.array(self.target_.names, dtype=object)
        elif hasattr(self, "target_names_"):
            del self.target_names_
        self.histories_ = tuple(training.histories)
        self.validation_rmse_ = scores.rmse
        self.best_score_ = getattr(scores, prepared.options.training.eval_metric)
        self.options_ = prepared.options
        self.feature_importances_ = column_importances(
            model,
            self.encoder_,
            self.target_,
            prepared.data.train,
            self._blended,
            training.budget.seconds_left if training.budget.is_limited else None,
        )

    @property
    def history_(self) -> History:
        """One record per epoch of the first network, its best epoch and why training stopped."""
        return self.histories_[0]

    @property
    def n_iter_(self) -> int:
        """Epochs of the network that was trained longest."""
        return max(len(history) for history in self.histories_)

    @usual_torch()
    def predict(
        self,
        X: Any,
        *,
        output_type: Literal["mean", "median", "quantiles"] = "mean",
        quantiles: Sequence[float] | None = None,
    ) -> np.ndarray:
        """Predict the target, or all targets, of every row.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            With the columns of `fit`; order does not matter when they have names, further
            columns are ignored. Or a dataset as for `fit`, of which a part is in memory at a time.
        output_type : {"mean", "median", "quantiles"}, default "mean"
            "mean" is the prediction of the networks; the others are calibrated on the rows that
            `fit` holds out.
        quantiles : sequence of float or None, default None
            For "quantiles", levels between 0 and 1, in any order; None is 0.1, 0.2, ..., 0.9.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Of a model of t > 1 targets (n_rows, t), in the order of `fit`. Quantiles have their
            levels as a further axis, (n_rows, q) or (n_rows, t, q), and never cross.
        """
        check_is_fitted(self, "model_")
        levels = quantile_levels(output_type, quantiles)
        if is_dataset(X):
            options: dict[str, Any] = {"output_type": output_type, "quantiles": quantiles}
            return np.concatenate([self.predict(batch, **options) for batch in self._batches(X)])
        if levels is None:
            found, _, _ = self._predict_points(X)
        else:
            _, found = self.predict_with_quantiles(X, levels)
        if output_type == "median":
            found = found[:, :, 0]
        return found[:, 0] if self.target_.n_targets == 1 else found

    def predict_interval(
        self, X: Any, confidence_level: float | Sequence[float] = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predict every row, and an interval that holds its true value.

        Intervals are calibrated on the rows that `fit` holds out. Of new rows that are
        exchangeable with these, they hold the true value of a share of `confidence_level` or
        more, on average over fits; wide ones are those of rows that are hard to predict.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            As for `predict`.
        confidence_level : float or sequence of float, default 0.9
            Between 0 and 1. Half of the rest is left out at either end.

        Returns
        -------
        points : ndarray of float64, shape (n_rows,) or (n_rows, t)
            What `predict` returns.
        intervals : ndarray of float64, shape (n_rows, 2)
            Lower and upper bounds. Several levels are a last axis, (n_rows, 2, k); several
            targets an axis after the rows, (n_rows, t, 2) or (n_rows, t, 2, k).
        """
        levels, is_single = interval_levels(confidence_level)
        points, found = self.predict_with_quantiles(X, levels)  # (n, t, 2 k)
        found = found.reshape(*points.shape, 2, len(levels) // 2)  # (n, t, 2, k)
        if is_single:
            found = found[..., 0]
        return (points[:, 0], found[:, 0]) if self.target_.n_targets == 1 else (points, found)

    @usual_torch()
    def predict_with_quantiles(
        self, X: Any, quantiles: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and quantiles at once, with an axis of targets, also of one.

        Parameters
        ----------
        X : as for `predict`
        quantiles : sequence of float
            Levels between 0 and 1.

        Returns
        -------
        tuple of ndarray of float64
            Of shape (n_rows, t) and (n_rows, t, q).
        """
        check_is_fitted(self, "model_")
        if self.calibration_ is None:
            raise ModelFileError(
                "Intervals and quantiles need a model that was calibrated by fit, but this one was "
                "distilled or is from a file of an earlier version. Use the model it was distilled "
                "from, or fit it again."
            )
        self.calibration_.check(quantiles, self.target_.labels)
        if is_dataset(X):
            pairs = [self.predict_with_quantiles(batch, quantiles) for batch in self._batches(X)]
            means, found = (np.concatenate(part) for part in zip(*pairs, strict=True))
            return means, found
        points, encoded, standard = self._predict_points(X)
        return points, self.calibration_.quantiles(points, encoded, standard, quantiles)

    def _predict_points(self, X: Any) -> tuple[np.ndarray, EncodedTable, np.ndarray]:
        """Predictions, (n, t), encoded rows, and what the networks predict, (n, t)."""
        encoded = self.encoder_.transform(Table.from_native(X, min_rows=0))
        standard = self._predict_standard(encoded)
        return self._blended(self.target_.predict(standard, encoded), encoded), encoded, standard

    def predict_encoded(self, encoded: EncodedTable) -> np.ndarray:
        """Predictions of encoded rows in the units of the targets, (n, t)."""
        standard = self._predict_standard(encoded)
        return self._blended(self.target_.predict(standard, encoded), encoded)

    def _predict_standard(self, encoded: EncodedTable) -> np.ndarray:
        """What the networks predict, (n, t)."""
        return predict_rows(self.model_, encoded, next(self.model_.parameters()).device)

    def _blended(self, prediction: np.ndarray, encoded: EncodedTable) -> np.ndarray:
        """Predictions of the model from those of its networks, (n, t)."""
        if self.blend_ is None:
            return prediction
        return self.blend_.predict(prediction[:, 0], encoded, self.target_, self.model_)[:, None]

    def _batches(self, X: Any) -> Iterator[Any]:
        """The rows of a dataset, a part of them at a time; one part without rows if it has none."""
        table = Table.from_native(X, min_rows=0)
        known = list(getattr(self, "feature_names_in_", ()))
        if known and set(known) & set(table.names):
            table = table.without([name for name in table.names if name not in set(known)])
        assert table.dataset is not None
        batch_rows = max(MIN_BATCH_ROWS, BATCH_VALUES // self.encoder_.n_features)
        is_empty = True
        for batch in table.dataset.batches(batch_rows):
            is_empty = False
            yield batch
        if is_empty:
            yield table.dataset.dataset.schema.empty_table()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions; of several targets the mean of theirs, as in scikit-learn.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            As for `predict`.
        y : array-like of shape (n_rows,) or (n_rows, t)
            True values; of a dataset, names of columns. Of several targets, some may be missing:
            each is scored on the rows that have it, and columns are matched by name.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self, "model_")
        n_targets = self.target_.n_targets
        if is_dataset(X):
            X, y = read_target(Table.from_native(X), y)
        if n_targets == 1:
            if isinstance(y, Column):
                y = check_target(y, X.n_rows, must_vary=False)[0]
            return float(super().score(X, y, sample_weight))
        prediction = self.predict(X)
        targets = read_targets(y, len(prediction), must_vary=False)
        truth = targets.in_order(self.target_.names, n_targets, "y").values
        scores = target_metrics(truth, prediction, sample_weight, self.target_.labels)
        return float(np.mean([each["r2"] for each in scores.values()]))

    def save(
        self, path: str | Path, *, dtype: StoredDtype = "float32", keep_rows: bool = True
    ) -> None:
        """Write the fitted model to one safetensors file; no pickle, whole or not at all.

        Parameters
        ----------
        path : str or Path
        dtype : {"float32", "bfloat16", "int8"}, default "float32"
            How the weights of the networks are stored. "float32" loads to the same bits;
            "bfloat16" takes half of the space and "int8" about a quarter, and both round: the
            loaded model has float32 weights of these rounded values.
        keep_rows : bool, default True
            Whether the file has the rows by which `refit` keeps what the model has learned: up to
            2,000 encoded rows of the fit, without their targets, in about a tenth of the size of
            the weights. False for a file that others may see.
        """
        check_is_fitted(self, "model_")
        save_model(self, path, dtype, keep_rows)

    @usual_torch()
    def export_onnx(self, folder: str | Path) -> None:
        """Write the fitted model as ONNX networks, with a reader that needs no torch.

        The guide's page on export documents the files.

        Parameters
        ----------
        folder : str or Path
            New or empty; it appears whole or not at all.

        Raises
        ------
        MissingExtraError
            If the extra "onnx" is not installed.
        """
        from tabnsm.export import export_onnx

        check_is_fitted(self, "model_")
        export_onnx(self, folder)

    @classmethod
    @usual_torch()
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        text_encoder: str | TextEncoder | None = None,
    ) -> Self:
        """Read a model written by `save`.

        Parameters
        ----------
        path : str or Path
        device : str, default "auto"
        text_encoder : str, TextEncoder or None
            Needed where the model was fitted with an encoder object, or where its encoder now
            lies elsewhere.

        Returns
        -------
        TabNSMRegressor
            Predicts bit for bit as the saved one did, unless `save` rounded its weights.
        """
        return load_model(cls, path, resolve_device(device), text_encoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
