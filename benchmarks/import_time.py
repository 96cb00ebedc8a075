"""Time of `from tabnsm import TabNSMRegressor` as a multiple of `import torch`.

    python benchmarks/import_time.py

Fresh processes in turn, the fastest of several; the goal is at most 2.
"""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 7
STATEMENTS = ("import torch", "import sklearn.base", "from tabnsm import TabNSMRegressor")


def seconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main() -> None:
    for statement in STATEMENTS:
        seconds(statement)  # into the file cache
    rounds = [{statement: seconds(statement) for statement in STATEMENTS} for _ in range(ROUNDS)]
    best = {statement: min(r[statement] for r in rounds) for statement in STATEMENTS}
    for statement, value in best.items():
        print(f"{value:6.2f} s  {value / best['import torch']:5.2f} x torch  {statement}")


if __name__ == "__main__":
    main()
