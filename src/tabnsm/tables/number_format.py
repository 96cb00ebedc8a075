"""Numbers as people write them: currencies, separators, units, percent, accounting negatives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.markers import frequent_values, is_marker, mostly_readable, pick
from tabnsm.tables.stored import in_parts

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# As pandas.read_csv, so that a boolean means the same in a file and in a DataFrame.
_BOOLEANS = {"true": 1.0, "false": 0.0}
_SIGNS = "$¢£¤¥֏؋৳฿៛₠-⃀﷼＄￠￡￥￦"
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|"
    "KRW|KWD|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|QAR|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    "VND|ZAR"
)
_CURRENCY = re.compile(rf"(?:US|[AC])?[{_SIGNS}]|R\$|Rs\.?|kr\.?|zł|{_CODES}")
_UNIT = r"(?:[^\W\d_]|[%‰°\"'/])[^\d()\[\]{},;:?!]{0,15}[23]?"
_LIKE_A_NUMBER = re.compile(
    rf"\(?[-+]? ?(?P<prefix>{_CURRENCY.pattern})? ?[-+]? ?\(?"
    rf"[.,]?\d(?:[\d.,' ]*\d)?[.,]?(?:[eE][-+]?\d+)? ?"
    rf"(?P<suffix>{_CURRENCY.pattern}|{_UNIT})? ?\)?"
)

REPLACEMENTS = (
    ("[\\s\u00a0\u2007\u2009\u202f]+", " "),
    ("[\u2212\u2013\ufe63\uff0d]", "-"),
    ("[\u2019\u02bc]", "'"),
)
"""Regular expressions of odd blanks, minus signs and apostrophes, and what stands for them."""


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of one column are written.

    Numbers without separators are read in any format, so that "1,234" can be read as well where
    no training row is above 999.

    Parameters
    ----------
    thousands : str
        Separator of groups of three digits: ",", ".", " " (any blank) or "'"; "" for none.
    decimal : str
        Decimal mark: "." or ",".
    prefix : str
        A currency that may stand before the number.
    suffix : str
        A currency, "%" or a unit that may stand after it.

    Examples
    --------
    >>> parse_numbers(["$1,234.5", "($2)", "3"], NumberFormat(prefix="$"))[0]
    array([1234.5,   -2. ,    3. ])
    """

    thousands: str = ","
    decimal: str = "."
    prefix: str = ""
    suffix: str = ""

    def describe(self, values: Sequence[str]) -> str:
        """The format by an example, for the user.

        Empty if the numbers among the distinct strings are plain.

        Examples
        --------
        >>> NumberFormat(".", ",", suffix="kg").describe(["12,5 kg"])
        'numbers written as 1.234,5 kg'
        """
        if self == PLAIN:
            others = pick(values, ~parse_floats(values)[1])
            if not parse_numbers(others, PLAIN)[1].any():
                return ""
        gap = " " if self.prefix[-1:].isalpha() else ""
        unit = f" {self.suffix}" if self.suffix[:1].isalpha() else self.suffix
        number = f"1{self.thousands}234{self.decimal}5"
        return f"numbers written as {self.prefix}{gap}{number}{unit}"

    @property
    def needs_unit(self) -> bool:
        """Whether a number without the suffix might mean something else, as 0.5 among 50%."""
        return bool(self.suffix) and not _CURRENCY.fullmatch(self.suffix)

    @property
    def pattern(self) -> str:
        """Regular expression of a number; what must fit together is checked afterwards."""
        thousands, decimal = re.escape(self.thousands), re.escape(self.decimal)
        whole = rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|\d+" if thousands else r"\d+"
        number = rf"(?:(?:{whole})(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?"
        return (
            rf"^(?P<open>\(?)(?P<sign>[-+]?) ?(?:{re.escape(self.prefix)})? ?(?P<inner>[-+]?) ?"
            rf"(?P<opens>\(?)(?P<number>{number}) ?(?P<unit>(?:{re.escape(self.suffix)})?) ?"
            r"(?P<close>\)?)$"
        )


PLAIN = NumberFormat()
# In order of preference: "1,234" is 1234 and "1.234" is 1.234 unless other rows say otherwise.
_SEPARATORS = [(",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ",")]


@in_parts
def parse_floats(values: Sequence[str]) -> tuple[Floats, Mask]:
    """Plain numbers and booleans written as strings.

    Returns the numbers, NaN where there is none, and a mask of those that could be read.

    Examples
    --------
    >>> parse_floats(["1.5", "no"])
    (array([1.5, nan]), array([ True, False]))
    """
    parsed = np.full(len(values), np.nan)
    valid = np.ones(len(values), dtype=bool)
    for position, value in enumerate(values):
        try:
            # Python reads "1_000" as a number; no table means that.
            parsed[position] = float(value) if "_" not in value else float("_")
        except ValueError:
            boolean = _BOOLEANS.get(value.strip().lower())
            if boolean is None:
                valid[position] = False
            else:
                parsed[position] = boolean
    return parsed, valid


@in_parts
def parse_numbers(values: Sequence[str], number_format: NumberFormat) -> tuple[Floats, Mask, Mask]:
    """Numbers of one format; plain ones are read too.

    Returns the numbers, NaN where there is none, a mask of those that could be read, and a mask of
    those that are written just so, with their unit.

    Examples
    --------
    >>> parse_numbers(["1.234,5 kg", "2", "3 g"], NumberFormat(".", ",", suffix="kg"))
    (array([1234.5,    2. ,    nan]), array([ True,  True, False]), array([ True, False, False]))
    """
    if number_format.decimal == ".":
        parsed, valid = parse_floats(values)
        exact = valid & (not number_format.needs_unit)
    else:
        parsed, valid = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
        exact = valid.copy()
    rest = ~valid
    if rest.any():
        parsed[rest], valid[rest], exact[rest] = _match(pick(values, rest), number_format)
    rest = ~valid
    if number_format.decimal == "," and rest.any():
        # "1234.5" among numbers such as "1.234,5" can mean one thing only.
        parsed[rest], valid[rest] = parse_floats(pick(values, rest))
    return parsed, valid, exact


def find_number_format(
    values: Sequence[str], counts: NDArray[np.int64], *, forced: bool = False
) -> NumberFormat | None:
    """The format in which nearly all strings of a column are numbers.

    Takes the distinct strings of the fit rows and how often each occurs; None if they are something
    else: text, dates, or codes such as "01234". `forced` means that the column is known to hold
    numbers, so that one that can be read is enough.

    Examples
    --------
    >>> find_number_format(["$1,234.50", "$99", "?"], np.array([5, 4, 2]))
    NumberFormat(thousands=',', decimal='.', prefix='$', suffix='')
    >>> find_number_format(["01234", "98101"], np.array([1, 1])) is None
    True
    """
    if not values:
        return None
    sample, weights = (values, counts) if forced else frequent_values(values, counts)
    if parse_floats(sample)[1].all() and parse_floats(values)[1].all():
        return PLAIN if forced or not are_codes(values) else None
    # A few strings tell free text from numbers, without reading the rest.
    candidates = _candidates(sample, weights, minimum=1 if forced else weights.sum() / 2)
    if not candidates:
        return None
    markers = is_marker(values)
    found, parsed, exact, best = None, np.empty(0), markers, -1
    for candidate in candidates:
        numbers, _, written_so = parse_numbers(values, candidate)
        n_rows = int(counts[written_so & ~markers].sum())
        if n_rows > best:
            found, parsed, exact, best = candidate, numbers, written_so, n_rows
        if n_rows == counts[~markers].sum():
            break
    if forced:
        return found if best > 0 else None
    n_distinct = len(np.unique(parsed[exact & ~markers]))
    if not mostly_readable(exact, markers, counts, n_distinct):
        return None
    return None if are_codes(pick(values, exact & ~markers)) else found


def are_codes(values: Sequence[str]) -> bool:
    """Whether strings of digits are codes: leading zeros mean something, as in "01234".

    True if all are digits and one of several digits begins with 0.

    Examples
    --------
    >>> are_codes(["01234", "98101"]), are_codes(["0", "5"]), are_codes(["00.5", "1"])
    (True, False, False)
    """
    stripped = (value.strip() for value in values)
    return any(len(value) > 1 and value[0] == "0" and value.isdigit() for value in stripped) and (
        all(value.strip().isdigit() for value in values)
    )


def _candidates(
    sample: Sequence[str], weights: NDArray[np.int64], minimum: float
) -> list[NumberFormat]:
    """Formats that read at least `minimum` rows of a sample, in order of preference."""
    matches = [_LIKE_A_NUMBER.fullmatch(value) for value in _normalize(sample).to_pylist()]
    shapes = [match for match in matches if match is not None]
    if not shapes or weights[[match is not None for match in matches]].sum() < minimum:
        return []
    affixed = NumberFormat(
        prefix=_most_common([match["prefix"] for match in shapes], or_none=False),
        suffix=_most_common([match["suffix"] for match in shapes], or_none=True),
    )
    formats = [replace(affixed, thousands=t, decimal=d) for t, d in _SEPARATORS]
    return [form for form in formats if weights[parse_numbers(sample, form)[2]].sum() >= minimum]


def _most_common(affixes: list[str | None], *, or_none: bool) -> str:
    """The affix of most numbers; a currency counts also where most numbers do without."""
    counts = Counter((affix or "").strip() for affix in affixes)
    n_without = counts.pop("", 0)
    if not counts:
        return ""
    affix, n_rows = counts.most_common(1)[0]
    optional = not or_none or _CURRENCY.fullmatch(affix)
    return affix if optional or n_rows > n_without else ""


def _match(values: Sequence[str], number_format: NumberFormat) -> tuple[Floats, Mask, Mask]:
    """Numbers by the format's pattern: values, which could be read, which have the unit."""
    import pyarrow.compute as pc

    found = pc.extract_regex(_normalize(values), pattern=number_format.pattern)
    fields = {
        name: pc.fill_null(pc.struct_field(found, name), "")
        for name in ("open", "sign", "inner", "opens", "number", "unit", "close")
    }
    has = {
        name: pc.not_equal(text, "").to_numpy(zero_copy_only=False) for name, text in fields.items()
    }
    in_brackets = has["open"] | has["opens"]
    n_signs = has["sign"].astype(int) + has["inner"] + has["open"] + has["opens"]
    valid = has["number"] & (in_brackets == has["close"]) & (n_signs <= 1)
    number = fields["number"]
    if number_format.thousands:
        number = pc.replace_substring(number, number_format.thousands, "")
    number = pc.replace_substring(number, number_format.decimal, ".")
    parsed = np.array([float(text) if text else np.nan for text in number.to_pylist()])
    minus = pc.or_(pc.equal(fields["sign"], "-"), pc.equal(fields["inner"], "-"))
    negative = in_brackets | minus.to_numpy(zero_copy_only=False)
    parsed = np.where(valid, np.where(negative, -parsed, parsed), np.nan)
    return parsed, valid, valid & (has["unit"] | (not number_format.needs_unit))


def _normalize(values: Sequence[str]) -> Any:
    """One kind of blank, minus and apostrophe each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.array(values, type=pa.large_string())
    for pattern, plain in REPLACEMENTS:
        text = pc.replace_substring_regex(text, pattern, plain)
    return pc.utf8_trim_whitespace(text)
