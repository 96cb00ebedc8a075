"""Accuracy with fewer and fewer compressed keys on real wide tables, one JSON file per run.

    OMP_NUM_THREADS=1 python bench/speed/bounded_keys_ablation.py --data-dir ../shared/data

Tables of up to 512 features keep every compressed block as a key of its own. To see what it costs
when blocks share keys, as they do in wider tables, `max_exact_features` is lowered here until
tables of 280 and 520 columns have as many blocks per key as tables of thousands (2 at 1,024
features, 16 at 8,192). All runs have the same rows and the same split (72/8/20, random_state 42);
only the blocks per key and the seed differ. Validation rows choose the epoch. A file that is
already there is kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ablation import fit_and_score, format_scores, read_table, split_rows
from page import BENCH

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.functional.blocks import n_blocks

TABLES = ("blog_feedback", "ujiindoorloc")
MAX_BLOCKS_PER_KEY = (1, 2, 4, 16)
BLOCK = 10


def run(X: pd.DataFrame, y: np.ndarray, *, most: int, seed: int, max_epochs: int) -> dict[str, Any]:
    """Fit with as few keys as give no key more than `most` blocks, and linear tokens."""
    rows = split_rows(X, y)
    n_features = int((rows[0].nunique() > 1).sum())  # constant columns are left out by the encoder
    n_compressed = n_blocks(n_features, BLOCK)
    n_keys = n_blocks(n_compressed, most)
    model = TabNSMRegressor(
        max_exact_features=n_keys * BLOCK, n_bins=0, max_epochs=max_epochs, random_state=seed
    )
    scores = fit_and_score(model, rows)
    if scores["n_features"] != n_features:
        raise RuntimeError(f"{n_features} features expected, got {scores['n_features']}")
    own = {"seed": seed, "blocks_per_key": n_blocks(n_compressed, n_keys), "n_keys": n_keys}
    return own | scores


def summarize(results: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds of the RMSE, one line per number of keys."""
    lines = []
    for n_keys in sorted({result["n_keys"] for result in results}, reverse=True):
        runs = [result for result in results if result["n_keys"] == n_keys]
        blocks = runs[0]["blocks_per_key"]
        lines.append(f"  {n_keys:2d} keys of {blocks:2d} blocks: {format_scores(runs)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=BENCH / "results/studies/bounded_keys")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables:
        X, y = read_table(arguments.data_dir, name, arguments.rows)
        results = []
        for seed in range(arguments.seeds):
            for most in MAX_BLOCKS_PER_KEY:
                path = arguments.out / f"{name}-{most}-{seed}.json"
                if not path.exists():
                    result = run(X, y, most=most, seed=seed, max_epochs=arguments.epochs)
                    result = {"dataset": name, **result}
                    atomic_write(path, (json.dumps(result, indent=1) + "\n").encode())
                    print(f"{path.name}: {result['fit_seconds']} s", flush=True)
                results.append(json.loads(path.read_text()))
        print(f"{name}, D = {results[0]['n_features']}\n{summarize(results)}", flush=True)


if __name__ == "__main__":
    main()
