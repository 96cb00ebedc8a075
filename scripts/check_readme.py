"""Follow README.md literally: every block, top to bottom, in an empty environment.

    python scripts/check_readme.py

A copy of the committed and changed files stands for a fresh clone. Each block runs in a process
of its own, so that it depends on nothing but the install lines and the files above it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.M | re.S)
# `make test` calls this script; `make demo` is the same as `tabnsm demo`, which CI trains briefly.
LEFT_OUT = re.compile(r"^make ", re.M)


def copy_checkout(folder: Path) -> None:
    """Copy what git would clone, with the changes of the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    names = [name for name in listed if name and (ROOT / os.fsdecode(name)).is_file()]
    # Results of experiments are most of the files, and no block reads them.
    names = [name for name in names if not name.startswith((b"bench/results/", b"results/"))]
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-"],
        cwd=ROOT,
        input=b"\0".join(names),
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive, check=True)


def main() -> int:
    """Run all blocks; the exit code is 1 after the first that fails."""
    blocks = [
        (language, code)
        for language, code in BLOCK.findall((ROOT / "README.md").read_text())
        if not LEFT_OUT.search(code)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout, environment = folder / "checkout", folder / "environment"
        checkout.mkdir()
        copy_checkout(checkout)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        variables = os.environ | {
            "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TABNSM_CACHE": str(folder / "cache"),
        }
        for variable in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"):
            variables.pop(variable, None)
        for number, (language, code) in enumerate(blocks, start=1):
            command = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else ["python", "-c"]
            started = time.monotonic()
            done = subprocess.run(
                [*command, code], cwd=checkout, env=variables, capture_output=True, text=True
            )
            seconds = time.monotonic() - started
            print(f"README block {number} of {len(blocks)} ({language}): {seconds:.0f} s")
            if done.returncode:
                print(f"{code}\n{done.stdout}\n{done.stderr}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
