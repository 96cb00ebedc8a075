"""Report: what a page shows of a model and rows with known targets, and the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm._version import __version__
from tabnsm.attribution import column_importances
from tabnsm.container import atomic_write
from tabnsm.errors import InvalidOptionError
from tabnsm.nn.ensemble import for_target
from tabnsm.report.data_section import describe_data
from tabnsm.report.page import render
from tabnsm.report.training_section import describe_options, describe_training
from tabnsm.report.tried import RowSample, TriedRows

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

MAX_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Report:
    """One self-contained page, and the numbers on it.

    Parameters
    ----------
    data : dict
        All that the page shows, as JSON takes it. Of a model of several targets, what is of one
        target is in the entries of `targets`.
    """

    data: dict[str, Any]

    def to_html(self) -> str:
        """The page; it loads nothing from elsewhere."""
        return render(self.data)

    def save(self, path: str | Path) -> None:
        """Write the page, as a whole or not at all.

        Parameters
        ----------
        path : str or Path
            Such as "report.html".

        Raises
        ------
        InvalidOptionError
            If the file cannot be written.
        """
        try:
            atomic_write(Path(path), self.to_html().encode())
        except OSError as error:
            raise InvalidOptionError(
                f"path must be a file that can be written, got {str(path)!r} ({error.strerror})."
            ) from error


def build_report(
    model: FittedRegressor,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    target_name: str | None = None,
    max_rows: int = MAX_ROWS,
) -> Report:
    """Try a model on rows, and collect what a page shows of it.

    Parameters
    ----------
    model : FittedRegressor
    X, y : as for `fit`
        Rows with known targets, as a rule such as the model was not trained on.
    X_train, y_train : as `X` and `y`, or None
        Rows that the models for comparison are trained on; None trains them on `X` by
        cross-validation.
    target_name : str or None
        What the page calls the target; None takes the name of `y`, if it has one. Several
        targets have the names of the fit.
    max_rows : int
        Rows that are used; of more, a sample.

    Returns
    -------
    Report
    """
    _check(model, X_train, y_train, target_name, max_rows)
    rows = RowSample.draw(model, X, y, "y", max_rows)
    others = None
    if X_train is not None:
        others = RowSample.draw(model, X_train, y_train, "y_train", max_rows)
    tried = TriedRows(model, rows, others)
    importances = getattr(model, "feature_importances_", None)
    if importances is None:  # models of earlier versions have none
        importances = column_importances(model.model_, model.encoder_, model.target_, tried.encoded)
    about = {
        "version": __version__,
        "data": describe_data(model, rows.table, tried.encoded, importances),
        "training": describe_training(model),
        "options": describe_options(model),
    }
    if model.target_.n_targets == 1:
        name = target_name or str(getattr(y, "name", None) or "target")
        return Report(about | tried.describe(0, name, importances))
    return Report(about | {"targets": [_describe_target(tried, place) for place in rows.truth]})


def _check(
    model: FittedRegressor, X_train: Any, y_train: Any, target_name: str | None, max_rows: int
) -> None:
    """Refuse options that do not go together, before any work."""
    if (X_train is None) != (y_train is None):
        given = "X_train" if y_train is None else "y_train"
        raise InvalidOptionError(f"X_train and y_train must be given together, got only {given}.")
    if max_rows < 2:
        raise InvalidOptionError(f"max_rows must be >= 2, got {max_rows}.")
    if target_name is not None and model.target_.n_targets > 1:
        raise InvalidOptionError(
            f"target_name must be None for a model of several targets, got {target_name!r}. "
            "They have the names of the fit."
        )


def _describe_target(tried: TriedRows, place: int) -> dict[str, Any]:
    """One of several targets, with the importances of the columns to it alone."""
    model = tried.model
    network, target = for_target(model.model_, place), model.target_.for_target(place)
    importances = column_importances(network, model.encoder_, target, tried.encoded)
    described = tried.describe(place, model.target_.labels[place], importances)
    return described | {"importances": importances.tolist()}
