from __future__ import annotations

import re

import pytest

from bench.tests.made_results import done, failed
from tabnsm.errors import InvalidDataError
from tabnsm_bench.paper import paper_facts
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.scores import collect_scores
from tabnsm_bench.statistics import analyse_paper
from tabnsm_bench.table_text import Cell, TextTable
from tabnsm_bench.tables import (
    family_table,
    paper_family_table,
    paper_table,
    results_table,
    statistics_table,
)


def column(table: TextTable, heading: str) -> dict[str, Cell]:
    place = list(table.headings).index(heading)
    return {row[table.n_names - 1].text: row[place] for row in table.rows}


def test_our_figures_are_beside_the_papers() -> None:
    scores = {"ridge": (9.0, 9.2), "tabnsm-paper": (2.8, 2.9), "realmlp": (2.7, 2.71)}
    results = [
        done(RunSpec(method, "cpu_small", seed=seed), rmse)
        for method, pair in scores.items()
        for seed, rmse in enumerate(pair)
    ]
    results += [done(RunSpec(m, "sarcos_test4449"), r) for m, r in (("ridge", 0.4), ("mlp", 0.2))]
    table = results_table(collect_scores(results))
    assert table.headings == [
        "method",
        "average rank",
        "cpu_small (CP)",
        "CP in the paper",
        "sarcos_test4449 (SA, partial)",
        "SA in the paper",
    ]
    ours = column(table, "cpu_small (CP)")
    assert ours["RealMLP"] == Cell("2.705 ± 0.007", "best")
    assert ours["TabNSM (paper)"] == Cell("2.850 ± 0.071", "second")
    assert ours["MLP"] == Cell("–")
    theirs = column(table, "CP in the paper")
    assert theirs["TabNSM (paper)"] == Cell("2.842", "best")
    assert theirs["MLP"] == Cell("2.939", "second")
    assert theirs["RealMLP"] == Cell("–")
    ranks = {row[0].text: row[1].text for row in table.rows}
    assert ranks == {"MLP": "2.50", "RealMLP": "2.50", "Ridge": "2.50", "TabNSM (paper)": "3.00"}
    assert list(ranks)[-1] == "TabNSM (paper)"
    notes = " ".join(table.notes)
    assert "over 1 to 2 runs" in notes
    assert "Partial: sarcos_test4449." in notes


def test_the_papers_rmse_is_not_compared_with_our_mae() -> None:
    table = results_table(collect_scores([done(RunSpec("ridge", "cpu_small"), 2.0)], "mae"))
    assert table.headings == ["method", "average rank", "cpu_small (CP)"]
    assert column(table, "cpu_small (CP)")["Ridge"].text == "1.400"
    assert "Test MAE" in table.notes[0]


def test_caps_and_failures_are_footnotes() -> None:
    results = [
        done(RunSpec("ridge", "cpu_small"), 2.0),
        done(RunSpec("mlp", "cpu_small", max_epochs=5), 2.0, notes=["at most 5 epochs"]),
        done(RunSpec("mlp", "bike"), 2.0),
        failed(RunSpec("ridge", "bike"), "600 s", "timeout"),
    ]
    text = results_table(collect_scores(results)).to_markdown()
    assert "| MLP | 1.25 | **2.000** | **2.000** <sup>2</sup> | **2.939** |" in text
    assert "| Ridge | 1.75 | – <sup>1</sup> | **2.000** | <ins>9.277</ins> |" in text
    assert text.endswith("<sup>1</sup> timeout: 600 s\n\n<sup>2</sup> at most 5 epochs")


def test_no_results_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="at least 1 finished run, got none"):
        results_table(collect_scores([]))


def test_the_papers_table_as_printed() -> None:
    table = paper_table()
    assert len(table.rows) == 39
    assert column(table, "CD")["Extratrees"] == Cell("0.004", "best")
    assert column(table, "SA")["DNNR"] == Cell("0.149", "second")
    assert column(table, "CD")["SVR-Linear"] == Cell("◇†")
    latex = table.to_latex()
    assert latex.count(r"\midrule") == len({e["family"] for e in paper_facts()["methods"]})
    assert latex.count(r"\underline{0.027}") == 7
    assert r"$\diamond$$\dag$" in latex
    assert not re.search(r"[†‡§◇–±]", latex)


def test_the_papers_compact_table_follows_from_its_full_one() -> None:
    table = paper_family_table()
    best = column(table, "CP")
    assert best["best Tree-based (5 methods)"] == Cell("2.617", "best")
    assert best["best Foundation (4 methods)"] == Cell("2.740", "second")
    assert best["TabNSM"] == Cell("2.842")
    assert column(table, "AQ")["TabNSM"] == Cell("3.999", "best")
    assert [row[0].text for row in table.rows][-1] == "TabNSM"


def test_families_of_our_results() -> None:
    scores = {"ridge": 3.0, "knn-5": 2.0, "mine:make": 1.0, "tabnsm-fast": 4.0}
    results = [done(RunSpec(method, "bike"), rmse) for method, rmse in scores.items()]
    table = family_table(collect_scores(results))
    assert {name: cell.text for name, cell in column(table, "bike").items()} == {
        "best Classical (2 methods)": "2.000",
        "best not in the paper (1 method)": "1.000",
        "TabNSM": "4.000",
    }


def test_statistics_as_a_table() -> None:
    text = statistics_table(analyse_paper(), {"ResNet": "a residual net"}).to_markdown()
    assert "| TabNSM | 1.89 | 2.30 | – | – | 0 |" in text
    assert "| a residual net | 9.72 | 10.90 | 0.0020 | 0.0025 | 0 |" in text
    assert r"| GrowNet | 31.28 | 32.10 \* |" in text
    assert "chi2(36) = 79.3, p = 4.25e-05; corrected for ties 82.5" in text
    assert "CD = 26.8; the formula gives 26.4" in text


def test_special_characters_are_escaped() -> None:
    table = TextTable(["a|b_c"], [[Cell("50 % & <x> {y} ~^\\")]], notes=["p < 0.05"])
    assert r"| a\|b_c |" in table.to_markdown()
    assert r"50 % & \<x\> {y}" in table.to_markdown()
    latex = table.to_latex()
    assert r"50 \% \& $<$x$>$ \{y\} \textasciitilde{}\textasciicircum{}\textbackslash{}" in latex
    assert r"\par\footnotesize p $<$ 0.05" in latex


def test_heavy_tailed_tables_are_ranked_by_mae_too() -> None:
    """A method that is best but for a few rows is seen to be so."""
    errors = {"ridge": (30.0, 2.0), "mlp": (31.0, 1.0), "catboost": (32.0, 3.0)}
    results = []
    for method, (rmse, mae) in errors.items():
        run = done(RunSpec(method, "ct_real_estate_partial"), rmse)
        run["metrics"]["test"]["mae"] = mae
        results += [run, done(RunSpec(method, "cpu_small"), rmse / 10)]
    table = results_table(collect_scores(results), collect_scores(results, "mae"))
    assert column(table, "ct_real_estate_partial")["Ridge"].emphasis == "best"
    assert column(table, "ct_real_estate_partial: MAE")["MLP"] == Cell("1.000", "best")
    assert column(table, "average rank by MAE")["MLP"].text == "1.50"
    assert "cpu_small: MAE" not in table.headings
    assert any(note.startswith("Heavy-tailed: ct_real_estate_partial.") for note in table.notes)
    by_mae = collect_scores(results, "mae")
    assert not any(": MAE" in heading for heading in results_table(by_mae, by_mae).headings)
