"""Residual blending of ASIM and the way back to one number per feature."""

from __future__ import annotations

from torch import Tensor


def blend_attended(tokens: Tensor, attended: Tensor, token_weight: Tensor) -> Tensor:
    """``U = w1 X_tok + X~``: the attended tokens on top of the weighted input tokens.

    Parameters
    ----------
    tokens, attended : Tensor, shape (B, D, d_token)
    token_weight : Tensor, scalar

    Returns
    -------
    Tensor, shape (B, D, d_token)
    """
    return token_weight * tokens + attended


def pool_means(tokens: Tensor, n_pools: int) -> Tensor:
    """Means of equal parts of every token.

    Parameters
    ----------
    tokens : Tensor, shape (B, D, d_token)
    n_pools : int
        Divides d_token.

    Returns
    -------
    Tensor, shape (B, D * n_pools)

    Examples
    --------
    >>> import torch
    >>> pool_means(torch.arange(8.0).reshape(1, 2, 4), 2)
    tensor([[0.5000, 2.5000, 4.5000, 6.5000]])
    """
    n_rows, n_features, d_token = tokens.shape
    parts = tokens.reshape(n_rows, n_features * n_pools, d_token // n_pools)
    return parts.mean(-1)  # (B, D * n_pools)


def summarize_features(
    tokens: Tensor, u: Tensor, mixed: Tensor, mixed_weight: Tensor, skip_weight: Tensor
) -> Tensor:
    """``mean_tok(w2 U + Z + w3 X_tok)``: one number per feature.

    The mean is linear, so it is taken of each stream before they are added: the blended
    tokens themselves are never needed.

    Parameters
    ----------
    tokens, u, mixed : Tensor, shape (B, D, d_token)
        Input tokens, blended tokens and the mixer's output Z.
    mixed_weight, skip_weight : Tensor, scalars
        The paper's w2 and w3.

    Returns
    -------
    Tensor, shape (B, D)

    Examples
    --------
    >>> import torch
    >>> x = torch.ones(2, 3, 4)
    >>> summarize_features(x, 2 * x, 3 * x, torch.tensor(1.0), torch.tensor(1.0))[0, 0].item()
    6.0
    """
    return mixed_weight * u.mean(-1) + mixed.mean(-1) + skip_weight * tokens.mean(-1)
