"""The table encoder: from a mixed table to numbers, with everything fitted on chosen rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.errors import InvalidDataError, InvalidOptionError, TabNSMWarning
from tabnsm.preprocessing.categorical import encode_categories
from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.datetime import DATE_PARTS, date_parts, read_dates
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.layout import Layout
from tabnsm.preprocessing.numeric import Standardizer, is_missing
from tabnsm.preprocessing.report import ColumnReport
from tabnsm.preprocessing.schema import ColumnFitter, ColumnSpec, FittedColumn, standard_codes
from tabnsm.preprocessing.table_input import Table
from tabnsm.preprocessing.text import TextBlock, TextEncoder

# Numbers go through float64 a few columns at a time, so that no second table is ever built.
_BLOCK_CELLS = 1_000_000
_STATE_VERSION = 1


class TableEncoder:
    """Numbers, categories, dates and text to one float matrix.

    Parameters
    ----------
    config : EncoderConfig, optional
        Options.

    Attributes
    ----------
    n_features : int
        Number of encoded features.
    feature_names : list of str
        One name per encoded feature.
    feature_columns : list of int
        Input column of each feature; -1 for text dimensions, which belong to all text columns.
    category_sizes : tuple of int
        For each feature 0, or the number of codes if it is a category to embed.

    Examples
    --------
    >>> table = Table.from_native([[1.0, "red"], [2.0, "blue"], [None, "red"]])
    >>> encoder = TableEncoder(EncoderConfig())
    >>> encoder.fit_transform(table).dense
    tensor([[-1.,  0.,  2.],
            [ 1.,  0.,  1.],
            [ 0.,  1.,  2.]])
    >>> encoder.feature_names
    ['x0', 'x0_missing', 'x1']
    """

    n_features: int
    feature_names: list[str]
    feature_columns: list[int]
    category_sizes: tuple[int, ...]

    def __init__(self, config: EncoderConfig | None = None) -> None:
        self.config = config or EncoderConfig()

    def fit_transform(self, table: Table, fit_rows: Any = None) -> EncodedTable:
        """Fit on some rows and encode all of them.

        Parameters
        ----------
        table : Table
            The input columns.
        fit_rows : array-like of int or bool, optional
            Rows that statistics, vocabularies and kinds are taken from; all by default.

        Returns
        -------
        EncodedTable
            All rows, encoded.

        Raises
        ------
        InvalidDataError
            If every column is empty.
        InvalidOptionError
            If `column_kinds` names an unknown column or asks for the impossible.
        """
        rows = _row_numbers(fit_rows, table.n_rows)
        fitted = self._fit_columns(table, rows)
        text = None
        if any(column.spec.kind == "text" for column in fitted):
            text = TextBlock.create(self.config)
        self._settle(fitted, table.names, table.has_names, text)
        dense, _ = self._encode_dense(table, range(table.n_columns))
        if text is None:
            return EncodedTable(torch.from_numpy(dense))
        embedded, index = text.fit_transform(self._text_columns(table, range(table.n_columns)), rows)
        return EncodedTable(torch.from_numpy(dense), embedded, index)

    def transform(self, table: Table) -> EncodedTable:
        """Encode new rows; columns are found by name when the encoder was fitted with names.

        Warns, once, of values far outside the range of the fit rows when these are clipped.

        Parameters
        ----------
        table : Table
            The same columns as at fit; further ones are ignored, the order is free.

        Returns
        -------
        EncodedTable
            The rows, encoded.

        Raises
        ------
        InvalidDataError
            If a column is missing, or holds words where it held numbers.
        """
        positions = self._positions_in(table)
        dense, far = self._encode_dense(table, positions)
        if far:
            _warn_far(far)
        if self._text is None:
            return EncodedTable(torch.from_numpy(dense))
        embedded, index = self._text.transform(self._text_columns(table, positions))
        return EncodedTable(torch.from_numpy(dense), embedded, index)

    def describe(self) -> ColumnReport:
        """What was understood of each column.

        Returns
        -------
        ColumnReport
            One row per input column; prints as a table.
        """
        d_text = 0 if self._text is None else self._text.encoder.d_text
        note = "" if self._text is None else self._text.note
        return ColumnReport.from_specs(self.specs, d_text, note)

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted, as tensors and JSON-able facts.

        Returns
        -------
        tuple of dict
            Tensors and facts for :meth:`from_state`.
        """
        tensors = {
            "numeric": self._numeric.to_tensor(),
            "date": self._date.to_tensor(),
            "category": self._category.to_tensor(),
        }
        meta: dict[str, Any] = {
            "version": _STATE_VERSION,
            "config": self.config.to_dict(),
            "columns": [spec.to_dict() for spec in self.specs],
            "has_names": self._has_names,
            "text": None,
        }
        if self._text is not None:
            text_tensors, meta["text"] = self._text.to_state()
            tensors.update({f"text.{key}": value for key, value in text_tensors.items()})
        return tensors, json.loads(json.dumps(meta))

    @classmethod
    def from_state(
        cls,
        tensors: dict[str, Tensor],
        meta: dict[str, Any],
        text_encoder: str | TextEncoder | None = None,
    ) -> TableEncoder:
        """Rebuild a fitted encoder; a text model is loaded and checked here, not at first use.

        Parameters
        ----------
        tensors : dict
            Tensors of :meth:`to_state`.
        meta : dict
            Facts of :meth:`to_state`.
        text_encoder : str or TextEncoder, optional
            The text model, where the saved name does not lead to it on this machine.

        Returns
        -------
        TableEncoder
            Encodes bit-equally to the saved one.

        Raises
        ------
        MissingExtraError
            If there are text columns and the extra "text" is not installed.
        ModelFileError
            If the text model is not there, or not the one the encoder was fitted with.
        """
        options = dict(meta["config"])
        if text_encoder is not None:
            options["text_encoder"] = text_encoder
        encoder = cls(EncoderConfig(**options))
        text = None
        if meta["text"] is not None:
            text_tensors = {
                key.removeprefix("text."): value
                for key, value in tensors.items()
                if key.startswith("text.")
            }
            text = TextBlock.from_state(text_tensors, meta["text"], encoder.config)
        encoder.specs = [ColumnSpec.from_dict(entries) for entries in meta["columns"]]
        names = [spec.name for spec in encoder.specs]
        encoder._numeric = Standardizer.from_tensor(tensors["numeric"])
        encoder._date = Standardizer.from_tensor(tensors["date"])
        encoder._category = Standardizer.from_tensor(tensors["category"])
        encoder._set_layout(names, meta["has_names"], text)
        return encoder

    def _fit_columns(self, table: Table, rows: NDArray[np.int64] | None) -> list[FittedColumn]:
        unknown = [name for name in self.config.column_kinds if name not in table.names]
        if unknown:
            raise InvalidOptionError(
                f"column_kinds must name columns of the table, got {', '.join(map(repr, unknown))}."
                f" The columns are {', '.join(map(repr, table.names[:10]))}"
                f"{', ...' if table.n_columns > 10 else ''}."
            )
        fitted = _fit_all(ColumnFitter(self.config, rows), table)
        if all(column.spec.kind == "drop" for column in fitted):
            fitted = _fit_all(ColumnFitter(self.config, rows, keep_constant=True), table)
        if all(column.spec.kind == "drop" for column in fitted):
            notes = sorted({column.spec.note for column in fitted})
            raise InvalidDataError(
                f"A table must have a column with values, got {table.n_columns} column(s), all "
                f"{' or '.join(notes)}. Check how the file was read."
            )
        return fitted

    def _settle(
        self, fitted: list[FittedColumn], names: list[str], has_names: bool, text: TextBlock | None
    ) -> None:
        self.specs = [column.spec for column in fitted]
        self._numeric = _stack(fitted, "numeric")
        self._date = _stack(fitted, "date")
        self._category = _stack(fitted, "category")
        self._set_layout(names, has_names, text)

    def _set_layout(self, names: list[str], has_names: bool, text: TextBlock | None) -> None:
        self._names, self._has_names, self._text = list(names), has_names, text
        self._layout = Layout.of(
            self.specs,
            d_text=0 if text is None else text.encoder.d_text,
            embed_categories=self.config.category_encoding == "embedding",
        )
        self.feature_names = self._layout.names
        self.feature_columns = self._layout.columns
        self.category_sizes = self._layout.category_sizes
        self.n_features = len(self.feature_names)

    def _positions_in(self, table: Table) -> Sequence[int]:
        """Where each column of the fit is in a new table."""
        n_columns = len(self._names)
        if not (self._has_names and table.has_names):
            if table.n_columns != n_columns:
                raise InvalidDataError(
                    f"X has {table.n_columns} features, but TabNSMRegressor is expecting "
                    f"{n_columns} features as input."
                )
            return range(n_columns)
        if table.names == self._names:
            return range(n_columns)
        known = set(table.names)
        missing = [s.name for s in self.specs if s.kind != "drop" and s.name not in known]
        if missing:
            raise InvalidDataError(
                "A table must have the columns the model was fitted with, got none named "
                f"{', '.join(map(repr, missing[:5]))}"
                f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}. "
                "Add them (empty values are allowed) or check the spelling."
            )
        return [table.position(name) if name in known else -1 for name in self._names]

    def _encode_dense(
        self, table: Table, positions: Sequence[int]
    ) -> tuple[NDArray[np.float32], dict[str, int]]:
        """Everything but text, beside the number of far-off values per column."""
        dense = np.empty((table.n_rows, self._layout.n_dense), dtype=np.float32)
        far = self._write_numbers(table, positions, dense)
        far.update(self._write_dates(table, positions, dense))
        self._write_categories(table, positions, dense)
        return dense, far

    def _write_numbers(
        self, table: Table, positions: Sequence[int], dense: NDArray[np.float32]
    ) -> dict[str, int]:
        layout, clip = self._layout, self.config.clip_outliers
        far: dict[str, int] = {}
        for block, matrix in _number_blocks(table, layout.numeric, positions):
            with_value = [k for k, spec in enumerate(block) if spec.has_value]
            targets = [layout.value_at[block[k].position] for k in with_value]
            if targets:
                values = matrix if len(targets) == len(block) else matrix[:, with_value]
                written = np.empty(values.shape, dtype=np.float32)
                counts = self._numeric.select(targets).apply(values, written, clip=clip)
                first = targets[0]
                if targets[-1] - first == len(targets) - 1:
                    dense[:, first : targets[-1] + 1] = written
                else:
                    dense[:, targets] = written
                for k in np.flatnonzero(counts):
                    far[block[with_value[k]].name] = int(counts[k])
            with_indicator = [k for k, spec in enumerate(block) if spec.has_indicator]
            if with_indicator:
                targets = [layout.indicator_at[block[k].position] for k in with_indicator]
                dense[:, targets] = is_missing(matrix[:, with_indicator], clip=clip)
        return far

    def _write_dates(
        self, table: Table, positions: Sequence[int], dense: NDArray[np.float32]
    ) -> dict[str, int]:
        far: dict[str, int] = {}
        first = 0
        for spec in self._layout.dates:
            column = table.column(table.names[positions[spec.position]])
            if column.storage == "empty":
                micros = np.zeros(table.n_rows, dtype=np.int64)
                missing = np.ones(table.n_rows, dtype=bool)
            else:
                micros, missing = read_dates(column, spec.date_format)
            n_parts = len(spec.date_parts)
            if n_parts:
                kept = [DATE_PARTS.index(part) for part in spec.date_parts]
                parts = date_parts(micros, missing, spec.date_origin)[:, kept]
                start = self._layout.value_at[spec.position]
                counts = self._date.select(slice(first, first + n_parts)).apply(
                    parts, dense[:, start : start + n_parts], clip=self.config.clip_outliers
                )
                if counts.any():
                    far[spec.name] = int(counts.max())
                first += n_parts
            if spec.has_indicator:
                dense[:, self._layout.indicator_at[spec.position]] = missing
        return far

    def _write_categories(
        self, table: Table, positions: Sequence[int], dense: NDArray[np.float32]
    ) -> None:
        embed = self.config.category_encoding == "embedding"
        for k, spec in enumerate(self._layout.categories):
            factor = table.column(table.names[positions[spec.position]]).to_factor()
            target = self._layout.value_at[spec.position]
            if embed:
                codes = encode_categories(factor, spec.vocabulary, missing_code=spec.missing_code)
                dense[:, target] = codes
            else:
                codes_as_numbers = standard_codes(factor, spec)[:, None]
                out = dense[:, target : target + 1]
                self._category.select([k]).apply(codes_as_numbers, out, clip=False)

    def _text_columns(self, table: Table, positions: Sequence[int]) -> list[Any]:
        return [
            table.column(table.names[positions[spec.position]]).to_factor()
            for spec in self._layout.texts
        ]


def _fit_all(fitter: ColumnFitter, table: Table) -> list[FittedColumn]:
    fitted: dict[int, FittedColumn] = {}
    kinds = fitter.config.column_kinds
    plain = [
        ColumnSpec(position, name, "numeric")
        for position, (name, is_number) in enumerate(zip(table.names, table.is_number, strict=True))
        if is_number and kinds.get(name, "numeric") == "numeric"
    ]
    for block, matrix in _number_blocks(table, plain, range(table.n_columns)):
        for k, spec in enumerate(block):
            fitted[spec.position] = fitter.fit_number(spec.name, spec.position, matrix[:, k])
    for position, name in enumerate(table.names):
        if position not in fitted:
            fitted[position] = fitter.fit(table.column(name), position)
    return [fitted[position] for position in range(table.n_columns)]


def _number_blocks(
    table: Table, specs: Sequence[ColumnSpec], positions: Sequence[int]
) -> Iterator[tuple[list[ColumnSpec], NDArray[np.float64]]]:
    """Number columns a few at a time as float64; those stored otherwise one by one."""
    is_number = table.is_number
    plain = [spec for spec in specs if is_number[positions[spec.position]]]
    width = max(1, _BLOCK_CELLS // table.n_rows)
    for start in range(0, len(plain), width):
        block = plain[start : start + width]
        matrix = table.numbers([positions[spec.position] for spec in block])
        yield block, np.asarray(matrix, dtype=np.float64)
    for spec in specs:
        if not is_number[positions[spec.position]]:
            name = table.names[positions[spec.position]]
            yield [spec], table.column(name).to_float()[:, None]


def _stack(fitted: list[FittedColumn], kind: str) -> Standardizer:
    return Standardizer.stack(
        [c.standardizer for c in fitted if c.spec.kind == kind and c.standardizer is not None]
    )


def _row_numbers(rows: Any, n_rows: int) -> NDArray[np.int64] | None:
    if rows is None:
        return None
    chosen = np.asarray(rows)
    if chosen.dtype == bool:
        chosen = np.flatnonzero(chosen)
    if len(chosen) == 0:
        raise InvalidDataError(f"fit_rows must hold at least 1 of the {n_rows} rows, got none.")
    return chosen.astype(np.int64)


def _warn_far(far: dict[str, int]) -> None:
    worst = sorted(far, key=lambda name: -far[name])
    named = ", ".join(f"{name!r} ({far[name]})" for name in worst[:5])
    more = f" and {len(worst) - 5} more column(s)" if len(worst) > 5 else ""
    warnings.warn(
        f"{sum(far.values())} value(s) lie far outside the range of the training rows and were "
        f"clipped to it, in {named}{more}. Predictions for these rows are extrapolations.",
        TabNSMWarning,
        stacklevel=4,
    )
