"""Which differences between methods are more than chance, over all datasets together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.paper import OURS, paper_facts, paper_scores
from tabnsm_bench.rank_tests import (
    Floats,
    critical_difference,
    friedman_chi2,
    rank_methods,
    signed_rank_p,
)
from tabnsm_bench.scores import ScoreTable

MIN_METHODS, MIN_DATASETS = 3, 2


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods are equal, on the methods that have every score.

    `chi2` and `p` are without a correction for ties, as in the paper; the others are with it.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    degrees_of_freedom: int
    chi2: float
    p: float
    chi2_tie_corrected: float
    p_tie_corrected: float


@dataclass(frozen=True)
class Nemenyi:
    """Critical difference of average ranks, for the methods of Friedman's test."""

    alpha: float
    q: float
    cd: float
    average_ranks: dict[str, float]
    worse_than_ours: tuple[str, ...]


@dataclass(frozen=True)
class Wilcoxon:
    """One-sided signed-rank tests that `ours` ranks better, one per other method."""

    ours: str
    p: dict[str, float]
    corrected_p: dict[str, float]
    max_corrected_p: float
    significant: tuple[str, ...]


@dataclass(frozen=True)
class Statistics:
    """Everything that `analyse` finds; `average_ranks` go from best to worst."""

    metric: str
    datasets: tuple[str, ...]
    average_ranks: dict[str, float]
    friedman: Friedman
    nemenyi: Nemenyi
    wilcoxon: Wilcoxon
    missing: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain, JSON-able data."""
        return asdict(self)


def analyse(
    table: ScoreTable,
    ours: str | None = None,
    friedman_datasets: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> Statistics:
    """Average ranks and all tests for one table of scores.

    Parameters
    ----------
    table : ScoreTable
        At least 3 methods and 2 datasets.
    ours : str or None
        Method that the others are tested against; None takes the first of TabNSM's presets.
    friedman_datasets : sequence of str or None
        Datasets of the tests of Friedman and Nemenyi, which need every score: methods that miss
        one are left out of them. None takes all.
    alpha : float, default 0.05
        Level of the tests.

    Returns
    -------
    Statistics

    Raises
    ------
    InvalidDataError
        If there are too few methods or datasets.
    """
    check_size(table)
    ours = choose_ours(table.methods, ours)
    averages = rank_methods(table.mean).mean(axis=1)
    friedman, nemenyi = _omnibus(table, ours, friedman_datasets, alpha)
    return Statistics(
        metric=table.metric,
        datasets=table.datasets,
        average_ranks=_best_first(table.methods, averages),
        friedman=friedman,
        nemenyi=nemenyi,
        wilcoxon=_pairwise(table, ours, alpha),
        missing={
            method: table.missing(method) for method in table.methods if table.missing(method)
        },
        notes=table.remarks,
    )


def choose_ours(methods: Sequence[str], wanted: str | None = None) -> str:
    """The method that the others are tested against.

    Parameters
    ----------
    methods : sequence of str
        Methods with results.
    wanted : str or None
        Name of one of them; None takes the first of TabNSM's presets.

    Returns
    -------
    str

    Examples
    --------
    >>> choose_ours(["ridge", "tabnsm-paper", "tabnsm-default"])
    'tabnsm-default'
    """
    candidates = ("tabnsm-default", "tabnsm-paper", "tabnsm-fast") if wanted is None else (wanted,)
    found = next((name for name in candidates if name in methods), None)
    if found is None:
        raise InvalidOptionError(
            f"ours must be one of {', '.join(methods) or 'the methods with results (none)'}; got "
            f"{'none of TabNSM there' if wanted is None else repr(wanted)}. Name one with --ours."
        )
    return found


def analyse_paper() -> Statistics:
    """The statistics of the paper's own table, with a note where its text differs.

    Returns
    -------
    Statistics

    Examples
    --------
    >>> found = analyse_paper()
    >>> round(found.friedman.chi2, 1), round(found.nemenyi.cd, 1)
    (79.3, 26.4)
    """
    printed = paper_facts()["statistics"]
    found = analyse(paper_scores(), OURS, printed["friedman_datasets"])
    cd, outside = found.nemenyi.cd, found.nemenyi.worse_than_ours
    notes = [
        f"The paper's chi2 of {printed['chi2']} is without a correction for ties; with it, it is "
        f"{found.friedman.chi2_tie_corrected:.1f} (p = {found.friedman.p_tie_corrected:.2e}).",
        f"The paper prints CD = {printed['cd']}; the formula gives {cd:.1f} for "
        f"{len(found.friedman.methods)} methods and {len(found.friedman.datasets)} datasets. "
        f"Outside of it are {', '.join(outside)}; the paper names only "
        f"{', '.join(printed['outside_cd'])}.",
    ]
    corrected = found.wilcoxon.corrected_p
    notes += [
        f"The paper prints p = {p:.3f} against {method}; the exact test gives "
        f"{found.wilcoxon.p[method]:.3f}, corrected {corrected[method]:.3f}."
        for method, p in printed["wilcoxon_p"].items()
        if round(found.wilcoxon.p[method], 3) != p and round(corrected[method], 3) != p
    ]
    return Statistics(**{**vars(found), "notes": tuple(notes)})


def check_size(table: ScoreTable, which: str = "") -> None:
    """Refuse a table that is too small for statistics, with the remedy."""
    for names, kind, least in (
        (table.methods, "methods", MIN_METHODS),
        (table.datasets, "datasets", MIN_DATASETS),
    ):
        if len(names) < least:
            raise InvalidDataError(
                f"Statistics need at least {least} {kind}{which}, got {len(names)} "
                f"({', '.join(names) or 'none'}). Run more of them with: tabnsm bench run"
            )


def _omnibus(
    table: ScoreTable, ours: str, datasets: Sequence[str] | None, alpha: float
) -> tuple[Friedman, Nemenyi]:
    from scipy.stats import chi2 as chi2_distribution

    part = table.select(datasets=datasets)
    whole = [method for method in part.methods if not part.missing(method)]
    if ours not in whole:
        raise InvalidDataError(
            f"{ours} must have a result on every dataset, but has none on "
            f"{', '.join(part.missing(ours))}. Run it there, or name the datasets to use."
        )
    left_out = tuple(method for method in part.methods if method not in whole)
    part = part.select(methods=whole)
    check_size(part, " with a result on every dataset")
    ranks = rank_methods(part.mean)
    plain, corrected = friedman_chi2(ranks)
    k, n = ranks.shape
    friedman = Friedman(
        methods=part.methods,
        datasets=part.datasets,
        left_out=left_out,
        degrees_of_freedom=k - 1,
        chi2=plain,
        p=float(chi2_distribution.sf(plain, k - 1)),
        chi2_tie_corrected=corrected,
        p_tie_corrected=float(chi2_distribution.sf(corrected, k - 1)),
    )
    q, cd = critical_difference(k, n, alpha)
    averages = _best_first(part.methods, ranks.mean(axis=1))
    worse = tuple(name for name, rank in averages.items() if rank - averages[ours] >= cd)
    return friedman, Nemenyi(alpha, q, cd, averages, worse)


def _pairwise(table: ScoreTable, ours: str, alpha: float) -> Wilcoxon:
    from scipy.stats import false_discovery_control

    ranks = rank_methods(table.mean)
    mine = ranks[table.methods.index(ours)]
    p = {
        method: signed_rank_p(mine - theirs)
        for method, theirs in zip(table.methods, ranks, strict=True)
        if method != ours
    }
    adjusted = false_discovery_control(list(p.values()), method="bh")
    corrected = {method: float(value) for method, value in zip(p, adjusted, strict=True)}
    significant = tuple(method for method, value in corrected.items() if value <= alpha)
    return Wilcoxon(ours, p, corrected, max(corrected.values()), significant)


def _best_first(methods: Sequence[str], averages: Floats) -> dict[str, float]:
    order = np.argsort(averages, kind="stable")
    return {methods[i]: float(averages[i]) for i in order}
