"""The sparse attention module in tables of any width: shared keys, gradients, the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tabnsm.errors import InvalidOptionError
from tabnsm.functional.blocks import n_blocks
from tabnsm.nn import ArchitectureConfig
from tabnsm.nn.attention import SparseAttention

WIDE = 607  # 61 compressed blocks, of which two share a key


def make(**options: int) -> SparseAttention:
    config = ArchitectureConfig(d_token=16, n_heads=2, **options)
    return SparseAttention(config, torch.Generator().manual_seed(0))


def tokens(n_features: int, n_rows: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n_rows, n_features, 16, generator=generator)


def test_the_limit_on_keys_adds_no_weights_and_changes_none() -> None:
    one, other = make().state_dict(), make(max_exact_features=20).state_dict()
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("n_features", "exact"), [(512, True), (WIDE, False)])
def test_the_papers_form_up_to_512_features(n_features: int, exact: bool) -> None:
    x = tokens(n_features)
    assert torch.equal(make()(x), make(max_exact_features=10**6)(x)) == exact


def test_a_lower_limit_reaches_narrow_tables() -> None:
    x = tokens(45)
    assert not torch.equal(make()(x), make(max_exact_features=20)(x))


def test_both_paths_agree_on_wide_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for kernel in (None, "none"):
        if kernel is not None:
            monkeypatch.setenv("TABNSM_KERNEL", kernel)
        attention, x = make(), tokens(WIDE).requires_grad_()
        attended = attention(x)
        attended.square().sum().backward()
        gradients = [p.grad for p in attention.parameters()]
        assert all(g is not None for g in gradients)
        results.append([attended.detach(), x.grad, *gradients])
    for got, want in zip(*results, strict=True):
        assert got is not None
        assert want is not None
        scale = max(1.0, float(want.abs().max()))
        torch.testing.assert_close(got, want, rtol=0, atol=2e-5 * scale)


def test_every_block_of_a_shared_key_reaches_the_compressed_branch() -> None:
    """Without window and selection, a value still matters to a feature far away."""
    attention, x = make(max_exact_features=40), tokens(115, n_rows=1).requires_grad_()
    with torch.no_grad():
        attention.gate.weight.zero_()
        # Only the compressed branch is open: gates of the others are sigmoid(-100).
        attention.gate.bias.copy_(torch.tensor([-100.0, 100.0, -100.0]).repeat(2))
    (gradient,) = torch.autograd.grad(attention(x)[0, 0].sum(), x)
    assert (gradient[0].abs().sum(-1) > 0).all()


def test_selected_blocks_of_wide_tables_exist_and_differ() -> None:
    blocks = make().selected_blocks(tokens(WIDE))
    assert blocks.shape == (2, 2, WIDE, 3)
    assert blocks.min() >= 0
    assert blocks.max() < n_blocks(WIDE, 10)
    ordered = blocks.sort(dim=-1).values
    assert (ordered[..., 1:] > ordered[..., :-1]).all()


@pytest.mark.parametrize("value", [0, 1.5, None])
def test_a_limit_that_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(InvalidOptionError, match="max_exact_features must be an integer >= 1, got"):
        ArchitectureConfig(max_exact_features=value)  # type: ignore[arg-type]
