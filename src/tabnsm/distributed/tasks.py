"""RayTasks: functions of shares of the work, as tasks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tabnsm.distributed.cluster import failure
from tabnsm.training.pass_progress import PassProgress

MAX_RETRIES = 3
"""How often a task is run again whose worker or machine was lost."""


class RayTasks:
    """Runs a function of an input that all tasks have and of a share each; see `Run`.

    Parameters
    ----------
    ray : module
    num_workers : int
        Tasks that run at a time.
    cpus : float
        Cores that a task asks for.
    progress : PassProgress
        Shows how many tasks are done.
    """

    def __init__(self, ray: Any, num_workers: int, cpus: float, progress: PassProgress) -> None:
        self.ray, self.num_workers, self.cpus, self.progress = ray, num_workers, cpus, progress
        self._sent: tuple[Any, Any] | None = None

    def __call__(
        self,
        title: str,
        function: Callable[[Any, Any], Any],
        given: Any,
        shares: Sequence[Any],
    ) -> list[Any]:
        """Results in the order of the shares."""
        ray = self.ray
        if self._sent is None or self._sent[0] is not given:
            self._sent = given, ray.put(given)
        task = ray.remote(function).options(num_cpus=self.cpus, max_retries=MAX_RETRIES)
        waiting = list(enumerate(shares))
        running: dict[Any, int] = {}
        results: dict[int, Any] = {}
        self.progress.begin(title, len(waiting))
        try:
            while waiting or running:
                while waiting and len(running) < self.num_workers:
                    number, share = waiting.pop(0)
                    running[task.remote(self._sent[1], share)] = number
                (done,), _ = ray.wait(list(running), num_returns=1)
                results[running.pop(done)] = ray.get(done)
                self.progress.advance()
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise failure(error, "The same call begins again.") from error
        finally:
            for reference in running:
                ray.cancel(reference)  # by force, Ray 2.60 may end this process
        self.progress.end()
        return [results[number] for number in range(len(shares))]
