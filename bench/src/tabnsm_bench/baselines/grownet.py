"""GrowNet: shallow networks added one by one, each on the last one's features."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tabnsm.errors import InvalidDataError
from tabnsm.training.config import TrainingConfig
from tabnsm_bench.baselines.common import (
    PATIENCE,
    Columns,
    Curve,
    TargetScale,
    describe,
    rmse,
    take_options,
    torch_threads,
)
from tabnsm_bench.baselines.torch_models import (
    Pace,
    batches,
    make_optimizer,
    predict_network,
    train_step,
)
from tabnsm_bench.protocol import Prepared

_DEFAULTS = {
    "n_stages": 40,
    "d_hidden": 64,
    "epochs_per_stage": 2,
    "corrective_epochs": 1,
    "boost_rate": 1.0,
    "learning_rate": 5e-3,
    "corrective_learning_rate": 5e-3,
    "weight_decay": 1e-5,
    "patience": PATIENCE,
    "max_epochs": None,
}


class WeakLearner(nn.Module):
    """Two hidden layers on the input and the features of the learner before.

    Shape
    -----
    x : (B, d_in)
    features : (B, d_hidden) or None
    returned : (B,), (B, d_hidden)
    """

    def __init__(self, d_in: int, d_hidden: int, is_first: bool) -> None:
        super().__init__()
        d_all = d_in if is_first else d_in + d_hidden
        self.norm = nn.BatchNorm1d(d_all)
        self.hidden = nn.Sequential(
            nn.Linear(d_all, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_hidden), nn.ReLU()
        )
        self.output = nn.Linear(d_hidden, 1)

    def forward(self, x: Tensor, features: Tensor | None) -> tuple[Tensor, Tensor]:
        """Prediction and features."""
        seen = x if features is None else torch.cat([x, features], dim=1)
        features = self.hidden(self.norm(seen))
        return self.output(features).squeeze(1), features


class GrowNetEnsemble(nn.Module):
    """The learners so far, their sum scaled by one boosting rate that is learnt, too.

    Parameters
    ----------
    d_in, d_hidden : int
        Widths.
    boost_rate : float
        Where the rate starts.
    """

    def __init__(self, d_in: int, d_hidden: int, boost_rate: float) -> None:
        super().__init__()
        self.d_in, self.d_hidden = d_in, d_hidden
        self.learners = nn.ModuleList()
        self.boost_rate = nn.Parameter(torch.tensor(float(boost_rate)))

    def grow(self) -> WeakLearner:
        """Add a learner."""
        learner = WeakLearner(self.d_in, self.d_hidden, is_first=not self.learners)
        self.learners.append(learner)
        return learner

    def forward(self, x: Tensor, codes: Tensor) -> Tensor:
        """Sum of all learners; `codes` has no columns."""
        total, features = torch.zeros(len(x)), None
        for learner in self.learners:
            output, features = learner(x, features)
            total = total + self.boost_rate * output
        return total


class NewestLearner(nn.Module):
    """The newest learner on top of the frozen ones, whose residual it is to learn."""

    def __init__(self, ensemble: GrowNetEnsemble) -> None:
        super().__init__()
        self.newest = ensemble.learners[-1]
        self._ensemble = [ensemble]  # in a list: the frozen ones are not this module's own

    def forward(self, x: Tensor, codes: Tensor) -> Tensor:
        """The frozen sum and the newest one's share."""
        ensemble = self._ensemble[0]
        with torch.no_grad():
            total, features = torch.zeros(len(x)), None
            for learner in ensemble.learners[:-1]:
                output, features = learner.eval()(x, features)
                total = total + ensemble.boost_rate * output
        output, _ = self.newest(x, features)
        boosted: Tensor = total + ensemble.boost_rate.detach() * output
        return boosted


class GrowNet:
    """Gradient boosting of shallow networks with a corrective step.

    Each stage fits a new learner to what the sum of the others leaves, then trains all of them
    together. Squared error makes the residual its own gradient, so that a new learner is fitted
    by the error of the sum. The number of stages is chosen by the validation rows.

    Parameters
    ----------
    **given
        Options to change; ``max_epochs`` limits the passes over the rows of all stages together.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        self.options = take_options("GrowNet", _DEFAULTS, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        self.columns = Columns(data.category_sizes)
        self.scale = TargetScale.of(data.train.y)
        self.n_threads = n_threads
        with torch_threads(n_threads), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._fit(data, time_limit)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads):
            return self.scale.undo(predict_network(self.ensemble, *self._tensors(x)))

    def _fit(self, data: Prepared, time_limit: float | None) -> dict[str, Any]:
        options, curve, notes = self.options, Curve(), []
        x, _ = self._tensors(data.train.x)
        held_out = self._tensors(data.validation.x)
        y = torch.from_numpy(self.scale.apply(data.train.y).astype(np.float32))
        ensemble = GrowNetEnsemble(x.shape[1], options["d_hidden"], options["boost_rate"])
        pace = Pace(time_limit, curve, len(data.validation.y))
        n_stages, per_stage = options["n_stages"], self._epochs_of_a_stage()
        if options["max_epochs"] is not None:
            n_stages = min(n_stages, max(1, options["max_epochs"] // per_stage))
        best, best_error, best_stage = None, np.inf, 0
        for stage in range(1, n_stages + 1):
            ensemble.grow()
            self._train(NewestLearner(ensemble), x, y, pace, "learning_rate", "epochs_per_stage")
            if stage > 1:
                rate = "corrective_learning_rate"
                self._train(ensemble, x, y, pace, rate, "corrective_epochs")
            error = rmse(data.validation.y, self._in_units(ensemble, held_out))
            curve.add(error)
            if error < best_error:
                best, best_error, best_stage = copy.deepcopy(ensemble), error, stage
            if pace.must_stop():
                notes.append(f"stopped by the time limit in stage {stage}")
                break
            if stage - best_stage >= options["patience"]:
                break
        if best is None:
            raise InvalidDataError(
                "The training diverged: its validation RMSE was never a finite number. "
                "Try a smaller learning_rate."
            )
        self.ensemble = best
        return describe(
            "tabnsm",
            options,
            n_parameters=sum(p.numel() for p in best.parameters()),
            epochs=len(curve.seconds) * per_stage,
            n_stages=best_stage,
            history=curve.to_dict(),
            notes=notes,
        )

    def _epochs_of_a_stage(self) -> int:
        return int(self.options["epochs_per_stage"] + self.options["corrective_epochs"])

    def _train(
        self, network: nn.Module, x: Tensor, y: Tensor, pace: Pace, rate: str, epochs: str
    ) -> None:
        config = TrainingConfig(
            learning_rate=self.options[rate], weight_decay=self.options["weight_decay"]
        )
        optimizer = make_optimizer(network, config)
        codes = torch.empty(len(x), 0)
        network.train()
        for _ in range(self.options[epochs]):
            for rows in batches(len(y), config.resolved_batch_size(len(y))):
                if pace.must_stop():
                    return
                train_step(network, optimizer, x[rows], codes[rows], y[rows], config)
                pace.learnt(len(rows))

    def _tensors(self, x: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
        flat = torch.from_numpy(np.ascontiguousarray(self.columns.one_hot(x)))
        return flat, torch.empty(len(flat), 0)

    def _in_units(self, ensemble: nn.Module, rows: tuple[Tensor, Tensor]) -> NDArray[np.float64]:
        return self.scale.undo(predict_network(ensemble, *rows))
