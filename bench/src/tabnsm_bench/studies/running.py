"""From a study to its table: do the runs that are missing, then read all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies.study import Scope, Study
from tabnsm_bench.studies.table import StudyTable

if TYPE_CHECKING:
    from tabnsm_bench.run import Display


def run_study(
    study: Study,
    scope: Scope,
    results_dir: str | Path,
    *,
    n_processes: int = 1,
    n_threads: int | None = None,
    display: Display | None = None,
) -> StudyTable:
    """Run what is missing of a study and collect all results.

    Parameters
    ----------
    study : Study
    scope : Scope
        With the folder of the tables.
    results_dir : str or Path
        Folder of all results, shared with other studies and the main table.
    n_processes, n_threads, display
        As for `tabnsm_bench.run.run_many`.

    Returns
    -------
    StudyTable
    """
    from tabnsm_bench.run import run_many

    specs = study.all_specs(scope)
    if specs:
        if scope.data_dir is None:
            raise InvalidOptionError("data_dir must be given to run a study. Add --data-dir.")
        run_many(
            specs,
            scope.data_dir,
            results_dir,
            n_processes=n_processes,
            n_threads=n_threads,
            display=display,
        )
    return tabulate(study, scope, results_dir)


def tabulate(study: Study, scope: Scope, results_dir: str | Path) -> StudyTable:
    """Collect the existing results, without running anything.

    Parameters
    ----------
    study : Study
    scope : Scope
    results_dir : str or Path

    Returns
    -------
    StudyTable

    Raises
    ------
    InvalidDataError
        If there is none.
    """
    from tabnsm_bench.store import read_result

    paths = (spec.path(results_dir) for spec in study.all_specs(scope))
    return study.table([read_result(path) for path in paths if path.exists()], scope)
