from __future__ import annotations

from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidOptionError
from tabnsm.functional import blocks as module
from tabnsm.functional.blocks import (
    block_overlap,
    blocks_per_key,
    check_block_options,
    group_means,
    n_blocks,
    unfold_blocks,
)
from tests.mutation import mutated
from tests.oracles import attention as oracle

GOOD = {
    "window_size": 6,
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
    "max_exact_features": 512,
}


@given(n_features=st.integers(1, 50), stride=st.integers(1, 60))
def test_n_blocks_counts_the_starts(n_features: int, stride: int) -> None:
    assert n_blocks(n_features, stride) == len(oracle.block_starts(n_features, stride))


@given(n_features=st.integers(1, 30), size=st.integers(1, 12), data=st.data())
def test_unfold_blocks_equals_loops(n_features: int, size: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, size))
    x = torch.arange(1.0, 2 * n_features * 3 + 1).view(2, n_features, 3)
    blocks, mask = unfold_blocks(x, size, stride)
    expected = torch.zeros_like(blocks)
    for c, start in enumerate(oracle.block_starts(n_features, stride)):
        members = oracle.block_members(start, size, n_features)
        expected[:, c, : len(members)] = x[:, members]
        assert mask[c].tolist() == [i < len(members) for i in range(size)]
    assert torch.equal(blocks, expected)


@given(
    n_features=st.one_of(st.sampled_from([512, 513, 520, 521, 16384]), st.integers(1, 3000)),
    size=st.sampled_from([1, 3, 10]),
    limit=st.one_of(st.just(512), st.integers(1, 600)),
)
def test_blocks_share_a_key_as_the_loops_say(n_features: int, size: int, limit: int) -> None:
    got = blocks_per_key(
        n_features,
        compress_block_size=size,
        compress_stride=size,
        selection_block_size=size,
        max_exact_features=limit,
    )
    groups = oracle.key_groups(n_features, size, size, size, limit)
    assert got == len(groups[0])
    assert len(groups) <= n_blocks(limit, size)


@pytest.mark.parametrize("other", ["compress_stride", "selection_block_size"])
def test_blocks_that_are_not_those_to_select_from_share_no_key(other: str) -> None:
    sizes = {"compress_block_size": 10, "compress_stride": 10, "selection_block_size": 10}
    assert blocks_per_key(16384, **sizes) == 32
    assert blocks_per_key(16384, **{**sizes, other: 5}) == 1


def check_group_means(candidate: ModuleType, n: int, group_size: int) -> None:
    x = torch.randn(2, n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    groups = [oracle.block_members(i, group_size, n) for i in oracle.block_starts(n, group_size)]
    expected = torch.stack([x[:, group].mean(1) for group in groups], dim=1)
    torch.testing.assert_close(candidate.group_means(x, group_size), expected)


@given(n=st.integers(1, 30), group_size=st.integers(1, 40))
def test_group_means_equal_loops(n: int, group_size: int) -> None:
    check_group_means(module, n, group_size)


def test_group_means_of_single_blocks_are_the_blocks_themselves() -> None:
    x = torch.zeros(1, 4, 2)
    assert group_means(x, 1) is x


@pytest.mark.parametrize(
    ("old", "new"),
    [("/ mask.sum(-1, keepdim=True)", "/ group_size"), ("groups.sum(-2)", "groups.amax(-2)")],
)
def test_mutated_group_means_fail(old: str, new: str) -> None:
    with pytest.raises(AssertionError):
        check_group_means(mutated(module, old, new), 7, 3)


def test_unfold_blocks_passes_gradients_to_every_feature() -> None:
    x = torch.zeros(1, 5, 2, requires_grad=True)
    blocks, _ = unfold_blocks(x, 4, 2)
    blocks.sum().backward()
    assert x.grad is not None
    assert x.grad[0, :, 0].tolist() == [1, 1, 2, 2, 2]


@given(n_features=st.integers(1, 30), size=st.integers(1, 12), data=st.data())
def test_block_overlap_equals_counting_shared_features(
    n_features: int, size: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, size))
    width = data.draw(st.integers(1, 15))
    index, share = block_overlap(n_features, size, stride, width)
    starts = oracle.block_starts(n_features, stride)
    got = torch.zeros(len(index), len(starts), dtype=torch.float64)
    got.scatter_add_(1, index, share)
    for j, left in enumerate(oracle.block_starts(n_features, width)):
        selection = set(oracle.block_members(left, width, n_features))
        for i, start in enumerate(starts):
            members = oracle.block_members(start, size, n_features)
            assert got[j, i] == len(selection.intersection(members)) / len(members)


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("value", [0, -3])
def test_options_below_one_are_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{name} must be >= 1, got {value}\. Use"):
        check_block_options(**{**GOOD, name: value})


def test_a_stride_wider_than_the_block_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"compress_stride must be <= .* = 10, got 11\."):
        check_block_options(**{**GOOD, "compress_stride": 11})


def test_good_options_pass() -> None:
    check_block_options(**GOOD)
