"""Tokenizer: every scalar feature becomes a vector (paper, section "ASIM")."""

from __future__ import annotations

import torch
from torch import Tensor


def affine_tokens(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Project each feature with its own weight and bias vector.

    Parameters
    ----------
    x : Tensor, shape (B, D)
    weight, bias : Tensor, shape (D, d_token)

    Returns
    -------
    Tensor, shape (B, D, d_token)

    Examples
    --------
    >>> affine_tokens(torch.ones(4, 3), torch.randn(3, 8), torch.randn(3, 8)).shape
    torch.Size([4, 3, 8])
    """
    return torch.addcmul(bias, x.unsqueeze(-1), weight)  # (B, D, d_token)


def category_tokens(codes: Tensor, table: Tensor, offsets: Tensor, bias: Tensor) -> Tensor:
    """Look up the vector of each category and add its feature's bias vector.

    Parameters
    ----------
    codes : Tensor, shape (B, C)
        Integer codes, given as floats; code 0 stands for a category that training never saw.
    table : Tensor, shape (n_codes_of_all_features, d_token)
    offsets : Tensor of int64, shape (C,)
        Where each feature's codes start in `table`.
    bias : Tensor, shape (C, d_token)

    Returns
    -------
    Tensor, shape (B, C, d_token)

    Examples
    --------
    >>> table = torch.arange(6.0).reshape(3, 2)
    >>> category_tokens(torch.tensor([[1.0]]), table, torch.tensor([1]), torch.zeros(1, 2))
    tensor([[[4., 5.]]])
    """
    rows = codes.long() + offsets  # (B, C)
    return torch.nn.functional.embedding(rows, table) + bias  # (B, C, d_token)


def piecewise_tokens(x: Tensor, low: Tensor, width: Tensor, slopes: Tensor) -> Tensor:
    """Straight bins over the bins of each feature, joined where bins meet.

    A bin adds its whole vector once `x` is past it, a share of it where `x` lies in it.

    Parameters
    ----------
    x : Tensor, shape (B, P)
    low, width : Tensor, shape (P, n_bins)
        Left end and width of each bin, from left to right; `low` is infinite where a feature
        has fewer bins.
    slopes : Tensor, shape (P, n_bins, d_token)

    Returns
    -------
    Tensor, shape (B, P, d_token)
        Zero left of the first bin, constant right of the last.

    Examples
    --------
    >>> low, width = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    >>> slopes = torch.tensor([[[10.0], [100.0]]])
    >>> piecewise_tokens(torch.tensor([[-1.0], [0.5], [2.0], [9.0]]), low, width, slopes).ravel()
    tensor([  0.,   5.,  60., 110.])
    """
    n_features, n_bins, d_token = slopes.shape
    place = torch.searchsorted(low, x.detach().t().contiguous(), right=True)  # (P, B)
    place = place.minimum(torch.isfinite(low).sum(1, keepdim=True))  # an infinite x has no bin
    offset = torch.arange(n_features, device=x.device)[:, None] * n_bins
    rows = (offset + (place - 1).clamp_(min=0)).t()  # (B, P)
    share = ((x - low.flatten()[rows]) / width.flatten()[rows]).clamp(0.0, 1.0)  # (B, P)
    # A look-up of what the bins before add up to, instead of a product with all bins.
    before = slopes.cumsum(1) - slopes  # (P, n_bins, d_token)
    tables = torch.cat([before, slopes], dim=-1).flatten(0, 1)  # (P * n_bins, 2 d_token)
    found = torch.nn.functional.embedding(rows, tables)  # (B, P, 2 d_token)
    start, slope = torch.split(found, d_token, dim=-1)
    return torch.addcmul(start, share.unsqueeze(-1), slope)  # (B, P, d_token)
