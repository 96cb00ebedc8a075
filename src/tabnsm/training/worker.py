"""A worker process: trains the networks that the fit which started it asks for."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
import warnings
from typing import IO, Any, BinaryIO

import torch

from tabnsm.threads import one_torch_thread
from tabnsm.training.budget import TimeBudget
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.exchange import apply_torch_settings, read_fit, receive, send
from tabnsm.training.history import History
from tabnsm.training.loop import TrainingDivergedError
from tabnsm.training.network import initial_state, make_trainer
from tabnsm.training.prepare import PreparedFit

CPU = torch.device("cpu")


class Worker:
    """Trains networks one after the other, and tells the fit about every epoch.

    Parameters
    ----------
    prepared : PreparedFit
    output : binary file
        Where messages go.
    checkpoint : tuple of str and str, or None
        Folder and fingerprint of the checkpoints.
    device : torch.device, default the CPU
    """

    def __init__(
        self,
        prepared: PreparedFit,
        output: IO[bytes],
        checkpoint: tuple[str, str] | None,
        device: torch.device = CPU,
    ) -> None:
        self.device = device
        self.prepared = prepared
        self.output = output
        self.checkpoint = checkpoint
        self.said: set[tuple[str, str]] = set()
        self.is_stopped = threading.Event()

    def train(self, number: int, seconds: float | None, resume: bool) -> None:
        """Train one network, and send it.

        Parameters
        ----------
        number : int
            Of the network, counted from 0.
        seconds : float or None
            Time that is left; None is no limit.
        resume : bool
            Whether to continue its checkpoint.
        """
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(*self.checkpoint, number)
        state = initial_state(self.prepared, number, self.device)
        if checkpoint is not None and resume:
            checkpoint.load(state)

        def report(history: History) -> bool:
            self.send("epoch", {"number": number, "history": history.to_dict()})
            self._relay(caught)
            return self.is_stopped.is_set()

        trainer = make_trainer(self.prepared, self.device, report, TimeBudget(seconds))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The fit itself trains, too, and has given this one.
            warnings.filterwarnings("ignore", "The compiled attention kernel")
            try:
                reason = trainer.train(state, checkpoint).stop_reason
            except TrainingDivergedError:
                reason = "diverged"
        self._relay(caught)
        message = {"number": number, "reason": reason, "history": state.history.to_dict()}
        weights = None if reason == "diverged" else state.model.state_dict()
        self.send("done", message, weights)

    def send(
        self, kind: str, message: dict[str, Any], tensors: dict[str, torch.Tensor] | None = None
    ) -> None:
        """Write a message to the fit."""
        send(self.output, {"kind": kind, **message}, tensors)

    def _relay(self, caught: list[warnings.WarningMessage]) -> None:
        """Pass on what was warned about, each once."""
        while caught:
            given = caught.pop(0)
            warning = (given.category.__name__, str(given.message))
            if warning not in self.said:
                self.said.add(warning)
                self.send("warning", {"category": warning[0], "text": warning[1]})


def main() -> None:
    """Serve a fit, until it closes the pipe or ends in whatever way."""
    parent = os.getppid()
    commands, output = _take_pipes()
    first = receive(commands)
    if first is None:
        return
    message, _ = first
    apply_torch_settings(message["torch"])
    torch.set_num_threads(message["n_threads"])
    prepared = read_fit(message["descriptor"], message["fit"])
    checkpoint = message["checkpoint"]
    worker = Worker(prepared, output, None if checkpoint is None else tuple(checkpoint))
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    listening = (commands, jobs, worker.is_stopped)
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with one_torch_thread():
        worker.send("ready", {})
        while True:
            job = jobs.get()
            try:
                worker.train(job["number"], job["seconds"], job["resume"])
            except Exception:
                worker.send("error", {"number": job["number"], "text": traceback.format_exc()})


def _take_pipes() -> tuple[BinaryIO, IO[bytes]]:
    """The pipes from and to the fit; what is printed here must not get between the messages."""
    commands, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdout = sys.stderr
    return commands, output


def _listen(
    commands: BinaryIO, jobs: queue.SimpleQueue[dict[str, Any]], is_stopped: threading.Event
) -> None:
    """Queue the jobs, and end this process when the fit closes the pipe, or is gone."""
    while (received := receive(commands)) is not None:
        if received[0].get("stop"):
            is_stopped.set()
        else:
            jobs.put(received[0])
    os._exit(0)


def _end_with(parent: int) -> None:
    """End this process with its parent, of whose pipe some other child may have a copy."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)
