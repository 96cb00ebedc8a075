from __future__ import annotations

import ctypes
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tabnsm import kernels
from tabnsm.errors import InvalidOptionError, TabNSMWarning
from tabnsm.functional import sparse_attention as functional
from tabnsm.kernels import library
from tests.kernels.test_attention import PAPER
from tests.oracles.attention_cases import Case


@pytest.fixture
def fresh() -> Iterator[None]:
    """Forget which libraries were opened, before and after."""
    caches = (library._open, library._cpu_level, library._best, library._warn_missing)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_kernel_was_built_and_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABNSM_KERNEL", raising=False)
    assert kernels.available() in ("avx512", "avx2", "baseline")
    assert isinstance(library.library(16), ctypes.CDLL)


@pytest.mark.usefixtures("fresh")
def test_without_libraries_the_torch_path_is_used_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TABNSM_KERNEL", raising=False)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    tensors = Case(1, 2, 25, 4, PAPER, seed=0).tensors(torch.float32)
    assert kernels.available() == "none"
    with pytest.warns(TabNSMWarning, match=r"kernel of tabnsm is missing.*C compiler") as caught:
        out = kernels.sparse_attention(*tensors, **PAPER)
    assert caught[0].filename == __file__
    assert torch.equal(out, functional.sparse_attention(*tensors, **PAPER))
    kernels.sparse_attention(*tensors, **PAPER)  # a second warning would be an error


def test_none_forces_the_torch_path_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABNSM_KERNEL", "none")
    tensors = Case(1, 2, 25, 4, PAPER, seed=0).tensors(torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = kernels.sparse_attention(*tensors, **PAPER)
    assert kernels.available() == "none"
    assert torch.equal(out, functional.sparse_attention(*tensors, **PAPER))


def test_an_unknown_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABNSM_KERNEL", "sse9")
    with pytest.raises(InvalidOptionError, match=r"avx512, avx2, baseline or none, got 'sse9'\."):
        kernels.available()


@pytest.mark.usefixtures("fresh")
def test_a_kernel_that_the_processor_cannot_run_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    monkeypatch.setenv("TABNSM_KERNEL", "baseline")
    with pytest.raises(InvalidOptionError, match=r"built and that this processor runs, got 'bas"):
        kernels.available()


FORK = """
import os, torch
from tabnsm import kernels
torch.manual_seed(0)
q, k, v = torch.randn(3, 8, 4, 60, 8)
k_cmp, v_cmp = torch.randn(2, 8, 4, 6, 8)
gates = torch.rand(8, 4, 60, 3)
q.requires_grad_()
def step():
    out = kernels.sparse_attention(q, k, v, k_cmp, v_cmp, gates, window_size=6,
        compress_block_size=10, compress_stride=10, selection_block_size=10, n_selected_blocks=3)
    (gradient,) = torch.autograd.grad(out, q, torch.ones_like(out))
    return torch.stack([out.detach(), gradient])
torch.set_num_threads(2)
before = step()
# The child leaves torch's own threads alone, which do not survive a fork.
child = os.fork()
if child == 0:
    torch.set_grad_enabled(False)
    out = kernels.sparse_attention(q, k, v, k_cmp, v_cmp, gates, window_size=6,
        compress_block_size=10, compress_stride=10, selection_block_size=10, n_selected_blocks=3)
    os._exit(0 if torch.equal(out, before[0]) else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert torch.equal(step(), before)
print("same")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_the_kernel_works_after_a_fork_on_both_sides() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "same\n", done.stderr
