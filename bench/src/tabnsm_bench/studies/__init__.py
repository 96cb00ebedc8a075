"""Ablations and studies: which runs each needs, and the table that comes out of them."""

from __future__ import annotations

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies import (
    architecture,
    departures,
    fractions,
    memory,
    objective,
    parameters,
    sampling,
    targets,
    thresholds,
    tradeoff,
)
from tabnsm_bench.studies.study import Scope, Study
from tabnsm_bench.studies.table import StudyTable

_FAMILIES = (
    architecture,
    objective,
    sampling,
    fractions,
    departures,
    parameters,
    thresholds,
    memory,
    tradeoff,
    targets,
)
STUDIES: dict[str, Study] = {study.name: study for family in _FAMILIES for study in family.STUDIES}


def find_study(name: str) -> Study:
    """The study of a name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Study

    Examples
    --------
    >>> find_study("attention").specs("cpu_small", seeds=[0])[1].method
    'tabnsm-default+attention=full'
    >>> find_study("atention")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: There is no study 'atention'. Did you mean 'attention'? \
All: tabnsm bench studies
    """
    if name in STUDIES:
        return STUDIES[name]
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), STUDIES, n=1)
    guess = f"Did you mean {close[0]!r}? All" if close else "To see all"
    raise InvalidOptionError(f"There is no study {name!r}. {guess}: tabnsm bench studies")


__all__ = ["STUDIES", "Scope", "Study", "StudyTable", "find_study"]
