"""NetworkQueue: the networks of a fit that are still to be trained, here or in a worker."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import STOPPED
from tabnsm.training.history import History

CUT_SHORT = ("interrupted", "time_limit", STOPPED)
"""Why a network may end before it is trained to its end."""


MIN_PART = 0.5
"""Part of a network's usual time below which it is not begun before a time limit."""


class NetworkQueue:
    """Hands out networks in the order of their numbers; safe to use from several threads.

    Parameters
    ----------
    n_networks : int
    budget : TimeBudget
        Time that is left of the fit.
    n_jobs : int, default 1
        Networks that may be trained side by side.
    resumed : mapping of int to History, default {}
        How far the networks of an earlier run came.

    Attributes
    ----------
    begun : set of int
        Networks that were taken, finished or not.
    is_out_of_time : bool
        Whether a worker was refused a network for lack of time.

    Examples
    --------
    >>> queue = NetworkQueue(3, TimeBudget(None), n_jobs=2)
    >>> queue.take_here(), queue.take_for_worker(), queue.n_away
    (0, (1, None), 1)
    >>> queue.give_back(1)
    >>> queue.take_here(), queue.n_away, queue.n_left
    (1, 0, 1)
    """

    def __init__(
        self,
        n_networks: int,
        budget: TimeBudget,
        n_jobs: int = 1,
        resumed: Mapping[int, History] | None = None,
    ) -> None:
        self.budget = budget
        self.n_jobs = n_jobs
        self.begun: set[int] = set()
        self.is_out_of_time = False
        self._resumed = resumed or {}
        self._left = list(range(n_networks))
        self._away: set[int] = set()
        self._seconds: list[float] = []
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def n_left(self) -> int:
        """Networks that nobody has taken."""
        return len(self._left)

    @property
    def n_away(self) -> int:
        """Networks that workers train."""
        return len(self._away)

    def take_here(self) -> int | None:
        """Number of the next network for this process, or None if there is none."""
        with self._lock:
            if not self._left:
                return None
            number = self._left.pop(0)
            self.begun.add(number)
            return number

    def take_for_worker(self) -> tuple[int, float | None] | None:
        """The next network for a worker and the seconds that are left for it, if any."""
        with self._lock:
            if not self._left:
                return None
            number = self._left[0]
            past = self._resumed.get(number, History())
            self.budget.charge(past.seconds / self.n_jobs)
            if self.lacks_time(past):
                self.is_out_of_time = True
                self._left.clear()
                return None
            self._left.remove(number)
            self._away.add(number)
            self.begun.add(number)
            return number, self.budget.seconds_left() if self.budget.is_limited else None

    def lacks_time(self, history: History) -> bool:
        """Whether a network is not worth beginning: there is time for less than half of it.

        The networks so far say how long one takes. The first one is trained in any case.
        """
        if not self._seconds or is_finished(history):
            return False
        mean = sum(self._seconds) / len(self._seconds)
        left = self.budget.seconds_left()
        return left == 0 or left < MIN_PART * mean - history.seconds

    def charge(self, history: History) -> None:
        """Count the time that an earlier run, which is resumed, has spent on a network."""
        with self._lock:
            self.budget.charge(history.seconds / self.n_jobs)

    def count(self, history: History) -> None:
        """Learn from a network that is kept how long one takes."""
        with self._lock:
            self._seconds.append(history.seconds)

    def come_home(self, number: int) -> None:
        """A worker has ended with this network, in whatever way."""
        with self._lock:
            self._away.discard(number)

    def give_back(self, number: int) -> None:
        """Let another train this network, whose worker was lost."""
        with self._lock:
            self._away.discard(number)
            self.begun.discard(number)
            if not self._is_closed:
                self._left = sorted({*self._left, number})

    def close(self) -> None:
        """Hand out no more networks."""
        with self._lock:
            self._is_closed = True
            self._left.clear()


def is_finished(history: History) -> bool:
    """Whether a network was trained to its end."""
    return bool(history.stop_reason) and not history.stop_reason.startswith(CUT_SHORT)
