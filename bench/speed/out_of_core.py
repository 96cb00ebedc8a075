"""Fits larger than memory: peak memory under a limit, and rows per second.

    python bench/speed/out_of_core.py make --rows 20000000 --folder big
    python bench/speed/out_of_core.py fit big --target target --limit-gb 2 --time-limit 600 \\
        --checkpoint-dir run --resume --save made
    python bench/speed/out_of_core.py vehicles --data-dir ../shared/data --rows 5000000 \\
        --folder cars
    python bench/speed/out_of_core.py compare small --save compare
    python bench/speed/out_of_core.py page

`--save` writes what was found into ``bench/results/studies/out_of_core.json``; `page` prints the
table of it in docs/scaling.md. `fit` limits the memory of its own process (RLIMIT_DATA: all that is
private and can be written) and reports the peak of it, also over runs that were killed and resumed;
Linux only. `compare` trains on a folder from disk and from memory in turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Arrow's own allocator reserves a gigabyte of addresses at once, which this limit would count.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

import numpy as np
import pandas as pd
from measure import memory

from tabnsm.atomic import atomic_write
from tabnsm.tables.dataset import open_dataset

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "out_of_core.json"
CHUNK = 500_000
_N_TURNS = 6
GB = 10**9


def make(folder: Path, n_rows: int, n_columns: int = 60) -> dict[str, Any]:
    """Write a table of numbers, with dates, categories, codes and text among its columns."""
    folder.mkdir(parents=True)
    for k, start in enumerate(range(0, n_rows, CHUNK)):
        frame = _made_rows(min(CHUNK, n_rows - start), n_columns, np.random.default_rng(k))
        frame.to_parquet(folder / f"part-{k:04d}.parquet", row_group_size=100_000)
    return {"n_rows": n_rows, "n_columns": n_columns, "bytes": _bytes_of(folder)}


def _made_rows(n_rows: int, n_columns: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of which the target depends on numbers, a category, an id and the season."""
    columns: dict[str, Any] = {}
    for k in range(n_columns - 11):  # the others are named below, the target among them
        values = rng.normal(size=n_rows).astype(np.float32)
        if k % 5 == 1:
            values = np.round(values * 20)  # repeated values
        if k % 5 == 2:
            values[rng.random(n_rows) < 0.05] = np.nan
        columns[f"number_{k}"] = values
    sizes = (3, 12, 60, 300, 2000, 30)
    codes = [rng.integers(0, size, n_rows) for size in sizes]
    for k, (size, code) in enumerate(zip(sizes, codes, strict=True)):
        names = np.array([f"c{k}_{value}" for value in range(size)])
        columns[f"category_{k}"] = pd.Categorical.from_codes(code, names).astype(str)
    days = rng.integers(0, 3000, n_rows)
    columns["sold"] = np.datetime64("2015-01-01", "us") + days.astype("timedelta64[D]")
    columns["updated"] = columns["sold"] + rng.integers(0, 10**6, n_rows).astype("timedelta64[s]")
    shop = rng.integers(0, 50_000, n_rows)
    columns["shop"] = shop
    words = np.array(["bright", "quiet", "old", "new", "large", "garden", "harbour", "steep"])
    texts = np.array([f"{a} {b} {c} house" for a in words for b in words for c in words])
    columns["note"] = texts[rng.integers(0, len(texts), n_rows)]
    x = columns["number_0"]
    effect = np.random.default_rng(0).normal(size=50_000)[shop]
    season = np.sin(days / 365.25 * 2 * np.pi)
    signal = x * (1 + columns["number_5"]) + 0.3 * (codes[1] % 4) + effect + season
    columns["target"] = (signal + 0.5 * rng.normal(size=n_rows)).astype(np.float32)
    return pd.DataFrame(columns)


def vehicles(folder: Path, data_dir: Path, n_rows: int) -> dict[str, Any]:
    """Repeat a real table, with noise in its numbers, codes and target."""
    name = "electric_vehicle_population"
    facts = json.loads((data_dir / f"{name}.json").read_text())
    real = pd.read_parquet(data_dir / f"{name}.parquet")
    target = facts["target"]
    numbers = [c for c in real.columns if real[c].dtype.kind in "if"]
    folder.mkdir(parents=True)
    for k, start in enumerate(range(0, n_rows, CHUNK)):
        rng = np.random.default_rng(k)
        chosen = rng.integers(0, len(real), min(CHUNK, n_rows - start))
        frame = real.iloc[chosen].reset_index(drop=True)
        for column in numbers:
            spread = 0.01 * float(real[column].std())
            frame[column] = frame[column] + rng.normal(0, spread, len(frame))
        frame.to_parquet(folder / f"part-{k:04d}.parquet", row_group_size=100_000)
    return {"n_rows": n_rows, "target": target, "bytes": _bytes_of(folder)}


class Peak:
    """Largest private memory and mapped files of this process, looked at ten times a second.

    In a file, that of runs that were killed is remembered.
    """

    def __init__(self, file: Path | None) -> None:
        self.found = {"RssAnon": 0.0, "VmData": 0.0, "VmRSS": 0.0}
        if file is not None and file.exists():
            self.found = json.loads(file.read_text())
        self.file = file
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            now = {field: max(before, memory(field)) for field, before in self.found.items()}
            if now != self.found and self.file is not None:
                atomic_write(self.file, json.dumps(now).encode())
            self.found = now
            time.sleep(0.1)


def fit(
    folder: Path,
    target: str,
    limit_gb: float | None = None,
    *,
    time_limit: float | None = None,
    in_memory: bool = False,
    work_dir: Path | None = None,
    checkpoint_dir: Path | None = None,
    resume: bool = False,
    validation_fraction: float = 0.1,
    max_epochs: int | None = None,
    kinds: str = "",
    preset: str = "default",
) -> dict[str, Any]:
    """Fit in this process, whose private memory is limited first."""
    from tabnsm import TabNSMRegressor

    if limit_gb is not None:
        limit = int(limit_gb * GB)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    libraries = memory("RssAnon")
    if checkpoint_dir is not None:
        checkpoint_dir.mkdir(parents=True, exist_ok=True)
    peak = Peak(None if checkpoint_dir is None else checkpoint_dir / "peak.json")
    started = time.perf_counter()
    model = TabNSMRegressor(
        preset=preset,
        n_ensemble=1,
        time_limit=time_limit,
        max_epochs=max_epochs,
        validation_fraction=validation_fraction,
        column_kinds=dict(entry.split("=") for entry in kinds.split(",") if entry),
        checkpoint_dir=checkpoint_dir,
        random_state=0,
        verbose=2,
    )
    if in_memory:
        frame = pd.read_parquet(folder)
        model.fit(frame.drop(columns=target), frame[target])
    else:
        model.fit(folder, target, work_dir=work_dir, resume=resume)
    total = time.perf_counter() - started
    epochs = [record.seconds for record in model.history_]
    return {
        "n_rows": open_dataset(folder).n_rows,
        "n_columns": len(model.feature_names_in_) + 1,
        "n_features": model.encoder_.n_features,
        "parquet_bytes": _bytes_of(folder),
        "preset": preset,
        "seconds": total,
        "seconds_training": epochs[-1],
        "n_epochs": len(epochs),
        "validation_rmse": model.validation_rmse_,
        "stop_reason": model.history_.stop_reason,
        "limit_gb": limit_gb,
        "libraries_mb": libraries,
        "peak_anonymous_mb": peak.found["RssAnon"],
        "peak_data_mb": peak.found["VmData"],
        "peak_resident_mb": peak.found["VmRSS"],
    }


def compare(
    folder: Path, target: str, work_dir: Path | None, preset: str = "default", n_steps: int = 150
) -> dict[str, Any]:
    """Encode a folder in memory and on disk, then take steps of training from both in turns.

    At most `n_steps` from each, and no more than an epoch.
    """
    from tabnsm.options import resolve_options
    from tabnsm.prediction import resolve_device
    from tabnsm.torch_state import usual_torch
    from tabnsm.training.network import initial_state, make_trainer
    from tabnsm.training.prepare import FitRows
    from tabnsm.training.read_ahead import read_ahead
    from tabnsm.work_folder import work_folder

    options = resolve_options({"preset": preset, "n_ensemble": 1})
    device = resolve_device("cpu")
    row: dict[str, Any] = {"parquet_bytes": _bytes_of(folder), "preset": preset}
    with usual_torch(), work_folder(work_dir) as place:
        trainers = {}
        # Before the clock starts: libraries are loaded, and the few texts are in the cache.
        few = next(open_dataset(folder).batches(20_000)).to_pandas()
        FitRows.collect(few.drop(columns=target), few[target]).encode(options.encoder)
        for side in ("memory", "disk"):
            started = time.perf_counter()
            if side == "memory":
                frame = pd.read_parquet(folder)
                rows = FitRows.collect(frame.drop(columns=target), frame[target], random_state=0)
                del frame
            else:
                rows = FitRows.collect(folder, target, random_state=0, folder=place)
            rows.encode(options.encoder)
            row[f"encode_seconds_{side}"] = time.perf_counter() - started
            prepared = rows.prepare(options)
            trainer = make_trainer(prepared, device)
            state = initial_state(prepared, 0, device)
            trainers[side] = (trainer, state, [])
        n_rows = prepared.data.train.n_rows + prepared.data.validation.n_rows
        row |= {"n_rows": n_rows, "n_features": prepared.encoder.n_features}
        files = [file for file in place.path.iterdir() if file.suffix == ".bin"]
        row["disk_bytes_per_row"] = sum(file.stat().st_size for file in files) / n_rows
        turns = {
            side: _turns(state.sampler.epoch_rows().split(trainer.batch_size)[:n_steps])
            for side, (trainer, state, _) in trainers.items()
        }
        for k in range(_N_TURNS):
            for side, (trainer, state, seconds) in trainers.items():
                batches = turns[side][k]
                started = time.perf_counter()
                with read_ahead(trainer.data.train, batches) as ahead:
                    for batch in ahead:
                        trainer.train_step(state, batch)
                seconds.append((time.perf_counter() - started) / len(batches))
        row["batch_size"] = trainer.batch_size
    for side, (trainer, _, seconds) in trainers.items():
        row[f"rows_per_second_{side}"] = trainer.batch_size / float(np.median(seconds[1:]))
    row["ratio"] = row["rows_per_second_disk"] / row["rows_per_second_memory"]
    return row | {"n_threads": len(os.sched_getaffinity(0)), **_text_speed()}


def _turns(batches: Sequence[Any]) -> list[Sequence[Any]]:
    """Batches in as many parts as there are turns."""
    ends = np.linspace(0, len(batches), _N_TURNS + 1).astype(int)
    return [batches[start:stop] for start, stop in itertools.pairwise(ends)]


def _text_speed(n_texts: int = 500) -> dict[str, float]:
    """Seconds that distinct texts of a dozen words take, without the cache."""
    from tabnsm.text.embedding import embed_texts
    from tabnsm.text.encoder import load_encoder

    rng = np.random.default_rng(0)
    words = np.array(["bright", "quiet", "old", "new", "large", "garden", "harbour", "steep"])
    texts = [f"{' '.join(rng.choice(words, 11))} {k}" for k in range(n_texts)]
    encoder = load_encoder("minilm", "float32")
    encoder.encode(texts[:64])
    started = time.perf_counter()
    embed_texts(texts, encoder, use_cache=False)
    return {"seconds_per_million_texts": (time.perf_counter() - started) / n_texts * 1e6}


def page(results: Path = RESULTS) -> str:
    """The table of docs/scaling.md from the results."""
    found = json.loads(results.read_text())
    speed = found["compare"]
    lines = [
        "| measured | figure |",
        "| :-- | --: |",
        f"| rows per second of training on {speed['n_threads']} cores, in memory, "
        f"{speed['n_features']} features "
        f"| {speed['rows_per_second_memory']:,.0f} |",
        f"| the same from files | {speed['rows_per_second_disk']:,.0f} |",
        f"| rows per second of reading and encoding, in memory "
        f"| {speed['n_rows'] / speed['encode_seconds_memory']:,.0f} |",
        f"| the same from files | {speed['n_rows'] / speed['encode_seconds_disk']:,.0f} |",
        f"| bytes per row on disk during training | {speed['disk_bytes_per_row']:,.0f} |",
        f"| bytes per row of the Parquet files | {speed['parquet_bytes'] / speed['n_rows']:,.0f} |",
        f"| seconds per million distinct texts of twelve words on {speed['n_threads']} cores "
        f"| {speed['seconds_per_million_texts']:,.0f} |",
    ]
    for name, what in (
        ("made", "made table"),
        ("vehicles", "electric_vehicle_population, repeated with noise"),
    ):
        run = found[name]
        size = f"{run['n_rows'] / 1e6:g} million rows of {run['n_columns']} columns"
        lines.append(
            f"| {what}, {size}: peak of private memory, limited to {run['limit_gb']:g} GB "
            f"| {run['peak_anonymous_mb'] * 2**20 / GB:,.2f} GB |"
        )
    for name, place in (("strings", "files"), ("strings_in_memory", "memory")):
        run = found[name]
        lines.append(
            f"| {run['n_rows'] / 1e6:g} million rows, each with a text and an identifier of its "
            f"own: peak of private memory with the strings in {place} "
            f"| {run['peak_anonymous_mb'] * 2**20 / GB:,.2f} GB |"
        )
    made = found["made"]
    per_row = (made["peak_anonymous_mb"] - made["libraries_mb"]) * 2**20 / made["n_rows"]
    lines.append(f"| bytes of private memory per row, from the made table | {per_row:,.0f} |")
    return "\n".join(lines)


def save(name: str, found: dict[str, Any]) -> None:
    """Put a result into the file of all results."""
    results = json.loads(RESULTS.read_text()) | {name: found}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def main() -> None:
    """Run one of the commands, and print what it found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--rows", dest="n_rows", type=int, required=True)
    making.add_argument("--columns", dest="n_columns", type=int, default=60)
    cars = commands.add_parser("vehicles")
    cars.add_argument("--rows", dest="n_rows", type=int, required=True)
    cars.add_argument("--data-dir", type=Path, required=True)
    for one in (making, cars):
        one.add_argument("--folder", type=Path, required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("folder", type=Path)
    fitting.add_argument("--target", required=True)
    fitting.add_argument("--limit-gb", type=float)
    fitting.add_argument("--time-limit", type=float)
    fitting.add_argument("--validation-fraction", type=float, default=0.1)
    fitting.add_argument("--max-epochs", type=int)
    fitting.add_argument("--in-memory", action="store_true")
    fitting.add_argument("--resume", action="store_true")
    fitting.add_argument("--work-dir", type=Path)
    fitting.add_argument("--checkpoint-dir", type=Path)
    fitting.add_argument("--kinds", default="")
    fitting.add_argument("--preset", default="default")
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("--target", default="target")
    comparing.add_argument("--work-dir", type=Path)
    comparing.add_argument("--preset", default="default")
    comparing.add_argument("--steps", dest="n_steps", type=int, default=150)
    for one in (fitting, comparing):
        one.add_argument("--save", metavar="NAME")
    commands.add_parser("page")
    options = vars(parser.parse_args())
    name = options.pop("save", None)
    found = globals()[options.pop("command")](**options)
    if name is not None:
        save(name, found)
    print(found if isinstance(found, str) else json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
