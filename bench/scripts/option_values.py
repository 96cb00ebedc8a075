"""Whether other values of options would be better, and what they cost.

    tabnsm bench suite run base --half choose --cpu-seconds 15   # writes the tables to suite-data
    python bench/scripts/option_values.py fit STUDY --data-dir suite-data
    python bench/scripts/option_values.py page STUDY

`fit` trains, per table, a few networks with each variant of a study on the same rows; `page` prints
the errors of their mean, and the mean of their errors, over those of the study's first variant.
Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from tabnsm.atomic import atomic_write
from tabnsm.training.network import initial_state, make_trainer
from tabnsm_bench.suite.figure_of_merit import standard_error
from tabnsm_bench.suite.networks import CPU, SuiteRows
from tabnsm_bench.suite.tables import CHOOSE, names_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "option_values"
Options = Callable[[int], dict[str, Any]]  # of the estimator, from the rows to train on


@dataclass(frozen=True)
class Study:
    """Variants that are compared with the first of them.

    Parameters
    ----------
    variants : mapping of str to callable
    tables : sequence of str
    max_rows : int
        Rows that are drawn of a table, those to validate and to test on among them.
    n_networks : int
    """

    variants: Mapping[str, Options]
    tables: Sequence[str]
    max_rows: int = 2000
    n_networks: int = 4


def earlier(**options: Any) -> Options:
    """The default before this study, with some options changed."""
    return lambda n_rows: {"head_width": 256, "batch_size": earlier_batch(n_rows)} | options


def earlier_batch(n_rows: int) -> int:
    """Batches before they were filled up to whole vectors of 16 rows."""
    return min(max(-(-n_rows // 32), 16), 256)


def fixed(**options: Any) -> Options:
    """The default with some options changed."""
    return lambda _: options


MANY_ROWS = ("bike_sharing_hour", "california_housing", "storms")
STUDIES = {
    "values": Study(
        {
            "the default": earlier(),
            "`head_width` 128": earlier(head_width=128),
            "`d_token` 64": earlier(d_token=64),
            "`learning_rate` 0.004": earlier(learning_rate=0.004),
            "batches of whole vectors": lambda n_rows: {
                "head_width": 256,
                "batch_size": -(-earlier_batch(n_rows) // 16) * 16,
            },
            "batches twice as large": lambda n_rows: {
                "head_width": 256,
                "batch_size": 2 * earlier_batch(n_rows),
            },
        },
        names_of(CHOOSE),
        n_networks=3,
    ),
    "widths": Study(
        {
            "`d_token` 32": fixed(d_token=32),
            "`d_token` 48": fixed(d_token=48),
            "`d_token` 64": fixed(d_token=64),
        },
        names_of(CHOOSE),
    ),
    "many-rows": Study(
        {
            "`head_width` 128": fixed(d_token=32, head_width=128),
            "`head_width` 256": fixed(d_token=32, head_width=256),
            "`d_token` 64": fixed(d_token=64, head_width=128),
        },
        MANY_ROWS,
        max_rows=50_000,
        n_networks=2,
    ),
}


def fit(name: str, data_dir: Path, tables: Sequence[str], results: Path = RESULTS) -> None:
    """Run the variants that are not done, table by table."""
    study = STUDIES[name]
    (results / name).mkdir(parents=True, exist_ok=True)
    for table in tables:
        path = results / name / f"{table}.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        rows = SuiteRows(data_dir, table, study.max_rows)
        for label, options in study.variants.items():
            if label not in found:
                found[label] = fit_variant(rows, options(rows.n_train), study.n_networks)
                atomic_write(path, (json.dumps(found) + "\n").encode())
                print(table, label, json.dumps(found[label]), flush=True)


def fit_variant(rows: SuiteRows, options: dict[str, Any], n_networks: int) -> dict[str, Any]:
    """Epochs, seconds and errors of each network, and the error of the mean of the first k."""
    fit = rows.prepare(n_ensemble=n_networks, **options)
    run: dict[str, Any] = {"epochs": [], "seconds": [], "rmse": [], "means": []}
    predicted = []
    for number in range(n_networks):
        started = time.process_time()
        state = initial_state(fit.prepared, number, CPU)
        run["epochs"].append(len(make_trainer(fit.prepared, CPU).train(state)))
        run["seconds"].append(round(time.process_time() - started, 3))
        predicted.append(fit.predict(state)["test"])
        run["rmse"].append(rounded(fit.rmse("test", predicted[-1])))
        run["means"].append(rounded(fit.rmse("test", np.mean(predicted, axis=0))))
    return run


def rounded(value: float) -> float:
    return float(f"{value:.8g}")


def page(name: str, results: Path = RESULTS) -> str:
    """A table of bench/docs/suite.md from the results."""
    tables = [json.loads(path.read_text()) for path in sorted((results / name).glob("*.json"))]
    first, *others = STUDIES[name].variants
    lines = [
        f"| variant | epochs | seconds | RMSE of the mean, {first} = 1, ± standard error "
        "| RMSE of one network | lower RMSE of the mean on |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for label in others:
        pairs = [(runs[label], runs[first]) for runs in tables if label in runs]
        if not pairs:
            continue
        epochs, seconds = (
            geometric_mean(sum(own[key]) / sum(base[key]) for own, base in pairs)
            for key in ("epochs", "seconds")
        )
        ratios = [own["means"][-1] / base["means"][-1] for own, base in pairs]
        single = [geometric_mean(own["rmse"]) / geometric_mean(base["rmse"]) for own, base in pairs]
        won = sum(ratio < 1 for ratio in ratios)
        lines.append(
            f"| {label} | {epochs:.2f} | {seconds:.2f} | {geometric_mean(ratios):.4f} "
            f"± {standard_error(ratios):.4f} | {geometric_mean(single):.4f} "
            f"| {won} of {len(ratios)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("fit", "page"))
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data-dir", type=Path, default=Path("suite-data"))
    parser.add_argument(
        "--tables", help="Only these, with commas between; all of the study if not."
    )
    options = parser.parse_args()
    if options.command == "page":
        print(page(options.study))
        return
    tables = options.tables.split(",") if options.tables else STUDIES[options.study].tables
    fit(options.study, options.data_dir, tables)


if __name__ == "__main__":
    main()
