"""Slow, obvious versions of the network's parts: one number at a time, nothing from src."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def relu(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x))


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Over a single vector."""
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    return (x - mean) / torch.sqrt(variance + 1e-5) * scale + shift


def affine_tokens(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rows = []
    for row in x:
        rows.append(torch.stack([row[d] * weight[d] + bias[d] for d in range(len(row))]))
    return torch.stack(rows)


def category_tokens(codes: Tensor, table: Tensor, offsets: Tensor, bias: Tensor) -> Tensor:
    rows = []
    for row in codes:
        rows.append(
            torch.stack([table[int(offsets[c]) + int(row[c])] + bias[c] for c in range(len(row))])
        )
    return torch.stack(rows)


def piecewise_tokens(x: Tensor, low: Tensor, width: Tensor, slopes: Tensor) -> Tensor:
    rows = []
    for row in x:
        features = []
        for d, value in enumerate(row):
            token = torch.zeros(slopes.shape[2], dtype=slopes.dtype)
            for bin in range(low.shape[1]):
                if value >= low[d, bin]:
                    share = (value - low[d, bin]) / width[d, bin]
                    token = token + torch.clamp(share, max=1.0) * slopes[d, bin]
            features.append(token)
        rows.append(torch.stack(features))
    return torch.stack(rows)


def mixer(u: Tensor, p: dict[str, Tensor], chunk: int) -> Tensor:
    """Equations (tm1) to (tm4) for one row u of shape (D, d_token)."""
    n_features, d_token = u.shape
    normed = [layer_norm(u[d], p["norm_scale"], p["norm_shift"]) for d in range(n_features)]
    u1 = []
    for token in normed:
        hidden = relu(p["w1"] @ token + p["b1"])
        u1.append(gelu(p["w2"] @ hidden + p["b2"]))
    u2 = torch.zeros(n_features, d_token, dtype=u.dtype)
    columns = []
    for j in range(d_token):
        column: list[Tensor] = []
        for start in range(0, n_features, chunk):
            values = [
                normed[d][j] if d < n_features else torch.zeros((), dtype=u.dtype)
                for d in range(start, start + chunk)
            ]
            hidden = relu(p["w3"] @ torch.stack(values) + p["b3"])
            column.extend(p["w4"] @ hidden + p["b4"])
        columns.append(torch.stack(column[:n_features]))
    u2 = torch.stack(columns, dim=1)
    fused = [
        silu(layer_norm(u1[d] * u2[d], p["fusion_scale"], p["fusion_shift"]))
        for d in range(n_features)
    ]
    return u + torch.stack(fused)


def asim(
    tokens: Tensor, attended: Tensor, mixed: Tensor, w1: Tensor, w2: Tensor, w3: Tensor
) -> Tensor:
    """One row: Y = w2 U + Z + w3 X_tok, then the mean of every token; `mixed` is Z."""
    u = w1 * tokens + attended
    y = w2 * u + mixed + w3 * tokens
    return torch.stack([sum(token) / len(token) for token in y])


def mlp(x: Tensor, w_in: Tensor, b_in: Tensor, w_out: Tensor, b_out: Tensor) -> Tensor:
    return w_out @ gelu(w_in @ x + b_in) + b_out


def selective_scan(x: Tensor, step: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One row, one channel and one state at a time."""
    n_features, d_inner = x.shape
    d_state = rate.shape[1]
    result = []
    for i in range(d_inner):
        states = [torch.zeros((), dtype=x.dtype) for _ in range(d_state)]
        outputs = []
        for t in range(n_features):
            for s in range(d_state):
                states[s] = (
                    torch.exp(step[t, i] * rate[i, s]) * states[s] + step[t, i] * b[t, s] * x[t, i]
                )
            outputs.append(sum(c[t, s] * states[s] for s in range(d_state)))
        result.append(torch.stack(outputs))
    return torch.stack(result, dim=1)
