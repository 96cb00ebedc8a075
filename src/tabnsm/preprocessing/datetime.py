"""Dates as calendar parts and elapsed time, and reading them from strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.preprocessing.column import Column

Micros = NDArray[np.int64]

DATE_PARTS = ("days", "year", "month", "day", "weekday", "day_of_year", "hour", "minute")
_DAY = 86_400_000_000

_TIME = (
    r"(?:[T ](?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?P<f>\.\d{1,9})?)?"
    r" ?(?P<p>[AaPp][Mm])?)? ?(?P<z>Z|[+-]\d{2}:?\d{2})?"
)
# In order of preference: 03/04/2020 is read as March 4 unless some row has a month above 12.
_DATE_FORMATS = {
    "Y-m-d": r"(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})",
    "Y/m/d": r"(?P<Y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})",
    "m/d/Y": r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<Y>\d{4})",
    "d/m/Y": r"(?P<d>\d{1,2})/(?P<m>\d{1,2})/(?P<Y>\d{4})",
    "d.m.Y": r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<Y>\d{4})",
}


def parse_dates(values: list[str], date_format: str) -> tuple[Micros, NDArray[np.bool_]]:
    """Read dates of one format, each with or without a time, a fraction and an offset.

    Parameters
    ----------
    values : list of str
        Strings.
    date_format : str
        "Y-m-d", "Y/m/d", "m/d/Y", "d/m/Y" or "d.m.Y".

    Returns
    -------
    tuple of ndarray
        Microseconds since 1970 in UTC, and a mask of the strings that could be read.

    Examples
    --------
    >>> micros, valid = parse_dates(["01/31/2024 01:00:00 PM", "31/01/2024"], "m/d/Y")
    >>> micros[0].astype("datetime64[us]"), valid
    (np.datetime64('2024-01-31T13:00:00.000000'), array([ True, False]))
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern = f"^{_DATE_FORMATS[date_format]}{_TIME}$"
    stripped = pc.utf8_trim_whitespace(pa.array(values, type=pa.string()))
    found = pc.extract_regex(stripped, pattern=pattern)
    valid = found.is_valid().to_numpy(zero_copy_only=False)

    def group(name: str) -> Any:
        return pc.fill_null(pc.struct_field(found, name), "")

    def integers(name: str) -> Micros:
        text = group(name)
        digits = pc.if_else(pc.equal(text, ""), "0", text)
        return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)

    year, month, day = integers("Y"), integers("m"), integers("d")
    hour, minute, second = integers("H"), integers("M"), integers("S")
    half = np.asarray(pc.utf8_lower(group("p")).to_pylist(), dtype="U2")
    twelve_hour = half != ""
    valid &= np.where(twelve_hour, (hour >= 1) & (hour <= 12), hour <= 23)
    hour = np.where(twelve_hour, hour % 12 + 12 * (half == "pm"), hour)
    valid &= (minute <= 59) & (second <= 59) & (year >= 1) & (month >= 1) & (month <= 12)
    year, month = np.where(valid, year, 1970), np.where(valid, month, 1)
    first = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    next_first = (first + np.timedelta64(1, "M")).astype("datetime64[D]")
    date = first.astype("datetime64[D]") + np.maximum(day - 1, 0)
    valid &= (day >= 1) & (date < next_first)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(group("f"), 7, "0"), 1, 7)
    micros = fraction.cast(pa.int64()).to_numpy(zero_copy_only=False)
    seconds = (hour * 60 + minute) * 60 + second - _offset_seconds(group("z").to_pylist())
    total = date.astype("datetime64[us]").astype(np.int64) + seconds * 1_000_000 + micros
    return np.where(valid, total, 0), valid


def find_date_format(values: list[str]) -> str | None:
    """The first known format that reads every string.

    Parameters
    ----------
    values : list of str
        Distinct strings of the fit rows.

    Returns
    -------
    str or None
        Name of the format; None if they are not all dates.

    Examples
    --------
    >>> find_date_format(["03/04/2020", "25/12/2020"])
    'd/m/Y'
    >>> find_date_format(["2020-01-01", "soon"]) is None
    True
    """
    # Free text is told from dates by its first strings, without reading the rest.
    sample = values[:20]
    for date_format in _DATE_FORMATS:
        if parse_dates(sample, date_format)[1].all() and parse_dates(values, date_format)[1].all():
            return date_format if values else None
    return None


def read_dates(column: Column, date_format: str | None) -> tuple[Micros, NDArray[np.bool_]]:
    """A date column as microseconds since 1970, beside a mask of the missing ones.

    Strings that are no dates count as missing; a column without any value may be of any type.

    Parameters
    ----------
    column : Column
        Dates or strings.
    date_format : str or None
        Format of strings; None tries all, the preferred one first.

    Returns
    -------
    tuple of ndarray
        Microseconds (0 where missing) and the mask.

    Raises
    ------
    InvalidDataError
        If the column holds numbers.
    """
    if column.storage == "temporal":
        return column.to_microseconds()
    factor = column.to_factor()
    if column.storage == "number" and factor.values:
        raise InvalidDataError(
            f"Column {column.name!r} must hold dates, as it did when the model was fitted, got "
            "numbers. Convert them, for example with pandas.to_datetime."
        )
    micros = np.zeros(len(factor.values) + 1, dtype=np.int64)
    missing = np.ones(len(factor.values) + 1, dtype=bool)
    for name in [date_format] if date_format else list(_DATE_FORMATS):
        todo = np.flatnonzero(missing[:-1])
        parsed, valid = parse_dates([factor.values[position] for position in todo], name)
        micros[todo], missing[todo] = parsed, ~valid
    return micros[factor.codes], missing[factor.codes]


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


def _offset_seconds(offsets: list[str]) -> NDArray[np.int64]:
    distinct = {
        text: 0
        if text in ("", "Z")
        else (1 if text[0] == "+" else -1) * (int(text[1:3]) * 3600 + int(text[-2:]) * 60)
        for text in set(offsets)
    }
    return np.array([distinct[text] for text in offsets], dtype=np.int64)
