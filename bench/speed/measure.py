"""Timing in turns, peak memory in a separate process, and the form that all results have.

A benchmark is a file with a function ``run`` that returns a dict for JSON: ``settings``, ``rows``
(what was measured, one flat dict each), ``figures`` (what follows from it, see `figure`) and
``missing`` (peers that are not installed).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

Run = Callable[[], object]


def in_turns(runs: Mapping[str, Run], *, seconds: float, rounds: int = 3) -> dict[str, float]:
    """Median seconds of each run, taken in turns so that all meet the same machine.

    A turn repeats a fast run for a fiftieth of `seconds`, since the first one after another side
    finds the other's data in the cache. There are at least `rounds` rounds, and more until
    `seconds` are over. The caller warms up.
    """
    turn = seconds / 50
    samples: dict[str, list[float]] = {name: [] for name in runs}
    started, done = time.perf_counter(), 0
    while done < rounds or time.perf_counter() - started < seconds:
        for name, run in runs.items():
            turn_ends = time.perf_counter() + turn
            end = 0.0
            while end < turn_ends:
                begin = time.perf_counter()
                run()
                end = time.perf_counter()
                samples[name].append(end - begin)
        done += 1
    return {name: statistics.median(values) for name, values in samples.items()}


def peak_memory(build: Callable[..., Run], small: tuple[Any, ...], full: tuple[Any, ...]) -> float:
    """Increase in MB of a process over the moment before it runs ``build(*full)`` once (Linux).

    The process is fresh; ``build(*small)`` runs in it first, so that libraries, threads and their
    buffers are there before and only the arrays of the run count.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_peak_memory, build, small, full, torch.get_num_threads()).result()


def _peak_memory(
    build: Callable[..., Run], small: tuple[Any, ...], full: tuple[Any, ...], n_threads: int
) -> float:
    torch.set_num_threads(n_threads)
    build(*small)()
    run = build(*full)
    forget_peak()
    before = memory("VmRSS")
    run()
    return memory("VmHWM") - before


def forget_peak() -> None:
    """Reset the peak memory of this process to its current memory."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> float:
    """VmRSS (now) or VmHWM (at most) of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def figure(
    what: str,
    value: float,
    unit: str = "x",
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> dict[str, Any]:
    """One published number, with its goal where there is one.

    The unit is "x" for a ratio, "%" for a share given as a fraction, "ms", or "" for a plain one.
    """
    return {
        "what": what,
        "value": value,
        "unit": unit,
        "at_least": at_least,
        "at_most": at_most,
    }


def is_reached(entry: Mapping[str, Any]) -> bool | None:
    """Whether a figure reaches its goal; None where it has none."""
    if entry["at_least"] is not None:
        return bool(entry["value"] >= entry["at_least"])
    if entry["at_most"] is not None:
        return bool(entry["value"] <= entry["at_most"])
    return None


def format_value(value: float, unit: str) -> str:
    """A figure's value with its unit: ``2.31x``, ``0.4 %``, ``3.2 ms``."""
    if unit == "%":
        value, unit = 100 * value, " %"
    elif unit == "ms":
        unit = " ms"
    # Three significant digits, never an exponent.
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}{unit}"


def format_goal(entry: Mapping[str, Any]) -> str:
    """The goal of a figure, or an empty string."""
    scale = 100 if entry["unit"] == "%" else 1
    for kind in ("at_least", "at_most"):
        if entry[kind] is not None:
            return f"{kind.replace('_', ' ')} {entry[kind] * scale:g}"
    return ""


def show(result: Mapping[str, Any]) -> None:
    """Print rows and figures of a benchmark."""
    for row in result["rows"]:
        cells = (
            f"{name} {value:,.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in row.items()
        )
        print("  " + ", ".join(cells))
    for entry in result["figures"]:
        reached = is_reached(entry)
        mark = "" if reached is None else "  reached" if reached else "  NOT REACHED"
        goal = format_goal(entry)
        print(
            f"{format_value(entry['value'], entry['unit']):>10}  {entry['what']}"
            f"{f' (goal: {goal})' if goal else ''}{mark}"
        )
    for name in result.get("missing", ()):
        print(f"  left out: {name}")
