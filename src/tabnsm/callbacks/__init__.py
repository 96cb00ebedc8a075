"""Callbacks of a fit: the base class, and those that write to a file or to a tracker."""

from tabnsm.callbacks.csv_log import CSVLog
from tabnsm.callbacks.mlflow_log import MLflowLog
from tabnsm.callbacks.tensorboard_log import TensorBoardLog
from tabnsm.training.callbacks import Callback

__all__ = ["CSVLog", "Callback", "MLflowLog", "TensorBoardLog"]
