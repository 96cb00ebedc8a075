"""Dates as calendar parts and elapsed time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Micros = NDArray[np.int64]

DATE_PARTS = ("days", "year", "month", "day", "weekday", "day_of_year", "hour", "minute")
_DAY = 86_400_000_000


def date_parts(micros: Micros, missing: NDArray[np.bool_], origin: int) -> NDArray[np.float64]:
    """Elapsed days and calendar parts, NaN where a date is missing.

    Parameters
    ----------
    micros : ndarray of int64
        Microseconds since 1970.
    missing : ndarray of bool
        Which of them are missing.
    origin : int
        The moment from which days are counted, in microseconds since 1970.

    Returns
    -------
    ndarray of float64
        One column per entry of `DATE_PARTS`.

    Shape
    -----
    (n_rows, 8)

    Examples
    --------
    >>> micros = np.array(["2024-03-01T12:30"], dtype="datetime64[us]").astype(np.int64)
    >>> date_parts(micros, np.array([False]), 0).tolist()
    [[19783.520833333332, 2024.0, 3.0, 1.0, 4.0, 61.0, 12.0, 30.0]]
    """
    days, in_day = np.divmod(micros, _DAY)
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    year = date.astype("datetime64[Y]")
    parts = np.stack(
        [
            (micros - origin) / _DAY,
            year.astype(np.int64) + 1970.0,
            month.astype(np.int64) % 12 + 1.0,
            (date - month).astype(np.int64) + 1.0,
            (days + 3) % 7,  # 1970-01-01 was a Thursday; Monday is 0
            (date - year).astype(np.int64) + 1.0,
            in_day // 3_600_000_000,
            in_day // 60_000_000 % 60,
        ],
        axis=1,
    )
    parts[missing] = np.nan
    return parts
