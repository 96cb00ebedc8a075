"""TensorBoardLog: curves of training in TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm.errors import MissingExtraError
from tabnsm.training.callbacks import Callback
from tabnsm.training.history import History

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

SCALARS = ("train_loss", "validation_rmse", "validation_mae", "score", "learning_rate")


class TensorBoardLog(Callback):
    """Write every epoch to a folder that ``tensorboard --logdir`` shows.

    Each network has a folder of its own, so that the curves of all networks share one chart. At
    the end the card of the model is added as text. Needs the extra "tensorboard".

    Parameters
    ----------
    folder : str or Path
        Made where it is missing; give each fit its own.

    Raises
    ------
    MissingExtraError
        If TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            import torch.utils.tensorboard  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("tensorboard", "TensorBoard logs") from error
        self.folder = Path(folder)
        self._writers: dict[int, Any] = {}

    def on_epoch(self, network: int, history: History) -> None:
        """Write the scalars of an epoch."""
        if network not in self._writers:
            self._writers[network] = self._open(f"network-{network}")
        writer, record = self._writers[network], history[-1]
        for name in SCALARS:
            writer.add_scalar(name, getattr(record, name), record.epoch)
        writer.flush()

    def on_end(self, model: FittedRegressor) -> None:
        """Add the card, and close all files."""
        self._writers[0] = self._open("model")
        self._writers[0].add_text("card", model.card())
        for name in ("validation_rmse_", "best_score_"):
            self._writers[0].add_scalar(f"model/{name[:-1]}", getattr(model, name))
        while self._writers:
            self._writers.popitem()[1].close()

    def _open(self, name: str) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(str(self.folder / name))
