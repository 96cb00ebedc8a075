"""Give results that do not know their code the commits of their own file.

    python bench/scripts/record_commits.py [RESULTS]

For results from before runs recorded commit and fingerprint; run once, from a clean checkout.
"commit_added" is the commit that added the file and "commit_changed" the last one that changed its
content, moves aside: the code behind the figures is at most as new as that. Nothing else changes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from tabnsm.container import atomic_write
from tabnsm_bench.evidence import empty_code

RESULTS = Path(__file__).resolve().parents[1] / "results"


def file_commits(path: Path) -> tuple[str, str] | None:
    """Commits that added a file and that changed it last; None if it was never committed."""
    # Only moves that change nothing: results resemble each other, and git would follow a new one
    # into the history of another run.
    follow = ["git", "log", "--follow", "-M100%", "--diff-filter=AM"]
    run = subprocess.run(
        [*follow, "--format=%H", "--name-status", "--", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    commits: list[tuple[str, str]] = []
    commit = ""
    for line in filter(None, run.stdout.splitlines()):
        status, tab, _ = line.partition("\t")
        if tab:
            commits.append((status, commit))
        else:
            commit = line
    added = [commit for status, commit in commits if status == "A"]
    return (added[0], commits[0][1]) if added else None


def record(path: Path) -> bool:
    """Add the commits to one file; whether there was something to add."""
    text = path.read_text(encoding="utf-8")
    result = json.loads(text)
    if not isinstance(result, dict) or "spec" not in result or "code" in result:
        return False
    if as_text(result) != text:
        raise ValueError(f"{path} must be as a run writes it, but is not. Was it edited by hand?")
    commits = file_commits(path)
    if commits is None:
        return False
    names = ("commit_added", "commit_changed")
    result["code"] = empty_code() | dict(zip(names, commits, strict=True))
    atomic_write(path, as_text(result).encode())
    return True


def as_text(result: dict[str, object]) -> str:
    return json.dumps(result, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    paths = sorted(parser.parse_args().results.rglob("*.json"))
    print(f"{sum([record(path) for path in paths])} of {len(paths)} files got their commits")


if __name__ == "__main__":
    main()
