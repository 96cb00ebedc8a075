"""The paper's own figures, as it prints them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tabnsm_bench.scores import ScoreTable

OURS = "TabNSM"


@cache
def paper_facts() -> dict[str, Any]:
    """The figures that the paper prints, as in ``paper_results.json``."""
    text = files("tabnsm_bench").joinpath("paper_results.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts


def paper_scores() -> ScoreTable:
    """The paper's full table of test RMSE: 39 methods, nine datasets.

    Returns
    -------
    ScoreTable
        Reasons for missing results are among its notes.

    Examples
    --------
    >>> table = paper_scores()
    >>> table.score("TabNSM", "CP"), table.missing("DCN-v2"), table.notes["DCN-v2", "CD"]
    (2.842, ('CD',), ('training diverged',))
    """
    facts = paper_facts()
    datasets, entries = tuple(facts["datasets"]), facts["methods"]
    mean = np.full((len(entries), len(datasets)), np.nan)
    notes = {}
    for i, entry in enumerate(entries):
        for j, dataset in enumerate(datasets):
            printed = entry["rmse"][dataset]
            if printed[0].isdigit():
                mean[i, j] = float(printed)
            else:
                notes[entry["name"], dataset] = tuple(facts["marks"][mark] for mark in printed)
    return ScoreTable(
        methods=tuple(entry["name"] for entry in entries),
        datasets=datasets,
        mean=mean,
        std=np.full_like(mean, np.nan),
        n_runs=(~np.isnan(mean)).astype(np.int64),
        counterparts={dataset: dataset for dataset in datasets},
        notes=notes,
    )


def paper_families() -> dict[str, str]:
    """Family of each method in the paper.

    Examples
    --------
    >>> paper_families()["CatBoost"]
    'Tree-based'
    """
    return {entry["name"]: entry["family"] for entry in paper_facts()["methods"]}


def paper_printed(method: str, dataset: str) -> str | None:
    """A figure as the paper prints it, with its marks for missing ones; None if it has none.

    Parameters
    ----------
    method : str
        The paper's name of the method.
    dataset : str
        The paper's abbreviation of the dataset.

    Examples
    --------
    >>> paper_printed("XGBoost", "CD"), paper_printed("SAINT", "AQ"), paper_printed("RealMLP", "CP")
    ('0.040', '‡', None)
    """
    for entry in paper_facts()["methods"]:
        if entry["name"] == method:
            printed: str | None = entry["rmse"].get(dataset)
            return printed
    return None
