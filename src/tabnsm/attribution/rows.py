"""Gradient-embedding attributions and foreground blocks of encoded rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from tabnsm.attribution.explanation import Explanation, sum_by_column
from tabnsm.functional.blocks import n_blocks
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import tile_rows
from tabnsm.rules import require

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable, TableEncoder
    from tabnsm.target import TargetModel

Baseline = Literal["zero", "average"]
BASELINES = ("zero", "average")


def explain_rows(
    model: TabNSM | Ensemble,
    encoder: TableEncoder,
    target: TargetModel,
    table: EncodedTable,
    baseline: Baseline = "zero",
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
    baseline : {"zero", "average"}
        What a token is compared with; see `token_attributions`.

    Returns
    -------
    Explanation
    """
    require(baseline in BASELINES, f"baseline must be one of {BASELINES}", baseline)
    networks = networks_of(model)
    config = model.config
    is_sparse = config.attention == "sparse"
    n_rows, n_features = table.n_rows, table.n_features
    features = np.empty((n_rows, n_features), dtype=np.float32)
    standard = np.empty((n_rows, target.n_targets), dtype=np.float32)
    blocks = None
    if is_sparse:
        width = n_blocks(n_features, config.selection_block_size)
        blocks = np.empty((n_rows, width), dtype=np.float32)

    (linear,), (scaler,) = target.linear_fits, target.scalers
    device = next(model.parameters()).device
    size = tile_rows(n_features)
    was_training = model.training
    model.eval()
    try:
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            # Always a full tile, as in prediction: other shapes may round differently.
            rows = torch.arange(start, start + size).clamp_(max=stop - 1)
            x = table.gather(rows).to(device)  # (size, D)
            explained = [token_attributions(network, x, baseline) for network in networks]
            prediction, attributed = (_mean(parts) for parts in zip(*explained, strict=True))
            standard[start:stop] = prediction[: stop - start].cpu().numpy()
            if linear is not None:
                added = linear.contributions(x.cpu()).to(x)
                attributed = attributed * linear.share_of(scaler) + added
            features[start:stop] = attributed[: stop - start].cpu().numpy()
            if blocks is not None:
                share = _mean([selected_shares(network, x) for network in networks])
                blocks[start:stop] = share[: stop - start].cpu().numpy()
    finally:
        model.train(was_training)

    columns, column_of_feature = input_columns(encoder)
    return Explanation(
        predictions=target.predict(standard, table)[:, 0],
        contributions=sum_by_column(features, column_of_feature, len(columns)),
        feature_contributions=features,
        columns=columns,
        feature_names=tuple(encoder.feature_names),
        column_of_feature=column_of_feature,
        selected_blocks=blocks,
        selection_block_size=config.selection_block_size,
    )


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


def _mean(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(list(parts)).mean(dim=0)


def input_columns(encoder: TableEncoder) -> tuple[tuple[str, ...], np.ndarray]:
    """Columns that reach the model, and the place among them of each feature's column.

    Parameters
    ----------
    encoder : TableEncoder

    Returns
    -------
    names : tuple of str
        In the order of the table; joined text columns together at the place of the first.
    column_of_feature : ndarray of int64, shape (n_features,)
    """
    names = {spec.position: spec.name for spec in encoder.specs}
    texts = [spec for spec in encoder.specs if spec.kind == "text"]
    position = np.array(encoder.feature_columns, dtype=np.int64)
    if -1 in position:
        position[position == -1] = texts[0].position
        names[texts[0].position] = " + ".join(spec.name for spec in texts)
    used, column_of_feature = np.unique(position, return_inverse=True)
    return tuple(names[int(place)] for place in used), column_of_feature.astype(np.int64)
