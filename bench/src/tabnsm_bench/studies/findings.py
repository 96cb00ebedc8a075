"""Results of a study's runs: which are there, their means, and changes seed by seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabnsm_bench.protocol import RunSpec


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of some runs.

    Parameters
    ----------
    n : int
        Number of runs.
    mean : float or None
        None without runs.
    sd : float or None
        With n - 1 below; None for fewer than two runs.
    """

    n: int
    mean: float | None
    sd: float | None


class Findings:
    """The finished results among some, by the run that they are of.

    Parameters
    ----------
    results : iterable of dict
        As from `tabnsm_bench.store.load_results`.
    """

    def __init__(self, results: Iterable[Mapping[str, Any]]) -> None:
        self._done: dict[RunSpec, Mapping[str, Any]] = {}
        self._errors: dict[RunSpec, str] = {}
        for result in results:
            spec = RunSpec.from_dict(result["spec"])
            if result["state"] == "done":
                self._done[spec] = result
            else:
                self._errors[spec] = str(result.get("error") or result["state"])

    def get(self, spec: RunSpec) -> Mapping[str, Any] | None:
        """Result of a run, or None if it has not finished."""
        return self._done.get(spec)

    def done(self, specs: Iterable[RunSpec]) -> list[Mapping[str, Any]]:
        """Results of those runs that have finished."""
        return [self._done[spec] for spec in specs if spec in self._done]

    def missing(self, specs: Iterable[RunSpec]) -> list[str]:
        """Runs without a result, each with the reason where there is one."""
        absent = [spec for spec in dict.fromkeys(specs) if spec not in self._done]
        return [
            f"{spec.method} on {spec.dataset}, seed {spec.seed}"
            + (f": {_first_line(self._errors[spec])}" if spec in self._errors else "")
            for spec in absent
        ]

    def values(self, specs: Iterable[RunSpec], path: str) -> dict[int, float]:
        """A figure of each finished run, by seed; runs without that figure are left out.

        Parameters
        ----------
        specs : iterable of RunSpec
            Runs that differ in nothing but the seed.
        path : str
            Keys joined by dots: "metrics.test.rmse".
        """
        found = {}
        for spec in specs:
            value = lookup(self._done.get(spec, {}), path)
            if isinstance(value, int | float) and math.isfinite(value):
                found[spec.seed] = float(value)
        return found


def lookup(result: Mapping[str, Any], path: str) -> Any:
    """What a result holds under keys joined by dots, or None.

    Examples
    --------
    >>> lookup({"metrics": {"test": {"rmse": 2.5}}}, "metrics.test.rmse")
    2.5
    >>> lookup({}, "fit_seconds") is None
    True
    """
    value: Any = result
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def summarize(values: Sequence[float]) -> Summary:
    """Mean and standard deviation.

    Examples
    --------
    >>> summarize([1.0, 3.0])
    Summary(n=2, mean=2.0, sd=1.4142135623730951)
    """
    if not values:
        return Summary(0, None, None)
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Summary(len(values), statistics.fmean(values), sd)


def relative_changes(values: Mapping[int, float], reference: Mapping[int, float]) -> list[float]:
    """Change against the reference in percent, for each common seed.

    Examples
    --------
    >>> relative_changes({0: 3.0, 1: 1.0, 2: 9.0}, {0: 2.0, 1: 2.0})
    [50.0, -50.0]
    """
    shared = sorted(set(values) & set(reference))
    return [100 * (values[s] / reference[s] - 1) for s in shared if reference[s] != 0]


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0]
