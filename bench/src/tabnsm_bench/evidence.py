"""Which code and which options a result comes from."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import tabnsm.errors
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.protocol import Method, RunSpec

LIBRARY = Path(tabnsm.errors.__file__).parent
# Parts of the library that no figure depends on.
_OTHER_PARTS = {"cli", "demo", "plotting", "plotting_attribution", "_version"}


def empty_code() -> dict[str, Any]:
    """The entry "code" of a result whose code is unknown.

    Returns
    -------
    dict
        "commit", of the checkout that has the code, "committed_at", its time, and "dirty", whether
        the code differed from it; "library", a hash of the library's source; "fingerprint", of the
        run's resolved options. "commit_added" and "commit_changed" are those of the result's own
        file, for results from before there were the others: the code is of that time.
    """
    known = ("commit", "committed_at", "dirty", "library", "fingerprint")
    return dict.fromkeys((*known, "commit_added", "commit_changed"))


def code_state(library: Path = LIBRARY) -> dict[str, Any]:
    """Commit and source of the library as it is now.

    Parameters
    ----------
    library : Path
        Folder of the package.

    Returns
    -------
    dict
        "commit", "committed_at", "dirty" and "library"; the first three are None where the source
        is not under version control.
    """
    state: dict[str, Any] = {"commit": None, "committed_at": None, "dirty": None}
    # A folder that is merely inside a checkout, such as that of an environment, is not tracked.
    if _git(library, "ls-files", "--error-unmatch", "errors.py") is not None:
        head = _git(library, "log", "-1", "--format=%H %cI")
        top = _git(library, "rev-parse", "--show-toplevel")
        if head and top:
            state["commit"], state["committed_at"] = head.split()
            sources = [name for name in ("src", "bench/src") if Path(top, name).is_dir()]
            changed = _git(Path(top), "status", "--porcelain", "--", *(sources or [str(library)]))
            state["dirty"] = bool(changed)
    return state | {"library": source_hash(library)}


def source_hash(library: Path = LIBRARY) -> str:
    """Hash of the source files that a figure may depend on.

    Parameters
    ----------
    library : Path
        Folder of the package.

    Returns
    -------
    str
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in library.rglob("*") if path.suffix in (".py", ".c", ".h")):
        place = path.relative_to(library)
        if not _OTHER_PARTS & set(place.with_suffix("").parts):
            digest.update(f"{place.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def fingerprint(spec: RunSpec, method: Method | None = None) -> str | None:
    """Hash of a run and of its method's resolved options.

    Parameters
    ----------
    spec : RunSpec
        The run.
    method : Method or None
        Its method, if that has been made already.

    Returns
    -------
    str or None
        None if the method cannot be made here, so that its options are not known.

    Examples
    --------
    >>> ridge = RunSpec("ridge", "cpu_small")
    >>> fingerprint(ridge) == fingerprint(RunSpec("ridge+alpha=2", "cpu_small"))
    False
    """
    try:
        options = resolved_options(spec, method)
    except InvalidOptionError:
        return None
    # Without what has its default: a field that a later version adds must change nothing.
    given = {
        field.name: getattr(spec, field.name)
        for field in fields(spec)
        if field.name != "method" and getattr(spec, field.name) != field.default
    }
    identity = [spec.method_key, given, options]
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def resolved_options(spec: RunSpec, method: Method | None = None) -> dict[str, Any]:
    """All options of a run's method, those that were not given included.

    Parameters
    ----------
    spec : RunSpec
        The run. Of a method of the user's own, or in an environment, only the given options are
        known before it runs; for the latter the versions of its packages are added.
    method : Method or None
        Its method, not fitted yet, if that has been made already.

    Returns
    -------
    dict

    Examples
    --------
    >>> resolved_options(RunSpec("knn-5", "cpu_small"))["n_neighbors"]
    5
    """
    from tabnsm_bench.baselines.catalog import TABNSM_METHODS, find
    from tabnsm_bench.baselines.environment import find_environment
    from tabnsm_bench.execute import make_method

    if ":" in spec.method_key:
        return spec.method_options
    if spec.method_key not in TABNSM_METHODS:
        info = find(spec.method_key)
        if info.user_factory:
            return spec.method_options | {"factory": info.user_factory}
        environment = find_environment(info.environment) if info.environment else None
        if environment is not None:
            return spec.method_options | {"packages": environment.packages}
    made: Any = method or make_method(spec)
    return {**made.options, **getattr(made, "training", {})}


class Provenance:
    """What readers of a table should know about the code behind its runs.

    Parameters
    ----------
    results : sequence of dict
        All runs of the table.

    Examples
    --------
    >>> old = {"code": None}
    >>> provenance = Provenance([old])
    >>> provenance.notes(old), provenance.remarks
    ([], ['All runs are from before results recorded their code and options.'])
    """

    def __init__(self, results: Sequence[Any]) -> None:
        known = [code for result in results if (code := _known_code(result)) is not None]
        self.remarks: list[str] = []
        if results and not known:
            self.remarks = ["All runs are from before results recorded their code and options."]
        newest = max(known, key=lambda code: code["committed_at"] or "", default=None)
        self._newest = None if newest is None else newest["library"]

    def notes(self, result: Any) -> list[str]:
        """Notes on one run: none if it is of the newest code of the table."""
        code = _known_code(result)
        if code is None:
            note = "from before results recorded their code and options"
            return [] if self.remarks else [note]
        if code["library"] == self._newest:
            return []
        commit = (code["commit"] or "unknown")[:7] + " and changes" * bool(code["dirty"])
        return [f"by earlier code (commit {commit})"]

    def row_notes(self, rows: Sequence[tuple[str, Sequence[Any]]]) -> list[str]:
        """The same as sentences below a table, each with the names of its rows.

        Parameters
        ----------
        rows : sequence of (str, sequence of dict)
            Name and runs of each row.

        Returns
        -------
        list of str
        """
        named: dict[str, list[str]] = {}
        for name, results in rows:
            for note in dict.fromkeys(note for run in results for note in self.notes(run)):
                named.setdefault(note, []).append(name)
        return self.remarks + [
            f"{note[0].upper()}{note[1:]}: {', '.join(names)}." for note, names in named.items()
        ]


def _known_code(result: Any) -> dict[str, Any] | None:
    """The code of a result that recorded it, or None."""
    code: dict[str, Any] | None = result.get("code")
    return code if code and code.get("fingerprint") else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, or None if it fails or is not there."""
    try:
        run = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()
