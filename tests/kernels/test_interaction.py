"""The compiled interaction module against the one composed in torch: values and gradients."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tabnsm import kernels
from tabnsm.kernels import library
from tabnsm.kernels.interaction import PARAMETERS
from tabnsm.nn import TabNSM

pytestmark = pytest.mark.skipif(kernels.available() == "none", reason="no compiled kernel")

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile it with")
SOURCE = Path(library.__file__).with_name("interaction.c")
CASES = {
    "default": {"n_features": 43},
    "one feature": {"n_features": 1},
    "eight features": {"n_features": 8},
    "fewer than a window": {"n_features": 4},
    "whole chunks and blocks": {"n_features": 130, "mixer_chunk_size": 13},
    "wide token": {"n_features": 75, "d_token": 64},
    "two heads": {"n_features": 33, "n_heads": 2},
    "narrow heads": {"n_features": 33, "d_token": 16},
    "heads of 3": {"n_features": 21, "d_token": 48, "n_heads": 16},
    "gates per feature": {"n_features": 27, "gates": "feature"},
    "no mixer": {"n_features": 27, "mixer": False},
    "overlapping blocks": {"n_features": 58, "compress_stride": 5},
    "all blocks differ": {
        "n_features": 58,
        "compress_stride": 3,
        "compress_block_size": 7,
        "selection_block_size": 4,
        "n_selected_blocks": 2,
    },
    "grouped keys": {"n_features": 131, "max_exact_features": 40},
    "small chunks": {"n_features": 11, "mixer_chunk_size": 4},
    "small blocks": {
        "n_features": 23,
        "compress_block_size": 3,
        "selection_block_size": 3,
        "n_selected_blocks": 2,
        "window_size": 2,
    },
}
PATHS = {"rows share vectors": 2**20, "one row at a time": 0}


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways through the kernel, whatever the width of the table."""
    take_path(request.param, monkeypatch)
    return request.param


def take_path(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package has a function of the same name as the module.
    module = sys.modules[kernels.interaction.__module__]
    monkeypatch.setattr(module, "MAX_NARROW", PATHS[path])


def module_of(case: str, n_rows: int = 5) -> tuple[TabNSM, Tensor]:
    """A model away from its start, where norms are 1 and shifts 0, and its tokens."""
    generator = torch.Generator().manual_seed(len(case))
    model = TabNSM(generator=generator, **CASES[case])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    shape = (n_rows, model.n_features, model.config.d_token)
    return model, torch.randn(shape, generator=generator, requires_grad=True)


def gradients_of(model: TabNSM, tokens: Tensor, out: Tensor) -> dict[str, Tensor]:
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    parameters = dict(model.interaction.named_parameters())
    found = torch.autograd.grad(out, [tokens, *parameters.values()], weights)
    return dict(zip(["tokens", *parameters], found, strict=True))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_rows", [5, 70])
def test_values_and_gradients(case: str, n_rows: int) -> None:
    check_values_and_gradients(case, n_rows)


def check_values_and_gradients(case: str, n_rows: int) -> None:
    model, tokens = module_of(case, n_rows)
    asim, n_pools = model.interaction, model.n_pools
    ours, theirs = asim.compiled(tokens, n_pools), asim.composed(tokens, n_pools)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    expected = gradients_of(model, tokens, theirs)
    for name, gradient in gradients_of(model, tokens, ours).items():
        # A shift of all keys changes no softmax: this gradient is nothing but rounding.
        scale = 1.0 if name == "attention.compress_k.mlp.2.bias" else expected[name].abs().max()
        error = (gradient - expected[name]).abs().max()
        # Rounding adds up over rows, in torch as well, also where their gradients cancel.
        bound = 1e-5 * (n_rows / 5) ** 0.5 * (1 + scale)
        assert error <= bound, f"{name}: {error} of {scale}"


def test_every_parameter_has_its_name() -> None:
    model, tokens = module_of("default")
    asked = {
        **model.interaction.attention.kernel_parameters(),
        **model.interaction.mixer.kernel_parameters(),
    }
    own = {"norm", "token_weight", "mixed_weight", "skip_weight"}
    assert own | set(asked) == set(PARAMETERS)
    assert len(PARAMETERS) == len(list(model.interaction.parameters()))
    assert model.interaction.runs_compiled(tokens)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("case", ["whole chunks and blocks", "default", "eight features"])
def test_the_bits_do_not_depend_on_threads_or_the_batch(case: str) -> None:
    model, tokens = module_of(case, n_rows=150)
    threads = torch.get_num_threads()
    results = []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            out = model.interaction(tokens)
            results.append((out, gradients_of(model, tokens, out)))
    finally:
        torch.set_num_threads(threads)
    for out, gradients in results[1:]:
        assert torch.equal(out, results[0][0])
        for name, gradient in gradients.items():
            assert torch.equal(gradient, results[0][1][name]), name
    with torch.no_grad():
        assert torch.equal(model.interaction(tokens[5:6]), results[0][0][5:6])
        order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(3))[:77]
        assert torch.equal(model.interaction(tokens[order]), results[0][0][order])


@pytest.mark.usefixtures("path")
def test_results_are_the_same_with_and_without_gradients() -> None:
    model, tokens = module_of("default")
    with torch.inference_mode():
        alone = model.interaction(tokens.detach())
    assert torch.equal(alone, model.interaction(tokens))


@pytest.mark.usefixtures("path")
def test_no_rows() -> None:
    model, tokens = module_of("default", n_rows=0)
    out = model.interaction(tokens)
    assert out.shape == (0, model.n_features)
    assert all(not gradient.any() for gradient in gradients_of(model, tokens, out).values())


@pytest.mark.usefixtures("path")
def test_views_and_not_a_number() -> None:
    model, tokens = module_of("default")
    turned = tokens.detach().transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(model.interaction(turned), model.interaction(tokens))
    broken = tokens.detach().clone()
    broken[2, 3] = float("nan")
    out = model.interaction(broken)
    assert out[2].isnan().any()
    assert not out[[0, 1, 3, 4]].isnan().any()


@pytest.mark.parametrize(
    "tokens",
    [
        torch.zeros(2, 5, 32, dtype=torch.float64),
        torch.zeros(2, 5, 24),
        torch.zeros(2, 5, 32, device="meta"),
    ],
    ids=["float64", "width of 24", "other device"],
)
def test_the_rest_is_left_to_torch(tokens: Tensor) -> None:
    assert not kernels.serves(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.serves(torch.zeros(2, 5, 32))


def compiled(folder: Path, changed: dict[str, str], *flags: str) -> ctypes.CDLL:
    """The kernel with other sources for some of its files; the rest lies beside the original."""
    for name, source in {SOURCE.name: SOURCE.read_text(), **changed}.items():
        (folder / name).write_text(source)
    command = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-pthread", f"-I{SOURCE.parent}", *flags]
    target = folder / "kernel.so"
    subprocess.run([*command, str(folder / "interaction.c"), "-o", str(target), "-lm"], check=True)
    return ctypes.CDLL(str(target))


def use(opened: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package has a function of the same name as the module.
    module = sys.modules[kernels.interaction.__module__]
    monkeypatch.setattr(module, "library", lambda d_head: opened)


def compare(*cases: str) -> None:
    for case in cases:
        check_values_and_gradients(case, n_rows=5)


@pytest.mark.slow
@needs_gcc
@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("lanes", [4, 16])
def test_other_lengths_of_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    # Those of the oldest and of the newest processors, which gcc can emulate on any.
    opened = compiled(tmp_path, {}, "-O1", "-Wno-psabi", f"-DLANES={lanes}")
    use(opened, monkeypatch)
    compare(*CASES)


MUTATIONS = {
    "interaction.c": [
        ("load(dy + j) * load(w[NORM].straight + j) * inverse -", "load(dy + j) * inverse -"),
        ("t = 1.0f / (1.0f + 0.2316418882f * size)", "t = 1.0f / (1.0f + 0.23f * size)"),
        ("return area + x * density;", "return area;"),
        ("s * (1.0f + h * (1.0f - s));", "s;"),
        ("- mean - load(xhat + j) * slope) * rate", "- load(xhat + j) * slope) * rate"),
        ("(load(x + i) > 0.0f), load(dx + i)", "(load(x + i) > 9.0f), load(dx + i)"),
        ("row->problem->n_gates * 3 + branch] +=", "row->problem->n_gates * 3 + branch] ="),
        ("if (feature >= row->n_features) break;", "if (feature > row->n_features) break;"),
        ("add_places(place, place, dx, d_head);", ""),
        ("d_tokens[j] += slope;", ";"),
        ("int64_t part = 1; part < n_parts; part++", "int64_t part = 2; part < n_parts; part++"),
        ("float sum = (1.0f + mixed) *", "float sum = mixed *"),
    ],
    "narrow.c": [
        ("load(dy + j * LANES) * scale[j] * inverse -", "load(dy + j * LANES) * inverse -"),
        ("add_vec(sums + (i * d_head + c) * LANES, dx);", ""),
        ("lane_sums(d_gates, n_gates, n, b->total[GATE_B]);", ""),
        ("features_of(b->f2 + g * n * b->step", "features_of(b->f2 + 0 * n * b->step"),
        ("add_vec(d_x + j * LANES, slope);", ";"),
        ("vec sum = (1.0f + mixed) *", "vec sum = mixed *"),
    ],
    "lane_attention.c": [
        ("store(d_gate + WINDOW * LANES, load(d_gate + WINDOW * LANES) + delta);", ""),
        ("mask |= (ivec)(*", "mask = (ivec)(*"),
        ("(load(dp + j * LANES) - delta) * scale", "load(dp + j * LANES) * scale"),
        ("end = least(query + reach, h->n", "end = least(query + reach - 1, h->n"),
    ],
    "lanes.c": [
        ("low[i] = place < half ? i :", "low[i] = place <= half ? i :"),
        ("mode == SET_RELU ? max_vec", "mode == SET ? max_vec"),
    ],
}


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [(name, old, new) for name, pairs in MUTATIONS.items() for old, new in pairs],
)
def test_a_mutated_kernel_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str
) -> None:
    source = SOURCE.with_name(name).read_text()
    assert source.count(old) == 1, "the mutation must change the source at one place"
    use(compiled(tmp_path, {name: source.replace(old, new)}, "-O0"), monkeypatch)
    take_path("one row at a time" if name == "interaction.c" else "rows share vectors", monkeypatch)
    with pytest.raises(AssertionError):
        compare("gates per feature", "whole chunks and blocks", "overlapping blocks", "default")
