"""InspectedRegressor: a fitted model that tells of its training, columns and predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tabnsm.attribution import displayed_columns, explain_rows
from tabnsm.card import card_html, card_markdown
from tabnsm.fitted import FittedRegressor
from tabnsm.nn.ensemble import for_target
from tabnsm.sklearn_base import check_is_fitted, estimator_html_repr
from tabnsm.tables import Table
from tabnsm.torch_state import usual_torch

if TYPE_CHECKING:
    import pandas as pd

    from tabnsm.attribution import Explanation
    from tabnsm.columns import ColumnReport
    from tabnsm.report import Report


class InspectedRegressor(FittedRegressor):
    """History, explanations, report and card of the estimator."""

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
            What the page calls the target; None takes the name of `y`, if it has one. Several
            targets have the names of the fit, and the page has a choice between them.
        max_rows : int, default 10,000
            Rows that are used; of more, a sample is drawn, and the page reports it.

        Returns
        -------
        Report
            With `data`, `to_html()` and `save(path)`.
        """
        from tabnsm.files import check_output
        from tabnsm.report import build_report

        check_is_fitted(self, "model_")
        if path is not None:
            check_output(path)
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
