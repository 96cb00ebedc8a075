"""Attributions and foreground blocks of encoded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from tabnsm.attribution.explanation import Explanation, Method, sum_by_column
from tabnsm.attribution.inputs import input_columns
from tabnsm.attribution.integrated import integrate_rows
from tabnsm.attribution.tiles import mean_of, tiles
from tabnsm.functional.blocks import n_blocks
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import eval_mode
from tabnsm.rules import require

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable, TableEncoder
    from tabnsm.target import TargetModel

Baseline = Literal["zero", "average"]
BASELINES = ("zero", "average")
METHODS = ("integrated", "gradient")


def explain_rows(
    model: TabNSM | Ensemble,
    encoder: TableEncoder,
    target: TargetModel,
    table: EncodedTable,
    baseline: Baseline | None = None,
    *,
    method: Method = "gradient",
    background: EncodedTable | None = None,
    n_steps: int | None = None,
) -> Explanation:
    """Attribute the prediction of every row to features and columns, tile by tile.

    Of an ensemble, which predicts the mean of its networks, it is the mean of their attributions.
    A row's numbers do not depend on its neighbours, but for the last bits of the gradient in
    tables of a dozen features; memory beyond the result does not grow with the number of rows.

    Parameters
    ----------
    model : TabNSM or Ensemble
        Put into eval mode while this runs.
    encoder : TableEncoder
        That made `table`.
    target : TargetModel
        Of one target. What a feature adds to its linear fit, if it has one, is added to the
        attribution of the feature.
    table : EncodedTable
    baseline : {"zero", "average"} or None
        What a token is compared with; see `token_attributions`. None is "zero" for gradients and
        "average" for integrated ones, which take no other.
    method : {"gradient", "integrated"}, default "gradient"
        See `token_attributions` and `tabnsm.attribution.integrated.PathAttribution`.
    background : EncodedTable or None
        Rows that integrated gradients compare with, in place of the average.
    n_steps : int or None
        Steps of each integral; None chooses.

    Returns
    -------
    Explanation
    """
    require(method in METHODS, f"method must be one of {METHODS}", method)
    if baseline is not None:
        require(baseline in BASELINES, f"baseline must be one of {BASELINES}", baseline)
    with eval_mode(model):
        found: dict[str, Any]
        if method == "integrated":
            require(
                baseline != "zero",
                'baseline must be "average" with method="integrated"; "zero" is for "gradient"',
                baseline,
            )
            found = integrate_rows(model, target, table, background, n_steps)
        else:
            for name, value in (("background", background), ("n_steps", n_steps)):
                require(value is None, f'{name} must be None with method="gradient"', value)
            found = _gradient_rows(model, target, table, baseline or "zero")
        blocks = _selected_blocks(model, table) if model.config.attention == "sparse" else None

    columns, column_of_feature = input_columns(encoder)
    features = found.pop("features")
    dtype = np.float64 if method == "integrated" else None
    return Explanation(
        contributions=sum_by_column(features, column_of_feature, len(columns), dtype),
        feature_contributions=features,
        columns=columns,
        encoded_names=tuple(encoder.feature_names),
        column_of_feature=column_of_feature,
        selected_blocks=blocks,
        selection_block_size=model.config.selection_block_size,
        method=method,
        **found,
    )


def _gradient_rows(
    model: TabNSM | Ensemble, target: TargetModel, table: EncodedTable, baseline: Baseline
) -> dict[str, Any]:
    """Predictions and gradient-embedding attributions of all rows."""
    networks = networks_of(model)
    features = np.empty((table.n_rows, table.n_features), dtype=np.float32)
    standard = np.empty((table.n_rows, target.n_targets), dtype=np.float32)
    (linear,), (scaler,) = target.linear_fits, target.scalers
    for rows, x in tiles(table, model):
        explained = [token_attributions(network, x, baseline) for network in networks]
        prediction, attributed = (mean_of(parts) for parts in zip(*explained, strict=True))
        standard[rows] = prediction[: rows.stop - rows.start].cpu().numpy()
        if linear is not None:
            added = linear.contributions(x.cpu()).to(x)
            attributed = attributed * linear.share_of(scaler) + added
        features[rows] = attributed[: rows.stop - rows.start].cpu().numpy()
    return {"predictions": target.predict(standard, table)[:, 0], "features": features}


def _selected_blocks(model: TabNSM | Ensemble, table: EncodedTable) -> np.ndarray:
    width = n_blocks(table.n_features, model.config.selection_block_size)
    blocks = np.empty((table.n_rows, width), dtype=np.float32)
    for rows, x in tiles(table, model):
        share = mean_of([selected_shares(network, x) for network in networks_of(model)])
        blocks[rows] = share[: rows.stop - rows.start].cpu().numpy()
    return blocks


def token_attributions(
    model: TabNSM, x: Tensor, baseline: Baseline = "zero"
) -> tuple[Tensor, Tensor]:
    r"""Gradient of the prediction times the token, summed over the token axis and the targets.

    .. math:: a_d = \sum_k \frac{\partial \hat y}{\partial X_{dk}} (X_{dk} - X^0_{dk})

    Parameters
    ----------
    model : TabNSM
    x : Tensor
        Encoded rows, (B, D).
    baseline : {"zero", "average"}, default "zero"
        "zero" is the paper's gradient-embedding attribution, :math:`X^0 = 0`. "average" takes
        the tokens of mean numbers and unseen categories for :math:`X^0`, so that what a feature
        says whatever its value (the bias in its token) does not count.

    Returns
    -------
    prediction : Tensor
        Standardised, (B, t).
    attribution : Tensor
        Signed, (B, D).

    Examples
    --------
    >>> prediction, attribution = token_attributions(TabNSM(n_features=5), torch.randn(2, 5))
    >>> prediction.shape, attribution.shape
    (torch.Size([2, 1]), torch.Size([2, 5]))
    """
    with torch.no_grad():
        tokens = model.tokenizer(x)  # (B, D, d_token)
        moved = tokens if baseline == "zero" else tokens - model.tokenizer(torch.zeros_like(x[:1]))
    with torch.enable_grad():
        tokens.requires_grad_()
        prediction = model.from_tokens(tokens)  # (B, t)
        # Rows do not mix, so that the gradient of the sum holds the gradient of each row.
        (gradient,) = torch.autograd.grad(prediction.sum(), tokens)  # (B, D, d_token)
    return prediction.detach(), (gradient * moved.detach()).sum(dim=-1)  # (B, t), (B, D)


def selected_shares(model: TabNSM, x: Tensor) -> Tensor:
    """Share of a row's queries that selected each block, (B, n_blocks).

    Parameters
    ----------
    model : TabNSM
        With sparse attention.
    x : Tensor
        Encoded rows, (B, D).
    """
    chosen = model.selected_blocks(x)  # (B, H, D, m)
    n_queries = chosen.shape[1] * chosen.shape[2]
    width = n_blocks(x.shape[1], model.config.selection_block_size)
    flat = chosen.flatten(1)  # (B, H * D * m)
    counts = torch.zeros(len(x), width, dtype=torch.float64, device=x.device)
    counts.scatter_add_(1, flat, torch.ones_like(flat, dtype=counts.dtype))
    return counts / n_queries
