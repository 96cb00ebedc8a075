"""History: what happened in each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of training.

    Parameters
    ----------
    epoch : int
        Counted from 1.
    train_loss : float
        Mean objective over the epoch's steps, in units of the standardised target.
    validation_rmse : float
        In units of the target.
    learning_rate : float
    seconds : float
        Wall time since training began.
    refreshed : bool
        Whether RISE refreshed its sampling weights before this epoch.
    """

    epoch: int
    train_loss: float
    validation_rmse: float
    learning_rate: float
    seconds: float
    refreshed: bool


@dataclass
class History:
    """All epochs, the best of them, and why training stopped.

    Examples
    --------
    >>> history = History([EpochRecord(1, 0.5, 2.0, 1e-3, 0.1, False)], best_epoch=1)
    >>> history.best.validation_rmse, len(history)
    (2.0, 1)
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    stop_reason: str = ""

    def __len__(self) -> int:
        return len(self.epochs)

    def __iter__(self) -> Iterator[EpochRecord]:
        return iter(self.epochs)

    def __getitem__(self, index: int) -> EpochRecord:
        return self.epochs[index]

    @property
    def best(self) -> EpochRecord:
        """Record of the epoch whose weights the model has."""
        return self.epochs[self.best_epoch - 1]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> History:
        """Inverse of `to_dict`."""
        epochs = [EpochRecord(**record) for record in state["epochs"]]
        return cls(epochs, state["best_epoch"], state["stop_reason"])
