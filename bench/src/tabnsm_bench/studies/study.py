"""A study: the runs that it needs, and the table that comes out of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.evidence import Provenance
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies.findings import Findings, relative_changes, summarize
from tabnsm_bench.studies.table import Column, StudyTable
from tabnsm_bench.studies.variant import Variant


@dataclass(frozen=True)
class Measure:
    """A figure of every result.

    Parameters
    ----------
    key : str
        Its name in the study's table.
    header : str
        Its name on the screen.
    path : str
        Where a result has it: keys joined by dots.
    style : str
        Format of its numbers.
    minus : str
        Path of a figure to take off it; empty for none.
    """

    key: str
    header: str
    path: str
    style: str = ".4g"
    minus: str = ""

    def values(self, findings: Findings, specs: list[RunSpec]) -> dict[int, float]:
        """The figure of each finished run, by seed."""
        values = findings.values(specs, self.path)
        if not self.minus:
            return values
        less = findings.values(specs, self.minus)
        return {seed: value - less[seed] for seed, value in values.items() if seed in less}


RMSE = Measure("rmse", "test RMSE", "metrics.test.rmse")
MSE = Measure("mse", "test MSE", "metrics.test.mse")
MAE = Measure("mae", "test MAE", "metrics.test.mae")
R2 = Measure("r2", "test R2", "metrics.test.r2", ".4f")
VALIDATION_RMSE = Measure("validation_rmse", "validation RMSE", "metrics.validation.rmse")
FIT_SECONDS = Measure("fit_seconds", "fit s", "fit_seconds", ".1f")
PREDICT_SECONDS = Measure("predict_seconds", "predict s", "predict_seconds", ".3f")
PEAK_MEMORY = Measure("peak_memory_mb", "peak MB", "peak_memory_mb", ".0f")
METRICS = {measure.key: measure for measure in (RMSE, MSE, MAE, R2, VALIDATION_RMSE)}


@dataclass(frozen=True)
class Scope:
    """What a study is run over.

    Parameters
    ----------
    datasets : tuple of str
    seeds : tuple of int
    preset : str
    caps : mapping of str to value
        Fields of `RunSpec` that all runs share: max_epochs, max_rows, time_limit, ...
    data_dir : Path or None
        Folder of the tables, for studies that look at them again.
    """

    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    preset: str = "default"
    caps: Mapping[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None


@dataclass(frozen=True)
class Study:
    """A study whose rows are variants of a method.

    Parameters
    ----------
    name : str
        As on the command line.
    description : str
        One sentence.
    counterpart : str
        What it corresponds to in the paper.
    variants : callable
        From a preset's name to the rows; in each group one is the reference.
    measures : tuple of Measure
        What is shown of each row; changes are those of the first.
    seeds : tuple of int
        Seeds unless others are asked for.
    beside : callable or None
        From another method to its rows, for studies that compare methods.
    peers : tuple of str
        The other methods unless others are asked for.
    """

    name: str
    description: str
    counterpart: str
    variants: Callable[[str], list[Variant]]
    measures: tuple[Measure, ...] = (RMSE, MAE, VALIDATION_RMSE, FIT_SECONDS)
    seeds: tuple[int, ...] = (0, 1, 2)
    beside: Callable[[str], list[Variant]] | None = None
    peers: tuple[str, ...] = ()

    def against(self, peers: Sequence[str]) -> Study:
        """The same study with other methods beside TabNSM."""
        if self.beside is None:
            raise InvalidOptionError(
                f"Study {self.name!r} has no methods beside TabNSM, got {', '.join(peers)}."
            )
        return replace(self, peers=tuple(peers))

    def judged_by(self, metric: str) -> Study:
        """The same study with changes in another metric."""
        if metric not in METRICS:
            raise InvalidOptionError(f"metric must be one of {tuple(METRICS)}, got {metric!r}.")
        others = tuple(m for m in self.measures if m.key != metric)
        return replace(self, measures=(METRICS[metric], *others))

    def rows(self, preset: str) -> list[Variant]:
        """All rows: those of TabNSM, then those of its peers."""
        beside = (
            [] if self.beside is None else [v for peer in self.peers for v in self.beside(peer)]
        )
        return self.variants(preset) + beside

    def specs(
        self, dataset: str, seeds: Iterable[int], preset: str = "default", **caps: Any
    ) -> list[RunSpec]:
        """The runs on one dataset, each once, seed by seed.

        Parameters
        ----------
        dataset : str
        seeds : iterable of int
        preset : str, default "default"
        **caps
            Fields of `RunSpec` that all runs share.

        Returns
        -------
        list of RunSpec
        """
        rows = self.rows(preset)
        runs = [run_spec(row, dataset, seed, caps) for seed in seeds for row in rows]
        return list(dict.fromkeys(runs))

    def all_specs(self, scope: Scope) -> list[RunSpec]:
        """The runs on all datasets of a scope."""
        return [
            spec
            for dataset in scope.datasets
            for spec in self.specs(dataset, scope.seeds, scope.preset, **scope.caps)
        ]

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Means, standard deviations and changes of all rows.

        Parameters
        ----------
        results : iterable of dict
            May hold results of other runs too.
        scope : Scope

        Returns
        -------
        StudyTable

        Raises
        ------
        InvalidDataError
            If no run of the study has finished.
        """
        findings = Findings(results)
        notes = self.missing(findings, scope)
        rows: list[dict[str, Any]] = []
        for dataset in scope.datasets:
            entries, same = self._entries(findings, dataset, scope)
            rows += entries
            notes += same
        return StudyTable(self.name, self.title(scope), self.columns(), rows, notes)

    def title(self, scope: Scope) -> str:
        """Headline of the table."""
        over = "".join(f"{name}, " for name in scope.datasets)
        return f"{self.description} ({over}preset {scope.preset})"

    def columns(self) -> list[Column]:
        """What the table shows."""
        first, *others = self.measures
        named = [("dataset", "dataset"), ("group", "group"), ("variant", "variant"), ("n", "runs")]
        return [
            *(Column(key, header) for key, header in named),
            Column(first.key, first.header, first.style, f"{first.key}_sd"),
            Column("change", "change %", "+.2f", "change_sd"),
            *(Column(m.key, m.header, m.style) for m in others),
        ]

    def missing(self, findings: Findings, scope: Scope) -> list[str]:
        """Notes on runs without a result and on the code of others; an error if there is none."""
        specs = self.all_specs(scope)
        absent = findings.missing(specs)
        if specs and len(absent) == len(specs):
            raise InvalidDataError(
                f"Study {self.name!r} needs at least one finished run, got none of {len(specs)} "
                f"(the first: {absent[0]}). Run: tabnsm bench study {self.name} --dataset "
                f"{scope.datasets[0]}"
            )
        rows = [
            (row.label, findings.done(self._runs(row, scope))) for row in self.rows(scope.preset)
        ]
        code = Provenance([run for _, runs in rows for run in runs]).row_notes(rows)
        if not absent:
            return code
        shown = "; ".join(absent[:3]) + ("; ..." if len(absent) > 3 else "")
        return [f"{len(absent)} of {len(specs)} runs have no result: {shown}.", *code]

    def _runs(self, row: Variant, scope: Scope) -> list[RunSpec]:
        return [
            run_spec(row, dataset, seed, scope.caps)
            for dataset in scope.datasets
            for seed in scope.seeds
        ]

    def _entries(
        self, findings: Findings, dataset: str, scope: Scope
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Rows of one dataset, and notes on those that changed nothing."""
        variants = self.rows(scope.preset)
        runs = {
            v: [run_spec(v, dataset, seed, scope.caps) for seed in scope.seeds] for v in variants
        }
        reference = {v.group: v for v in variants if v.is_reference}
        entries, same = [], []
        for variant, specs in runs.items():
            entry: dict[str, Any] = {
                "dataset": dataset,
                "group": variant.group,
                "variant": variant.label,
                "value": variant.value,
                "method": variant.method,
                "n": len(findings.done(specs)),
                "seeds": {},
            }
            for measure in self.measures:
                values = measure.values(findings, specs)
                summary = summarize(list(values.values()))
                entry |= {measure.key: summary.mean, f"{measure.key}_sd": summary.sd}
                entry["seeds"][measure.key] = {str(seed): values[seed] for seed in sorted(values)}
            base = reference.get(variant.group)
            if base is not None and base is not variant:
                first = self.measures[0]
                changes = summarize(
                    relative_changes(
                        first.values(findings, specs), first.values(findings, runs[base])
                    )
                )
                entry |= {"change": changes.mean, "change_sd": changes.sd}
                if runs[base] != specs and _all_equal(findings, specs, runs[base]):
                    same.append(
                        f"On {dataset}, {variant.label!r} gave the same numbers as "
                        f"{base.label!r}: the option has no effect on this table."
                    )
            entries.append(entry)
        return entries, same


def run_spec(variant: Variant, dataset: str, seed: int, caps: Mapping[str, Any]) -> RunSpec:
    """The run of a row; what the row sets goes before what all runs share."""
    return RunSpec(variant.method, dataset, seed=seed, **{**caps, **dict(variant.changes)})


def _all_equal(findings: Findings, specs: list[RunSpec], others: list[RunSpec]) -> bool:
    pairs = [
        (one["metrics"]["test"], other["metrics"]["test"])
        for spec, base in zip(specs, others, strict=True)
        if (one := findings.get(spec)) is not None and (other := findings.get(base)) is not None
    ]
    return bool(pairs) and all(one == other for one, other in pairs)
