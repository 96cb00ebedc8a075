"""Run the benchmarks one after the other, each in a separate process: `make bench`.

    python bench/speed/run.py [--only NAME ...] [--out FOLDER] [--data-dir ../shared/data]

Wants an idle machine and about half an hour. Each benchmark leaves ``NAME.json``; one whose file
is there and was made by the same code on the same machine is not measured again, so that an
interrupted run continues where it stopped (``--only`` always measures). `report.py` turns the files
into bench/docs/performance.md and its pictures.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from measure import show

from tabnsm import kernels
from tabnsm.container import atomic_write
from tabnsm_bench.evidence import code_state

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
FORMAT = 1
BUSY = 0.1
# Code that no figure depends on.
UNMEASURED = {"cli", "demo", "report", "pictures", "run"}
PACKAGES = (
    *("tabnsm", "torch", "numpy", "scikit-learn", "tabm", "rtdl_revisiting_models"),
    *("native-sparse-attention-pytorch", "catboost", "lightgbm", "sentence-transformers"),
)


class Benchmark(NamedTuple):
    """A function of a module beside this file."""

    module: str
    function: str = "run"
    settings: dict[str, Any] | None = None
    needs_data: bool = False


BENCHMARKS = {
    "operator": Benchmark("attention_operator"),
    "layer": Benchmark("attention_operator", "run_layers"),
    "model_step": Benchmark("model_step"),
    "model_step_ft_transformer": Benchmark("model_step", "run_ft_transformer"),
    "step_profile": Benchmark("step_profile"),
    "prediction": Benchmark("prediction"),
    "latency": Benchmark("latency"),
    "scaling": Benchmark("scaling"),
    "grid_loss": Benchmark("grid_loss"),
    "rise_refresh": Benchmark("rise_refresh"),
    "import_time": Benchmark("import_time"),
    "export": Benchmark("export"),
    "cold_prediction": Benchmark("export", "run_cold"),
    "text": Benchmark("text", needs_data=True),
    "encoding_memory": Benchmark("encoding_memory", needs_data=True),
    "end_to_end_cpu_small": Benchmark(
        "end_to_end", settings={"table": "cpu_small"}, needs_data=True
    ),
    "end_to_end_nyc_air_quality": Benchmark(
        "end_to_end", settings={"table": "nyc_air_quality"}, needs_data=True
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", default=[])
    parser.add_argument("--out", type=Path, default=BENCH / "results" / "speed")
    parser.add_argument("--data-dir", type=Path, default=ROOT.parent / "shared" / "data")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    here = machine()
    print(
        f"{here['cpu']}, {here['n_threads']} threads, kernel {here['kernel']}, float32, "
        f"allocator settings {here['allocator']['settings'] or 'default'} "
        f"({here['allocator']['libc']})"
    )
    try:
        failed = run_all(arguments.only, arguments.out, arguments.data_dir, here)
    except KeyboardInterrupt:
        print("\nInterrupted. What is finished is kept: run the same command again to continue.")
        sys.exit(130)
    if failed:
        print(f"\nFailed: {', '.join(failed)}. The same command tries them again.")
        sys.exit(1)


def run_all(only: list[str], out: Path, data_dir: Path, here: dict[str, Any]) -> list[str]:
    """Measure what is asked for and not there yet; the names of those that failed."""
    failed = []
    for name in only or BENCHMARKS:
        path, benchmark = out / f"{name}.json", BENCHMARKS[name]
        made_by = fingerprint(benchmark, here)
        # No moving progress bar: it would take its share of the cores that are being measured.
        print(f"\n== {name}", flush=True)
        if not only and is_current(path, made_by):
            print(f"  there already, by this code and on this machine: {path}")
            continue
        if benchmark.needs_data and not data_dir.is_dir():
            print(f"  left out: needs the tables, got no folder {data_dir}. Give --data-dir.")
            continue
        try:
            record = measure(benchmark, data_dir) | {"fingerprint": made_by, "name": name}
        except Exception as error:
            print(f"  failed: {type(error).__name__}: {error}")
            failed.append(name)
            continue
        atomic_write(path, (json.dumps(record | here, indent=1) + "\n").encode())
        show(record["result"])
        print(f"  {record['seconds']:.0f} s", flush=True)
    return failed


def measure(benchmark: Benchmark, data_dir: Path) -> dict[str, Any]:
    """Result of one benchmark, run in a fresh process, with when and how busy the machine was."""
    busy = busy_cores()
    if busy > BUSY:
        print(f"  the machine is busy ({busy:.1f} cores): ratios will be off", flush=True)
    moment, started = datetime.now(UTC), time.monotonic()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(call, benchmark, data_dir).result()
    return {
        "format": FORMAT,
        "measured_at": moment.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - started, 1),
        "busy_cores_before": busy,
        "code": code_state(),
        "result": result,
    }


def busy_cores(seconds: float = 0.5) -> float:
    """How many cores others keep busy at this moment; the load average would count us, too."""
    before, started = idle_seconds(), time.monotonic()
    time.sleep(seconds)
    idle = (idle_seconds() - before) / (time.monotonic() - started)
    return round(max(0.0, (os.cpu_count() or 1) - idle), 2)


def idle_seconds() -> float:
    """Seconds that all cores together have been idle since the machine started (Linux)."""
    fields = Path("/proc/stat").read_text().split(maxsplit=6)
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def call(benchmark: Benchmark, data_dir: Path) -> dict[str, Any]:
    """In the fresh process: import the module, run the function."""
    function = getattr(importlib.import_module(benchmark.module), benchmark.function)
    data = {"data_dir": data_dir} if benchmark.needs_data else {}
    result: dict[str, Any] = function(**(benchmark.settings or {}), **data)
    return result


def machine() -> dict[str, Any]:
    """What a figure depends on beside the code: processor, threads, allocator, versions."""
    prefixes = ("MALLOC_", "LD_PRELOAD", "GLIBC_TUNABLES")
    return {
        "cpu": cpu_name(),
        "n_cores": os.cpu_count(),
        "n_threads": torch.get_num_threads(),
        "kernel": kernels.available(),
        "allocator": {
            "libc": " ".join(platform.libc_ver()),
            "settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes)},
        },
        "versions": {"python": platform.python_version()} | installed_versions(),
    }


def cpu_name() -> str:
    """Model name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def installed_versions() -> dict[str, str]:
    """Versions of the packages that take part, as far as they are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def fingerprint(benchmark: Benchmark, here: dict[str, Any]) -> str:
    """Hash of the library's code, the benchmark's, its settings and the machine."""
    digest = hashlib.sha256(json.dumps([benchmark, here], sort_keys=True).encode())
    library = ROOT / "src" / "tabnsm"
    sources = [path for path in library.rglob("*") if path.suffix in (".py", ".c", ".h")]
    for path in (*sorted(sources), *sorted(Path(__file__).parent.glob("*.py"))):
        if not UNMEASURED & set(path.relative_to(ROOT).with_suffix("").parts):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(path: Path, made_by: str) -> bool:
    """Whether a file is there that the same code made on the same machine."""
    try:
        return bool(json.loads(path.read_text())["fingerprint"] == made_by)
    except (OSError, ValueError, KeyError):
        return False


if __name__ == "__main__":
    main()
