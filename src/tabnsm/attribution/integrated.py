"""Integrated gradients: contributions that add up to the prediction minus a base value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.attribution.tiles import mean_of, tiles
from tabnsm.columns.encoded import EncodedTable
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import predict_rows
from tabnsm.rules import is_integer, require

if TYPE_CHECKING:
    from tabnsm.target import LinearFit, TargetModel, TargetScaler

# Rows of a background that are used; more change little and take as much longer.
MAX_BACKGROUND = 50
# Gradients per row, shared by the rows of a background.
_MANY_STEPS, _ONE_PATH_STEPS, _MIN_STEPS = 64, 16, 2
# Change of a standardised prediction below which a slope is not worth a division.
_SMALL = 1e-6

Values = NDArray[np.float64]


def integrate_rows(
    model: TabNSM | Ensemble,
    target: TargetModel,
    table: EncodedTable,
    background: EncodedTable | None = None,
    n_steps: int | None = None,
) -> dict[str, Any]:
    """Predictions, base values, contributions of features and path errors of all rows.

    Parameters
    ----------
    model : TabNSM or Ensemble
        In eval mode.
    target : TargetModel
        Of one target.
    table : EncodedTable
    background : EncodedTable or None
        Rows to begin from, of which at most `MAX_BACKGROUND` are used; contributions are means
        over them. None begins from one row of mean numbers and unseen categories.
    n_steps : int or None
        Steps of each path; None takes 16, or 64 for all rows of a background together.

    Returns
    -------
    dict
        The entries `predictions`, `base_values`, `features` and `path_errors`.
    """
    starts = _starting_rows(table, background)
    if n_steps is None:
        n_steps = max(_MIN_STEPS, min(_ONE_PATH_STEPS, _MANY_STEPS // starts.n_rows))
    require(is_integer(n_steps, 1), "n_steps must be None or an integer >= 1", n_steps)
    device = next(model.parameters()).device
    (linear,), (scaler,) = target.linear_fits, target.scalers
    path = PathAttribution(networks_of(model), scaler, linear, n_steps)
    ends, begins = (predict_rows(model, rows, device) for rows in (table, starts))  # (n, t)
    features = np.empty((table.n_rows, table.n_features), dtype=np.float32)
    errors = np.empty(table.n_rows)
    first_rows = starts.gather(torch.arange(starts.n_rows)).to(device)  # (S, D)
    for rows, x in tiles(table, model):
        n_rows = rows.stop - rows.start
        end = np.resize(ends[rows, 0], len(x))  # those after n_rows are not kept
        total, error = np.zeros(x.shape), np.zeros(len(x))
        for first, begin in zip(first_rows, begins[:, 0], strict=True):
            part, missed = path.attribute(x, first.unsqueeze(0), end, float(begin))
            total += part / starts.n_rows
            error += missed / starts.n_rows
        features[rows], errors[rows] = total[:n_rows], np.abs(error[:n_rows])
    base = float(target.predict(begins, starts)[:, 0].mean())
    return {
        "predictions": target.predict(ends, table)[:, 0],
        "base_values": np.full(table.n_rows, base),
        "features": features,
        "path_errors": errors,
    }


def _starting_rows(table: EncodedTable, background: EncodedTable | None) -> EncodedTable:
    if background is None:
        return _average_row(table)
    require(background.n_rows >= 1, "background must have at least 1 row", background.n_rows)
    if background.n_rows <= MAX_BACKGROUND:
        return background
    drawn = np.random.default_rng(0).choice(background.n_rows, MAX_BACKGROUND, replace=False)
    return background.take(torch.from_numpy(np.sort(drawn)))


def _average_row(table: EncodedTable) -> EncodedTable:
    """One row of zeros: mean numbers, unseen categories, mean text."""
    return EncodedTable(torch.zeros(1, table.n_features))


class PathAttribution:
    r"""Integrated gradients on the straight path between the tokens of two rows.

    .. math:: a_d = \sum_k (X_{dk} - X^0_{dk})
        \int_0^1 \frac{\partial f}{\partial X_{dk}}\bigl(X^0 + t (X - X^0)\bigr) \, dt

    `f` is the prediction in the target's units: the mean of the networks, limits and transform of
    the target included. The integral is the midpoint rule. The prediction jumps where the
    attention selects other blocks, and a gradient does not see that: what it misses of the change
    within a step is shared out among the features in proportion to the sizes of their parts. The
    contributions then add up to the difference of the two predictions, to rounding.

    Parameters
    ----------
    networks : sequence of TabNSM
    scaler : TargetScaler
        Of what the networks predict.
    linear : LinearFit or None
        Whose contributions are added.
    n_steps : int
    """

    def __init__(
        self,
        networks: Sequence[TabNSM],
        scaler: TargetScaler,
        linear: LinearFit | None,
        n_steps: int,
    ) -> None:
        self.networks = networks
        self.scaler = scaler
        self.linear = linear
        self.n_steps = n_steps

    def attribute(
        self, x: Tensor, start: Tensor, end_value: NDArray[Any], start_value: float
    ) -> tuple[Values, Values]:
        """Contributions of the features, and what gradients alone would have missed.

        Parameters
        ----------
        x : Tensor
            Encoded rows, (B, D).
        start : Tensor
            The row that all paths begin from, (1, D).
        end_value : ndarray of shape (B,)
            Standardised predictions of `x`.
        start_value : float
            The same of `start`.

        Returns
        -------
        contributions : ndarray of float64, shape (B, D)
            In the target's units.
        missed : ndarray of float64, shape (B,)
        """
        paths = [TokenPath(network, x, start) for network in self.networks]
        values = [np.full(len(x), start_value)]
        for step in range(1, self.n_steps):
            values.append(_array(mean_of([path.predict(step / self.n_steps) for path in paths])))
        values.append(np.asarray(end_value, dtype=np.float64))
        total, missed = np.zeros(x.shape), np.zeros(len(x))
        for step, (before, after) in enumerate(pairwise(values)):
            middle = (step + 0.5) / self.n_steps
            found = _array(mean_of([path.contributions(middle) for path in paths])) / self.n_steps
            gap = (after - before) - found.sum(axis=1)
            slope = self._slope(before, after)
            total += (found + gap[:, None] * _shares(found)) * slope[:, None]
            missed += gap * slope
        if self.linear is not None:
            added = self.linear.contributions(x.cpu()) - self.linear.contributions(start.cpu())
            total += _array(added) * (self.linear.scaler.scale / self.linear.scaler.pre_scale)
        return total, missed

    def _slope(self, before: Values, after: Values) -> Values:
        """Target's units per unit of the standardised prediction, between two values."""
        change = after - before
        is_small = np.abs(change) < _SMALL
        low = np.where(is_small, before - _SMALL, before)
        high = np.where(is_small, before + _SMALL, after)
        slope: Values = (self.scaler.inverse(high) - self.scaler.inverse(low)) / (high - low)
        return slope


class TokenPath:
    """The straight line of tokens between two rows, as one network sees it.

    Parameters
    ----------
    network : TabNSM
    x, start : Tensor
        Encoded rows, (B, D), and where each path begins, (1, D) or (B, D).
    output : int, default 0
        The target that is explained.
    """

    def __init__(self, network: TabNSM, x: Tensor, start: Tensor, output: int = 0) -> None:
        with torch.no_grad():
            self.begin: Tensor = network.tokenizer(start)  # (1 or B, D, d_token)
            self.change: Tensor = network.tokenizer(x) - self.begin  # (B, D, d_token)
        self.network = network
        self.output = output

    def predict(self, t: float) -> Tensor:
        """Standardised predictions at a point of the path, (B,)."""
        with torch.no_grad():
            return self.network.from_tokens(self.begin + t * self.change)[:, self.output]

    def contributions(self, t: float) -> Tensor:
        """Gradient at a point of the path times its whole length, by feature, (B, D)."""
        tokens = (self.begin + t * self.change).requires_grad_()
        with torch.enable_grad():
            prediction = self.network.from_tokens(tokens)[:, self.output]
            (gradient,) = torch.autograd.grad(prediction.sum(), tokens)  # (B, D, d_token)
        return (gradient * self.change).sum(dim=-1)


def _shares(found: Values) -> Values:
    """Sizes of the parts of each row, over their sum; equal ones in a row of zeros."""
    size = np.abs(found)
    total = size.sum(axis=1, keepdims=True)
    equal = np.full_like(size, 1 / found.shape[1])
    shares: Values = np.divide(size, total, out=equal, where=total > 0)
    return shares


def _array(values: Tensor) -> Values:
    return np.asarray(values.detach().cpu().numpy(), dtype=np.float64)
