"""How a blend is fitted: trees first, then, when the networks are trained, the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from tabnsm.blend.blend import Blend, ForestMember, member_predictions
from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.forest import Forest
from tabnsm.blend.growing import TreeRows, grow_boosted, grow_extra
from tabnsm.blend.neighbors import COUNTS, MAX_POINTS, Neighbors, last_stage
from tabnsm.blend.weights import blend_weights
from tabnsm.errors import InvalidOptionError
from tabnsm.metrics import weighted_mae, weighted_rmse
from tabnsm.nn.ensemble import networks_of
from tabnsm.prediction import predict_rows
from tabnsm.target import TargetModel
from tabnsm.training.budget import now
from tabnsm.training.history import ValidationScores

if TYPE_CHECKING:
    from tabnsm.nn.ensemble import Ensemble
    from tabnsm.nn.model import TabNSM
    from tabnsm.training.budget import TimeBudget
    from tabnsm.training.prepare import PreparedFit

TIME_SHARE = 0.3
"""Of a time limit, what trees may take together."""
MAX_VALUES = 2**26
"""Most values that trees learn from; of longer tables they see a part of the rows."""
MIN_NEIGHBOR_ROWS = 500
"""Validation rows below which nearest rows are left out: they can look better than they are."""
_EXTRA_TREES, _EXTRA_NODES = 64, 600_000

Grow = Callable[[TreeRows, Callable[[], float]], Forest]


def _boosted(**options: Any) -> Grow:
    return lambda rows, seconds_left: grow_boosted(rows, seconds_left, **options)


def _extra(rows: TreeRows, seconds_left: Callable[[], float]) -> Forest:
    # About 1.7 nodes per row and tree over the rows of a leaf.
    leaf = max(2, round(1.7 * _EXTRA_TREES * len(rows.y) / _EXTRA_NODES))
    # Large leaves where the target is noise; pure ones where few rows decide, as long as they last.
    shapes = [{"min_samples_leaf": leaf}]
    if leaf > 2:
        most = _EXTRA_NODES // (2 * _EXTRA_TREES)
        shapes.append({"min_samples_leaf": 2, "max_leaf_nodes": most})
    return grow_extra(rows, seconds_left, n_trees=_EXTRA_TREES, shapes=shapes, max_features=0.7)


# Members that differ: shallow trees are close to a sum of effects, deep ones to the mean of
# near rows, and random ones are smoother than both.
MEMBERS: dict[str, Grow] = {
    "boosting": _boosted(learning_rate=0.05, max_leaf_nodes=31, max_depth=12, max_features=0.5),
    "deep boosting": _boosted(
        learning_rate=0.05,
        max_leaf_nodes=63,
        max_depth=12,
        max_features=0.3,
        min_samples_leaf=5,
        l2_regularization=1.0,
    ),
    "shallow boosting": _boosted(
        learning_rate=0.1, max_leaf_nodes=8, max_features=0.5, min_samples_leaf=10
    ),
    "extra trees": _extra,
}


class BlendFit:
    """The members of a blend besides the networks, fitted on the training rows.

    Parameters
    ----------
    prepared : PreparedFit
        Of one target.
    budget : TimeBudget
        Trees take at most three tenths of the time that is left; every member has at least
        its first trees.
    """

    def __init__(self, prepared: PreparedFit, budget: TimeBudget) -> None:
        self.prepared = prepared
        data, options = prepared.data, prepared.options
        target = prepared.target
        if target.n_targets > 1:
            raise InvalidOptionError(
                f'preset="best" needs one target, got {target.n_targets}. Fit a model for each, or '
                'use preset="default".'
            )
        self.raw_target: TargetModel | None = None
        if target.is_transformed:
            untransformed = replace(options.target, target_transform="none")
            self.raw_target = TargetModel.fit(
                data.train_target, data.train_weight, untransformed, target.linear_fits
            )
        train, residual, weight = data.train, data.train_target, data.train_weight
        max_rows = max(1, MAX_VALUES // train.n_features)
        if train.n_rows > max_rows:
            chosen = np.random.default_rng(prepared.seed).permutation(train.n_rows)[:max_rows]
            train, residual = train.take(torch.from_numpy(chosen)), residual[chosen]
            weight = None if weight is None else weight[chosen]
        standard = _column(target.standardize(residual))
        sizes = prepared.encoder.category_sizes
        self.features, x = TreeFeatures.fit(train, standard, weight, sizes, prepared.seed)
        rows = TreeRows(
            x,
            standard,
            weight,
            self.features.transform(data.validation),
            _column(target.standardize(data.validation_target)),
            data.validation_weight,
            self.features.n_categories,
            prepared.seed % 2**31,
        )
        kinds = [(rows, False)]
        if self.raw_target is not None:
            y, y_val = (
                _column(self.raw_target.standardize(values))
                for values in (residual, data.validation_target)
            )
            kinds.append((replace(rows, y=y, y_val=y_val), True))
        self.members = _grow_all(kinds, budget)
        # Here and not at the end: then the time is that of the trees.
        self.held_out = member_predictions(
            self.members, self.features, data.validation, target, self.raw_target
        )

    def finish(
        self, model: TabNSM | Ensemble, device: torch.device, budget: TimeBudget
    ) -> tuple[Blend, ValidationScores]:
        """Weights by the validation rows, and how the blend does on them.

        Parameters
        ----------
        model : TabNSM or Ensemble
            The trained networks.
        device : torch.device
        budget : TimeBudget
            Nearest rows are left out where too little of it is left, or where validation rows
            are few.

        Returns
        -------
        tuple of Blend and ValidationScores
        """
        prepared = self.prepared
        data, target = prepared.data, prepared.target
        table, weight = data.validation, data.validation_weight
        started = now()
        standard = predict_rows(model, table, device)
        per_row = (now() - started) / table.n_rows
        networks = target.predict(standard, table)[:, 0]
        # The linear fit is the same for all: what is left is compared.
        offset = networks - target.unstandardize(standard)[:, 0]
        wanted = data.validation_target[:, 0]
        metric = prepared.options.training.eval_metric
        held_out = [networks - offset, *(self.held_out - offset)]
        neighbors = None
        needed = 3 * per_row * min(data.train.n_rows, MAX_POINTS)
        if table.n_rows >= MIN_NEIGHBOR_ROWS and budget.seconds_left() > needed:
            neighbors, nearest = self._fit_neighbors(networks_of(model)[0])
            held_out.append(nearest)
        weights = blend_weights(held_out, wanted, weight, metric)
        n_trees = len(self.members)
        kept = [k for k, share in enumerate(weights[1 : 1 + n_trees]) if share > 0]
        nearest_weight = float(weights[1 + n_trees]) if neighbors is not None else 0.0
        blend = Blend(
            float(weights[0]),
            tuple(self.members[k] for k in kept),
            tuple(float(weights[1 + k]) for k in kept),
            self.features,
            self.raw_target,
            neighbors if nearest_weight > 0 else None,
            nearest_weight,
        )
        blended = np.asarray(weights @ np.stack(held_out))
        rmse = weighted_rmse(wanted, blended, weight)
        mae = weighted_mae(wanted, blended, weight)
        return blend, ValidationScores(rmse, mae, rmse if metric == "rmse" else mae)

    def _fit_neighbors(self, network: TabNSM) -> tuple[Neighbors, np.ndarray]:
        """Nearest rows, as many as validate best, and their prediction of validation residuals."""
        data, target = self.prepared.data, self.prepared.target
        standard = target.standardize(data.train_target)[:, 0]
        placed = Neighbors.fit(network, data.train, standard, self.prepared.seed)
        seen = last_stage(network, data.validation)
        found = []
        for count in COUNTS:
            counted = placed.with_count(count)
            prediction = target.unstandardize(counted.predict(seen)[:, None])[:, 0]
            error = weighted_rmse(data.validation_target[:, 0], prediction, data.validation_weight)
            found.append((error, count, counted, prediction))
        _, _, best, prediction = min(found, key=lambda entry: entry[:2])
        return best, prediction


def _grow_all(kinds: list[tuple[TreeRows, bool]], budget: TimeBudget) -> list[ForestMember]:
    """All members on all scales; a member's share of the time is an equal part of what is left."""
    wanted = [
        (f"{name}, raw scale" if raw else name, grow, rows, raw)
        for rows, raw in kinds
        for name, grow in MEMBERS.items()
    ]
    reserved = budget.seconds_left() * (1 - TIME_SHARE) if budget.is_limited else 0.0
    members = []
    # Threads of OpenMP spin, so that a busy neighbour slows them down many times over.
    with threadpool_limits(1, user_api="openmp"):
        for k, (name, grow, rows, raw) in enumerate(wanted):
            end = 0.0
            if budget.is_limited:
                left = max(budget.seconds_left() - reserved, 0.0)
                end = budget.seconds_left() - left / (len(wanted) - k)
            seconds_left = partial(_seconds_until, budget, end)
            members.append(ForestMember(name, grow(rows, seconds_left), raw))
    return members


def _seconds_until(budget: TimeBudget, end: float) -> float:
    return budget.seconds_left() - end


def _column(values: np.ndarray) -> np.ndarray:
    return values[:, 0].astype(np.float64)
