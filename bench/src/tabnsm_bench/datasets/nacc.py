"""SCAN tables of the National Alzheimer's Coordinating Center, from the user's own file.

NACC hands its tables to researchers with an approved request; nothing is downloaded here. The
file is one table with a row per visit and the score NACCMMSE, such as the SCAN tables joined to
the clinical one by NACCID.
"""

from __future__ import annotations

from typing import Any

from tabnsm.errors import InvalidDataError

SCORE = "NACCMMSE"
_MAX_POINTS = 30
# NACC writes these where a form did not ask for a value.
_NOT_ASKED = (-4, -4.4)
_IDENTITIES = ("NACCID", "NACCADC", "LONI_IMAGE", "SERIESINSTANCEUID", "STUDYINSTANCEUID")


def read_nacc(frame: Any) -> Any:
    """Make a table of numbers out of NACC's codes.

    Scores outside 0 to 30 are codes for tests that were not done, and become missing, as do
    the codes -4 and -4.4 in all columns. Names of people and images, and the single items of
    the test, are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        The user's table.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    InvalidDataError
        If there is no score in it.

    Examples
    --------
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"naccid": ["a", "b"], "NACCMMSE": [29, 88], "CSFABETA": [-4, 5.0]})
    >>> read_nacc(visits).values.tolist()
    [[29.0, nan], [nan, 5.0]]
    """
    import pandas as pd

    frame = frame.rename(columns={name: str(name).upper() for name in frame.columns})
    if SCORE not in frame.columns:
        raise InvalidDataError(
            f"A NACC table must have the column {SCORE}, got {', '.join(frame.columns[:10])}, ... "
            "Join the SCAN tables with the clinical one by NACCID."
        )
    parts = [name for name in frame.columns if name.startswith("MMSE")]
    frame = frame.drop(columns=[*parts, *(name for name in _IDENTITIES if name in frame.columns)])
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype(float).mask(frame[name].isin(_NOT_ASKED))
    score = pd.to_numeric(frame[SCORE], errors="coerce")
    frame[SCORE] = score.where(score.between(0, _MAX_POINTS))
    return frame
