"""Networks of one fit, one by one, on tables of the suite: what studies of training are made of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from tabnsm import TabNSMRegressor
from tabnsm.atomic import atomic_write
from tabnsm.columns import EncodedTable
from tabnsm.options import resolve_options
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table
from tabnsm.training.loop import TrainingState
from tabnsm.training.prepare import FitRows, PreparedFit, Validation
from tabnsm_bench.splits import paper_split
from tabnsm_bench.suite.tables import CHOOSE, names_of

CPU = torch.device("cpu")
PARTS = ("validation", "test")


@dataclass(frozen=True, eq=False)
class SuiteFit:
    """A table of the suite, prepared for the networks of a fit.

    Parameters
    ----------
    prepared : PreparedFit
    tables : dict of str to EncodedTable
        Rows of each of `PARTS`.
    targets : dict of str to ndarray
        Their targets.
    """

    prepared: PreparedFit
    tables: dict[str, EncodedTable]
    targets: dict[str, np.ndarray]

    def predict(self, state: TrainingState) -> dict[str, np.ndarray]:
        """Predictions of a trained network for the rows of each part."""
        back = self.prepared.target.unstandardize
        return {
            part: back(predict_rows(state.model, table, CPU))[:, 0]
            for part, table in self.tables.items()
        }

    def rmse(self, part: str, prediction: np.ndarray) -> float:
        """Error of predictions for the rows of a part."""
        return float(np.sqrt(np.mean((prediction - self.targets[part]) ** 2)))


class SuiteRows:
    """Rows of a table of the suite, split as its runs are.

    Parameters
    ----------
    data_dir : Path
        Folder that ``tabnsm bench suite run`` writes the tables to.
    name : str
    max_rows : int
        Rows that are drawn where the table has more.
    """

    def __init__(self, data_dir: Path, name: str, max_rows: int) -> None:
        about = json.loads((data_dir / f"{name}.json").read_text())
        rows = pd.read_parquet(data_dir / f"{name}.parquet").drop(columns=about["drop"])
        if len(rows) > max_rows:
            rows = rows.sample(max_rows, random_state=42).sort_index()
        X, y = rows.drop(columns=about["target"]), rows[about["target"]]
        split = paper_split(len(rows))
        validation = Validation(X_val=X.iloc[split.validation], y_val=y.iloc[split.validation])
        self.n_train = len(split.train)
        self._rows = FitRows.collect(X.iloc[split.train], y.iloc[split.train], None, validation, 0)
        self._test = X.iloc[split.test], y.iloc[split.test].to_numpy(float)

    def prepare(self, **options: Any) -> SuiteFit:
        """Encode the rows, with options of the estimator; calls share what they can.

        Without a linear residual, so that test rows need no targets of their own kind.
        """
        model = TabNSMRegressor(random_state=0, linear_residual=False, **options)
        prepared = self._rows.prepare(resolve_options(model.get_params()))
        X, y = self._test
        tables = prepared.data.validation, prepared.encoder.transform(Table.from_native(X))
        targets = prepared.data.validation_target[:, 0], y
        pairs = (dict(zip(PARTS, values, strict=True)) for values in (tables, targets))
        return SuiteFit(prepared, *pairs)


def fit_all(
    fit_table: Callable[[Path, str], Mapping[str, Any]],
    results: Path,
    data_dir: Path,
    tables: Sequence[str],
) -> None:
    """Run a study on those of the tables that its results lack."""
    found = json.loads(results.read_text()) if results.exists() else {}
    for name in tables:
        if name not in found:
            found[name] = fit_table(data_dir, name)
            atomic_write(results, (json.dumps(found) + "\n").encode())
            print(name, json.dumps(found[name]), flush=True)


def run_study(
    about: str,
    fit: Callable[[Path, Sequence[str]], None],
    page: Callable[[], str],
) -> None:
    """The commands of a study's script: `fit` runs what is left, `page` prints the table.

    Parameters
    ----------
    about : str
        Of the script; its first line is the help.
    fit : callable
        Takes the folder of the tables and names of tables.
    page : callable
        Makes the table from the results.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("--data-dir", type=Path, default=Path("suite-data"))
    fitting.add_argument("--tables", help="Only these, with commas between; all of choose if not.")
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "fit":
        fit(options.data_dir, options.tables.split(",") if options.tables else names_of(CHOOSE))
    else:
        print(page())
