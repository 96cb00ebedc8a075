"""KeptNetworks: which networks of a fit become the model, and why others do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tabnsm.nn.model import TabNSM
from tabnsm.training.callbacks import STOPPED
from tabnsm.training.history import History
from tabnsm.training.network_queue import CUT_SHORT

_SAID = {"interrupted": "was interrupted", "diverged": "diverged"}


MAX_SCORE = 1.05
"""Score of a network that ran out of time, over the mean of those that are kept, up to which the
mean of all predictions gains by it."""


class KeptNetworks:
    """The networks that are finished, or good enough when time ran out, or the first.

    Parameters
    ----------
    n_networks : int
        Networks that were to be trained.

    Attributes
    ----------
    messages : list of str
        Warnings about what was left out.
    """

    def __init__(self, n_networks: int) -> None:
        self.n_networks = n_networks
        self.messages: list[str] = []
        self._by_number: dict[int, tuple[TabNSM, History]] = {}  # Ctrl-C may come at any moment

    def __len__(self) -> int:
        return len(self._by_number)

    @property
    def pairs(self) -> list[tuple[TabNSM, History]]:
        """Networks and their histories, in the order of their numbers."""
        return [self._by_number[number] for number in sorted(self._by_number)]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the networks in `pairs`."""
        return sorted(self._by_number)

    def add(self, number: int, reason: str, model: TabNSM | None, history: History) -> bool:
        """Keep a network that is finished, the first, or good enough; else say why not.

        Parameters
        ----------
        number : int
            Counted from 0.
        reason : str
            Why its training stopped.
        model : TabNSM or None
            None where nothing of it can be kept.
        history : History

        Returns
        -------
        bool
            Whether it is kept.
        """
        is_unfinished = reason == "diverged" or reason.startswith(CUT_SHORT)
        is_wanted = number == 0 or not is_unfinished or self._gains_by(reason, history)
        is_kept = model is not None and is_wanted
        if model is not None and is_kept:
            self._by_number[number] = model, history
        if reason in _SAID and number == 0:
            self.messages.append(
                f"Training {_SAID[reason]} in epoch {len(history) + 1}; the model keeps the "
                f"weights of epoch {history.best_epoch}, the best so far."
            )
        elif reason == "diverged":
            self.messages.append(
                f"Training diverged in network {number + 1} of {self.n_networks}, which is left "
                "out. Lower learning_rate if this happens to many."
            )
        return is_kept

    def _gains_by(self, reason: str, history: History) -> bool:
        """Whether a network that was cut short predicts about as well as those that are kept."""
        is_cut = reason.startswith(("time_limit", STOPPED))
        if not is_cut or not history.epochs or not self._by_number:
            return False
        scores = [kept.metric_of(kept.best) for _, kept in self._by_number.values()]
        return history.metric_of(history.best) <= MAX_SCORE * sum(scores) / len(scores)

    def note_cut(self, cut: str, begun: Iterable[int]) -> None:
        """Say in the last history, and after Ctrl-C in a warning, that networks are missing.

        Parameters
        ----------
        cut : str
            Why.
        begun : iterable of int
            Networks that were being trained, or are kept.
        """
        n_kept, last_number = len(self), max(self._by_number)
        model, last = self._by_number[last_number]
        own = "" if last.stop_reason == cut else f"{last.stop_reason}; "
        reason = f"{own}{cut}: {n_kept} of {self.n_networks} networks trained"
        # A copy, because a checkpoint says why this network stopped, and nothing else.
        self._by_number[last_number] = model, dataclasses.replace(last, stop_reason=reason)
        if cut != "interrupted" or not own:
            return
        left_out = sorted(set(begun) - set(self._by_number)) or [n_kept]
        names = " and ".join(str(number + 1) for number in left_out)
        networks, are = ("network", "is") if len(left_out) == 1 else ("networks", "are")
        self.messages.append(
            f"Training was interrupted in {networks} {names} of {self.n_networks}, which {are} "
            f"left out; the model has the {n_kept} that {'is' if n_kept == 1 else 'are'} finished."
        )
