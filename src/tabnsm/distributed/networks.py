"""Networks of an ensemble as tasks of a Ray cluster: each on one worker, which has all rows."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tabnsm.distributed.cluster import ClusterTraining, failure, import_ray
from tabnsm.distributed.epochs import show_new, shown_epochs
from tabnsm.prediction import resolve_device
from tabnsm.threads import one_torch_thread
from tabnsm.training.callbacks import STOPPED, CallbackList
from tabnsm.training.exchange import (
    apply_torch_settings,
    pack_fit,
    receive,
    torch_settings,
    unpack_fit,
)
from tabnsm.training.history import History
from tabnsm.training.network_queue import CUT_SHORT, NetworkQueue
from tabnsm.training.progress import TrainingProgress
from tabnsm.training.worker import Worker
from tabnsm.training.workers import NetworkDone, WorkerWarned, warning_class

MAX_RETRIES = 3
"""How often a network is trained again whose worker or machine was lost."""
_KEPT = (
    "Networks that are trained stay in storage_path, if it was given: the same call goes on, and "
    "random_state must be the same number."
)


class NetworksTraining(ClusterTraining):
    """Trains the networks of a fit as tasks of a cluster; each has the bits of a local one."""

    def train(
        self,
        checkpoint_dir: str | Path | None,
        resume: bool,
        progress: TrainingProgress | None = None,
        callbacks: CallbackList | None = None,
    ) -> None:
        """Train all networks that the folder of the run does not have."""
        ray = import_ray()
        self.callbacks = callbacks or self.callbacks
        self.networks = NetworkQueue(self.n_networks, self.budget, self.num_workers)
        task = ray.remote(train_network).options(
            num_cpus=self.cpus, num_gpus=int(self.use_gpu), max_retries=MAX_RETRIES
        )
        fit = self._put(ray)
        with shown_epochs(ray, progress) as mailbox:
            self._train_tasks(ray, task, (*fit, self.use_gpu, mailbox), progress)
        if self.networks.is_out_of_time and len(self._kept) < self.n_networks:
            self._kept.note_cut(self._limit_reached(), self.networks.begun)

    def _train_tasks(
        self, ray: Any, task: Any, fit: tuple[Any, ...], progress: TrainingProgress | None
    ) -> None:
        """Keep as many tasks running as there are workers, until all networks are trained."""
        running: dict[Any, int] = {}
        try:
            while True:
                while len(running) < self.num_workers:
                    job = self.networks.take_for_worker()
                    if job is None:
                        break
                    number, seconds = job
                    known = self.folder.read(_name(number))
                    if known is not None:
                        self._finish(number, bytes(known), progress)
                        continue
                    running[task.remote(*fit, number, seconds)] = number
                if not running:
                    break
                (done,), _ = ray.wait(list(running), num_returns=1)
                number = running.pop(done)
                content = ray.get(done)
                self.folder.write(_name(number), content)
                self._finish(number, content, progress)
        except (ray.exceptions.RayError, OSError) as error:
            raise failure(error, _KEPT) from error
        finally:
            for reference in running:
                ray.cancel(reference)  # by force, Ray 2.60 may end this process

    def _put(self, ray: Any) -> tuple[Any, Any, dict[str, Any]]:
        """The fit in Ray's memory, which the workers of a machine share."""
        with tempfile.TemporaryFile(prefix="tabnsm-") as file:
            meta = pack_fit(self.prepared, file)
            file.seek(0)
            content = np.fromfile(file, dtype=np.uint8)
        return ray.put(content), meta, torch_settings()

    def _finish(self, number: int, content: bytes, progress: TrainingProgress | None) -> None:
        """Keep the network that a task has sent, and give its warnings."""
        stream = io.BytesIO(content)
        while (received := receive(stream)) is not None:
            message, weights = received
            if message["kind"] == "warning":
                self._handle(WorkerWarned(warning_class(message["category"]), message["text"]))
            elif message["kind"] == "done":
                history = History.from_dict(message["history"])
                if progress is not None:
                    show_new(progress, number, history)
                self._handle(NetworkDone(number, message["reason"], history, weights))
        self.networks.come_home(number)

    def _keep(self, number: int, reason: str, model: Any, history: History) -> None:
        if self._kept.add(number, reason, model, history):
            self.networks.count(history)
            stops = self.callbacks.on_epoch(number + 1, history)  # of all epochs at once
            if self.callbacks.on_network(number + 1, history) or stops:
                self._end(STOPPED)
        if reason.startswith(CUT_SHORT):
            self._end(reason)


class _TaskWorker(Worker):
    """A worker whose epochs are shown, if there is a mailbox for them."""

    mailbox: Any = None

    def send(
        self, kind: str, message: dict[str, Any], tensors: dict[str, torch.Tensor] | None = None
    ) -> None:
        """Write a message to the output; epochs go to the mailbox."""
        if kind != "epoch":
            super().send(kind, message, tensors)
        elif self.mailbox is not None:
            self.mailbox.put.remote(message["number"], message["history"])


def train_network(
    content: np.ndarray,
    meta: dict[str, Any],
    settings: dict[str, Any],
    use_gpu: bool,
    mailbox: Any,
    number: int,
    seconds: float | None,
) -> bytes:
    """Train one network of a fit, on a worker of the cluster; all messages of `Worker`."""
    apply_torch_settings(settings)
    output = io.BytesIO()
    with warnings.catch_warnings(), one_torch_thread():
        # Ray's memory is for reading only, and nothing here writes to it.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        prepared = unpack_fit(content.data, meta)
        device = resolve_device("auto") if use_gpu else torch.device("cpu")
        worker = _TaskWorker(prepared, output, None, device)
        worker.mailbox = mailbox
        worker.train(number, seconds, resume=False)
    return output.getvalue()


def _name(number: int) -> str:
    return f"network-{number + 1}"
