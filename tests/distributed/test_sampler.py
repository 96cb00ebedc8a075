"""Rows that processes draw together are those that one would draw."""

from __future__ import annotations

import pytest
import torch

from tabnsm.distributed.group import Group
from tabnsm.distributed.sampler import ShardSampler
from tabnsm.training.rise import RiseConfig, RiseSampler
from tests.distributed.thread_group import in_group

SIZES = [[40, 60], [0, 100], [1, 0, 3, 96], [25, 25, 25, 25], [0, 0, 7]]


def sampler(n_rows: int, group: Group) -> ShardSampler:
    generator = torch.Generator().manual_seed(group.rank)
    return ShardSampler(n_rows, RiseConfig(n_difficulty_bins=2, max_boost=3.0), generator, group)


@pytest.mark.parametrize("sizes", SIZES)
def test_all_processes_make_the_same_number_of_steps(sizes: list[int]) -> None:
    def draw(group: Group) -> tuple[list[torch.Tensor], list[int]]:
        own = sampler(sizes[group.rank], group)
        return own.epoch_batches(16), own.step_rows

    found = in_group(len(sizes), draw)
    total = sum(sizes)
    n_steps = -(-total // 16)
    for rank, (batches, step_rows) in enumerate(found):
        assert len(batches) == len(step_rows) == n_steps
        assert step_rows == [sum(len(other[step]) for other, _ in found) for step in range(n_steps)]
        # Equal weights draw each row once.
        rows = torch.cat(batches)
        assert rows.sort().values.tolist() == list(range(sizes[rank]))
    assert sum(found[0][1]) == total
    assert max(found[0][1]) <= 16 + len(sizes)
    if len(set(sizes)) == 1:
        assert set(found[0][1][:-1]) == {16}


def test_single_rows_of_many_processes_make_whole_batches() -> None:
    """A row each, two in a step: if all rounded alike, steps would be empty."""
    found = in_group(5, lambda group: step_rows(1, group))
    assert found == [[2, 2, 1]] * 5


def step_rows(n_rows: int, group: Group) -> list[int]:
    own = sampler(n_rows, group)
    own.epoch_batches(2)
    return own.step_rows


def test_hard_rows_are_drawn_as_often_as_on_one_machine() -> None:
    """All hard rows are in the second process, which then draws more rows than it has."""
    losses = torch.cat([torch.linspace(0, 1, 50), torch.linspace(2, 3, 50)])

    def count(group: Group) -> torch.Tensor:
        own = sampler(50, group)
        own.refresh(losses[50 * group.rank : 50 * group.rank + 50])
        drawn = torch.stack(
            [torch.cat(own.epoch_batches(16)).bincount(minlength=50) for _ in range(200)]
        )
        return drawn.double().mean(0)

    counts = torch.cat(in_group(2, count))
    assert torch.allclose(counts, torch.tensor([0.5] * 50 + [1.5] * 50).double(), atol=0.15)


def test_one_process_draws_the_bits_of_one_machine() -> None:
    group = Group(torch.device("cpu"))
    alone = RiseSampler(37, RiseConfig(), torch.Generator().manual_seed(0))
    shared = ShardSampler(37, RiseConfig(), torch.Generator().manual_seed(0), group)
    losses = torch.rand(37, generator=torch.Generator().manual_seed(5))
    for _ in range(2):
        wanted = torch.split(alone.epoch_rows(), 8)
        found = shared.epoch_batches(8)
        assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))
        alone.refresh(losses)
        shared.refresh(losses)


def test_weights_of_other_rows_are_not_taken_over() -> None:
    own = sampler(5, Group(torch.device("cpu")))
    own.load_state_dict({"weights": torch.full((5,), 2.0).double()})
    assert own.weights.tolist() == [2.0] * 5
    own.load_state_dict({"weights": torch.full((9,), 2.0).double()})
    assert own.weights.tolist() == [1.0] * 5
