"""Results on disk: one run, one JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm_bench.evidence import empty_code
from tabnsm_bench.protocol import RunSpec

FORMAT = 1
STATES = ("done", "failed", "timeout")
# A run that met its time limit would meet it again; one that crashed may not crash again.
FINISHED_STATES = ("done", "timeout")


STUDIES = "studies"
"""Folder beside those of the methods."""
UNSEEN = f"{STUDIES}/carry_over"
"""Folder of runs on datasets that were never used in development."""


def empty_result(spec: RunSpec) -> dict[str, Any]:
    """An empty result of a run.

    Parameters
    ----------
    spec : RunSpec
        The run.

    Returns
    -------
    dict
        Every key of the format; unknown facts are None.

    Examples
    --------
    >>> result = empty_result(RunSpec("ridge", "cpu_small"))
    >>> result["format"], result["metrics"]["test"]
    (1, None)
    """
    return {
        "format": FORMAT,
        "spec": spec.to_dict(),
        "state": None,
        "error": None,
        "dataset": None,
        "split": None,
        "metrics": {"test": None, "validation": None},
        "fit_seconds": None,
        "fit_cpu_seconds": None,
        "predict_seconds": None,
        "encode_seconds": None,
        "peak_memory_mb": None,
        "memory_before_fit_mb": None,
        "settings": None,
        "notes": [],
        "versions": None,
        "machine": None,
        "code": empty_code(),
    }


def write_result(result: Mapping[str, Any], results_dir: str | Path) -> Path:
    """Write a result to its place, atomically.

    Parameters
    ----------
    result : mapping
        As from `empty_result`, filled in.
    results_dir : str or Path
        Folder of all results.

    Returns
    -------
    Path
        The file.
    """
    from tabnsm.container import atomic_write  # imports torch

    path = RunSpec.from_dict(result["spec"]).path(results_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1, allow_nan=False, ensure_ascii=False)
    atomic_write(path, (text + "\n").encode())
    return path


def read_result(path: str | Path) -> dict[str, Any]:
    """Read one result.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict

    Raises
    ------
    InvalidDataError
        If it is not a result of this format.
    """
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidDataError(f"{path} must be JSON, but is not ({error}). Remove it.") from error
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        found = result.get("format") if isinstance(result, dict) else None
        raise InvalidDataError(
            f"{path} must be a result of format {FORMAT}, got {found!r}. Keep other files out of "
            "the folder of results."
        )
    return result


def load_results(results_dir: str | Path) -> list[dict[str, Any]]:
    """All results of runs, in the order of their paths; tables of studies are not among them.

    Parameters
    ----------
    results_dir : str or Path
        Folder of all results; it need not exist.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> load_results("no-such-folder")
    []
    """
    return [read_result(path) for path in result_paths(results_dir)]


def result_paths(results_dir: str | Path) -> list[Path]:
    """Files of all runs: those of methods, not those of studies that keep their own form."""
    paths = sorted(Path(results_dir).glob("*/*/*.json"))
    return [path for path in paths if path.parts[-3] != STUDIES and not path.name.startswith(".")]


def is_finished(spec: RunSpec, results_dir: str | Path, fingerprint: str | None) -> bool:
    """Whether a run has a result and need not be run again.

    A result that other options led to, under the same name, is none: nor is one that does not say
    which.

    Parameters
    ----------
    spec : RunSpec
        The run.
    results_dir : str or Path
        Folder of all results.
    fingerprint : str or None
        As from `tabnsm_bench.evidence.fingerprint`; None is not finished.

    Returns
    -------
    bool
    """
    path = spec.path(results_dir)
    if fingerprint is None or not path.exists():
        return False
    result = read_result(path)
    made_by = (result.get("code") or {}).get("fingerprint")
    return result["state"] in FINISHED_STATES and made_by == fingerprint
