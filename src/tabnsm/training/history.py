"""History: what happened in each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tabnsm.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

EvalMetric = Literal["rmse", "mae"]


class ValidationScores(NamedTuple):
    """How a model does on the validation rows.

    Parameters
    ----------
    rmse, mae : float
        In units of the target; of several, the mean in standard deviations of each.
    score : float
        What the best epoch is chosen by: the `eval_metric`, on the transformed scale where
        the target is transformed.
    """

    rmse: float
    mae: float
    score: float


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
        In units of the target; of several, the mean in standard deviations of each.
    learning_rate : float
    seconds : float
        Wall time since training began, callbacks left out.
    refreshed : bool
        Whether RISE refreshed its sampling weights before this epoch.
    validation_mae : float or None
        As `validation_rmse`; None in histories of earlier versions.
    score : float or None
        What the best epoch is chosen by: the `eval_metric`, on the transformed scale where
        the target is transformed; None in histories of earlier versions.
    """

    epoch: int
    train_loss: float
    validation_rmse: float
    learning_rate: float
    seconds: float
    refreshed: bool
    validation_mae: float | None = None
    score: float | None = None


@dataclass
class History:
    """All epochs, the best of them, and why training stopped.

    Parameters
    ----------
    epochs : list of EpochRecord
    best_epoch : int
        Counted from 1.
    stop_reason : str
        Empty while training goes on.
    eval_metric : {"rmse", "mae"}
        What validation watched.

    Examples
    --------
    >>> history = History([EpochRecord(1, 0.5, 2.0, 1e-3, 0.1, False)], best_epoch=1)
    >>> history.best.validation_rmse, len(history)
    (2.0, 1)
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = 0
    stop_reason: str = ""
    eval_metric: EvalMetric = "rmse"

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

    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
        return self.epochs[-1].seconds if self.epochs else 0.0

    def metric_of(self, record: EpochRecord) -> float:
        """The `eval_metric` of an epoch on the validation rows, in units of the target."""
        return float(getattr(record, f"validation_{self.eval_metric}"))

    def to_frame(self) -> pd.DataFrame:
        """One row per epoch as a pandas DataFrame, with a column `is_best`.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "Data frames") from error
        columns = EpochRecord.__dataclass_fields__
        frame = pd.DataFrame([asdict(record) for record in self.epochs], columns=list(columns))
        frame["is_best"] = frame["epoch"] == self.best_epoch
        return frame

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> History:
        """Inverse of `to_dict`."""
        epochs = [EpochRecord(**record) for record in state["epochs"]]
        metric = state.get("eval_metric", "rmse")  # earlier versions watched nothing else
        return cls(epochs, state["best_epoch"], state["stop_reason"], metric)
