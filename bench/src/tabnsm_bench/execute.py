"""One run in this process: load, split, encode, fit, predict, measure."""

from __future__ import annotations

import importlib
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm.metrics import regression_metrics
from tabnsm_bench.evidence import code_state, empty_code, fingerprint
from tabnsm_bench.protocol import Method, RunSpec
from tabnsm_bench.store import empty_result

_PACKAGES = ("tabnsm", "numpy", "torch", "scikit-learn")


def execute(
    spec: RunSpec,
    data_dir: str | Path,
    *,
    n_threads: int = 1,
    on_phase: Callable[[str], None] = lambda phase: None,
) -> dict[str, Any]:
    """Do a run and describe it.

    Parameters
    ----------
    spec : RunSpec
        The run.
    data_dir : str or Path
        Folder of table files.
    n_threads : int
        Cores that the method may use.
    on_phase : callable
        Called with "encode", "fit" and "predict" when these begin.

    Returns
    -------
    dict
        The result, with the state "done".
    """
    from tabnsm_bench.datasets import load
    from tabnsm_bench.prepare import prepare

    method = make_method(spec)
    # Before the fit: the checkout may have moved on by its end.
    code = empty_code() | code_state() | {"fingerprint": fingerprint(spec, method)}
    on_phase("encode")
    table = load(spec.dataset, data_dir, target=spec.target)
    data, split, notes = prepare(table, spec, encode=not method.takes_frames)
    before = peak_memory_mb()
    on_phase("fit")
    started, cpu_started = time.perf_counter(), time.process_time()
    with _limit_in_cpu_seconds(spec.cpu_limit):
        limit = spec.time_limit
        if spec.cpu_limit is not None and spec.method_key.startswith("tabnsm-"):
            limit = spec.cpu_limit
        facts = method.fit(data, seed=spec.seed, time_limit=limit, n_threads=n_threads)
    fit_seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    on_phase("predict")
    started = time.perf_counter()
    predicted = method.predict(data.test.x, data.test_frame)
    predict_seconds = time.perf_counter() - started
    chosen_by = method.predict(data.validation.x, data.validation_frame)
    settings = dict(facts)
    cpu_seconds = settings.pop("fit_cpu_seconds", cpu_seconds)  # of a method in another process
    versions = _versions(settings.pop("package", None), settings.pop("package_version", None))
    elsewhere = settings.pop("peak_memory_mb", None)
    return empty_result(spec) | {
        "state": "done",
        "dataset": {
            "rows": len(table.target),
            "columns": int(table.frame.shape[1]),
            "features": len(data.feature_names) or settings.get("n_features"),
            "paper": (table.descriptor.paper or None) if spec.target is None else None,
            "partial": table.partial,
            "judged_by": table.descriptor.judged_by,
            "file": table.path.name,
            "sha256": table.sha256,
        },
        "split": {
            "n_train": len(split.train),
            "n_validation": len(split.validation),
            "n_test": len(split.test),
            "test_index_sha256": split.test_sha256,
        },
        "metrics": {
            "test": _metrics(data.test.y, predicted),
            "validation": _metrics(data.validation.y, chosen_by),
        },
        "fit_seconds": round(fit_seconds, 4),
        "fit_cpu_seconds": round(cpu_seconds, 4),
        "predict_seconds": round(predict_seconds, 4),
        "encode_seconds": None if method.takes_frames else round(data.encode_seconds, 4),
        # A method in a separate process measures itself; the memory of this one means nothing then.
        "peak_memory_mb": elsewhere or peak_memory_mb(),
        "memory_before_fit_mb": None if elsewhere else before,
        "notes": [*notes, *settings.pop("notes", ())],
        "settings": settings,
        "versions": versions,
        "machine": {"cpu": _cpu_name(), "n_threads": n_threads, "system": platform.system()},
        "code": code,
    }


def _metrics(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> dict[str, float | None]:
    """Scores of predictions; a target without variance has no R2 to explain."""
    metrics: dict[str, float | None] = {**regression_metrics(y, predicted)}
    return metrics if y.min() < y.max() else metrics | {"r2": None}


@contextmanager
def _limit_in_cpu_seconds(limit: float | None) -> Iterator[None]:
    """Have the time limit of TabNSM count the seconds of this process alone."""
    from tabnsm.training import budget

    clock = budget.clock
    if limit is not None:
        budget.clock = time.process_time
    try:
        yield
    finally:
        budget.clock = clock


def make_method(spec: RunSpec) -> Method:
    """The method of a run, with its options.

    Parameters
    ----------
    spec : RunSpec
        The run; "package.module:factory" calls the user's own factory, and the option "tuned"
        is the number of trials in which the others are searched.

    Returns
    -------
    Method

    Raises
    ------
    InvalidOptionError
        If there is no such method.
    """
    options = spec.method_options
    if spec.max_epochs is not None:
        options["max_epochs"] = spec.max_epochs
    module, separator, factory = spec.method_key.partition(":")
    if not separator:
        if "tuned" in options:
            from tabnsm_bench.tuned import TunedMethod

            n_trials = options.pop("tuned")
            return TunedMethod(spec.method_key, options, n_trials)
        from tabnsm_bench.baselines.catalog import make

        return make(spec.method_key, options)
    try:
        found = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise InvalidOptionError(
            f"method must name a factory that can be imported, got {spec.method_key!r} ({error})."
        ) from error
    method: Method = found(**options)
    return method


def peak_memory_mb() -> float | None:
    """Peak memory of this process and its children, in MB; None where unknown.

    Returns
    -------
    float or None
    """
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux the other figure includes what the parent had when it started this process.
        lines = status.read_text().splitlines()
        own = next((int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM")), own)
    return round(max(own, children) / 1e6, 1)


def _versions(package: str | None, package_version: str | None) -> dict[str, str | None]:
    found = {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}
    if package and package not in found:
        found[package] = package_version or _version(package)
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
