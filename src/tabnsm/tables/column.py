"""One column of the user's table as arrow data, with the conversions the encoders need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.number_format import PLAIN, NumberFormat, parse_numbers
from tabnsm.tables.objects import from_objects, nested_error
from tabnsm.tables.stored import StoredStrings, choose

F = TypeVar("F")
T = TypeVar("T")
Storage = Literal["number", "string", "categorical", "temporal", "empty"]

_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Factor:
    """A column as codes into its distinct strings, none of them blank; -1 is missing."""

    codes: NDArray[np.int64]
    values: Sequence[str]

    def counts(self, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """How often each value occurs in some rows, the last entry counting missing ones.

        None is all rows.
        """
        codes = self.codes if rows is None else self.codes[rows]
        n_values = len(self.values)
        return np.bincount(np.where(codes < 0, n_values, codes), minlength=n_values + 1)

    def used(
        self, rows: NDArray[np.int64] | None = None
    ) -> tuple[Sequence[str], NDArray[np.int64]]:
        """The values that occur in some rows, and how often each does.

        None is all rows.
        """
        counts = self.counts(rows)[:-1]
        found = np.flatnonzero(counts)
        return choose(self.values, found), counts[found]


class Column:
    """One column, whatever library it came from.

    Its values are a pyarrow Array or ChunkedArray; missing ones are null or NaN. With
    `is_written`, codes into a dictionary are plain strings, and no categories of the user's.
    """

    def __init__(self, name: str, data: Any, *, is_written: bool = False) -> None:
        self.name = name
        self._is_written = is_written
        self._data = _simplify_type(name, data)
        self._type = self._data.type
        self._n_rows = len(self._data)
        self._parsed: dict[tuple[Any, Any], Any] = {}

    @classmethod
    def from_factor(cls, name: str, factor: Factor) -> Column:
        """A column of strings whose distinct values are known."""
        import pyarrow as pa

        column = cls(name, pa.array([], pa.large_string()))
        column._n_rows = len(factor.codes)
        column.__dict__["_factor"] = factor
        return column

    @property
    def is_stored(self) -> bool:
        """Whether its distinct strings are in files."""
        factor = self.__dict__.get("_factor")
        return factor is not None and isinstance(factor.values, StoredStrings)

    def __len__(self) -> int:
        return self._n_rows

    @cached_property
    def storage(self) -> Storage:
        """How the values are stored, before any look at what they mean."""
        import pyarrow.types as pt

        kind = self._type
        if pt.is_null(kind):
            return "empty"
        if pt.is_dictionary(kind):
            return "string" if self._is_written else "categorical"
        if pt.is_timestamp(kind) or pt.is_date(kind):
            return "temporal"
        return "string" if _is_string(kind) else "number"

    @property
    def is_duration(self) -> bool:
        """Whether the values are lengths of time, which become seconds."""
        import pyarrow.types as pt

        return bool(pt.is_duration(self._type))

    def to_float(self, number_format: NumberFormat = PLAIN) -> NDArray[np.float64]:
        """Values as float64 with NaN for missing ones, and for strings that are no numbers.

        Durations become seconds, times of day seconds since midnight, dates seconds since 1970.
        """
        if self.storage == "empty":
            return np.full(len(self), np.nan)
        if self.storage in ("string", "categorical"):
            factor = self.to_factor()
            return np.append(self.parse(parse_numbers, number_format)[0], np.nan)[factor.codes]
        if self.storage == "temporal":
            micros, missing = self.to_microseconds()
            return np.where(missing, np.nan, micros / _MICROSECONDS)
        return _numbers_to_float(self._data)

    def to_microseconds(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Dates as microseconds since 1970 in UTC, beside a mask of the missing ones.

        Missing ones are 0.
        """
        import pyarrow as pa

        data = _one_chunk(self._data)
        kind = data.type
        micros = data.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False)
        missing = micros.is_null().to_numpy(zero_copy_only=False)
        return micros.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), missing

    def to_factor(self) -> Factor:
        """Values as codes into distinct strings; numbers and dates are written out.

        Whole numbers are written without a decimal point, so that 98101.0 (a float only because
        another row is missing) and 98101 are the same string. Blank strings are missing.
        """
        return self._factor

    @cached_property
    def _factor(self) -> Factor:
        import pyarrow.types as pt

        if self.storage == "empty":
            return Factor(np.full(len(self), -1, dtype=np.int64), [])
        if self.storage == "number":
            is_boolean = pt.is_boolean(self._type)
            return _factorize(self.to_float(), _write_boolean if is_boolean else _write_number)
        if self.storage == "temporal":
            micros, missing = self.to_microseconds()
            factor = _factorize(micros, write_date)
            return Factor(np.where(missing, -1, factor.codes), factor.values)
        factor = _factorize_strings(self._data)
        self._data = None  # the factor says it all, and is kept beside other columns of a fit
        return factor

    def parse(self, parser: Callable[[Sequence[str], F], T], written: F) -> T:
        """Parse the distinct strings, once for each parser and format unless they are in files.

        The format must be hashable and the result is not to be changed.
        """
        if self.is_stored:
            return parser(self.to_factor().values, written)
        key = (parser, written)
        if key not in self._parsed:
            self._parsed[key] = parser(self.to_factor().values, written)
        parsed: T = self._parsed[key]
        return parsed


def write_date(micros: NDArray[np.int64]) -> list[str]:
    """Dates in ISO form, without the time where it is midnight.

    Examples
    --------
    >>> write_date(np.array([0, 3_600_000_000, 1_500_000]))
    ['1970-01-01', '1970-01-01T01:00:00', '1970-01-01T00:00:01.500000']
    """
    stamps = np.datetime_as_string(micros.astype("datetime64[us]"), unit="us")
    return [
        str(stamp).removesuffix(".000000").removesuffix("T00:00:00") for stamp in stamps.tolist()
    ]


def _write_number(values: NDArray[np.float64]) -> list[str]:
    return [str(int(v)) if v.is_integer() and abs(v) < 2**63 else repr(v) for v in values.tolist()]


def _write_boolean(values: NDArray[np.float64]) -> list[str]:
    return [str(bool(value)) for value in values.tolist()]


def _factorize(values: NDArray[Any], write: Any) -> Factor:
    distinct, codes = np.unique(values, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    if distinct.dtype.kind == "f" and len(distinct) and np.isnan(distinct[-1]):
        distinct = distinct[:-1]  # NaN sorts last and appears once
        codes[codes == len(distinct)] = -1
    return Factor(codes, write(distinct))


def _factorize_strings(data: Any) -> Factor:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as pt

    data = _one_chunk(data)
    if not pt.is_dictionary(data.type):
        if not pt.is_large_string(data.type):
            data = data.cast(pa.large_string())
        data = data.dictionary_encode()
    dictionary = data.dictionary
    if not _is_string(dictionary.type):
        written = Column("", dictionary).to_factor()
        codes_of_value, values = written.codes, written.values
    else:
        stripped = pc.utf8_trim_whitespace(dictionary).to_pylist()
        # Blank and null entries of the dictionary are missing values.
        kept = [position for position, value in enumerate(stripped) if value]
        original = dictionary.to_pylist()
        values = [original[position] for position in kept]
        codes_of_value = np.full(len(stripped), -1, dtype=np.int64)
        codes_of_value[kept] = np.arange(len(kept))
    codes = data.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Factor(np.append(codes_of_value, -1)[codes], values)


def _numbers_to_float(data: Any) -> NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.types as pt

    data = _one_chunk(data)
    kind = data.type
    if pt.is_duration(kind) or pt.is_time(kind):
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = data.view(pa.int64() if kind.bit_width == 64 else pa.int32())
        return _numbers_to_float(whole) / per_second
    values = data.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def _is_string(kind: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view")


def _one_chunk(data: Any) -> Any:
    import pyarrow as pa

    if not isinstance(data, pa.ChunkedArray):
        return data
    if data.num_chunks == 1:
        return data.chunk(0)
    return data.combine_chunks() if data.num_chunks else pa.array([], type=data.type)


def _simplify_type(name: str, data: Any) -> Any:
    """Turn the rarer arrow types into one of those that :class:`Column` knows."""
    import pyarrow as pa
    import pyarrow.types as pt

    kind = data.type
    if pt.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return _simplify_type(name, pc.run_end_decode(_one_chunk(data)))
    if pt.is_dictionary(kind):
        if pt.is_nested(kind.value_type):
            raise nested_error(name, kind)
        return data
    if pt.is_nested(kind):
        raise nested_error(name, kind)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return from_objects(name, data.to_pylist())
    known = pt.is_primitive(kind) or pt.is_null(kind) or pt.is_decimal(kind) or _is_string(kind)
    if not known or pt.is_interval(kind):
        return pa.array([None if v is None else str(v) for v in data.to_pylist()])
    return data
