"""MLflowLog: a fit as a run of MLflow."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tabnsm.callbacks.tensorboard_log import SCALARS
from tabnsm.errors import MissingExtraError
from tabnsm.training.callbacks import Callback
from tabnsm.training.history import History

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor


class MLflowLog(Callback):
    """Log a fit to MLflow: options, the metrics of every epoch, the card and the model.

    Logs to the active run where there is one. Else every fit is a run of its own, in the active
    experiment; it is marked as finished at the end of the fit, and a fit that fails leaves it as
    running. Needs the extra "mlflow".

    Parameters
    ----------
    log_model : bool, default True
        Whether the model is logged at the end, by `tabnsm.mlflow.log_model`, as "model".
    run_name : str or None, default None
        Name of a new run; None lets MLflow make one up.

    Attributes
    ----------
    run_id : str or None
        Of the run that was logged to; None before the first epoch.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.
    """

    def __init__(self, *, log_model: bool = True, run_name: str | None = None) -> None:
        try:
            import mlflow  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("mlflow", "MLflow logs") from error
        self.log_model = log_model
        self.run_name = run_name
        self.run_id: str | None = None
        self._is_own = False
        self._is_running = False

    def on_epoch(self, network: int, history: History) -> None:
        """Log the metrics of an epoch, as "network_1/validation_rmse" and so on."""
        from mlflow.entities import Metric

        client, run_id = self._client(), self._run()
        now, record = int(time.time() * 1000), asdict(history[-1])
        metrics = [
            Metric(f"network_{network}/{name}", record[name], now, record["epoch"])
            for name in SCALARS
        ]
        client.log_batch(run_id, metrics=metrics)

    def on_end(self, model: FittedRegressor) -> None:
        """Log options, scores, card and model, and finish the run if it is the callback's own."""
        from mlflow.entities import Metric, Param

        import tabnsm.mlflow

        client, run_id = self._client(), self._run()
        now = int(time.time() * 1000)
        scores = {"validation_rmse": model.validation_rmse_, "best_score": model.best_score_}
        options = model.get_params(deep=False)
        client.log_batch(
            run_id,
            metrics=[Metric(name, value, now, 0) for name, value in scores.items()],
            params=[Param(name, str(value)) for name, value in options.items()],
        )
        client.log_text(run_id, model.card(), "card.md")
        if self.log_model:
            tabnsm.mlflow.log_model(model, run_id=run_id)
        self._is_running = False
        if self._is_own:
            client.set_terminated(run_id)

    def _client(self) -> Any:
        from mlflow import MlflowClient

        return MlflowClient()

    def _run(self) -> str:
        """The run of this fit, which the first call finds or begins."""
        import mlflow

        if not self._is_running or self.run_id is None:
            run = mlflow.active_run()
            self._is_own = run is None
            if run is None:
                run = mlflow.start_run(run_name=self.run_name)
                # Not active any more, so that a fit which fails leaves nothing to the next one.
                mlflow.end_run("RUNNING")
            self.run_id, self._is_running = run.info.run_id, True
        return self.run_id
