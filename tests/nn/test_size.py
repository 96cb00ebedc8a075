from __future__ import annotations

import pytest
import torch

from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.model import TabNSM
from tabnsm.nn.size import count_weights

PIECES = torch.tensor([[[0.0, 1.0], [1.0, 1.0]], [[0.0, torch.nan], [1.0, 1.0]]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"d_token": 16, "head_width": 8},
        {"attention": "full"},
        {"attention": "mamba"},
        {"mixer": False},
        {"gates": "feature", "n_token_pools": 0},
        {"compress_block_size": 3, "mixer_chunk_size": 2},
    ],
)
@pytest.mark.parametrize(
    ("n_features", "category_sizes", "bins"),
    [(1, None, None), (70, None, None), (3, [0, 4, 0], None), (2, None, PIECES)],
)
def test_as_many_as_the_network_has(options, n_features, category_sizes, bins):
    model = TabNSM(n_features, category_sizes=category_sizes, bins=bins, **options)
    expected = sum(weight.numel() for weight in model.parameters())
    config = ArchitectureConfig(**options)
    assert count_weights(config, n_features, category_sizes, bins) == expected


def test_nothing_is_allocated_and_no_size_crashes():
    assert count_weights(ArchitectureConfig(d_token=10**6), 1) > 10**12
    with pytest.raises(OverflowError):
        count_weights(ArchitectureConfig(d_token=10**12), 1)
    with pytest.raises(OverflowError):
        count_weights(ArchitectureConfig(head_width=10**30), 1)


def test_no_random_number_is_drawn():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    count_weights(ArchitectureConfig(), 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_several_targets() -> None:
    config = ArchitectureConfig(d_token=8, head_width=16)
    model = TabNSM(5, n_targets=3, d_token=8, head_width=16)
    expected = sum(weight.numel() for weight in model.parameters())
    assert count_weights(config, 5, n_targets=3) == expected
