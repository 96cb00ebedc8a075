from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

import tabnsm.kernels.library as library
from tabnsm import kernels
from tabnsm.errors import InvalidOptionError
from tabnsm.functional import sparse_attention as functional
from tabnsm.functional.block_selection import select_blocks
from tabnsm.functional.blocks import group_means
from tests.oracles import attention as oracle
from tests.oracles.attention_cases import Case, cases

PAPER = {
    "window_size": 6,
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
}
SOURCE = Path(library.__file__).with_name("sparse_attention.c")


RUNNABLE = library.VARIANTS[: library._cpu_level() + 1]


@pytest.fixture(params=RUNNABLE)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force each compiled variant that this processor runs, one after the other."""
    name: str = request.param
    assert library._open(name) is not None, f"{name} was not built"
    monkeypatch.setenv("TABNSM_KERNEL", name)
    return name


def step(operator: object, inputs: list[Tensor], options: dict[str, int]) -> list[Tensor]:
    """Output and all gradients."""
    out = operator(*inputs, **options)  # type: ignore[operator]
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    return [out.detach(), *torch.autograd.grad(out, inputs, weights.to(out))]


def assert_close(got: list[Tensor], want: list[Tensor]) -> None:
    for x, y in zip(got, want, strict=True):
        assert x.dtype == torch.float32
        assert x.shape == y.shape
        scale = max(1.0, float(y.abs().max()))
        torch.testing.assert_close(x.double(), y.double(), rtol=0, atol=1e-5 * scale)


@pytest.mark.slow
@given(case=cases(max_features=70, max_d_head=40))
@settings(max_examples=30)
def test_values_and_gradients_equal_the_torch_path(variant: str, case: Case) -> None:
    inputs = case.tensors(torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    got = step(kernels.sparse_attention, inputs, case.options)
    assert_close(got, step(functional.sparse_attention, exact, case.options))


@pytest.mark.slow
@given(case=cases(max_features=15))
@settings(max_examples=15)
def test_values_and_gradients_equal_the_loops(variant: str, case: Case) -> None:
    inputs = case.tensors(torch.float32)
    got = step(kernels.sparse_attention, inputs, case.options)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    assert_close(got, step(oracle.sparse_attention, exact, case.options))


@pytest.mark.slow
@pytest.mark.parametrize("d_head", [4, 8, 16, 20])
@pytest.mark.parametrize("n_features", [407, 521, 1207])
def test_many_features(variant: str, n_features: int, d_head: int) -> None:
    inputs = Case(2, 2, n_features, d_head, PAPER, seed=4).tensors(torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    got = step(kernels.sparse_attention, inputs, PAPER)
    assert_close(got, step(functional.sparse_attention, exact, PAPER))


def selected_by_kernel(inputs: list[Tensor], options: dict[str, int]) -> Tensor:
    out = kernels.sparse_attention(*inputs, **options)
    assert out.grad_fn is not None
    saved: Tensor = out.grad_fn.saved_tensors[1]  # type: ignore[attr-defined]
    return saved.long()


@pytest.mark.slow
def test_sixteen_thousand_features(variant: str) -> None:
    inputs = Case(1, 1, 16384, 8, PAPER, seed=4).tensors(torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    got = step(kernels.sparse_attention, inputs, PAPER)
    assert_close(got, step(functional.sparse_attention, exact, PAPER))


@pytest.mark.parametrize(("n_features", "exact"), [(512, True), (513, True), (521, False)])
def test_the_papers_form_is_exact_up_to_512_features(
    variant: str, n_features: int, exact: bool
) -> None:
    inputs = Case(1, 1, n_features, 8, PAPER, seed=3).tensors(torch.float32)
    got = step(kernels.sparse_attention, inputs, PAPER)
    papers = step(kernels.sparse_attention, inputs, {**PAPER, "max_exact_features": 10**9})
    assert all(torch.equal(x, y) == exact for x, y in zip(got, papers, strict=True))


@pytest.mark.parametrize("n_best", [1, 2, 3, 4, 1000])
@pytest.mark.parametrize("max_exact_features", [512, 140])
def test_selected_blocks_are_the_same_but_for_nearly_equal_logits(
    variant: str, max_exact_features: int, n_best: int
) -> None:
    n_features = 507
    options = {**PAPER, "n_selected_blocks": n_best, "max_exact_features": max_exact_features}
    inputs = Case(2, 2, n_features, 8, options, seed=6).tensors(torch.float32)
    got = selected_by_kernel(inputs, options)
    sizes = {name: x for name, x in options.items() if name != "window_size"}
    q, k_cmp = inputs[0].detach().double(), inputs[3].detach().double()
    want = select_blocks(q, k_cmp, n_features=n_features, **sizes)
    logits = q @ k_cmp.transpose(-1, -2)
    gap = (logits.gather(-1, got) - logits.gather(-1, want)).abs().amax(-1)
    group_size = {512: 1, 140: 4}[max_exact_features]
    means = group_means(k_cmp, group_size)
    of_groups = (q @ means.transpose(-1, -2)).sort(dim=-1, descending=True).values
    last = min(n_best, means.shape[2] - 1)
    nearly_equal_groups = of_groups[..., last - 1] - of_groups[..., last] < 1e-6
    assert ((gap < 1e-6) | nearly_equal_groups).all()
    assert float((got == want).double().mean()) > 0.999


@pytest.mark.parametrize("max_exact_features", [512, 110, 60])  # groups of 1, 2 and 4 blocks
def test_exact_ties_go_to_the_lower_index(variant: str, max_exact_features: int) -> None:
    options = {**PAPER, "max_exact_features": max_exact_features}
    inputs = [x.detach().sign() for x in Case(1, 2, 205, 3, options, seed=8).tensors(torch.float32)]
    inputs[0].requires_grad_()
    sizes = {name: x for name, x in options.items() if name != "window_size"}
    want = select_blocks(inputs[0], inputs[3], n_features=205, **sizes)
    assert torch.equal(selected_by_kernel(inputs, options), want)


def test_views_of_one_projection_are_read_in_place(variant: str) -> None:
    generator = torch.Generator().manual_seed(0)
    projection = torch.randn(3, 27, 3, 2, 8, generator=generator)
    rest = Case(3, 2, 27, 8, PAPER, seed=9).tensors(torch.float32)[3:]
    rest[2] = rest[2].detach().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).requires_grad_()
    views = [x.detach().requires_grad_() for x in projection.permute(2, 0, 3, 1, 4)]
    copies = [x.detach().clone(memory_format=torch.contiguous_format) for x in (*views, *rest)]
    got = step(kernels.sparse_attention, [*views, *rest], PAPER)
    want = step(kernels.sparse_attention, [x.requires_grad_() for x in copies], PAPER)
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    assert got[0].transpose(1, 2).is_contiguous()
    assert got[1].transpose(1, 2).is_contiguous()


def test_any_strides_are_accepted(variant: str) -> None:
    inputs = Case(2, 3, 27, 6, PAPER, seed=9).tensors(torch.float32)
    turned = [x.detach().transpose(-1, -2).contiguous().transpose(-1, -2) for x in inputs]
    got = step(kernels.sparse_attention, [x.requires_grad_() for x in turned], PAPER)
    want = step(kernels.sparse_attention, inputs, PAPER)
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    # Keys and gates shared by all heads, without a copy per head.
    shared = [x[:, :1].expand_as(x) if i in (1, 5) else x for i, x in enumerate(inputs)]
    copied = [x.detach().clone(memory_format=torch.contiguous_format) for x in shared]
    got = step(kernels.sparse_attention, [x.detach().requires_grad_() for x in shared], PAPER)
    want = step(kernels.sparse_attention, [x.requires_grad_() for x in copied], PAPER)
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    (gradient,) = torch.autograd.grad(kernels.sparse_attention(*inputs, **PAPER).sum(), inputs[0])
    assert torch.isfinite(gradient).all()


def test_inputs_that_overlap_themselves_have_the_right_gradient(variant: str) -> None:
    # Features of a sliding window: torch lays out a tensor like it with the last axis outside.
    options = {**PAPER, "compress_block_size": 2, "compress_stride": 2, "selection_block_size": 2}
    q, _, v, *rest = Case(1, 1, 2, 4, options, seed=5).tensors(torch.float32)
    signal = torch.linspace(-1, 1, 5, requires_grad=True)
    gradients = []
    for copy in (False, True):
        k = signal.unfold(0, 4, 1)[None, None]
        out = kernels.sparse_attention(q, k.clone() if copy else k, v, *rest, **options)
        weights = torch.arange(8.0).view_as(out)
        gradients.append(torch.autograd.grad(out, [q, signal, v], weights))
    for x, y in zip(*gradients, strict=True):
        torch.testing.assert_close(x, y)


def test_threads_and_neighbours_change_no_bit(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**PAPER, "max_exact_features": 50}
    inputs = Case(5, 2, 107, 8, options, seed=3).tensors(torch.float32)
    n_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = step(kernels.sparse_attention, inputs, options)
        torch.set_num_threads(2)
        two = step(kernels.sparse_attention, inputs, options)
        monkeypatch.setattr(kernels.attention, "thread_pool", lambda: None)
        own = step(kernels.sparse_attention, inputs, options)
    finally:
        torch.set_num_threads(n_threads)
    assert all(torch.equal(x, y) for x, y in zip(one, two, strict=True))
    assert all(torch.equal(x, y) for x, y in zip(one, own, strict=True))
    alone = kernels.sparse_attention(*(x[3:4] for x in inputs), **options)
    assert torch.equal(alone[0], one[0][3])


def test_two_python_threads_at_once(variant: str) -> None:
    problems = [Case(4, 2, 207, 8, PAPER, seed=s).tensors(torch.float32) for s in range(8)]
    expected = [step(kernels.sparse_attention, inputs, PAPER) for inputs in problems]
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda x: step(kernels.sparse_attention, x, PAPER), problems))
    for one, other in zip(got, expected, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def test_without_gradients_the_values_are_the_same(variant: str) -> None:
    inputs = Case(2, 2, 57, 8, PAPER, seed=3).tensors(torch.float32)
    with torch.no_grad():
        out = kernels.sparse_attention(*inputs, **PAPER)
    assert not out.requires_grad
    assert torch.equal(out, kernels.sparse_attention(*inputs, **PAPER).detach())


def test_not_a_number_is_not_hidden(variant: str) -> None:
    inputs = [x.detach() for x in Case(2, 1, 57, 8, PAPER, seed=3).tensors(torch.float32)]
    clean = kernels.sparse_attention(*inputs, **PAPER)
    inputs[0][0, 0, 5, 2] = torch.nan
    out = kernels.sparse_attention(*inputs, **PAPER)
    assert torch.isnan(out[0, 0, 5]).all()
    assert torch.equal(out[1], clean[1])


def test_large_logits_do_not_overflow(variant: str) -> None:
    inputs = Case(1, 1, 57, 8, PAPER, seed=3).tensors(torch.float32)
    inputs = [(x * 100 if i < 5 else x).detach().requires_grad_() for i, x in enumerate(inputs)]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    got = kernels.sparse_attention(*inputs, **PAPER).detach()
    want = functional.sparse_attention(*exact, **PAPER).detach()
    torch.testing.assert_close(got.double(), want, rtol=0, atol=1e-2)


def test_the_default_type_of_torch_does_not_matter(variant: str) -> None:
    inputs = Case(1, 2, 25, 4, PAPER, seed=0).tensors(torch.float32)
    expected = step(kernels.sparse_attention, inputs, PAPER)
    torch.set_default_dtype(torch.float64)
    try:
        got = kernels.sparse_attention(*inputs, **PAPER)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(got, expected[0])


def test_other_types_take_the_torch_path() -> None:
    inputs = Case(1, 2, 25, 4, PAPER, seed=0).tensors(torch.float64)
    out = kernels.sparse_attention(*inputs, **PAPER)
    assert torch.equal(out, functional.sparse_attention(*inputs, **PAPER))


def test_wrong_options_are_refused(variant: str) -> None:
    inputs = Case(1, 1, 25, 4, PAPER, seed=0).tensors(torch.float32)
    with pytest.raises(InvalidOptionError, match=r"window_size must be >= 1, got 0\."):
        kernels.sparse_attention(*inputs, **{**PAPER, "window_size": 0})
    inputs[3] = inputs[3][:, :, :2]
    with pytest.raises(InvalidOptionError, match=r"k_cmp must have the shape \(1, 1, 3, 4\)"):
        kernels.sparse_attention(*inputs, **PAPER)


def compiled(source: Path, folder: Path, *flags: str) -> ctypes.CDLL:
    target = folder / "kernel.so"
    flags = ("-std=gnu11", "-shared", "-fPIC", "-pthread", *flags)
    subprocess.run(["gcc", *flags, str(source), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


UNEVEN = {**PAPER, "compress_block_size": 4, "compress_stride": 3, "selection_block_size": 5}
GROUPED = {**PAPER, "compress_block_size": 2, "compress_stride": 2, "selection_block_size": 2}
GROUPED |= {"max_exact_features": 12}  # groups of 4 blocks, at 45 features the last one of 3


@functools.cache
def cases_for_mutants() -> list[tuple[list[Tensor], dict[str, int], list[Tensor]]]:
    """Inputs, options and what the loops give; the last with logits that are equal."""
    made = []
    for n_features, options in ((47, PAPER), (47, UNEVEN), (45, GROUPED), (48, GROUPED)):
        inputs = Case(1, 1, n_features, 4, options, seed=2).tensors(torch.float32)
        if n_features == 48:
            inputs = [x.detach().sign().requires_grad_() for x in inputs]
        exact = [x.detach().double().requires_grad_() for x in inputs]
        made.append((inputs, options, step(oracle.sparse_attention, exact, options)))
    return made


def compare_with_loops() -> None:
    for inputs, options, expected in cases_for_mutants():
        assert_close(step(kernels.sparse_attention, inputs, options), expected)


@pytest.mark.slow
def test_the_original_passes_where_mutants_must_fail(variant: str) -> None:
    compare_with_loops()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile a mutant with")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("last = from + n_queries + problem->window_size;", "last = from + n_queries;"),
        ("(ivec)(lanes <= at + reach)", "(ivec)(lanes < at + reach)"),
        ("ivec better = (ivec)(x > best[t]);", "ivec better = (ivec)(x < best[t]);"),
        ("left >= shape.size ? shape.size : left;", "left >= shape.size ? shape.size : 1;"),
        ("weight[i] = gates[COMPRESSED][i] *", "weight[i] = gates[WINDOW][i] *"),
        ("sum += *share++ * load(p + *overlap++ * TILE);", "sum += load(p + *overlap++ * TILE);"),
        ("float delta = sum_lanes(sum) * inverse;", "float delta = sum_lanes(sum);"),
        ("pair->scale = 1.0f / __builtin_sqrtf((float)d_head);", "pair->scale = 1.0f;"),
        ("left < problem->group_size ? left :", "left < problem->group_size ? 1 :"),
        ("rows[d] /= (float)n;", "rows[d] /= (float)problem->group_size;"),
        ("row[d] = rows[d] / (float)n;", "row[d] = rows[d];"),
        ("groups[j] < groups[j - 1]; j--", "groups[j] > groups[j - 1]; j--"),
        ("* size + *at % size;", "* size;"),
        ("n_networks = pair->n_ranked * size;", "n_networks = size;"),
    ],
)
def test_a_mutated_kernel_fails_the_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    source = SOURCE.read_text()
    assert source.count(old) == 1, "the mutation must change the source at one place"
    (tmp_path / "mutant.c").write_text(source.replace(old, new))
    opened = compiled(tmp_path / "mutant.c", tmp_path, "-O0")
    monkeypatch.setattr(kernels.attention, "library", lambda d_head: opened)
    with pytest.raises(AssertionError):
        compare_with_loops()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile the wide variant with")
def test_vectors_of_sixteen_are_right_on_any_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The AVX-512 code differs from the rest by the length of its vectors, which gcc can emulate.
    opened = compiled(SOURCE, tmp_path, "-O1", "-Wno-psabi", "-DLANES=16")
    monkeypatch.setattr(kernels.attention, "library", lambda d_head: opened)
    for d_head in (3, 8, 16, 33):
        for n_features in (1, 31, 107, 1207):
            inputs = Case(1, 2, n_features, d_head, PAPER, seed=2).tensors(torch.float32)
            exact = [x.detach().double().requires_grad_() for x in inputs]
            got = step(kernels.sparse_attention, inputs, PAPER)
            assert_close(got, step(functional.sparse_attention, exact, PAPER))
