"""How methods are called in tables and figures, and what the paper calls them."""

from __future__ import annotations

import re

from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.paper import OURS, paper_families

NEW = "not in the paper"


def display_name(method: str) -> str:
    """Name of a method for readers.

    Parameters
    ----------
    method : str
        As in a run; options after it are kept as they are.

    Examples
    --------
    >>> display_name("tabnsm-paper"), display_name("knn-5"), display_name("mine:make")
    ('TabNSM (paper)', 'KNN-5', 'mine:make')
    >>> display_name("catboost+tuned=20")
    'CatBoost, 20 trials'
    """
    key, plus, options = method.partition("+")
    if key.startswith("tabnsm-"):
        name = f"{OURS} ({key.removeprefix('tabnsm-')})"
    else:
        name = BASELINES[key].name if key in BASELINES else key
    if trials := re.fullmatch(r"tuned=(\d+)", options):
        return f"{name}, {trials[1]} trials"
    return f"{name} {plus}{options}".rstrip()


def paper_name(method: str) -> str | None:
    """What the paper calls a method, None if it does not have it.

    Examples
    --------
    >>> paper_name("tabnsm-default"), paper_name("knn-5"), paper_name("realmlp")
    ('TabNSM', 'KNN-5', None)
    """
    key = method.partition("+")[0]
    name = OURS if key.startswith("tabnsm-") else BASELINES[key].name if key in BASELINES else key
    return name if name in paper_families() else None


def family(method: str) -> str:
    """Family of a method: the paper's, or that of the list of baselines.

    Examples
    --------
    >>> family("tabnsm-fast"), family("catboost"), family("mine:make")
    ('TabNSM', 'Tree-based', 'not in the paper')
    """
    key = method.partition("+")[0]
    if key.startswith("tabnsm-"):
        return OURS
    return BASELINES[key].family if key in BASELINES else NEW
