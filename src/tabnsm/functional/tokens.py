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
