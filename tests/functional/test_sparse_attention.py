from __future__ import annotations

import re
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from tabnsm.errors import InvalidOptionError
from tabnsm.functional import sparse_attention as module
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


@given(case=cases())
def test_output_and_gradients_equal_the_loops(case: Case) -> None:
    assert largest_difference(module.sparse_attention, case, torch.float64) < 1e-10


@pytest.mark.parametrize("n_features", [1, 3, 10, 25])
def test_float32_stays_close_to_the_loops(n_features: int) -> None:
    case = Case(2, 2, n_features, 4, PAPER, seed=3)
    assert largest_difference(module.sparse_attention, case, torch.float32) < 2e-5


@given(case=cases())
def test_selected_blocks_equal_the_loops(case: Case) -> None:
    q, _, _, k_cmp, *_ = case.tensors(torch.float64)
    options = {name: x for name, x in case.options.items() if name != "window_size"}
    got = module.select_blocks(q, k_cmp, n_features=case.n_features, **options)
    assert torch.equal(got, oracle.select_blocks(q, k_cmp, n_features=case.n_features, **options))


@given(case=cases())
@settings(max_examples=20)
def test_exact_ties_go_to_the_lower_index(case: Case) -> None:
    # Small integers make logits equal to the bit in any order of summation.
    q, _, _, k_cmp, *_ = (x.detach().sign() for x in case.tensors(torch.float32))
    size = case.options["compress_block_size"]
    options = {
        "n_features": case.n_features,
        "compress_block_size": size,
        "compress_stride": size,
        "selection_block_size": size,
        "n_selected_blocks": case.options["n_selected_blocks"],
    }
    k_cmp = k_cmp[:, :, : -(-case.n_features // size)]
    got = module.select_blocks(q, k_cmp, **options)
    assert torch.equal(got, oracle.select_blocks(q, k_cmp, **options))


def test_selection_blocks_inside_one_compressed_block_tie_to_the_bit() -> None:
    q = torch.randn(1, 1, 61, 8, generator=torch.Generator().manual_seed(0))
    k_cmp = torch.randn(1, 1, 7, 8, generator=torch.Generator().manual_seed(1))
    chosen = module.select_blocks(
        q,
        k_cmp,
        n_features=61,
        compress_block_size=10,
        compress_stride=10,
        selection_block_size=1,
        n_selected_blocks=10,
    )
    tenth = chosen // 10
    full = tenth[..., 0] != 6  # the seventh block holds one feature only
    assert torch.equal(chosen[full], tenth[full][:, :1] * 10 + torch.arange(10))


def test_slicing_changes_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(3, 2, 27, 4, PAPER, seed=5)
    whole = module.sparse_attention(*case.tensors(torch.float64), **PAPER)
    monkeypatch.setattr(module, "SLICE_BUDGET", 1)
    sliced = module.sparse_attention(*case.tensors(torch.float64), **PAPER)
    torch.testing.assert_close(sliced, whole, rtol=0, atol=1e-13)


def test_no_tensor_of_the_size_of_all_pairs_is_made() -> None:
    n_features = 4096
    case = Case(1, 1, n_features, 4, PAPER, seed=0)
    seen: list[int] = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor):
                seen.append(out.numel())
            return out

    with Watch():
        module.sparse_attention(*case.tensors(torch.float32), **PAPER).sum().backward()
    assert max(seen) < n_features**2 / 8


def test_numerical_gradients() -> None:
    case = Case(1, 1, 7, 2, {**PAPER, "compress_block_size": 4, "compress_stride": 2}, seed=2)
    assert torch.autograd.gradcheck(
        lambda *x: module.sparse_attention(*x, **case.options),
        case.tensors(torch.float64),
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
    "worst blocks chosen": ("scores.argmax(dim=-1", "scores.neg().argmax(dim=-1"),
    "last of equals chosen": (
        "best.append(scores.argmax(dim=-1, keepdim=True))",
        "best.append(scores.shape[-1] - 1 - scores.flip(-1).argmax(dim=-1, keepdim=True))",
    ),
    "one block too few": (
        "n_best = min(n_selected_blocks,",
        "n_best = min(max(1, n_selected_blocks - 1),",
    ),
    "overlap ignored": ("* share[:, slot]", "* (share[:, slot] > 0)"),
    "mass not softmax": ("mass = torch.softmax(", "mass = torch.log_softmax("),
    "selected values are keys": (
        "unfold_blocks(v, block_size, block_size)",
        "unfold_blocks(k, block_size, block_size)",
    ),
    "compressed values are keys": ("dim=-1) @ v_cmp", "dim=-1) @ k_cmp + 0 * v_cmp.sum()"),
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
]


def mutant(old: str, new: str) -> types.ModuleType:
    """The functional module with one fault."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"the mutation does not apply to exactly one place: {old}"
    mutated = types.ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), mutated.__dict__)
    return mutated


def passes(operator: Operator) -> bool:
    return all(largest_difference(operator, case, torch.float64) < 1e-10 for case in CASES)


def test_the_original_passes_where_mutants_must_fail() -> None:
    assert passes(module.sparse_attention)


@pytest.mark.parametrize("name", list(MUTATIONS))
def test_mutants_fail(name: str) -> None:
    assert not passes(mutant(*MUTATIONS[name]).sparse_attention)
