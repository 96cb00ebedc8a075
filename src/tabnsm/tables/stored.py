"""Distinct strings that are too many for memory: in files of a work folder, read in parts."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tabnsm.work_folder import WorkFolder

P = ParamSpec("P")
R = TypeVar("R")
Ints = NDArray[np.int64]

PART = 2**16
"""Strings that are in memory at a time."""
# Strings are split by their hash, so that those of one file fit into memory.
_N_FILES = 64
_numbers = itertools.count()


class StoredStrings(Sequence[str]):
    """Strings of a file that is mapped; those that are looked at are in memory.

    Parameters
    ----------
    array : pyarrow.LargeStringArray
        The last string is the empty one, which stands for a missing value.
    places : ndarray of int64 or None
        Which of them, in their order; None for all but the last.

    Examples
    --------
    >>> import pyarrow as pa
    >>> strings = StoredStrings(pa.array(["a", "b", ""], pa.large_string()))
    >>> list(strings), strings[1], list(strings.take(np.array([1, -1])))
    (['a', 'b'], 'b', ['b', ''])
    """

    def __init__(self, array: Any, places: Ints | None = None) -> None:
        self._array = array
        self._places = places

    def __len__(self) -> int:
        return len(self._array) - 1 if self._places is None else len(self._places)

    @overload
    def __getitem__(self, key: int) -> str: ...

    @overload
    def __getitem__(self, key: slice) -> list[str]: ...

    def __getitem__(self, key: int | slice) -> str | list[str]:
        if isinstance(key, slice):
            strings: list[str] = self.arrow(key).to_pylist()
            return strings
        place = range(len(self))[key]
        return str(self._array[place if self._places is None else int(self._places[place])])

    def __iter__(self) -> Iterator[str]:
        for part in parts_of(self):
            yield from part

    def arrow(self, key: slice) -> Any:
        """Some of the strings as a pyarrow array."""
        if self._places is None:
            start, stop, _ = key.indices(len(self))
            return self._array.slice(start, stop - start)
        return self._array.take(self._places[key])

    def take(self, places: Ints) -> StoredStrings:
        """Some of the strings; of all strings, -1 is the empty one."""
        if self._places is not None:
            return StoredStrings(self._array, self._places[places])
        return StoredStrings(self._array, np.where(places < 0, len(self), places))


def as_stored(values: Sequence[str]) -> StoredStrings:
    """Strings that are in memory, in the same form."""
    import pyarrow as pa

    if isinstance(values, StoredStrings):
        return values
    return StoredStrings(pa.array([*values, ""], pa.large_string()))


def choose(values: Sequence[str], places: Ints) -> Sequence[str]:
    """The strings at some places, in files if they are."""
    if isinstance(values, StoredStrings):
        return values.take(places)
    return [values[place] for place in places.tolist()]


def parts_of(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Consecutive parts of strings, each a list where the strings are in a file."""
    for start in range(0, len(values), PART):
        yield values[start : start + PART]


def in_parts(
    function: Callable[Concatenate[Sequence[str], P], R],
) -> Callable[Concatenate[Sequence[str], P], R]:
    """Let a function of strings, whose arrays have a number for each, work on a part at a time."""

    @functools.wraps(function)
    def whole(values: Sequence[str], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(values) <= PART:
            return function(values, *args, **kwargs)
        found: list[Any] = [function(part, *args, **kwargs) for part in parts_of(values)]
        if isinstance(found[0], tuple):
            joined: Any = tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))
        else:
            joined = np.concatenate(found)
        return joined  # type: ignore[no-any-return]

    return whole


def store_distinct(
    read: Callable[[], Iterable[Any]], n_rows: int, folder: WorkFolder, *, keep_blank: bool = False
) -> tuple[Ints, StoredStrings]:
    """Codes of all rows, and the distinct strings in order of their first row, both in files.

    The strings are read twice. In memory are those of a batch, and one in 64 of the distinct ones.
    The files go once nothing maps them any more.

    Parameters
    ----------
    read : callable
        Gives the rows in pyarrow arrays of strings, the same ones each time.
    n_rows : int
    folder : WorkFolder
    keep_blank : bool, default False
        Whether blank strings have a code, too; else they are missing, with the code -1.
    """
    name = f"strings_{next(_numbers)}"
    # First the first row of the same batch with the same string, then of all batches.
    first = folder.empty(f"{name}.first", (n_rows,), np.int64)
    files = [folder.path / f"{name}_{k}.arrow" for k in range(_N_FILES)]
    _split(read(), first, files, keep_blank)
    for file in filter(Path.exists, files):
        _find_first(file, first)
        file.unlink()
    codes = folder.empty(f"{name}.codes", (n_rows,), np.int64)
    values = _number(read(), first, codes, folder.path / name)
    for array in ("first", "codes"):
        folder.remove(f"{name}.{array}")  # what maps the codes goes on
    return codes, values


def _split(arrays: Iterable[Any], first: Ints, files: Sequence[Path], keep_blank: bool) -> None:
    """Write the strings of each batch to files by their hash, with the row that has each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = pa.schema({"row": pa.int64(), "text": pa.large_string()})
    start = 0
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        for array in arrays:
            stop = start + len(array)
            coded = array.cast(pa.large_string()).dictionary_encode()
            codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
            texts = coded.dictionary
            rows = np.full(len(texts) + 1, -1, dtype=np.int64)
            rows[codes[::-1]] = np.arange(start, stop)[::-1]
            rows[-1] = -1
            if not keep_blank:
                trimmed = pc.utf8_trim_whitespace(texts)
                rows[:-1][pc.equal(trimmed, "").to_numpy(zero_copy_only=False)] = -1
            first[start:stop] = rows[codes]
            hashes = map(zlib.crc32, texts.cast(pa.large_binary()).to_pylist())
            part = np.fromiter(hashes, dtype=np.int64, count=len(texts)) % len(files)
            part[rows[:-1] < 0] = -1
            for k in set(part.tolist()) - {-1}:
                if k not in writers:
                    file = stack.enter_context(open(files[k], "wb"))
                    writers[k] = stack.enter_context(pa.ipc.new_stream(file, schema))
                chosen = np.flatnonzero(part == k)
                columns = [pa.array(rows[chosen]), texts.take(pa.array(chosen))]
                writers[k].write_batch(pa.record_batch(columns, schema=schema))
            start = stop


def _find_first(file: Path, first: Ints) -> None:
    """For the rows of one file: the first of all with the same string."""
    import pyarrow as pa

    with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
        rows = table.column("row").to_numpy()
        coded = table.column("text").dictionary_encode().unify_dictionaries()
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])
        rows_of = np.empty(len(coded.chunk(0).dictionary), dtype=np.int64)
        rows_of[codes[::-1]] = rows[::-1]
        first[rows] = rows_of[codes]


def _number(arrays: Iterable[Any], first: Ints, codes: Ints, file: Path) -> StoredStrings:
    """Number the distinct strings by their first row, and write them in this order."""
    import pyarrow as pa

    start = n_found = 0
    with _StringFile(file) as written:
        for array in arrays:
            stop = start + len(array)
            here = first[start:stop]
            new = np.flatnonzero(here == np.arange(start, stop))
            written.append(array.take(pa.array(new)))
            codes[start + new] = n_found + np.arange(len(new))
            # All strings up to here have their number by now.
            codes[start:stop] = np.where(here < 0, -1, codes[first[here]])
            n_found += len(new)
            start = stop
        written.append(pa.array([""]))
    return written.strings()


class _StringFile:
    """Strings in the layout of pyarrow, in one file for their bytes and one for their ends."""

    def __init__(self, file: Path) -> None:
        self._names = file.with_suffix(".bytes"), file.with_suffix(".ends")

    def __enter__(self) -> _StringFile:
        self._bytes, self._ends = (name.open("wb") for name in self._names)
        self._ends.write(bytes(8))
        self._n_bytes = self._n_strings = 0
        return self

    def append(self, array: Any) -> None:
        """Add the strings of a pyarrow array."""
        import pyarrow as pa

        array = array.cast(pa.large_string())
        _, ends, text = array.buffers()
        bounds = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
        if len(bounds) and text is not None:
            self._bytes.write(text[int(bounds[0]) : int(bounds[-1])])
        self._ends.write((bounds[1:] - bounds[:1] + self._n_bytes).tobytes())
        self._n_bytes += int(bounds[-1] - bounds[0]) if len(bounds) else 0
        self._n_strings += len(array)

    def __exit__(self, *error: object) -> None:
        self._bytes.write(b"\0")  # an empty file cannot be mapped
        self._bytes.close()
        self._ends.close()

    def strings(self) -> StoredStrings:
        """The strings, mapped."""
        import pyarrow as pa

        text, ends = (pa.memory_map(str(name)).read_buffer() for name in self._names)
        for name in self._names:
            with suppress(OSError):  # what is mapped may not be removed on every system
                name.unlink()
        return StoredStrings(pa.LargeStringArray.from_buffers(self._n_strings, ends, text))
