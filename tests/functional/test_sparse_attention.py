from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from torch import Tensor

from tabnsm.errors import InvalidOptionError
from tabnsm.functional import slices
from tabnsm.functional import sparse_attention as module
from tests.mutation import mutated
from tests.oracles import attention as oracle
from tests.oracles.attention_cases import Case, cases

Operator = Callable[..., Tensor]
PAPER = {
    "window_size": 6,
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
}


def largest_difference(operator: Operator, case: Case, dtype: torch.dtype) -> float:
    """Largest difference to the oracle over the output and all gradients."""
    inputs = case.tensors(dtype)
    out, expected = (
        operator(*inputs, **case.options),
        oracle.sparse_attention(*inputs, **case.options),
    )
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    got = [out, *torch.autograd.grad(out, inputs, weights)]
    want = [expected, *torch.autograd.grad(expected, inputs, weights.double())]
    pairs = list(zip(got, want, strict=True))
    assert all(x.shape == y.shape and x.dtype == dtype for x, y in pairs)
    return float(torch.stack([(x - y).detach().abs().max() for x, y in pairs]).max())


@pytest.mark.slow
@given(case=cases())
def test_output_and_gradients_equal_the_loops(case: Case) -> None:
    assert largest_difference(module.sparse_attention, case, torch.float64) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 3, 10, 25])
def test_float32_stays_close_to_the_loops(n_features: int) -> None:
    case = Case(2, 2, n_features, 4, PAPER, seed=3)
    assert largest_difference(module.sparse_attention, case, torch.float32) < 2e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two groups", "one group", "more selected than groups"])
def test_shared_keys_equal_the_loops(kind: str) -> None:
    """Seven blocks of which several share a key, the last group short of some."""
    limit, n_selected = {"two groups": (20, 1), "one group": (1, 2)}.get(kind, (30, 5))
    options = {**PAPER, "max_exact_features": limit, "n_selected_blocks": n_selected}
    case = Case(1, 2, 63, 3, options, seed=4)
    assert largest_difference(module.sparse_attention, case, torch.float64) < 1e-10


@pytest.mark.slow
def test_the_first_table_with_shared_keys_equals_the_loops() -> None:
    case = Case(1, 1, 521, 2, {**PAPER, "window_size": 1, "n_selected_blocks": 1}, seed=3)
    assert largest_difference(module.sparse_attention, case, torch.float64) < 1e-10


@pytest.mark.parametrize(("n_features", "exact"), [(512, True), (513, True), (521, False)])
def test_the_papers_form_is_exact_up_to_512_features(n_features: int, exact: bool) -> None:
    inputs = Case(1, 1, n_features, 2, PAPER, seed=3).tensors(torch.float32)
    out = module.sparse_attention(*inputs, **PAPER)
    papers = module.sparse_attention(*inputs, **PAPER, max_exact_features=10**9)
    assert torch.equal(out, papers) == exact


def test_overlapping_blocks_share_no_keys() -> None:
    options = {**PAPER, "compress_stride": 5}
    inputs = Case(1, 1, 60, 2, options, seed=3).tensors(torch.float32)
    out = module.sparse_attention(*inputs, **options)
    assert torch.equal(out, module.sparse_attention(*inputs, **options, max_exact_features=1))


@pytest.mark.parametrize("max_exact_features", [10, 512])
def test_slicing_changes_nothing_but_memory(
    monkeypatch: pytest.MonkeyPatch, max_exact_features: int
) -> None:
    case = Case(3, 2, 27, 4, {**PAPER, "max_exact_features": max_exact_features}, seed=5)
    whole = module.sparse_attention(*case.tensors(torch.float64), **case.options)
    monkeypatch.setattr(slices, "SLICE_BUDGET", 1)
    sliced = module.sparse_attention(*case.tensors(torch.float64), **case.options)
    torch.testing.assert_close(sliced, whole, rtol=0, atol=1e-13)


def test_the_largest_tensor_grows_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_BUDGET", 2**18)  # else what fits in 64 MB is not cut
    largest = {}
    for n_features in (1024, 4096):
        seen: list[int] = []

        class Watch(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
                out = func(*args, **(kwargs or {}))
                if isinstance(out, Tensor):
                    seen.append(out.numel())  # noqa: B023
                return out

        inputs = Case(1, 1, n_features, 4, PAPER, seed=0).tensors(torch.float32)
        with Watch():
            module.sparse_attention(*inputs, **PAPER).sum().backward()
        largest[n_features] = max(seen)
    assert largest[4096] <= 4.2 * largest[1024]


def test_numerical_gradients() -> None:
    small = {**PAPER, "compress_block_size": 2, "compress_stride": 2, "selection_block_size": 2}
    for options in (
        {**PAPER, "compress_block_size": 4, "compress_stride": 2},
        {**small, "max_exact_features": 4},
    ):
        assert torch.autograd.gradcheck(
            lambda *x, options=options: module.sparse_attention(*x, **options),
            Case(1, 1, 7, 2, options, seed=2).tensors(torch.float64),
            fast_mode=True,
        )


def test_views_of_one_projection_are_accepted() -> None:
    projection = torch.randn(2, 27, 3, 2, 4, dtype=torch.float64)
    q, k, v = projection.permute(2, 0, 3, 1, 4)
    rest = Case(2, 2, 27, 4, PAPER, seed=9).tensors(torch.float64)[3:]
    copied = [x.contiguous() for x in (q, k, v)]
    assert torch.equal(
        module.sparse_attention(q, k, v, *rest, **PAPER),
        module.sparse_attention(*copied, *rest, **PAPER),
    )


@pytest.mark.parametrize(
    ("position", "name", "expected"),
    [
        (1, "k", "(1, 2, 25, 4)"),
        (2, "v", "(1, 2, 25, 4)"),
        (3, "k_cmp", "(1, 2, 3, 4)"),
        (4, "v_cmp", "(1, 2, 3, 4)"),
        (5, "gates", "(1, 2, 25, 3)"),
    ],
)
def test_wrong_shapes_are_refused(position: int, name: str, expected: str) -> None:
    inputs = Case(1, 2, 25, 4, PAPER, seed=0).tensors(torch.float32)
    inputs[position] = inputs[position][:, :, :2]
    message = re.escape(f"{name} must have the shape {expected}, got (1, 2, 2, ")
    with pytest.raises(InvalidOptionError, match=message):
        module.sparse_attention(*inputs, **PAPER)


def test_wrong_option_is_refused() -> None:
    tensors = Case(1, 1, 25, 2, PAPER, seed=0).tensors(torch.float32)
    with pytest.raises(InvalidOptionError, match=r"window_size must be >= 1, got 0\."):
        module.sparse_attention(*tensors, **{**PAPER, "window_size": 0})


MUTATIONS = {
    "window off by one": ("min(window_size, n_features", "min(window_size + 1, n_features"),
    "window one-sided": ("(key_at - query_at).abs() <= reach", "(key_at - query_at) <= 0"),
    "window padding not masked": (
        "seen = near & ((feature >= 0) &",
        "seen = near | ((feature >= 0) &",
    ),
    "wrong scale": ("q = q * q.shape[-1] ** -0.5", "q = q * q.shape[-1] ** -1.0"),
    "gates swapped": (
        "gates[..., 0:1] * window + gates[..., 1:2]",
        "gates[..., 1:2] * window + gates[..., 0:1]",
    ),
    "partial block not masked": (
        "masked_fill(~mask[selected].flatten(2)",
        "masked_fill(~mask[selected].flatten(2) & False",
    ),
    "selected values are keys": (
        "unfold_blocks(v, block_size, block_size)",
        "unfold_blocks(k, block_size, block_size)",
    ),
    "compressed values are keys": ("dim=-1) @ v_cmp", "dim=-1) @ k_cmp + 0 * v_cmp.sum()"),
    "keys not shared": (
        "k_cmp, v_cmp = group_means(k_cmp, group_size), group_means(v_cmp, group_size)",
        "group_size = 1",
    ),
    "shared values without gradient": (
        "group_means(v_cmp, group_size)",
        "group_means(v_cmp.detach(), group_size) + 0 * v_cmp.sum()",
    ),
    "limit not passed to the selection": (
        "        max_exact_features=max_exact_features,\n    )\n    group_size",
        "    )\n    group_size",
    ),
    "gate without gradient": ("gates[..., 2:3] * chosen", "gates[..., 2:3].detach() * chosen"),
}
"""Faults that the comparison with the oracle must notice: text to replace, replacement."""

CASES = [
    Case(1, 2, 27, 3, PAPER, seed=1),
    Case(
        1,
        1,
        23,
        3,
        {**PAPER, "compress_block_size": 5, "compress_stride": 2, "selection_block_size": 3},
        seed=2,
    ),
    Case(1, 1, 20, 3, {**PAPER, "selection_block_size": 5, "n_selected_blocks": 1}, seed=3),
    Case(1, 1, 67, 3, {**PAPER, "max_exact_features": 30, "n_selected_blocks": 1}, seed=4),
]


def passes(operator: Operator) -> bool:
    return all(largest_difference(operator, case, torch.float64) < 1e-10 for case in CASES)


@pytest.mark.slow
def test_the_original_passes_where_mutants_must_fail() -> None:
    assert passes(module.sparse_attention)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MUTATIONS))
def test_mutants_fail(name: str) -> None:
    assert not passes(mutated(module, *MUTATIONS[name]).sparse_attention)
