"""Studies that results hold: the datasets, seeds and caps are read off the runs themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm_bench.main_runs import Result
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies import Scope, StudyTable, find_study
from tabnsm_bench.studies.study import run_spec
from tabnsm_bench.studies.variant import Variant

# Fields of a run that all runs of a study share, unless a row sets them by itself.
_CAPS = (
    "split",
    "target",
    "time_limit",
    "max_rows",
    "max_epochs",
)
_DEFAULTS = {field.name: field.default for field in fields(RunSpec)}


def study_table(
    name: str,
    results: Sequence[Result],
    preset: str = "default",
    data_dir: Path | None = None,
    peers: Sequence[str] | None = None,
    encoding: str = "paper",
) -> StudyTable:
    """The table of a study over whatever runs of it there are.

    A dataset counts if at least two rows of the study have a result there, and shows these.
    Where runs with different caps are there, those that most rows have are taken, then those with
    most runs.

    Parameters
    ----------
    name : str
        Name of the study.
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    preset : str, default "default"
        Preset that the study varies.
    data_dir : Path or None
        Folder of the tables, for studies that look at them.
    peers : sequence of str or None
        Methods beside TabNSM, for studies that have them; None takes the study's own.
    encoding : {"paper", "default"}
        Whose arrays the methods beside TabNSM had.

    Returns
    -------
    StudyTable

    Raises
    ------
    InvalidDataError
        If there are no such runs.
    """
    study = find_study(name)
    if peers is not None:
        study = study.against(peers)
    rows = study.rows(preset)
    done = {RunSpec.from_dict(result["spec"]) for result in results if result["state"] == "done"}
    common = Scope((), (), preset, data_dir=data_dir)
    scopes = _scopes(rows, done, {"encoding": encoding}, common)
    if rows and not scopes:
        raise InvalidDataError(
            f"There are no runs of the study {name!r} with the preset {preset!r}. "
            f"Make them with: tabnsm bench study {name}"
        )
    tables = [_without_empty(study.table(results, scope)) for scope in scopes or [common]]
    if len(tables) == 1:
        return tables[0]
    datasets = dict.fromkeys(name for scope in scopes for name in scope.datasets)
    title = study.title(replace(common, datasets=tuple(datasets)))
    return replace(_joined(tables), title=title)


def _scopes(
    rows: Sequence[Variant], done: set[RunSpec], shared: Mapping[str, Any], common: Scope
) -> list[Scope]:
    """One scope per set of caps, with the datasets on which it has the most rows."""
    chosen: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    seeds: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for dataset in sorted({spec.dataset for spec in done}):
        here = [spec for spec in done if spec.dataset == dataset]
        found = {
            caps: _present(rows, here, dict(zip(_CAPS, caps, strict=True)) | dict(shared))
            for caps in _candidates(rows, here)
        }
        if not found:
            continue
        best = max(found, key=lambda caps: (_n_rows(found[caps]), len(found[caps])))
        if _n_rows(found[best]) >= min(2, len(rows)):
            chosen[best].append(dataset)
            seeds[best] |= _shared_seeds(found[best], min(2, len(rows)))
    return [
        replace(
            common,
            datasets=tuple(datasets),
            seeds=tuple(sorted(seeds[caps])),
            caps=dict(zip(_CAPS, caps, strict=True)) | dict(shared),
        )
        for caps, datasets in chosen.items()
    ]


def _n_rows(present: set[tuple[str, int]]) -> int:
    return len({label for label, _ in present})


def _shared_seeds(present: set[tuple[str, int]], least: int) -> set[int]:
    """Seeds of at least `least` rows; another study may have run one row with many more."""
    counts = Counter(seed for _, seed in present)
    return {seed for seed, count in counts.items() if count >= least}


def _candidates(rows: Sequence[Variant], here: Sequence[RunSpec]) -> list[tuple[Any, ...]]:
    """Caps that some run of the study has; fields that its row sets by itself say nothing."""
    candidates: set[tuple[Any, ...]] = set()
    for spec in here:
        for row in rows:
            own = dict(row.changes)
            if spec.method == row.method and all(getattr(spec, k) == v for k, v in own.items()):
                caps = (_DEFAULTS[key] if key in own else getattr(spec, key) for key in _CAPS)
                candidates.add(tuple(caps))
    return sorted(candidates, key=repr)


def _present(
    rows: Sequence[Variant], here: Sequence[RunSpec], caps: Mapping[str, Any]
) -> set[tuple[str, int]]:
    """Rows and seeds that have a run under these caps."""
    runs = set(here)
    seeds = {spec.seed for spec in here}
    return {
        (row.label, seed)
        for row in rows
        for seed in seeds
        if run_spec(row, here[0].dataset, seed, caps) in runs
    }


def _without_empty(table: StudyTable) -> StudyTable:
    return replace(table, rows=[row for row in table.rows if row.get("n") != 0])


def _joined(tables: Sequence[StudyTable]) -> StudyTable:
    first, *others = tables
    for table in others:
        first = replace(
            first,
            rows=first.rows + table.rows,
            notes=list(dict.fromkeys([*first.notes, *table.notes])),
            facts={**table.facts, **first.facts},
        )
    return first
