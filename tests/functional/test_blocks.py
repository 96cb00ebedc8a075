from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidOptionError
from tabnsm.functional.blocks import block_overlap, check_block_options, n_blocks, unfold_blocks
from tests.oracles import attention as oracle

GOOD = {
    "window_size": 6,
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
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
