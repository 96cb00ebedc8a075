"""Days that recur, such as holidays: what they add to the target, learned from other years."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.date import DateColumns
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.layout import Layout
from tabnsm.columns.relevance import MIN_ROWS, residual_of, samples
from tabnsm.columns.target_means import N_FOLDS, shrunken_means
from tabnsm.columns.value_means import DayMeans

Floats = NDArray[np.float64]

# NOTE[DIFF]: the paper has no dates; a dozen rows of "4 July" are too few for bins of days.
MIN_YEARS = 3
MIN_GAIN = 0.01
"""Share of what the other columns leave open that the days must explain in other years."""
_N_MONTHS, _N_DAYS = 12, 31


class DateFeatures(NamedTuple):
    """Where the calendar parts of a date column are among the dense features."""

    month: int
    weekday: int
    day: int
    year: int


class FoundDays(NamedTuple):
    """Days of one column and target, with their values in the rows that they come from."""

    part: DayMeans
    rows: NDArray[np.int64]
    held_out: Floats


def date_features(groups: Sequence[ColumnGroup], layout: Layout) -> list[DateFeatures]:
    """The date columns that have all of the parts that are needed."""
    found = []
    dates = next(group for group in groups if isinstance(group, DateColumns))
    for spec in dates.specs:
        if set(DateFeatures._fields) <= set(spec.date_parts):
            first = layout.value_at[spec.position]
            places = [first + spec.date_parts.index(name) for name in DateFeatures._fields]
            found.append(DateFeatures(*places))
    return found


def find_recurring_days(
    dense: NDArray[np.float32],
    category_sizes: Sequence[int],
    dates: Sequence[DateFeatures],
    target: Floats,
    rows: NDArray[np.int64] | None,
) -> list[FoundDays]:
    """Days that explain what boosted trees on all other features leave open.

    Parameters
    ----------
    dense : ndarray of float32, shape (n, d)
        Encoded features but text.
    category_sizes : sequence of int
        Number of codes of each of them, 0 for a number.
    dates : sequence of DateFeatures
    target : ndarray of float64, shape (n, t)
    rows : ndarray of int64 or None
        Fit rows; None for all.
    """
    found: list[FoundDays] = []
    if not dates:
        return found
    for t, (known, y) in enumerate(samples(target, rows, len(dense))):
        some = dense[known]
        usable = [date for date in dates if _is_usable(some, date)]
        if len(known) < MIN_ROWS or not usable:
            continue
        residual = residual_of(some, category_sizes, y)
        residual -= residual.mean()
        for date in usable:
            part, held_out = _fit_days(some, date, residual, t)
            if part.gain >= MIN_GAIN:
                found.append(FoundDays(part, known, held_out / (held_out.std() or 1.0)))
                residual = residual - held_out
    return found


def _is_present(some: NDArray[np.float32], date: DateFeatures) -> NDArray[np.bool_]:
    """Whether a row has the date; all parts of a missing one are 0."""
    return np.asarray((some[:, date.month] != 0) | (some[:, date.day] != 0))


def _is_usable(some: NDArray[np.float32], date: DateFeatures) -> bool:
    present = some[_is_present(some, date)]
    years, months, days = (
        len(np.unique(present[:, place])) for place in (date.year, date.month, date.day)
    )
    return years >= MIN_YEARS and months == _N_MONTHS and days == _N_DAYS


def _fit_days(
    some: NDArray[np.float32], date: DateFeatures, residual: Floats, target: int
) -> tuple[DayMeans, Floats]:
    """Effects of each day, and those of the rows from other years."""
    present = _is_present(some, date)
    some, known = some[present], residual[present]
    features = (date.month, date.weekday, date.day)
    values, codes = zip(
        *(np.unique(some[:, place], return_inverse=True) for place in features), strict=True
    )
    month, weekday, day = codes
    n_weekdays = len(values[1])
    week, n_weeks = day // 7, (_N_DAYS - 1) // 7 + 1
    folds = np.unique(some[:, date.year], return_inverse=True)[1] % N_FOLDS
    # 25 December, and the fourth Thursday of November.
    calendars = (
        (month * _N_DAYS + day, _N_MONTHS * _N_DAYS),
        ((month * n_weekdays + weekday) * n_weeks + week, _N_MONTHS * n_weekdays * n_weeks),
    )
    held_out, effects, left = np.zeros(len(some)), [], known
    for code, n_codes in calendars:
        own = np.zeros(len(some))
        for fold in range(N_FOLDS):
            inside = folds == fold
            own[inside] = shrunken_means(code[~inside], left[~inside], n_codes)[code[inside]]
        effects.append(shrunken_means(code, left, n_codes))
        held_out += own
        left = left - own
    by_date = effects[0].reshape(_N_MONTHS, 1, _N_DAYS)
    by_week = effects[1].reshape(_N_MONTHS, n_weekdays, n_weeks)
    means = by_date + by_week[:, :, np.arange(_N_DAYS) // 7]
    scaled = np.asarray(means / (held_out.std() or 1.0), dtype=np.float32)
    explained = np.square(known).sum() - np.square(left).sum()
    gain = float(explained / max(np.square(residual).sum(), 1e-300))
    found = np.zeros(len(residual))
    found[present] = held_out
    return DayMeans(features, target, values, scaled, gain), found
