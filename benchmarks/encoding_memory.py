"""Peak memory of encoding a table with text, over that of the table itself.

    python benchmarks/encoding_memory.py --target "Electric Range" \\
        --data ../shared/data/electric_vehicle_population.parquet

Real MiniLM; Linux only (reads /proc). Embeddings that are in the cache are not computed again: set
TABNSM_CACHE to an empty folder for a cold run. The goal on EVP is at most 1.5 GB.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pandas as pd

from tabnsm.preprocessing import EncoderConfig, Table, TableEncoder
from tabnsm.presets import resolve_options


def status(field: str) -> float:
    """A field of /proc/self/status in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--preset", default="paper")
    arguments = parser.parse_args()
    frame = pd.read_parquet(arguments.data).drop(columns=arguments.target)
    options = resolve_options({"preset": arguments.preset, "verbose": 1})
    config: EncoderConfig = options.encoder
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of reading
    started = time.perf_counter()
    encoded = TableEncoder(config).fit_transform(Table.from_native(frame))
    seconds = time.perf_counter() - started
    n_texts = 0 if encoded.text is None else len(encoded.text)
    print(
        f"{arguments.data.stem}: {encoded.n_rows:,} rows, {encoded.n_features} features, "
        f"{n_texts:,} distinct texts, {seconds:.0f} s; peak memory "
        f"{status('VmHWM') - before:,.0f} MB above the {before:,.0f} MB before"
    )


if __name__ == "__main__":
    main()
