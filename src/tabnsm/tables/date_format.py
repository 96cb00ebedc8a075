"""Dates as people write them: which format a column has, and reading it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.markers import (
    SAMPLE_SIZE,
    frequent_values,
    is_marker,
    mostly_readable,
    pick,
)
from tabnsm.tables.stored import in_parts

Micros = NDArray[np.int64]
Mask = NDArray[np.bool_]

# fmt: off
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)
# fmt: on
MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, start=1)} | {"sept": 9}
MONTH_NUMBERS |= {name[:3]: number for name, number in MONTH_NUMBERS.items()}

_TIME = (
    r"(?:(?:T|,? )(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?P<f>\.\d{1,9})?)?"
    r" ?(?P<p>[AaPp][Mm])?)? ?(?P<z>Z|GMT|UTC|[+-]\d{2}:?\d{2})?"
)
_DAY = r"(?P<d>\d{1,2})"
_MONTH = r"(?P<m>\d{1,2})"
_NAME = r"(?P<b>[A-Za-z]{3,9})"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\.?,? )?"
_ORDINAL = r"(?:st|nd|rd|th)?"
# In order of preference. What can be read in two ways is decided by `find_date_format`.
_DATE_FORMATS = {
    "Y-m-d": rf"(?P<Y>\d{{4}})-{_MONTH}-{_DAY}",
    "Y/m/d": rf"(?P<Y>\d{{4}})/{_MONTH}/{_DAY}",
    "m/d/Y": rf"{_MONTH}/{_DAY}/(?P<Y>\d{{4}})",
    "d/m/Y": rf"{_DAY}/{_MONTH}/(?P<Y>\d{{4}})",
    "d.m.Y": rf"{_DAY}\.{_MONTH}\.(?P<Y>\d{{4}})",
    "Y.m.d": rf"(?P<Y>\d{{4}})\.{_MONTH}\.{_DAY}",
    "m-d-Y": rf"{_MONTH}-{_DAY}-(?P<Y>\d{{4}})",
    "d-m-Y": rf"{_DAY}-{_MONTH}-(?P<Y>\d{{4}})",
    "d b Y": rf"{_WEEKDAY}{_DAY}{_ORDINAL}[ -]{_NAME}\.?,?[ -](?P<Y>\d{{4}}|\d{{2}})",
    "b d Y": rf"{_WEEKDAY}{_NAME}\.?[ -]{_DAY}{_ORDINAL}(?:, ?|[ -])(?P<Y>\d{{4}})",
    "Y b d": rf"(?P<Y>\d{{4}})[ -]{_NAME}\.?[ -]{_DAY}",
    "b Y": rf"{_NAME}\.?,?[ -](?P<Y>\d{{4}})",
    "m/d/y": rf"{_MONTH}/{_DAY}/(?P<Y>\d{{2}})",
    "d/m/y": rf"{_DAY}/{_MONTH}/(?P<Y>\d{{2}})",
    # Two digits each, so that versions such as 1.2.10 are no dates.
    "d.m.y": r"(?P<d>\d{2})\.(?P<m>\d{2})\.(?P<Y>\d{2})",
    "m-d-y": r"(?P<m>\d{2})-(?P<d>\d{2})-(?P<Y>\d{2})",
    "d-m-y": r"(?P<d>\d{2})-(?P<m>\d{2})-(?P<Y>\d{2})",
}
_DAY_FIRST = {"m/d/Y": "d/m/Y", "m-d-Y": "d-m-Y", "m/d/y": "d/m/y", "m-d-y": "d-m-y"}
_ORDERED = {*_DAY_FIRST, *_DAY_FIRST.values()}
_TWO_NUMBERS = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-]\d{2}")
_SEPARATOR = ", "
ANY_DATE = _SEPARATOR.join(_DATE_FORMATS)
"""All formats, the month first where a date does not tell."""


@dataclass(frozen=True)
class DateFormat:
    """How the dates of one column are written.

    Parameters
    ----------
    name : str
        One of the formats, such as "Y-m-d", or several with commas between them, tried in turn.
    ambiguous : str
        A date of which the rows do not tell whether the month comes first; empty if there is none.
    """

    name: str
    ambiguous: str = ""

    @property
    def is_day_first(self) -> bool:
        """Whether ambiguous dates are read with the day first."""
        ordered = [form for form in self.name.split(_SEPARATOR) if form in _ORDERED]
        return bool(ordered) and ordered[0] not in _DAY_FIRST


@in_parts
def parse_dates(values: Sequence[str], date_format: str) -> tuple[Micros, Mask]:
    """Read dates, each with or without a time, a fraction and an offset.

    A format is "Y-m-d", "m/d/Y", "d b Y" (b is the name of a month) and so on, or several of them.
    Returns microseconds since 1970 in UTC, and a mask of the strings that could be read.

    Examples
    --------
    >>> micros, valid = parse_dates(["01/31/2024 01:00:00 PM", "31/01/2024"], "m/d/Y")
    >>> micros[0].astype("datetime64[us]"), valid
    (np.datetime64('2024-01-31T13:00:00.000000'), array([ True, False]))
    """
    micros = np.zeros(len(values), dtype=np.int64)
    valid = np.zeros(len(values), dtype=bool)
    for name in date_format.split(_SEPARATOR):
        rest = ~valid
        if rest.any():
            micros[rest], valid[rest] = _parse(pick(values, rest), name)
    return micros, valid


def date_patterns(date_format: str) -> list[str]:
    """A regular expression per format, with a group for each part of a date and time.

    Examples
    --------
    >>> import re
    >>> re.fullmatch(date_patterns("d.m.Y")[0], "31.01.2024 12:30").groupdict("")["Y"]
    '2024'
    """
    return [f"{_DATE_FORMATS[name]}{_TIME}" for name in date_format.split(_SEPARATOR)]


def find_date_format(
    values: Sequence[str], counts: NDArray[np.int64] | None = None, *, forced: bool = False
) -> DateFormat | None:
    """The format, or formats, in which nearly all strings of a column are dates.

    The first known format that reads all of them is taken; else each is read by the first that
    fits. Where the order of day and month is open, other rows of the column tell it, and the month
    comes first if they do not. Takes the distinct strings of the fit rows and how often each
    occurs, once by default. `forced` means that the column is known to hold dates, so that one that
    can be read is enough.

    Examples
    --------
    >>> find_date_format(["03/04/2020", "25/12/2020"])
    DateFormat(name='d/m/Y', ambiguous='')
    >>> find_date_format(["29 Aug 2011", "08/30/2011"])
    DateFormat(name='d b Y, m/d/Y', ambiguous='')
    >>> find_date_format(["2020-01-01", "soon"]) is None
    True
    """
    counts = np.ones(len(values), dtype=np.int64) if counts is None else counts
    sample, weights = (values, counts) if forced else frequent_values(values, counts)
    alike = np.array(
        [bool(_like_a_date().fullmatch(value.strip())) for value in sample], dtype=bool
    )
    # A few strings tell free text from dates, without reading the rest.
    if not alike.any() or not (forced or weights[alike].sum() >= weights.sum() / 2):
        return None
    markers = is_marker(values)
    present = pick(values, ~markers)
    name, micros, valid = _read_by_any(present, counts[~markers])
    if not name:
        return None
    readable = np.zeros(len(values), dtype=bool)
    readable[~markers] = valid
    n_distinct = len(np.unique(micros[valid]))
    if not (forced or mostly_readable(readable, markers, counts, n_distinct)):
        return None
    return DateFormat(name, _find_ambiguous(present, name))


def find_ambiguous(values: Sequence[str]) -> str:
    """A date of which a string does not tell whether the month comes first.

    Empty if there is none.

    Examples
    --------
    >>> find_ambiguous(["2020-01-02", "05/05/2020", "13/01/2020", "01/02/2020"])
    '01/02/2020'
    """
    for value in values:
        match = _TWO_NUMBERS.match(value.strip())
        first, second = (int(match[1]), int(match[2])) if match else (0, 0)
        if first != second and max(first, second) <= 12:
            return value
    return ""


@cache
def _like_a_date() -> re.Pattern[str]:
    """Any date; compiled when a column of strings is fitted, for it takes as long as an import."""
    forms = (re.sub(r"\?P<\w>", "", f"{form}{_TIME}") for form in _DATE_FORMATS.values())
    return re.compile("|".join(forms))


def _read_by_any(values: Sequence[str], counts: NDArray[np.int64]) -> tuple[str, Micros, Mask]:
    """Formats that read most of the strings, month or day first as more rows prove."""
    for name in _DATE_FORMATS:
        if _parse(values[:SAMPLE_SIZE], name)[1].all():
            micros, valid = _parse(values, name)
            if valid.all():
                return name, micros, valid
    micros, valid = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    used = []
    for name in _in_order(values, counts):
        rest = ~valid
        if rest.any():
            parsed, fits = _parse(pick(values, rest), name)
            if fits.any():
                used.append(name)
                micros[rest], valid[rest] = parsed, fits
    return _SEPARATOR.join(used), micros, valid


def _in_order(values: Sequence[str], counts: NDArray[np.int64]) -> list[str]:
    """All formats; those of which two read the same string by what other rows prove."""
    month_first, day_first = _proofs(values)
    names = [name for name in _DATE_FORMATS if name not in _ORDERED]
    pairs = [list(_DAY_FIRST), list(_DAY_FIRST.values())]
    if counts[day_first].sum() > counts[month_first].sum():
        pairs.reverse()
    return names + pairs[0] + pairs[1]


def _proofs(values: Sequence[str]) -> tuple[Mask, Mask]:
    """Which strings can be dates only if the month, or the day, comes first."""
    month_first = parse_dates(values, _SEPARATOR.join(_DAY_FIRST))[1]
    day_first = parse_dates(values, _SEPARATOR.join(_DAY_FIRST.values()))[1]
    return month_first & ~day_first, day_first & ~month_first


def _find_ambiguous(values: Sequence[str], name: str) -> str:
    """A date that means another day in the other order, unless all proofs are for one order."""
    if _ORDERED.isdisjoint(name.split(_SEPARATOR)):
        return ""
    month_first, day_first = _proofs(values)
    if month_first.any() != day_first.any():
        return ""
    return find_ambiguous(values)


@in_parts
def _parse(values: Sequence[str], date_format: str) -> tuple[Micros, Mask]:
    """Read dates of one format."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stripped = pc.utf8_trim_whitespace(pa.array(values, type=pa.string()))
    found = pc.extract_regex(stripped, pattern=f"^{date_patterns(date_format)[0]}$")
    valid = found.is_valid().to_numpy(zero_copy_only=False)

    def group(name: str) -> Any:
        return pc.fill_null(pc.struct_field(found, name), "")

    def integers(name: str) -> Micros:
        text = group(name)
        digits = pc.if_else(pc.equal(text, ""), "0", text)
        return np.asarray(digits.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)

    year, hour, minute, second = integers("Y"), integers("H"), integers("M"), integers("S")
    if "b" in date_format:
        month = np.array([MONTH_NUMBERS.get(name.lower(), 0) for name in group("b").to_pylist()])
    else:
        month = integers("m")
    day = integers("d") if "d" in date_format else np.ones(len(values), dtype=np.int64)
    two_digits = pc.equal(pc.utf8_length(group("Y")), 2).to_numpy(zero_copy_only=False)
    # As strptime: 69 to 99 are of the last century.
    year = np.where(two_digits, year + np.where(year >= 69, 1900, 2000), year)
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


def _offset_seconds(offsets: list[str]) -> NDArray[np.int64]:
    distinct = {
        text: 0
        if text in ("", "Z", "GMT", "UTC")
        else (1 if text[0] == "+" else -1) * (int(text[1:3]) * 3600 + int(text[-2:]) * 60)
        for text in set(offsets)
    }
    return np.array([distinct[text] for text in offsets], dtype=np.int64)
