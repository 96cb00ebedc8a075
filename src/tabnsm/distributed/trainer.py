"""ShardTrainer: the training loop in many processes, each with a part of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tabnsm.distributed.group import Group
from tabnsm.distributed.sampler import ShardSampler
from tabnsm.distributed.shard import Shard
from tabnsm.prediction import predict_rows
from tabnsm.training.budget import TimeBudget
from tabnsm.training.history import History, ValidationScores
from tabnsm.training.loop import Report, Saves, Trainer, TrainingState
from tabnsm.training.network import initial_state
from tabnsm.training.objective import Objective


class ShardTrainer(Trainer):
    """Fit a network to the rows of all processes of a group.

    Gradients are averaged by torch's DistributedDataParallel. A step's batch is as large as on one
    machine, and made of rows of all processes; one that has none left takes part with a row of
    weight zero, so that none waits for it. Scores are sums over all processes, so that all of them
    keep the same epoch, halve the learning rate and stop together. One process alone trains
    bit for bit as `Trainer` does.

    Parameters
    ----------
    shard : Shard
    group : Group
    device : torch.device
    report : callable or None
    budget : TimeBudget or None
        As in `Trainer`.
    """

    def __init__(
        self,
        shard: Shard,
        group: Group,
        device: torch.device,
        report: Report | None = None,
        budget: TimeBudget | None = None,
    ) -> None:
        prepared = shard.prepared
        super().__init__(
            prepared.options.training,
            Objective(prepared.options.objective, shard.losses),
            prepared.target,
            prepared.data,
            device,
            report,
            budget,
            shard.whole,
        )
        self.group = group
        self.parallel: nn.Module | None = None
        self._step = 0

    def train(self, state: TrainingState, checkpoint: Saves | None = None) -> History:
        """Train until a stop that all processes agree on; see `Trainer.train`."""
        self.wrap(state)
        return super().train(state, checkpoint)

    def wrap(self, state: TrainingState) -> None:
        """Let all processes share the gradients of the state's model."""
        self.parallel = state.model
        if self.group.size > 1:
            devices = [self.device] if self.device.type == "cuda" else None
            self.parallel = DistributedDataParallel(state.model, device_ids=devices)

    def epoch_batches(self, state: TrainingState) -> Sequence[Tensor]:
        """Rows of this process in each step, which may be none."""
        assert isinstance(state.sampler, ShardSampler)
        self._step = 0
        return state.sampler.epoch_batches(self.batch_size)

    def train_step(self, state: TrainingState, rows: Tensor) -> float:
        """One step of AdamW on rows of all processes; this process's part of the batch's loss."""
        assert isinstance(state.sampler, ShardSampler)
        assert self.parallel is not None
        share = len(rows) / max(state.sampler.step_rows[self._step], 1)
        self._step += 1
        loss = self.batch_loss(self.parallel, rows)
        whole = loss * (share * self.group.size)  # DDP takes the mean of all
        state.optimizer.descend(whole, state.average, self.config.gradient_clip)
        return float(loss.detach()) * share

    def batch_loss(self, model: nn.Module, rows: Tensor) -> Tensor:
        """Objective of some rows; of none, that of a made-up row, which must not count."""
        if len(rows):
            return super().batch_loss(model, rows)
        x = torch.zeros(1, self.data.train.n_features, device=self.device)
        target = torch.full((1, self.standard.shape[1]), math.nan, device=self.device)
        return self.loss_of(model, x, target, None)

    def loss_of(self, model: nn.Module, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Objective of encoded rows, (B, D), with the grid on the range of all processes' rows."""
        if self.group.size == 1:
            return super().loss_of(model, x, target, weight)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            prediction = model(x).float()  # (B, t)
        bounds = None
        if self.objective.uses_grid(target.shape[1]):
            bounds = self._bounds(prediction.detach(), target)
        if target.shape[1] == 1:  # missing in a made-up row alone
            target = target.nan_to_num()
        return self.objective.batch_loss(prediction, target, weight, bounds)

    def _bounds(self, prediction: Tensor, target: Tensor) -> list[tuple[float, float]]:
        """Range of each target over the batch's rows of all processes, as on one machine."""
        ends = torch.full((2, target.shape[1]), -math.inf, dtype=torch.float64)  # -lower, upper
        for k in range(target.shape[1]):
            present = ~target[:, k].isnan()
            values = torch.cat((prediction[present, k], target[present, k])).double()
            if len(values):
                lower, upper = values.aminmax()
                ends[:, k] = torch.stack((-lower, upper)).cpu()
        ends = self.group.max(ends)
        ends = ends.masked_fill(ends == -math.inf, 0.0)  # a target that no row has
        return [(-low, high) for low, high in ends.T.tolist()]

    def mean_loss(self, losses: Sequence[float]) -> float:
        """Mean over the steps, of all processes."""
        total = self.group.sum(torch.tensor([sum(losses)], dtype=torch.float64))
        return float(total) / len(losses)

    def row_losses(self, model: nn.Module) -> Tensor:
        """Objective of each training row of this process."""
        return super().row_losses(model) if len(self.standard) else torch.empty(0)

    def evaluate(self, model: nn.Module) -> ValidationScores:
        """Scores on the validation rows of all processes."""
        if self.group.size == 1:
            return super().evaluate(model)
        data, target = self.data, self.target
        standard = predict_rows(model, data.validation, self.device)  # (n, t)
        if self.group.any(not np.isfinite(standard).all()):
            return ValidationScores(math.inf, math.inf, math.inf)
        wanted = target.standardize(data.validation_target).astype(np.float64)
        original = self._errors(data.validation_target, target.unstandardize(standard))
        relative = self._errors(wanted, standard.astype(np.float64))
        uses_rmse = self.config.eval_metric == "rmse"
        if target.n_targets == 1:
            (rmse, mae), (scaled_rmse, scaled_mae) = original[0], relative[0]
            if target.is_transformed:
                score = scaled_rmse if uses_rmse else scaled_mae
            else:
                score = rmse if uses_rmse else mae
            return ValidationScores(rmse, mae, score)
        shares = [
            1.0 if linear is None else linear.share_of(scaler)
            for scaler, linear in zip(target.scalers, target.linear_fits, strict=True)
        ]
        known = [k for k in range(target.n_targets) if math.isfinite(relative[k][0])]
        rmse, mae = (float(np.mean([shares[k] * relative[k][i] for k in known])) for i in (0, 1))
        return ValidationScores(rmse, mae, rmse if uses_rmse else mae)

    def _errors(self, truth: np.ndarray, prediction: np.ndarray) -> list[tuple[float, float]]:
        """RMSE and MAE of each target over all processes; NaN of one that no row has."""
        weight = self.data.validation_weight
        each = np.ones(len(truth)) if weight is None else weight
        error = np.nan_to_num(prediction - truth)  # (n, t)
        present = each[:, None] * ~np.isnan(truth)
        sums = [(present * part).sum(0) for part in (error**2, np.abs(error), np.ones(1))]
        squared, absolute, total = self.group.sum(torch.from_numpy(np.stack(sums))).numpy()
        with np.errstate(invalid="ignore"):
            rmse, mae = np.sqrt(squared / total), absolute / total
        return list(zip(rmse.tolist(), mae.tolist(), strict=True))

    def _out_of_time(self, needed: float = 0.0) -> bool:
        """Whether one of the processes has no more time left than it needs."""
        if self.budget is None or not self.budget.is_limited:
            return False
        return self.group.any(super()._out_of_time(needed))


def begin_network(shard: Shard, number: int, group: Group, device: torch.device) -> TrainingState:
    """A network as its seed begins it, the same in all processes, whose draws differ.

    Parameters
    ----------
    shard : Shard
    number : int
        Of the network, counted from 0.
    group : Group
    device : torch.device
    """
    prepared = shard.prepared
    own = None
    if group.rank:
        seeds = np.random.SeedSequence([prepared.seed, number, group.rank])
        own = torch.Generator().manual_seed(int(seeds.generate_state(1)[0]))

    def make_sampler(generator: torch.Generator) -> ShardSampler:
        n_rows = prepared.data.train.n_rows
        return ShardSampler(n_rows, prepared.options.rise, own or generator, group)

    state = initial_state(prepared, number, device, make_sampler)
    state.generator = own or state.generator
    return state
