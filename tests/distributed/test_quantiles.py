"""Bins of rows in many processes are those of all rows in one."""

from __future__ import annotations

import math

import pytest
import torch

from tabnsm.distributed.group import Group
from tabnsm.distributed.quantiles import global_bins
from tabnsm.functional.difficulty import difficulty_bins
from tests.distributed.thread_group import in_group

CASES = {
    "random": torch.rand(1000, generator=torch.Generator().manual_seed(0)),
    "ties": torch.randint(0, 4, (500,), generator=torch.Generator().manual_seed(1)).float(),
    "all alike": torch.full((77,), 0.3),
    "wide range": torch.logspace(-40, 38, 301),
    "signs and zeros": torch.tensor([-1.0, 0.0, -0.0, 2.0, -3e30, 0.0, 1e-45]),
    "not finite": torch.tensor([1.0, math.nan, math.inf, 0.5, math.nan, -math.inf, 3.0]),
    "fewer rows than bins": torch.tensor([2.0, 1.0]),
}


@pytest.mark.parametrize("n_bins", [1, 2, 5, 7])
@pytest.mark.parametrize("name", CASES)
def test_bins_of_uneven_and_empty_parts_are_those_of_all_rows(name: str, n_bins: int) -> None:
    losses = CASES[name]
    wanted = difficulty_bins(losses, n_bins)
    assert torch.equal(global_bins(losses, n_bins, Group(torch.device("cpu"))), wanted)
    n = len(losses)
    cuts = [0, n // 7, n // 7, n // 2, n]  # the second of four has none

    def of_part(group: Group) -> torch.Tensor:
        return global_bins(losses[cuts[group.rank] : cuts[group.rank + 1]], n_bins, group)

    assert torch.equal(torch.cat(in_group(4, of_part)), wanted)


def test_no_rows_at_all() -> None:
    assert global_bins(torch.empty(0), 5, Group(torch.device("cpu"))).shape == (0,)
