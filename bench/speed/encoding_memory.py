"""Peak memory of encoding a table with text, over that of the table itself.

    python bench/speed/encoding_memory.py --data-dir ../shared/data \\
        --table electric_vehicle_population

Real MiniLM; Linux only (reads /proc). Embeddings that are in the cache are not computed again: set
TABNSM_CACHE to an empty folder for a cold run, which takes a quarter of an hour on that table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
from measure import figure, forget_peak, memory, show

from tabnsm.columns import TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables import Table

GOAL_MB = {"electric_vehicle_population": 1536.0}


def run(
    *,
    data_dir: Path,
    table: str = "nyc_air_quality",
    preset: str = "paper",
    n_rows: int | None = None,
    text_encoder: Any = "minilm",
) -> dict[str, Any]:
    """Encode the table once in this process."""
    facts = json.loads((data_dir / f"{table}.json").read_text())
    frame = pd.read_parquet(data_dir / f"{table}.parquet").head(n_rows or facts["rows"])
    frame = frame.drop(columns=facts["target"])
    options = resolve_options({"preset": preset, "text_encoder": text_encoder})
    forget_peak()
    before = memory("VmRSS")
    started = time.perf_counter()
    encoded = TableEncoder(options.encoder).fit_transform(Table.from_native(frame))
    row = {
        "table": table,
        "n_rows": encoded.n_rows,
        "n_features": encoded.n_features,
        "distinct_texts": encoded.n_texts,
        "seconds": time.perf_counter() - started,
        "before_mb": before,
        "peak_mb": memory("VmHWM") - before,
    }
    peak = figure(
        f"peak memory of encoding {table}", row["peak_mb"], " MB", at_most=GOAL_MB.get(table)
    )
    return {"settings": {"preset": preset}, "rows": [row], "figures": [peak], "missing": []}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--table", default="nyc_air_quality")
    parser.add_argument("--preset", default="paper")
    show(run(**vars(parser.parse_args())))
