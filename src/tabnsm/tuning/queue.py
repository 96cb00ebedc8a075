"""TrialQueue: which trial is next, whose is it, and what became of all others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.tuning.result import TrialRecord
from tabnsm.tuning.space import Parameter, describe, draw
from tabnsm.tuning.storage import StudyStorage

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

STUDY_NAME = "tabnsm"
# Random trials before the sampler trusts what it has seen; with 20 trials the rest is 12.
N_RANDOM_TRIALS = 8
# A trial is stopped when its best step so far is worse than the median of at least three others.
PRUNER = {"n_startup_trials": 4, "n_warmup_steps": 3, "n_min_trials": 3}
# A trial whose process died or that failed is tried once more: memory or a disk may have been
# full. It may also be what kills the process, so that once is all.
MAX_REPEATS = 1


class TrialQueue:
    """The trials of a study, as one of perhaps many processes sees them.

    `n_trials` counts those of earlier runs; without a storage the study is kept in memory.
    """

    def __init__(
        self,
        space: Mapping[str, Parameter],
        n_trials: int,
        random_state: int,
        store: StudyStorage | None,
    ) -> None:
        self.space = space
        self.n_trials = n_trials
        self.random_state = random_state
        self.store = store
        self.study: Study

    def open(self, fingerprint: str, first: Mapping[str, Any] | None) -> None:
        """Make the study or continue it, if it is the same."""
        import optuna

        with self._alone():
            self.study = optuna.create_study(
                study_name=STUDY_NAME,
                storage=None if self.store is None else self.store.storage,
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(**PRUNER),
            )
            asked = {"fingerprint": fingerprint, "space": json.dumps(describe(self.space))}
            known = self.study.user_attrs
            for key, value in asked.items():
                if key not in known:
                    self.study.set_user_attr(key, value)
                elif known[key] != value and self.store is not None:
                    other = "another space" if key == "space" else "other data or options"
                    raise InvalidOptionError(
                        f"storage must be new or that of the same search, but {self.store.name} "
                        f"was made with {other}. Restore them, or choose another file or "
                        "database."
                    )
            if first is not None and not self.study.get_trials(deepcopy=False):
                self.study.enqueue_trial(dict(first))

    def next_trial(self) -> Trial | None:
        """Choose what to try next, or None when all trials are done or taken."""
        with self._alone():
            self._release_killed()
            n_taken = self.n_taken
            if n_taken >= self.n_trials:
                return None
            self.study.sampler = self._sampler(n_taken)
            trial = self.study.ask()
            if self.store is not None:
                trial.set_user_attr("worker", self.store.worker)
            draw(trial, self.space)
            return trial

    @property
    def n_taken(self) -> int:
        """Trials that are done, or that a running process is at."""
        return sum(self._is_taken(trial) for trial in self._trials())

    def _release_killed(self) -> None:
        """Give up the trials of processes that are gone, and queue them again."""
        from optuna.trial import TrialState

        for trial in self._trials():
            if trial.state == TrialState.RUNNING and self.store is not None:
                worker = trial.user_attrs.get("worker")
                if not self.store.is_alive(worker):
                    self.put_back(trial.number, count=True)

    def put_back(self, number: int, count: bool) -> None:
        """End a trial without a score and queue it once more, if that is worth it."""
        from optuna.storages import RetryHeartbeatStaleTrialCallback
        from optuna.trial import TrialState

        trial = self.study.get_trials()[number]
        if trial.state.is_finished():  # Ctrl-C came after its last line was written
            return
        if not self._is_whole(trial.params):
            # Killed while it was drawn: drawn again, it gets the same values.
            trial.params, trial.distributions, count = {}, {}, False
        if not count:
            trial.user_attrs["n_put_back"] = trial.user_attrs.get("n_put_back", 0) + 1
        if number not in self._retried():
            # Queued before it is given up: a kill in between must not lose it.
            n_repeats = MAX_REPEATS + trial.user_attrs.get("n_put_back", 0)
            RetryHeartbeatStaleTrialCallback(max_retry=n_repeats)(self.study, trial)
        self.study.tell(number, state=TrialState.FAIL)

    def _is_whole(self, params: Mapping[str, Any]) -> bool:
        return set(params) == set(self.space)

    def _is_taken(self, trial: FrozenTrial) -> bool:
        """Whether a trial uses up one of `n_trials`."""
        from optuna.trial import TrialState

        if trial.state == TrialState.FAIL:
            return self._is_whole(trial.params) and trial.number not in self._retried()
        return bool(trial.state != TrialState.WAITING)

    def _retried(self) -> set[int]:
        return {k for t in self._trials() for k in t.system_attrs.get("retry_history", ())}

    def _sampler(self, n_taken: int) -> Any:
        """A sampler for the next trial, seeded by its place: a resumed search draws the same."""
        import optuna

        seed = np.random.SeedSequence([self.random_state, n_taken]).generate_state(1)[0]
        return optuna.samplers.TPESampler(
            n_startup_trials=N_RANDOM_TRIALS, multivariate=True, constant_liar=True, seed=int(seed)
        )

    def _trials(self) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False)
        return trials

    def records(self) -> list[TrialRecord]:
        """All trials so far."""
        retried = self._retried()
        return [_record(trial, trial.number in retried) for trial in self._trials()]

    def best(self) -> TrialRecord | None:
        """The complete trial with the lowest score, if there is one."""
        complete = [record for record in self.records() if record.score is not None]
        return min(complete, key=lambda record: record.score or 0.0, default=None)

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self.store is None else self.store.claim()


def _record(trial: FrozenTrial, is_retried: bool) -> TrialRecord:
    from optuna.trial import TrialState

    states: dict[TrialState, Any] = {
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "repeated" if is_retried else "failed",
        TrialState.RUNNING: "running",
        TrialState.WAITING: "waiting",
    }
    state = states[trial.state]
    score = trial.value if state == "complete" else None
    seconds = None if trial.duration is None else trial.duration.total_seconds()
    return TrialRecord(trial.number, tidy(trial.params), state, score, seconds)


def tidy(params: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as people write them: 0.7, where steps of 0.1 add up to 0.7000000000000001."""
    return {
        name: float(f"{value:.12g}") if isinstance(value, float) else value
        for name, value in params.items()
    }


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna without its log lines and its warnings about experimental parts."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("tune", "Searches of options") from error
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
