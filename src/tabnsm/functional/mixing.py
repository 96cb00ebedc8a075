"""Feature-Token Mixing, FTM (paper, appendix "Feature-Token Mixing: Full Formulation")."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def mix_embeddings(u: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Embedding-wise branch: an MLP over the token dimensions of each feature alone.

    Parameters
    ----------
    u : Tensor, shape (B, D, d_token)
        Tokens after the layer norm.
    w1, w2 : Tensor, shape (d_token, d_token)
    b1, b2 : Tensor, shape (d_token,)

    Returns
    -------
    Tensor, shape (B, D, d_token)
    """
    return F.gelu(F.linear(F.relu(F.linear(u, w1, b1)), w2, b2))


def mix_features(u: Tensor, w3: Tensor, b3: Tensor, w4: Tensor, b4: Tensor) -> Tensor:
    """Feature-wise branch: an MLP over disjoint chunks of the feature axis.

    The chunk size is that of the square weights; every chunk shares them. The last chunk is
    filled up with zeros, after the layer norm, so that padding carries no norm bias.

    Parameters
    ----------
    u : Tensor, shape (B, D, d_token)
        Tokens after the layer norm.
    w3, w4 : Tensor, shape (chunk, chunk)
    b3, b4 : Tensor, shape (chunk,)

    Returns
    -------
    Tensor, shape (B, D, d_token)

    Examples
    --------
    >>> w, b = torch.eye(4), torch.zeros(4)
    >>> u = torch.rand(2, 6, 3)
    >>> torch.equal(mix_features(u, w, b, w, b), u)
    True
    """
    n_rows, n_features, d_token = u.shape
    chunk = w3.shape[0]
    padding = -n_features % chunk
    if padding:
        u = F.pad(u, (0, 0, 0, padding))  # (B, n_chunks * chunk, d_token)
    chunks = u.reshape(-1, chunk, d_token)  # (B * n_chunks, chunk, d_token)
    hidden = F.relu(torch.matmul(w3, chunks) + b3.unsqueeze(-1))
    mixed = torch.matmul(w4, hidden) + b4.unsqueeze(-1)
    return mixed.reshape(n_rows, -1, d_token)[:, :n_features]  # (B, D, d_token)


def fuse_branches(u: Tensor, u1: Tensor, u2: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Gate the two branches into each other and add the result to the input.

    Computes ``u + SiLU(LayerNorm(u1 * u2))``, with `scale` and `shift` of the norm over
    the token axis.

    Parameters
    ----------
    u, u1, u2 : Tensor, shape (B, D, d_token)
    scale, shift : Tensor, shape (d_token,)

    Returns
    -------
    Tensor, shape (B, D, d_token)
    """
    return u + F.silu(F.layer_norm(u1 * u2, scale.shape, scale, shift))
