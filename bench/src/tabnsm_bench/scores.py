"""Methods by datasets: the scores that statistics, tables and figures are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.evidence import Provenance
from tabnsm_bench.main_runs import Cell, Result, Runs, count_other_encoding, group_runs, run_notes
from tabnsm_bench.protocol import ENCODINGS

METRICS = ("rmse", "mae")


@dataclass(frozen=True)
class ScoreTable:
    """Scores of methods on datasets; lower is better.

    Parameters
    ----------
    methods, datasets : tuple of str
        Names of rows and columns.
    mean : ndarray of shape (n_methods, n_datasets)
        Average over runs; NaN where there is no result.
    std : ndarray of shape (n_methods, n_datasets)
        Standard deviation over runs; NaN where there are fewer than two.
    n_runs : ndarray of shape (n_methods, n_datasets)
        Runs behind each score.
    metric : {"rmse", "mae"}
        What the scores are.
    counterparts : mapping of str to str
        The paper's abbreviation of a dataset, where it has one.
    partial : frozenset of str
        Datasets that are only a part of the paper's.
    notes : mapping of (method, dataset) to tuple of str
        Caps under which a score was reached, and why a score is missing.
    remarks : tuple of str
        What a reader should know about the whole table.

    Examples
    --------
    >>> mean = np.array([[1.0, np.nan], [2.0, 3.0]])
    >>> table = ScoreTable(("a", "b"), ("x", "y"), mean, 0 * mean, np.ones((2, 2), int))
    >>> table.score("b", "y"), table.missing("a")
    (3.0, ('y',))
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    n_runs: NDArray[np.int64]
    metric: str = "rmse"
    counterparts: Mapping[str, str] = field(default_factory=dict)
    partial: frozenset[str] = frozenset()
    notes: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def score(self, method: str, dataset: str) -> float:
        """One score, NaN if it is missing."""
        return float(self.mean[self.methods.index(method), self.datasets.index(dataset)])

    def missing(self, method: str) -> tuple[str, ...]:
        """Datasets on which a method has no score."""
        row = self.mean[self.methods.index(method)]
        return tuple(np.array(self.datasets)[np.isnan(row)].tolist())

    def select(
        self, methods: Sequence[str] | None = None, datasets: Sequence[str] | None = None
    ) -> ScoreTable:
        """The part of the table with these rows and columns, in this order; None takes all.

        Raises
        ------
        InvalidOptionError
            If a name is not in the table.
        """
        rows = _positions(self.methods, methods, "method")
        columns = _positions(self.datasets, datasets, "dataset")
        part = np.ix_(rows, columns)
        return replace(
            self,
            methods=tuple(self.methods[i] for i in rows),
            datasets=tuple(self.datasets[j] for j in columns),
            mean=self.mean[part],
            std=self.std[part],
            n_runs=self.n_runs[part],
        )

    def renamed(self, names: Mapping[str, str]) -> ScoreTable:
        """The same table with other names of methods; those without one keep theirs."""
        notes = {(names.get(m, m), dataset): lines for (m, dataset), lines in self.notes.items()}
        methods = tuple(names.get(method, method) for method in self.methods)
        return replace(self, methods=methods, notes=notes)


def collect_scores(
    results: Sequence[Result], metric: str = "rmse", encoding: str = "paper"
) -> ScoreTable:
    """Average the test scores of finished runs over seeds and splits.

    `tabnsm_bench.main_runs.group_runs` says which runs count.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    metric : {"rmse", "mae"}
        Score to average.
    encoding : {"paper", "default"}
        Whose arrays the baselines had; TabNSM always has its preset's own.

    Returns
    -------
    ScoreTable
        Methods and datasets in alphabetical order. A method whose runs all failed is among them,
        without scores and with the reasons in the notes.

    Raises
    ------
    InvalidDataError
        If two methods were tested on different rows of one split, or if no run gives a score.
    """
    if metric not in METRICS:
        raise InvalidOptionError(f"metric must be one of {METRICS}, got {metric!r}.")
    groups, cell_notes = group_runs(results, metric, encoding)
    unfinished = _without_a_score(groups, cell_notes)
    hint = _other_encoding(results, encoding)
    if results and not groups:
        raise InvalidDataError(" ".join(["No run gives a score.", *unfinished, *hint]))
    _check_test_rows(groups)
    provenance = Provenance([result for runs in groups.values() for _, result in runs])
    datasets = tuple(sorted({dataset for _, dataset in groups}))
    failed = {method for method, dataset in cell_notes if dataset in datasets}
    methods = tuple(sorted({method for method, _ in groups} | failed))
    shape = (len(methods), len(datasets))
    mean, std, n_runs = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    for (method, dataset), runs in groups.items():
        i, j = methods.index(method), datasets.index(dataset)
        values = [float(result["metrics"]["test"][metric]) for _, result in runs]
        mean[i, j], n_runs[i, j] = np.mean(values), len(values)
        if len(values) > 1:
            std[i, j] = np.std(values, ddof=1)
        for spec, result in runs:
            cell_notes[method, dataset] += run_notes(spec, result) + provenance.notes(result)
    return ScoreTable(
        methods,
        datasets,
        mean,
        std,
        n_runs,
        metric,
        counterparts={
            dataset: result["dataset"]["paper"]
            for (_, dataset), runs in groups.items()
            for spec, result in runs
            if result["dataset"]["paper"] and spec.target is None
        },
        partial=frozenset(
            dataset
            for (_, dataset), runs in groups.items()
            if any(spec.max_rows or result["dataset"]["partial"] for spec, result in runs)
        ),
        notes={cell: tuple(dict.fromkeys(notes)) for cell, notes in cell_notes.items() if notes},
        remarks=(*_remarks(groups), *provenance.remarks, *unfinished, *hint),
    )


def _without_a_score(groups: Mapping[Cell, Runs], failures: Mapping[Cell, list[str]]) -> list[str]:
    """A sentence per dataset on which runs failed and none gave a score."""
    known = {dataset for _, dataset in groups}
    lost = sorted((dataset, method) for method, dataset in failures if dataset not in known)
    return [
        f"{method} gives no score on {dataset}: {failures[method, dataset][0]}."
        for dataset, method in lost
    ]


def _other_encoding(results: Sequence[Result], encoding: str) -> list[str]:
    n_runs = count_other_encoding(results, encoding)
    other = next(name for name in ENCODINGS if name != encoding)
    if not n_runs:
        return []
    return [
        f"Not counted: {n_runs} runs of baselines on the other encoding. To see them, add: "
        f"--encoding {other}"
    ]


def _check_test_rows(groups: Mapping[Cell, Runs]) -> None:
    """Scores are comparable only where all methods were tested on the same rows."""
    known: dict[tuple[str, int], tuple[str, str]] = {}
    for (method, dataset), runs in groups.items():
        for spec, result in runs:
            rows = result["split"]["test_index_sha256"]
            if rows is None:
                continue
            first, expected = known.setdefault((dataset, spec.split), (method, rows))
            if rows != expected:
                raise InvalidDataError(
                    f"All methods must be tested on the same rows, but on {dataset}, split "
                    f"{spec.split}, {method} and {first} had different ones: the data file has "
                    "changed between them. Remove the older results and run them again."
                )


def _remarks(groups: Mapping[Cell, Runs]) -> tuple[str, ...]:
    splits: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    hashes: dict[str, set[str]] = defaultdict(set)
    for (_, dataset), runs in groups.items():
        splits[dataset].add(tuple(sorted({spec.split for spec, _ in runs})))
        hashes[dataset] |= {result["dataset"]["sha256"] for _, result in runs} - {None}
    remarks = [
        f"On {dataset} the methods were run on different sets of splits: their averages are not "
        "over the same rows."
        for dataset, found in sorted(splits.items())
        if len(found) > 1
    ]
    remarks += [
        f"On {dataset} the runs read {len(found)} different files."
        for dataset, found in sorted(hashes.items())
        if len(found) > 1
    ]
    return tuple(remarks)


def _positions(names: tuple[str, ...], wanted: Sequence[str] | None, kind: str) -> list[int]:
    if wanted is None:
        return list(range(len(names)))
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise InvalidOptionError(
            f"{kind} must be one of {', '.join(names) or 'those with results (none)'}; "
            f"got {unknown[0]!r}."
        )
    return [names.index(name) for name in wanted]
