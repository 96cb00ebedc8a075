"""The compiled piecewise-linear tokens against the formula in torch: values and gradients."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tabnsm import kernels
from tabnsm.functional.tokens import piecewise_tokens
from tabnsm.kernels.library import VARIANTS, _cpu_level

pytestmark = pytest.mark.skipif(kernels.available() == "none", reason="no compiled kernel")


def make(
    n_rows: int = 37, n_features: int = 30, n_bins: int = 5, d_token: int = 32
) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(n_features)
    features = torch.randperm(n_features, generator=generator)[: n_features // 2 + 1].sort().values
    ends = torch.randn(len(features), n_bins + 1, generator=generator).sort(1).values
    low = ends[:, :-1].clone()
    low[::3, n_bins // 2 + 1 :] = torch.inf
    n_own = torch.isfinite(low).sum(1)
    x = torch.randn(n_rows, len(features), generator=generator)
    x[0] = low[:, 0]
    return {
        "tokens": torch.randn(n_rows, n_features, d_token, generator=generator),
        "x": x,
        "features": features,
        "begin": torch.cat([torch.zeros(1, dtype=torch.int64), n_own.cumsum(0)]),
        "low": low,
        "width": ends.diff(dim=1),
        "slopes": torch.randn(int(n_own.sum()), d_token, generator=generator).requires_grad_(),
    }


def by_formula(
    tokens: Tensor,
    x: Tensor,
    features: Tensor,
    begin: Tensor,
    low: Tensor,
    width: Tensor,
    slopes: Tensor,
) -> Tensor:
    own = torch.nn.utils.rnn.pad_sequence(list(slopes.split(begin.diff().tolist())), True)
    n_bins = own.shape[1]
    encoded = piecewise_tokens(x, low[:, :n_bins], width[:, :n_bins], own)
    return tokens.index_add(1, features, encoded)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"n_rows": 1, "n_features": 1},
        {"n_bins": 1},
        {"n_bins": 16, "d_token": 64},
        {"n_rows": 300, "n_features": 90},
    ],
    ids=str,
)
def test_values_and_gradients(
    variant: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if VARIANTS.index(variant) > _cpu_level():
        pytest.skip("not for this processor")
    monkeypatch.setenv("TABNSM_KERNEL", variant)
    v = make(**sizes)
    expected = by_formula(**v)
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    (right,) = torch.autograd.grad(expected, v["slopes"], direction)
    straight = v["tokens"].clone().requires_grad_()
    out = kernels.add_piecewise_tokens(**(v | {"tokens": straight * 1.0}))
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    d_tokens, d_slopes = torch.autograd.grad(out, [straight, v["slopes"]], direction)
    assert torch.equal(d_tokens, direction)
    torch.testing.assert_close(d_slopes, right, rtol=1e-4, atol=1e-4)


def test_infinite_numbers_stay_within_their_bins() -> None:
    v = make(n_rows=2)
    v["x"][0], v["x"][1] = torch.inf, -torch.inf
    with torch.no_grad():
        expected = by_formula(**v)
        assert torch.isfinite(expected).all()
        torch.testing.assert_close(
            kernels.add_piecewise_tokens(**v), expected, rtol=1e-5, atol=1e-5
        )


def test_rows_and_threads_change_no_bit() -> None:
    v = make(n_rows=300, n_features=90)
    direction = torch.randn(v["tokens"].shape, generator=torch.Generator().manual_seed(1))

    def run(rows: slice) -> tuple[Tensor, Tensor]:
        part = v | {"tokens": v["tokens"][rows].clone(), "x": v["x"][rows]}
        out = kernels.add_piecewise_tokens(**part)
        return out.detach(), torch.autograd.grad(out, v["slopes"], direction[rows])[0]

    n_threads = torch.get_num_threads()
    everything, gradient = run(slice(None))
    torch.testing.assert_close(run(slice(7, 8))[0][0], everything[7], rtol=0, atol=0)
    try:
        torch.set_num_threads(3)
        out, again = run(slice(None))
    finally:
        torch.set_num_threads(n_threads)
    assert torch.equal(out, everything)
    assert torch.equal(again, gradient)


def test_two_python_threads_at_once() -> None:
    problems = [make(n_rows=300, n_features=60 + k) for k in range(6)]

    def run(v: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        out = kernels.add_piecewise_tokens(**(v | {"tokens": v["tokens"].clone()}))
        return out.detach(), torch.autograd.grad(out.sum(), v["slopes"])[0]

    expected = [run(v) for v in problems]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, problems))
    for one, other in zip(found, expected, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


FORK = """
import os
import torch
from tests.kernels.test_tokens import make
from tabnsm import kernels

torch.set_num_threads(2)
v = make(n_rows=60, n_features=90)
first, second = v["tokens"].clone(), v["tokens"].clone()
with torch.no_grad():
    before = kernels.add_piecewise_tokens(**(v | {"tokens": first})).numpy()
    # The child leaves torch's own threads alone, which do not survive a fork.
    child = os.fork()
    after = kernels.add_piecewise_tokens(**(v | {"tokens": second})).numpy()
same = (after == before).all()
if child == 0:
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
assert same and os.waitstatus_to_exitcode(status) == 0
print("same")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_it_works_after_a_fork_on_both_sides() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "same\n", done.stderr
