"""The compiled head against the one composed in torch: values and gradients."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor

from tabnsm import kernels
from tabnsm.kernels.head import PARAMETERS
from tabnsm.nn import MultiStageHead

pytestmark = pytest.mark.skipif(
    kernels.available() in ("none", "baseline"), reason="torch is faster, or no compiled kernel"
)

CASES = {
    "one feature": {"n_features": 1, "head_width": 8},
    "odd widths": {"n_features": 7, "head_width": 13},
    "two targets": {"n_features": 9, "head_width": 32, "n_targets": 2},
    "decoder of two factors": {"n_features": 90, "head_width": 16},
    "default width": {"n_features": 72},
}


def head_of(case: str, n_rows: int = 37) -> tuple[MultiStageHead, Tensor]:
    generator = torch.Generator().manual_seed(len(case))
    head = MultiStageHead(generator=generator, **CASES[case])
    shape = (n_rows, CASES[case]["n_features"])
    return head, torch.randn(shape, generator=generator, requires_grad=True)


def gradients_of(head: MultiStageHead, features: Tensor, out: Tensor) -> dict[str, Tensor]:
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    parameters = dict(head.named_parameters())
    found = torch.autograd.grad(out, [features, *parameters.values()], weights)
    return dict(zip(["features", *parameters], found, strict=True))


@pytest.mark.parametrize("n_rows", [1, 37, 250])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: str, n_rows: int) -> None:
    head, features = head_of(case, n_rows)
    ours, theirs = head(features), head.predict(features)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    expected = gradients_of(head, features, theirs)
    for name, gradient in gradients_of(head, features, ours).items():
        scale = 1 + expected[name].abs().max()
        assert (gradient - expected[name]).abs().max() <= 1e-5 * scale, name


def test_every_parameter_has_its_name() -> None:
    for case, missing in (("two targets", {"dec1_factor"}), ("decoder of two factors", set())):
        head, features = head_of(case)
        assert set(head.kernel_parameters()) == set(PARAMETERS) - missing
        assert len(head.kernel_parameters()) == len(list(head.parameters()))
        assert kernels.serves_head(features)


@pytest.mark.parametrize("case", CASES)
def test_the_bits_do_not_depend_on_threads_or_the_batch(case: str) -> None:
    head, features = head_of(case, n_rows=300)
    threads = torch.get_num_threads()
    results = []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            out = head(features)
            results.append((out, gradients_of(head, features, out)))
    finally:
        torch.set_num_threads(threads)
    for out, gradients in results[1:]:
        assert torch.equal(out, results[0][0])
        for name, gradient in gradients.items():
            assert torch.equal(gradient, results[0][1][name]), name
    order = torch.randperm(300, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        for rows in (order, order[:1], order[:77]):
            assert torch.equal(head(features[rows]), results[0][0][rows])


def test_the_graph_can_be_used_twice() -> None:
    head, features = head_of("odd widths")
    out = head(features).sum()
    first = torch.autograd.grad(out, features, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(out, features)[0], first)


def test_many_rows_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    head, features = head_of("odd widths", n_rows=50)
    # The package has a function of the same name as the module.
    monkeypatch.setattr(sys.modules[kernels.head.__module__], "MAX_ROWS", 20)
    with torch.no_grad():
        in_parts = head(features)
    assert torch.equal(in_parts, head(features))
    assert head(features[:0]).shape == (0, 1)
    head(features[:0]).sum().backward()
    assert all(not weight.grad.any() for weight in head.parameters())


def test_views_and_not_a_number() -> None:
    head, features = head_of("odd widths")
    turned = features.detach().t().contiguous().t()
    assert torch.equal(head(turned), head(features))
    broken = features.detach().clone()
    broken[2, 3] = float("nan")
    out = head(broken)
    assert out[2].isnan().all()
    assert not out[[0, 1, 3]].isnan().any()


@pytest.mark.parametrize(
    "features",
    [torch.zeros(2, 5, dtype=torch.float64), torch.zeros(2, 5, device="meta")],
    ids=["float64", "other device"],
)
def test_the_rest_is_left_to_torch(features: Tensor) -> None:
    assert not kernels.serves_head(features)
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.serves_head(torch.zeros(2, 5))
