"""FittedRegressor: what a fitted model does, and what it knows about its training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tabnsm.attribution import column_importances, displayed_columns, explain_rows
from tabnsm.blend import Blend
from tabnsm.card import card_html, card_markdown
from tabnsm.columns import TableEncoder
from tabnsm.metrics import target_metrics
from tabnsm.model_file import load_model, save_model
from tabnsm.nn.ensemble import Ensemble, for_target, join_networks
from tabnsm.nn.model import TabNSM
from tabnsm.options import Options
from tabnsm.prediction import predict_rows, resolve_device
from tabnsm.tables import Table
from tabnsm.target import TargetModel, read_targets
from tabnsm.torch_state import usual_torch
from tabnsm.training.history import History

if TYPE_CHECKING:
    import pandas as pd

    from tabnsm.attribution import Explanation
    from tabnsm.blend import BlendFit
    from tabnsm.columns import ColumnReport
    from tabnsm.report import Report
    from tabnsm.text import TextEncoder
    from tabnsm.training.ensemble import EnsembleTraining
    from tabnsm.training.prepare import PreparedFit


class FittedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction, explanation, history and file of the estimator; it keeps what `fit` makes."""

    model_: TabNSM | Ensemble
    encoder_: TableEncoder
    target_: TargetModel
    blend_: Blend | None
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
    ) -> None:
        """Set all that is fitted."""
        model, blend = join_networks(training.models), None
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
        self.encoder_ = prepared.encoder
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
            self.model_, self.encoder_, self.target_, prepared.data.train
        )

    @property
    def history_(self) -> History:
        """One record per epoch of the first network, its best epoch and why training stopped."""
        return self.histories_[0]

    @property
    def n_iter_(self) -> int:
        """Epochs of the network that was trained longest."""
        return max(len(history) for history in self.histories_)

    def training_history(self) -> pd.DataFrame:
        """Every epoch of every network as a pandas DataFrame.

        Returns
        -------
        DataFrame
            The columns of ``history_.to_frame()``, after `network`, counted from 1.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        check_is_fitted(self, "model_")
        frames = [history.to_frame() for history in self.histories_]
        import pandas as pd

        numbers = range(1, len(frames) + 1)
        together = pd.concat(frames, keys=numbers, names=["network"])
        return together.reset_index("network").reset_index(drop=True)

    def plot_history(self, path: str | Path | None = None) -> Any:
        """Draw how training went: validation, loss and learning rate of every network.

        Parameters
        ----------
        path : str, Path or None, default None
            File to write, such as "history.png"; None writes none.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from tabnsm.plotting import plot_histories

        check_is_fitted(self, "model_")
        return plot_histories(self.histories_, path)

    @usual_torch()
    def predict(self, X: Any) -> np.ndarray:
        """Predict the target, or all targets, of every row.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            With the columns of `fit`; order does not matter when they have names, further
            columns are ignored.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Of a model of t > 1 targets (n_rows, t), in the order of `fit`.
        """
        check_is_fitted(self, "model_")
        encoded = self.encoder_.transform(Table.from_native(X, min_rows=0))
        device = next(self.model_.parameters()).device
        standard = predict_rows(self.model_, encoded, device)  # (n, t)
        prediction = self.target_.predict(standard, encoded)
        if self.blend_ is not None:
            return self.blend_.predict(prediction[:, 0], encoded, self.target_, self.model_)
        return prediction[:, 0] if self.target_.n_targets == 1 else prediction

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions; of several targets the mean of theirs, as in scikit-learn.

        Parameters
        ----------
        X : DataFrame, dict of columns, array or sparse matrix of shape (n_rows, n_columns)
            As for `predict`.
        y : array-like of shape (n_rows,) or (n_rows, t)
            True values. Of several targets, some may be missing: each is scored on the rows that
            have it, and columns with names are matched by name.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self, "model_")
        n_targets = self.target_.n_targets
        if n_targets == 1:
            return float(super().score(X, y, sample_weight))
        prediction = self.predict(X)
        targets = read_targets(y, len(prediction), must_vary=False)
        truth = targets.in_order(self.target_.names, n_targets, "y").values
        scores = target_metrics(truth, prediction, sample_weight, self.target_.labels)
        return float(np.mean([each["r2"] for each in scores.values()]))

    @usual_torch()
    def explain(
        self,
        X: Any,
        *,
        method: Literal["integrated", "gradient"] = "integrated",
        baseline: Literal["zero", "average"] | None = None,
        background: Any = None,
        n_steps: int | None = None,
        target: str | int | None = None,
    ) -> Explanation:
        """Attribute the prediction of every row to the input columns.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            As for `predict`.
        method : {"integrated", "gradient"}, default "integrated"
            "integrated" follows the gradient from a base to the row, and adds up: contributions
            are in the target's units, and their sum is the prediction minus the base value.
            "gradient" is the paper's attribution, the gradient times the token, which takes one
            gradient per row, and does not add up.
        baseline : {"zero", "average"} or None, default None
            What a token is compared with: "average" is the token of a mean number or an unseen
            category, "zero" the zero vector, which only "gradient" takes. None is "average" for
            "integrated" and "zero" for "gradient".
        background : as `X`, or None, default None
            Rows to compare with in place of the average; the base value is their mean prediction.
            At most 50 are used.
        n_steps : int or None, default None
            Gradients on the path from a base to a row; None takes 16, or fewer for each row of a
            background.
        target : str, int or None, default None
            Which of several targets to explain: its name, or its number from 0. None is the only
            one.

        Returns
        -------
        Explanation
            Contributions per row and column, attributions in [0, 1], and the foreground blocks.
            With ``preset="best"`` it is of the networks alone, and `network_share` is their weight
            in the model's prediction.
        """
        check_is_fitted(self, "model_")
        place = self.target_.position(target)
        model, one = for_target(self.model_, place), self.target_.for_target(place)
        table = Table.from_native(X, min_rows=0)
        encoded = self.encoder_.transform(table)
        others = None
        if background is not None:
            others = self.encoder_.transform(Table.from_native(background))
        explanation = explain_rows(
            model,
            self.encoder_,
            one,
            encoded,
            baseline,
            method=method,
            background=others,
            n_steps=n_steps,
        )
        share = 1.0 if self.blend_ is None else self.blend_.network_weight
        values = displayed_columns(self.encoder_, table)
        return replace(explanation, column_values=values, network_share=share)

    @usual_torch()
    def report(
        self,
        X: Any,
        y: Any,
        path: str | Path | None = None,
        *,
        X_train: Any = None,
        y_train: Any = None,
        target_name: str | None = None,
        max_rows: int = 10_000,
    ) -> Report:
        """Try the model on rows with known targets, and show what it made of them on one page.

        Parameters
        ----------
        X, y : as for `fit`
            Rows with known targets, best such as the model was not trained on.
        path : str, Path or None, default None
            File to write, such as "report.html"; None writes none.
        X_train, y_train : as `X` and `y`, or None
            Rows on which the models for comparison are trained, best those of the fit; None
            trains them on `X` by cross-validation.
        target_name : str or None, default None
            What the page calls the target; None takes the name of `y`, if it has one.
        max_rows : int, default 10,000
            Rows that are used; of more, a sample is drawn, and the page reports it.

        Returns
        -------
        Report
            With `data`, `to_html()` and `save(path)`.
        """
        from tabnsm.report import build_report

        check_is_fitted(self, "model_")
        report = build_report(
            self,
            X,
            y,
            X_train=X_train,
            y_train=y_train,
            target_name=target_name,
            max_rows=max_rows,
        )
        if path is not None:
            report.save(path)
        return report

    def describe_columns(self) -> ColumnReport:
        """What was understood of each column: kind, features, missing values, and notes."""
        check_is_fitted(self, "model_")
        return self.encoder_.describe()

    def card(self) -> str:
        """What the model knows of its data, options, validation and training, as Markdown."""
        check_is_fitted(self, "model_")
        return card_markdown(self)

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and the card below it once there is a model."""
        diagram = str(estimator_html_repr(self))
        return diagram + card_html(self) if hasattr(self, "model_") else diagram

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file; no pickle, whole or not at all.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self, "model_")
        save_model(self, path)

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
            Predicts bit for bit as the saved one did.
        """
        return load_model(cls, path, resolve_device(device), text_encoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
