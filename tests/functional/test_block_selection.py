from __future__ import annotations

from types import ModuleType

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tabnsm.functional import block_selection as module
from tabnsm.functional import slices
from tests.mutation import mutated
from tests.oracles import attention as oracle
from tests.oracles.attention_cases import Case, cases

PAPER = {
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
}


def sizes(case: Case) -> dict[str, int]:
    options = {name: x for name, x in case.options.items() if name != "window_size"}
    return {"n_features": case.n_features, **options}


@pytest.mark.slow
@given(case=cases())
def test_selected_blocks_equal_the_loops(case: Case) -> None:
    q, _, _, k_cmp, *_ = case.tensors(torch.float64)
    got = module.select_blocks(q, k_cmp, **sizes(case))
    assert torch.equal(got, oracle.select_blocks(q, k_cmp, **sizes(case)))


@given(case=cases(max_features=40), limit=st.integers(1, 30))
@settings(max_examples=60)
def test_exact_ties_go_to_the_lower_index(case: Case, limit: int) -> None:
    # Small integers make logits equal to the bit in any order of summation; so do their means
    # over groups of a power of two.
    q, _, _, k_cmp, *_ = (x.detach().sign() for x in case.tensors(torch.float32))
    size = case.options["compress_block_size"]
    options = {
        "n_features": case.n_features,
        "compress_block_size": size,
        "compress_stride": size,
        "selection_block_size": size,
        "n_selected_blocks": case.options["n_selected_blocks"],
        "max_exact_features": limit,
    }
    groups = oracle.key_groups(case.n_features, size, size, size, limit)
    assume({len(group) for group in groups} <= {1, 2, 4, 8})
    k_cmp = k_cmp[:, :, : -(-case.n_features // size)]
    got = module.select_blocks(q, k_cmp, **options)
    assert torch.equal(got, oracle.select_blocks(q, k_cmp, **options))


def test_selection_blocks_inside_one_compressed_block_tie_to_the_bit() -> None:
    q = torch.randn(1, 1, 61, 8, generator=torch.Generator().manual_seed(0))
    k_cmp = torch.randn(1, 1, 7, 8, generator=torch.Generator().manual_seed(1))
    options = {**PAPER, "selection_block_size": 1, "n_selected_blocks": 10}
    chosen = module.select_blocks(q, k_cmp, n_features=61, **options)
    tenth = chosen // 10
    full = tenth[..., 0] != 6  # the seventh block holds one feature only
    assert torch.equal(chosen[full], tenth[full][:, :1] * 10 + torch.arange(10))


@pytest.mark.parametrize("n_features", [512, 513, 521, 16384])
@pytest.mark.parametrize("n_selected_blocks", [1, 3, 60])
def test_wide_tables_equal_the_loops(n_features: int, n_selected_blocks: int) -> None:
    generator = torch.Generator().manual_seed(n_features)
    q = torch.randn(1, 2, 4, 3, generator=generator, dtype=torch.float64)
    k_cmp = torch.randn(1, 2, -(-n_features // 10), 3, generator=generator, dtype=torch.float64)
    options = {**PAPER, "n_features": n_features, "n_selected_blocks": n_selected_blocks}
    got = module.select_blocks(q, k_cmp, **options)
    assert got.shape == (1, 2, 4, min(n_selected_blocks, k_cmp.shape[2]))
    assert torch.equal(got, oracle.select_blocks(q, k_cmp, **options))


def test_the_best_block_of_a_poor_group_is_passed_over() -> None:
    """What the second level gives up: block 2 is the best one, but its group's mean is low."""
    q = torch.ones(1, 1, 1, 1)
    k_cmp = torch.tensor([3.0, 3.0, 5.0, -5.0, 2.0]).view(1, 1, 5, 1)
    options = {"compress_block_size": 1, "compress_stride": 1, "selection_block_size": 1}
    options |= {"n_features": 5, "n_selected_blocks": 2}
    exact, grouped = (
        module.select_blocks(q, k_cmp, **options, max_exact_features=limit) for limit in (5, 3)
    )
    assert exact.flatten().tolist() == [2, 0]
    assert grouped.flatten().tolist() == [0, 1]


def test_slices_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    q, _, _, k_cmp, *_ = Case(2, 2, 60, 3, {**PAPER, "window_size": 1}, 0).tensors(torch.float64)
    options = {**PAPER, "n_features": 60, "max_exact_features": 20}
    whole = module.select_blocks(q, k_cmp, **options)
    monkeypatch.setattr(slices, "SLICE_BUDGET", 200)  # a few queries of one pair
    assert torch.equal(module.select_blocks(q, k_cmp, **options), whole)


MUTATIONS = {
    "worst blocks chosen": ("scores.argmax(dim=-1", "scores.neg().argmax(dim=-1"),
    "last of equals chosen": (
        "best.append(scores.argmax(dim=-1, keepdim=True))",
        "best.append(scores.shape[-1] - 1 - scores.flip(-1).argmax(dim=-1, keepdim=True))",
    ),
    "one block too few": (
        "n_best = min(n_selected_blocks,",
        "n_best = min(max(1, n_selected_blocks - 1),",
    ),
    "overlap ignored": ("* share[:, slot]", "* (share[:, slot] > 0)"),
    "mass not softmax": ("mass = torch.softmax(", "mass = torch.log_softmax("),
    "groups ignored": ("if group_size > 1:", "if False:"),
    "one group too few": ("min(n_best, n_groups)", "max(1, min(n_best, n_groups) - 1)"),
    "candidates in the order of their groups' rank": (".sort(dim=-1).values", ""),
    "padding of the last group chosen": ("~mask[groups[rows]].flatten(1)", "logits != logits"),
    "keys of another row or head": ("(first + groups)", "(0 * first + groups)"),
    "place in the group forgotten": ("* group_size + place", "* group_size + 0 * place"),
}
"""Faults that the comparison with the oracle must notice: text to replace, replacement."""

OVERLAPPING = {"compress_block_size": 5, "compress_stride": 2, "selection_block_size": 3}
CASES: list[dict[str, int]] = [
    {**PAPER, "n_features": 27},
    {**PAPER, **OVERLAPPING, "n_features": 23},
    {**PAPER, "selection_block_size": 5, "n_selected_blocks": 1, "n_features": 20},
    {**PAPER, "n_selected_blocks": 2, "n_features": 67, "max_exact_features": 40},
    {**PAPER, "n_selected_blocks": 4, "n_features": 67, "max_exact_features": 20},
    {**PAPER, "n_features": 137, "max_exact_features": 40},
]


def inputs_of(options: dict[str, int]) -> tuple[Tensor, Tensor]:
    """Queries and keys of two rows and heads; whole numbers, so that ties occur."""
    generator = torch.Generator().manual_seed(0)
    n_features, n_compressed = (
        options["n_features"],
        -(-options["n_features"] // options["compress_stride"]),
    )
    q = torch.randint(-2, 3, (2, 2, n_features, 2), generator=generator)
    k_cmp = torch.randint(-2, 3, (2, 2, n_compressed, 2), generator=generator)
    return q.double(), k_cmp.double()


def passes(candidate: ModuleType) -> bool:
    def same(options: dict[str, int]) -> bool:
        q, k_cmp = inputs_of(options)
        got = candidate.select_blocks(q, k_cmp, **options)
        return torch.equal(got, oracle.select_blocks(q, k_cmp, **options))

    return all(same(options) for options in CASES)


def test_the_original_passes_where_mutants_must_fail() -> None:
    assert passes(module)


@pytest.mark.parametrize("name", list(MUTATIONS))
def test_mutants_fail(name: str) -> None:
    assert not passes(mutated(module, *MUTATIONS[name]))
