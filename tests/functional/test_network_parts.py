"""Tokenizer, mixer, blending, head and scan against loops, in value and gradient."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tabnsm.functional import blending, mixing, selective_scan, staging, tokens
from tests.mutation import mutated
from tests.oracles import network as oracle

sizes = st.integers(1, 9)


def leaves(seed: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for name, shape in shapes.items()
    }


def assert_same(actual: Tensor, expected: Tensor, inputs: dict[str, Tensor]) -> None:
    """Equal values, and equal gradients of a fixed random projection."""
    assert actual.shape == expected.shape
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)
    direction = torch.randn(
        actual.shape, generator=torch.Generator().manual_seed(1), dtype=actual.dtype
    )
    wanted = [value for value in inputs.values() if value.requires_grad]
    found = torch.autograd.grad((actual * direction).sum(), wanted, allow_unused=True)
    right = torch.autograd.grad((expected * direction).sum(), wanted, allow_unused=True)
    for one, other in zip(found, right, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@given(n_rows=st.integers(1, 3), n_features=sizes, d_token=sizes, seed=st.integers(0, 99))
def test_affine_tokens(n_rows: int, n_features: int, d_token: int, seed: int) -> None:
    v = leaves(
        seed, x=(n_rows, n_features), weight=(n_features, d_token), bias=(n_features, d_token)
    )
    assert_same(tokens.affine_tokens(**v), oracle.affine_tokens(**v), v)


@given(n_rows=st.integers(1, 4), n_features=sizes, n_bins=sizes, seed=st.integers(0, 99))
def test_piecewise_tokens(n_rows: int, n_features: int, n_bins: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed + 1000)
    ends = torch.randn(n_features, n_bins + 1, generator=generator, dtype=torch.float64)
    ends = ends.sort(1).values
    low, width = ends[:, :-1].clone(), ends.diff(dim=1)
    # Every second feature has fewer bins, and the first row begins where a bin does.
    low[::2, n_bins // 2 + 1 :] = torch.inf
    v = leaves(seed, x=(n_rows, n_features), slopes=(n_features, n_bins, 3))
    with torch.no_grad():
        v["x"][0, 0] = ends[0, 0]
    args = (v["x"], low, width, v["slopes"])
    assert_same(tokens.piecewise_tokens(*args), oracle.piecewise_tokens(*args), v)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slopes.cumsum(1) - slopes", "slopes.cumsum(1)"),
        (".clamp(0.0, 1.0)", ".clamp(0.0)"),
        ("* n_bins\n", "* (n_bins - 1)\n"),
    ],
)
def test_piecewise_oracle_notices(old: str, new: str) -> None:
    broken = mutated(tokens, old, new)
    low = torch.tensor([[0.0, 1.0], [-1.0, 0.5]], dtype=torch.float64)
    width = torch.tensor([[1.0, 2.0], [1.5, 1.0]], dtype=torch.float64)
    v = leaves(0, slopes=(2, 2, 3))
    x = torch.tensor([[-1.0, -2.0], [0.5, 0.0], [1.0, 0.5], [9.0, 9.0]], dtype=torch.float64)
    args = (x, low, width, v["slopes"])
    with pytest.raises(AssertionError):
        assert_same(broken.piecewise_tokens(*args), oracle.piecewise_tokens(*args), v)


@given(n_rows=st.integers(1, 3), n_columns=st.integers(1, 4), seed=st.integers(0, 99))
def test_category_tokens(n_rows: int, n_columns: int, seed: int) -> None:
    sizes = torch.arange(2, 2 + n_columns)
    offsets = sizes.cumsum(0) - sizes
    codes = torch.randint(0, 2, (n_rows, n_columns), generator=torch.Generator().manual_seed(seed))
    v = leaves(seed, table=(int(sizes.sum()), 3), bias=(n_columns, 3))
    args = (codes.double(), v["table"], offsets, v["bias"])
    assert_same(tokens.category_tokens(*args), oracle.category_tokens(*args), v)


def mixer_pair(
    module: ModuleType, n_rows: int, n_features: int, d_token: int, chunk: int, seed: int
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    v = leaves(
        seed,
        u=(n_rows, n_features, d_token),
        w1=(d_token, d_token),
        b1=(d_token,),
        w2=(d_token, d_token),
        b2=(d_token,),
        w3=(chunk, chunk),
        b3=(chunk,),
        w4=(chunk, chunk),
        b4=(chunk,),
        norm_scale=(d_token,),
        norm_shift=(d_token,),
        fusion_scale=(d_token,),
        fusion_shift=(d_token,),
    )
    normed = torch.nn.functional.layer_norm(v["u"], (d_token,), v["norm_scale"], v["norm_shift"])
    u1 = module.mix_embeddings(normed, v["w1"], v["b1"], v["w2"], v["b2"])
    u2 = module.mix_features(normed, v["w3"], v["b3"], v["w4"], v["b4"])
    actual = module.fuse_branches(v["u"], u1, u2, v["fusion_scale"], v["fusion_shift"])
    expected = torch.stack([oracle.mixer(row, v, chunk) for row in v["u"]])
    return actual, expected, v


@pytest.mark.slow
@given(
    n_rows=st.integers(1, 2),
    n_features=sizes,
    d_token=st.integers(2, 5),
    chunk=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_mixer(n_rows: int, n_features: int, d_token: int, chunk: int, seed: int) -> None:
    chunk = min(chunk, n_features)
    actual, expected, v = mixer_pair(mixing, n_rows, n_features, d_token, chunk, seed)
    assert_same(actual, expected, v)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("F.gelu(F.linear(F.relu", "F.relu(F.linear(F.relu"),
        ("F.relu(torch.matmul(w3", "F.gelu(torch.matmul(w3"),
        ("u + F.silu", "F.silu"),
        ("F.layer_norm(u1 * u2", "F.layer_norm(u1 + u2"),
        ("b3.unsqueeze(-1)", "b4.unsqueeze(-1)"),
        ("F.pad(u, (0, 0, 0, padding))", "F.pad(u, (0, 0, padding, 0))"),
        ("F.pad(u, (0, 0, 0, padding))", "F.pad(u, (0, 0, 0, padding), value=1.0)"),
    ],
)
def test_mixer_oracle_notices(old: str, new: str) -> None:
    actual, expected, v = mixer_pair(mutated(mixing, old, new), 2, 7, 4, 3, seed=5)
    with pytest.raises(AssertionError):
        assert_same(actual, expected, v)


def blended(module: ModuleType, v: dict[str, Tensor]) -> Tensor:
    u = module.blend_attended(v["tokens"], v["attended"], v["w1"])
    return module.summarize_features(v["tokens"], u, v["mixed"], v["w2"], v["w3"])


@given(n_rows=st.integers(1, 3), n_features=sizes, d_token=sizes, seed=st.integers(0, 99))
def test_blending(n_rows: int, n_features: int, d_token: int, seed: int) -> None:
    shape = (n_rows, n_features, d_token)
    v = leaves(seed, tokens=shape, attended=shape, mixed=shape, w1=(), w2=(), w3=())
    weights = (v["w1"], v["w2"], v["w3"])
    expected = torch.stack(
        [
            oracle.asim(v["tokens"][i], v["attended"][i], v["mixed"][i], *weights)
            for i in range(n_rows)
        ]
    )
    assert_same(blended(blending, v), expected, v)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("token_weight * tokens + attended", "tokens + token_weight * attended"),
        ("skip_weight * tokens.mean(-1)", "skip_weight * u.mean(-1)"),
        ("mixed.mean(-1) +", "mixed.sum(-1) +"),
    ],
)
def test_blending_oracle_notices(old: str, new: str) -> None:
    shape = (2, 3, 4)
    v = leaves(3, tokens=shape, attended=shape, mixed=shape, w1=(), w2=(), w3=())
    with pytest.raises(AssertionError):
        torch.testing.assert_close(blended(mutated(blending, old, new), v), blended(blending, v))


@given(n_features=st.integers(1, 7), n_targets=st.integers(1, 3), seed=st.integers(0, 99))
def test_staged_prediction_is_the_papers_cascade(
    n_features: int, n_targets: int, seed: int
) -> None:
    half, width = (n_features + 1) // 2, 3
    shapes: dict[str, tuple[int, ...]] = {"x": (2, n_features)}
    outs = {"mlp1": (n_features, n_features), "mlp2": (n_features, half)}
    outs["mlp3"] = (n_features, n_targets)
    outs["fusion"] = (half + 2 * n_targets, n_targets)
    for name, (n_in, n_out) in outs.items():
        shapes |= {f"{name}_w": (width, n_in), f"{name}_b": (width,)}
        shapes |= {f"{name}_v": (n_out, width), f"{name}_c": (n_out,)}
    shapes |= {"dec1": (half, n_features), "dec2": (n_targets, half)}
    v = leaves(seed, **shapes)

    def batch_mlp(name: str):  # type: ignore[no-untyped-def]
        w, b, out, c = (v[f"{name}_{k}"] for k in "wbvc")
        return lambda x: torch.nn.functional.gelu(x @ w.T + b) @ out.T + c

    actual = staging.staged_prediction(
        v["x"],
        batch_mlp("mlp1"),
        lambda x: x @ v["dec1"].T,
        batch_mlp("mlp2"),
        lambda x: x @ v["dec2"].T,
        batch_mlp("mlp3"),
        batch_mlp("fusion"),
    )
    expected = []
    for row in v["x"]:
        maps = {k: [v[f"{k}_{part}"] for part in "wbvc"] for k in outs}
        y1 = v["dec1"] @ (oracle.mlp(row, *maps["mlp1"]) + row)
        y2 = v["dec2"] @ (oracle.mlp(row, *maps["mlp2"]) + y1)
        y3 = oracle.mlp(row, *maps["mlp3"]) + y2
        fused = oracle.mlp(torch.cat([y1, y2, y3]), *maps["fusion"])
        expected.append(fused + y2 + y3)
    assert_same(actual, torch.stack(expected), v)


@pytest.mark.slow
@given(
    n_features=st.integers(1, 6),
    d_inner=st.integers(1, 3),
    d_state=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_selective_scan(n_features: int, d_inner: int, d_state: int, seed: int) -> None:
    wide, narrow = (2, n_features, d_inner), (2, n_features, d_state)
    v = leaves(seed, x=wide, step=wide, rate=(d_inner, d_state), b=narrow, c=narrow)
    actual = selective_scan.selective_scan(**v)
    expected = torch.stack(
        [
            oracle.selective_scan(v["x"][i], v["step"][i], v["rate"], v["b"][i], v["c"][i])
            for i in range(2)
        ]
    )
    assert_same(actual, expected, v)
