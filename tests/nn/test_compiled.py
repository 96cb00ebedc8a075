"""Passes without autograd against those with it: the same bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tabnsm import kernels
from tabnsm.nn import TabNSM
from tabnsm.nn.compiled import CompiledPass

compiled = pytest.mark.skipif(
    kernels.available() in ("none", "baseline"), reason="no compiled head"
)

CASES: dict[str, dict[str, Any]] = {
    "numbers": {"n_features": 12},
    "categories": {"n_features": 3, "category_sizes": [0, 4, 0], "d_token": 16},
    "categories alone": {"n_features": 2, "category_sizes": [3, 4]},
    "two targets without a mixer": {"n_features": 7, "n_targets": 2, "mixer": False},
    "wide": {"n_features": 150, "head_width": 32},
    "keys that are shared": {"n_features": 60, "max_exact_features": 20, "head_width": 32},
}


def network_of(case: str) -> TabNSM:
    options = dict(CASES[case])
    if case == "numbers":
        low = torch.linspace(-2.0, 1.5, 8).expand(12, 8)
        options["bins"] = torch.stack([low, torch.full((12, 8), 0.5)], dim=1).contiguous()
    return TabNSM(generator=torch.Generator().manual_seed(len(case)), **options)


def rows(network: TabNSM, count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(count)
    x = torch.randn(count, network.n_features, generator=generator)
    d_out = torch.randn(count, network.n_targets, generator=generator)
    codes = network.tokenizer.categorical
    x[:, codes] = torch.randint(0, 3, (count, len(codes)), generator=generator).float()
    return x, d_out


@compiled
@pytest.mark.parametrize("case", CASES)
def test_predictions_and_gradients_have_the_bits_of_autograd(case: str) -> None:
    network = network_of(case)
    assert CompiledPass.serves(network)
    passes = CompiledPass(network)
    for count in (26, 5, 1, 26):
        x, d_out = rows(network, count)
        network.zero_grad()
        theirs = network(x)
        theirs.backward(d_out)
        expected = {name: weight.grad.clone() for name, weight in network.named_parameters()}
        assert torch.equal(passes.forward(x), theirs)
        passes.backward(d_out)  # replaces what is there
        for name, weight in network.named_parameters():
            assert torch.equal(weight.grad, expected[name]), name


@compiled
def test_weights_that_change_in_place_are_followed() -> None:
    network = network_of("numbers")
    passes, (x, d_out) = CompiledPass(network), rows(network, 9)
    before = passes.forward(x)
    network.load_state_dict(network_of("numbers").state_dict())
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(0.9)
    after = passes.forward(x)
    assert not torch.equal(before, after)
    assert torch.equal(after, network(x))
    passes.backward(d_out)
    assert network.head.fusion[0].weight.grad.any()


def test_what_is_left_to_autograd() -> None:
    assert not CompiledPass.serves(TabNSM(n_features=4, d_token=32, attention="full"))
    assert not CompiledPass.serves(TabNSM(n_features=4, d_token=8))
    assert not CompiledPass.serves(TabNSM(n_features=4).to("meta"))
    assert not CompiledPass.serves(TabNSM(n_features=4).double())
    assert not CompiledPass.serves(torch.nn.Linear(4, 1))
