"""search: draw options, score them, keep what was learned in a file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tabnsm.errors import InvalidOptionError, TabNSMError
from tabnsm.rules import is_integer, require
from tabnsm.tuning.progress import SearchProgress
from tabnsm.tuning.queue import TrialQueue, quiet_optuna, tidy
from tabnsm.tuning.report import PutBack, Report
from tabnsm.tuning.result import TuningResult
from tabnsm.tuning.space import Parameter, check_space, contains
from tabnsm.tuning.storage import check_storage, is_url, open_storage

if TYPE_CHECKING:
    from optuna.trial import Trial

# After this many failures in a row, without any success, the error is the user's to see.
MAX_FAILURES = 3

Objective = Callable[[dict[str, Any], Report], float]
Stopped = Literal["trials", "time", "interrupted"]


def search(
    space: Mapping[str, Parameter],
    objective: Objective,
    n_trials: int = 20,
    *,
    time_limit: float | None = None,
    storage: str | Path | None = None,
    first: Mapping[str, Any] | None = None,
    fingerprint: str = "",
    random_state: int = 0,
    score_name: str = "score",
    verbose: int = 0,
) -> TuningResult:
    """Search options for the lowest score.

    Trials are drawn by a tree-structured Parzen estimator and stopped early by the median rule.
    With a `storage`, a search that was killed goes on where it stopped, and several processes
    that are started with the same arguments share the trials. A trial whose process died, or
    that raised an error, is tried once more. Ctrl-C ends the search with the best so far.

    Parameters
    ----------
    space : mapping of str to Integer, Real or Choice
    objective : callable
        ``objective(options, report)`` gives the score of the options, less is better. Calling
        ``report(step, best_score_so_far)`` on the way makes pruning possible, and
        ``report.seconds_left`` says how much time there is.
    n_trials : int, default 20
        Of the whole study, earlier runs and other processes included.
    time_limit : float or None, default None
        Seconds of this call after which no trial begins, but for the first of all.
    storage : str, Path or None, default None
        File that keeps the study (Optuna's journal), or the URL of a database that machines
        share, ``postgresql://user:password@host/database``, ``mysql://...`` or
        ``sqlite:///file.db``; None keeps nothing.
    first : mapping or None, default None
        Options to try first, such as a method's defaults; one value per parameter.
    fingerprint : str, default ""
        Says what the objective depends on, such as a hash of the data: a `storage` made with
        another one is refused.
    random_state : int, default 0
        Same number, same trials, also after a kill, as long as one process works alone and no
        time limit strikes.
    score_name : str, default "score"
        What the score is called on the screen.
    verbose : int, default 0
        0 is silent, 1 shows a bar, 2 a line per trial.

    Returns
    -------
    TuningResult

    Examples
    --------
    >>> from tabnsm.tuning import Real
    >>> result = search({"x": Real(-1, 1)}, lambda options, report: options["x"] ** 2, 30)
    >>> result.best_score < 0.05
    True
    """
    check_search(space, n_trials, time_limit, storage, random_state)
    if first is not None and not contains(space, first):
        raise InvalidOptionError(
            f"first must have one value inside the space for each parameter, got {dict(first)}."
        )
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    with ExitStack() as stack:
        stack.enter_context(quiet_optuna())
        store = None if storage is None else stack.enter_context(open_storage(storage))
        queue = TrialQueue(space, n_trials, random_state, store)
        queue.open(fingerprint, first)
        progress = stack.enter_context(SearchProgress(verbose, n_trials, score_name))
        stopped: Stopped = "interrupted"
        try:
            stopped = _use_budget(queue, objective, deadline, progress)
        except KeyboardInterrupt:
            if queue.best() is None:
                raise
        best = queue.best()
        if best is None or best.score is None:
            raise TabNSMError(
                f"At least 1 of the {n_trials} trials must complete, but none did. "
                "Allow more trials, or narrow the space."
            )
        kept: str | Path | None = None
        if storage is not None and store is not None:
            kept = store.name if is_url(storage) else Path(storage)
        return TuningResult(best.options, best.score, tuple(queue.records()), stopped, kept)


def check_search(
    space: Mapping[str, Parameter],
    n_trials: int,
    time_limit: float | None,
    storage: str | Path | None,
    random_state: int,
) -> None:
    """Raise, before any work, what would make a search impossible; arguments as in `search`."""
    check_space(space)
    require(is_integer(n_trials, 1), "n_trials must be an integer >= 1", n_trials)
    require(
        time_limit is None or (isinstance(time_limit, int | float) and 0 < time_limit < math.inf),
        "time_limit must be None or > 0 seconds and finite",
        time_limit,
    )
    require(is_integer(random_state, 0), "random_state must be an integer >= 0", random_state)
    with quiet_optuna():
        if storage is not None:
            check_storage(storage)


def _use_budget(
    queue: TrialQueue, objective: Objective, deadline: float, progress: SearchProgress
) -> Stopped:
    """Trial after trial, until all are taken or the time is up; one is tried in any case."""
    n_failures = 0
    while time.monotonic() < deadline or queue.n_taken == 0:
        trial = queue.next_trial()
        progress.start(queue.n_taken - int(trial is not None), queue.best())
        if trial is None:
            return "trials"
        try:
            error = _run_trial(queue, trial, objective, deadline, progress)
        except KeyboardInterrupt:
            queue.put_back(trial.number, count=False)
            raise
        except PutBack:
            queue.put_back(trial.number, count=False)
            break
        n_failures = 0 if error is None else n_failures + 1
        if error is not None and n_failures >= MAX_FAILURES and queue.best() is None:
            raise error
    return "time"


def _run_trial(
    queue: TrialQueue,
    trial: Trial,
    objective: Objective,
    deadline: float,
    progress: SearchProgress,
) -> Exception | None:
    """Score one trial and write it down; the error if it failed."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    failure: Exception | None = None
    best = queue.best()
    best_score = math.inf if best is None or best.score is None else best.score
    report = Report(trial, deadline, progress, best_score)
    try:
        score = float(objective(tidy(trial.params), report))
        if not math.isfinite(score):
            raise TabNSMError(f"The objective must give a finite score, got {score}.")
    except TrialPruned:
        queue.study.tell(trial, state=TrialState.PRUNED)
    except PutBack:
        raise
    except Exception as error:
        failure = error
        trial.set_user_attr("error", f"{type(error).__name__}: {error}")
        queue.put_back(trial.number, count=True)
    else:
        queue.study.tell(trial, score)
    shown = "" if failure is None else f"{type(failure).__name__}: {failure}"
    progress.end(queue.records()[trial.number], shown)
    return failure
