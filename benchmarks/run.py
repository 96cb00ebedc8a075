"""Run every benchmark that needs no table, one after the other: `make bench`.

    python benchmarks/run.py

Wants an idle machine. The others say in their first lines which table they need.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = ("attention_operator.py", "rise_refresh.py", "import_time.py")


def main() -> None:
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"The machine is busy (load {load:.1f}): ratios will be off.", file=sys.stderr)
    for script in SCRIPTS:
        print(f"\n== {script}", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(script))], check=True)


if __name__ == "__main__":
    main()
