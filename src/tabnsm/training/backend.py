"""Where the networks of a fit are trained: in processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tabnsm.training.ensemble import EnsembleTraining

if TYPE_CHECKING:
    import torch

    from tabnsm.training.budget import TimeBudget
    from tabnsm.training.prepare import PreparedFit

MakeTraining = Callable[
    ["PreparedFit", "torch.device", "TimeBudget | None", "int | None"], EnsembleTraining
]
_make_training: ContextVar[MakeTraining] = ContextVar("make_training", default=EnsembleTraining)


@contextmanager
def trained_by(make_training: MakeTraining) -> Iterator[None]:
    """Let fits in this block train their networks by another class, such as one of a cluster."""
    token = _make_training.set(make_training)
    try:
        yield
    finally:
        _make_training.reset(token)


def new_training(
    prepared: PreparedFit, device: torch.device, budget: TimeBudget | None, n_jobs: int | None
) -> EnsembleTraining:
    """What trains the networks of a fit: `EnsembleTraining`, or what `trained_by` says."""
    return _make_training.get()(prepared, device, budget, n_jobs)
