"""Time of `from tabnsm import TabNSMRegressor` as a multiple of `import torch`.

    python bench/speed/import_time.py

Fresh processes in turns, after one round that fills the file cache.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from measure import Run, figure, in_turns, show

GOAL = 1.6


def run(
    *,
    ours: str = "from tabnsm import TabNSMRegressor",
    base: str = "import torch",
    rounds: int = 7,
) -> dict[str, Any]:
    """Seconds of a process that runs one statement."""
    runs = {statement: process(statement) for statement in (base, ours)}
    for run_once in runs.values():
        run_once()
    times = in_turns(runs, seconds=0.0, rounds=rounds)
    ratio = figure(f"`{ours}`, times `{base}`", times[ours] / times[base], at_most=GOAL)
    return {
        "settings": {"rounds": rounds},
        "rows": [{"statement": name, "seconds": time} for name, time in times.items()],
        "figures": [ratio],
        "missing": [],
    }


def process(statement: str) -> Run:
    """A fresh interpreter that runs the statement."""
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


if __name__ == "__main__":
    show(run())
