"""What the demo prints: the loans, the columns, the results, the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

SHOWN = ["emp_title", "annual_income", "loan_purpose", "loan_amount", "term"]


def show_table(
    console: Console, loans: pd.DataFrame, target: str, n_train: int, n_test: int
) -> None:
    """Print what the table is, and its first rows."""
    from rich.markup import escape
    from rich.table import Table as RichTable

    console.rule("Data")
    console.print(
        f"{len(loans):,} loans by Lending Club (openintro/loans_full_schema): predict the "
        f"{target} from {loans.shape[1] - 1} columns that are known before it is set. "
        f"{n_train:,} rows to train, {n_test:,} to test."
    )
    table = RichTable(title="The first loans, some of the columns")
    for name in [*SHOWN, target]:
        table.add_column(name, justify="left" if loans[name].dtype.kind == "O" else "right")
    for row in loans[[*SHOWN, target]].head(4).itertuples(index=False):
        cells = (cell if isinstance(cell, str) else f"{cell:,g}" for cell in row)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)


def show_results(
    console: Console, metrics: Mapping[str, Mapping[str, float]], seconds: Mapping[str, float]
) -> None:
    """Print a row of metrics and seconds per method."""
    from rich.table import Table

    console.rule("Test rows")
    table = Table()
    headings = ("method", "RMSE", "MAE", "R2", "Spearman", "within 1 of 20 bins", "fit seconds")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, values in metrics.items():
        cells = [f"{values[key]:.3f}" for key in ("rmse", "mae", "r2", "spearman")]
        share = f"{values['within_one_bin']:.1%}"
        table.add_row(name, *cells, share, f"{seconds[name]:.1f}")
    console.print(table)


def show_verdict(console: Console, ours: str, theirs: str, rmse: Mapping[str, float]) -> None:
    """Print whether one method beat another, whatever the answer.

    Examples
    --------
    >>> from rich.console import Console
    >>> show_verdict(Console(), "TabNSM", "ridge", {"TabNSM": 4.0, "ridge": 5.0})
    TabNSM beat ridge: its RMSE of 4.000 is 20.0% lower than 5.000.
    """
    won = rmse[ours] < rmse[theirs]
    console.print(
        f"{ours} {'beat' if won else 'did not beat'} {theirs}: its RMSE of {rmse[ours]:.3f} is "
        f"{abs(rmse[ours] / rmse[theirs] - 1):.1%} {'lower' if won else 'higher'} than "
        f"{rmse[theirs]:.3f}."
    )


def show_code(console: Console, target: str) -> None:
    """Print the lines of Python that train such a model."""
    console.rule("The same in Python")
    console.print(
        "from tabnsm import TabNSMRegressor\n"
        f'model = TabNSMRegressor(random_state=0).fit(loans.drop(columns="{target}"), '
        f'loans["{target}"])\n'
        "model.predict(new_loans)",
        markup=False,
        soft_wrap=True,
    )
