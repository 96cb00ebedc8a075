"""Peak memory of encoding a table in which every row has a text and an identifier of its own.

    python bench/speed/distinct_strings.py make ids --rows 3000000
    python bench/speed/distinct_strings.py encode ids --limit-gb 1 --save strings
    python bench/speed/distinct_strings.py encode ids --in-memory --save strings_in_memory

`--in-memory` keeps the strings in memory, as many as there are. Memory and `--save` are as in
``out_of_core.py``, whose `page` has the figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import memory
from out_of_core import CHUNK, GB, Peak, save  # sets the allocator of pyarrow, too

from tabnsm.options import resolve_options
from tabnsm.tables import dataset
from tabnsm.training.prepare import FitRows
from tabnsm.work_folder import work_folder


class HashedTexts:
    """One of eight features is one for each text, so that strings and not meaning take time."""

    name = fingerprint = "hashed"
    d_text = 8

    def encode(self, texts: list[str]) -> Any:
        """A one at the place of its hash."""
        return np.eye(8, dtype=np.float32)[[zlib.crc32(text.encode()) % 8 for text in texts]]

    def count_truncated(self, texts: list[str]) -> int:
        """None is too long."""
        return 0


def make(folder: Path, n_rows: int) -> dict[str, Any]:
    """Write the table."""
    folder.mkdir(parents=True)
    for start in range(0, n_rows, CHUNK):
        rows = range(start, min(start + CHUNK, n_rows))
        frame = pd.DataFrame({"x": np.random.default_rng(start).normal(size=len(rows))})
        frame["id"] = [f"user-{k * 7919 % 10**9:09d}" for k in rows]
        frame["note"] = [f"a house number {k} in street {k * 7919 % 1_000_003}" for k in rows]
        frame["target"] = 2 * frame["x"]
        frame.to_parquet(folder / f"part-{start:09d}.parquet", row_group_size=100_000)
    return {"n_rows": n_rows}


def encode(folder: Path, limit_gb: float | None = None, in_memory: bool = False) -> dict[str, Any]:
    """Fit an encoder and write the encoded rows, in a process whose memory is limited."""
    if in_memory:
        dataset._MAX_STRING_BYTES = 2**60
    if limit_gb is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit_gb * GB),) * 2)
    text = {"text_encoder": HashedTexts(), "text_cache": False, "select_text": False}
    libraries, peak, started = memory("RssAnon"), Peak(None), time.process_time()
    with work_folder(folder.parent) as place:
        rows = FitRows.collect(folder, "target", random_state=0, folder=place)
        rows.encode(resolve_options({"preset": "fast", **text}).encoder)
        n_rows = rows.table.n_rows
    return {
        "n_rows": n_rows,
        "limit_gb": limit_gb,
        "seconds_of_a_core": time.process_time() - started,
        "libraries_mb": libraries,
        "peak_anonymous_mb": peak.found["RssAnon"],
        "peak_data_mb": peak.found["VmData"],
    }


def main() -> None:
    """Run one of the commands, and print what it found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--rows", dest="n_rows", type=int, default=3_000_000)
    encoding = commands.add_parser("encode")
    encoding.add_argument("folder", type=Path)
    encoding.add_argument("--limit-gb", type=float)
    encoding.add_argument("--in-memory", action="store_true")
    encoding.add_argument("--save", metavar="NAME")
    options = vars(parser.parse_args())
    name = options.pop("save", None)
    found = globals()[options.pop("command")](**options)
    if name is not None:
        save(name, found)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
