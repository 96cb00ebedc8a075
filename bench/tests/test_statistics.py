from __future__ import annotations

import json

import numpy as np
import pytest

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.paper import OURS, paper_facts, paper_scores
from tabnsm_bench.scores import ScoreTable
from tabnsm_bench.statistics import analyse, analyse_paper, choose_ours


def make_table(mean: list[list[float]], methods: str = "abcdefg") -> ScoreTable:
    scores = np.array(mean, dtype=float)
    datasets = tuple(f"d{j}" for j in range(scores.shape[1]))
    return ScoreTable(
        tuple(methods[: len(scores)]),
        datasets,
        scores,
        np.full_like(scores, np.nan),
        np.ones(scores.shape, np.int64),
    )


def test_the_paper_table_gives_the_paper_statistics() -> None:
    found = analyse_paper()
    printed = paper_facts()["statistics"]
    assert round(found.friedman.chi2, 1) == 79.3 == printed["chi2"]
    assert found.friedman.degrees_of_freedom == 36 == printed["degrees_of_freedom"]
    assert found.friedman.p == pytest.approx(4.25e-5, abs=0.005e-5)
    assert round(found.friedman.chi2_tie_corrected, 1) == 82.5
    assert found.friedman.left_out == ("SAINT", "DNNR")
    ranks = {**printed["average_ranks"], "AutoInt": 12.61}
    assert {name: round(found.average_ranks[name], 2) for name in ranks} == ranks
    assert list(found.average_ranks)[:7] == [
        "TabNSM",
        "ResNet",
        "Extratrees",
        "MLP",
        "CatBoost",
        "AutoInt",
        "LightGBM",
    ]
    assert len(found.wilcoxon.corrected_p) == len(found.wilcoxon.significant) == 38
    assert found.wilcoxon.max_corrected_p <= printed["max_corrected_p"]
    assert round(found.nemenyi.cd, 1) == 26.4
    json.dumps(found.to_dict(), allow_nan=False)


def test_differences_from_the_paper_are_reported() -> None:
    notes = " ".join(analyse_paper().notes)
    assert "The paper prints CD = 26.8; the formula gives 26.4" in notes
    assert (
        "LinearRegression, GrowNet, SVR-Linear; the paper names only GrowNet, SVR-Linear" in notes
    )
    assert "79.3 is without a correction for ties; with it, it is 82.5" in notes


def test_all_nine_datasets_leave_fewer_methods_to_friedman() -> None:
    found = analyse(paper_scores(), OURS)
    assert len(found.friedman.methods) == 25
    assert len(found.friedman.left_out) == 14
    assert round(found.friedman.chi2, 1) != 79.3


def test_a_missing_result_counts_as_worst_but_not_in_friedman() -> None:
    nan = float("nan")
    table = make_table([[1, 1, 1], [2, 2, 2], [3, 3, 3], [0.5, nan, 0.5]])
    found = analyse(table, "a")
    assert found.average_ranks == {"a": 5 / 3, "d": 2.0, "b": 8 / 3, "c": 11 / 3}
    assert found.missing == {"d": ("d1",)}
    assert found.friedman.methods == ("a", "b", "c")
    assert found.friedman.left_out == ("d",)
    assert found.friedman.chi2 == pytest.approx(6.0)
    assert found.wilcoxon.p == {"b": 0.125, "c": 0.125, "d": 0.625}


def test_datasets_can_be_narrowed_for_friedman_alone() -> None:
    nan = float("nan")
    table = make_table([[1, 2, 3], [2, 1, 4], [3, 3, nan], [4, 4, nan]])
    found = analyse(table, "a", ["d0", "d1"])
    assert found.friedman.methods == ("a", "b", "c", "d")
    assert found.friedman.datasets == ("d0", "d1")
    assert found.datasets == ("d0", "d1", "d2")


def test_equal_methods_do_not_differ() -> None:
    found = analyse(make_table([[1, 1], [1, 1], [1, 1]]), "a")
    assert (found.friedman.chi2, found.friedman.p) == (0.0, 1.0)
    assert found.friedman.p_tie_corrected == 1.0
    assert found.wilcoxon.max_corrected_p == 1.0
    assert found.wilcoxon.significant == ()


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        ([[1, 2], [2, 1]], r"at least 3 methods, got 2 \(a, b\)\. Run more"),
        ([[1], [2], [3]], r"at least 2 datasets, got 1 \(d0\)\. Run more"),
        ([], r"at least 3 methods, got 0 \(none\)"),
        (
            [[1, 2], [2, 1], [3, float("nan")]],
            r"at least 3 methods with a result on every dataset, got 2 \(a, b\)",
        ),
        ([[1, float("nan")], [2, 1], [3, 2], [4, 3]], r"a must have a result .* none on d1"),
    ],
)
def test_too_little_is_refused_with_a_remedy(mean: list[list[float]], message: str) -> None:
    table = make_table(mean) if mean else make_table([[1]]).select(methods=[])
    with pytest.raises(InvalidDataError, match=message):
        analyse(table, "a")


def test_ours_is_a_preset_of_tabnsm_or_named() -> None:
    assert choose_ours(["ridge", "tabnsm-fast"]) == "tabnsm-fast"
    assert choose_ours(["ridge", "tabnsm-fast"], "ridge") == "ridge"
    with pytest.raises(InvalidOptionError, match=r"must be one of ridge, mlp; .*--ours"):
        choose_ours(["ridge", "mlp"])
    with pytest.raises(InvalidOptionError, match="got 'rige'"):
        choose_ours(["ridge", "mlp"], "rige")


def test_select_names_what_there_is() -> None:
    with pytest.raises(InvalidOptionError, match=r"dataset must be one of SA, CP, .* got 'XX'"):
        paper_scores().select(datasets=["XX"])
    assert paper_scores().select([OURS], ["CP", "SA"]).mean.tolist() == [[2.842, 0.137]]
