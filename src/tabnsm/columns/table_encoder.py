"""The table encoder: from a mixed table to numbers, with everything fitted on chosen rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.bins import find_bins
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.dense import STANDARDIZED_KINDS, DenseBlock, number_blocks
from tabnsm.columns.encoded import EncodedTable, TextFeatures
from tabnsm.columns.fitting import ColumnFitter, FittedColumn
from tabnsm.columns.layout import Layout
from tabnsm.columns.report import ColumnReport
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.columns.text import TextBlock
from tabnsm.columns.unseen import describe_unseen
from tabnsm.errors import InvalidDataError, InvalidOptionError, warn
from tabnsm.tables.reading import ReadingNotes
from tabnsm.tables.table_input import Table
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError
from tabnsm.text.encoder import TextEncoder


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
        Input column of each feature; -1 for joined text, which belongs to all text columns.
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
    bins: Tensor | None

    def __init__(self, config: EncoderConfig | None = None) -> None:
        self.config = config or EncoderConfig()

    def fit_transform(
        self, table: Table, fit_rows: Any = None, seconds_left: SecondsLeft | None = None
    ) -> EncodedTable:
        """Fit on some rows and encode all of them.

        Parameters
        ----------
        table : Table
            The input columns.
        fit_rows : array-like of int or bool, optional
            Rows that statistics, vocabularies and kinds are taken from; all by default.
        seconds_left : callable, optional
            Seconds left of a time limit. Text columns that would take more than half of them are
            left out with a warning.

        Returns
        -------
        EncodedTable
            All rows, encoded.

        Raises
        ------
        InvalidDataError
            If every column is empty.
        InvalidOptionError
            If `column_kinds` names an unknown column or asks for the impossible, or if the time
            limit is too short for the text and there are no other columns.
        """
        rows = _row_numbers(fit_rows, table.n_rows)
        fitted = self._fit_columns(table, rows)
        _warn_reading(fitted)
        self.specs = [column.spec for column in fitted]
        text = None
        texts: tuple[TextFeatures, ...] = ()
        if any(spec.kind == "text" for spec in self.specs):
            try:
                text = TextBlock.create(self.config, seconds_left)
                factors = self._text_columns(table, range(table.n_columns))
                texts = text.fit_transform(factors, rows, seconds_left)
            except TextTooSlowError as error:
                text = None
                self._leave_out_text(error)
        statistics = {kind: _stack(fitted, kind) for kind in STANDARDIZED_KINDS}
        self._settle(statistics, table.has_names, text)
        dense, _ = self._dense.encode(table, range(table.n_columns))
        self.bins = self._find_bins(dense, rows)
        return EncodedTable(torch.from_numpy(dense), texts)

    def transform(self, table: Table) -> EncodedTable:
        """Encode new rows; columns are found by name when the encoder was fitted with names.

        Warns, once, of values far outside the range of the fit rows when these are clipped, of
        category columns with mostly unseen values, and of names that only one of the tables has.

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
        notes = ReadingNotes()
        dense, odd = self._dense.encode(table, positions, notes)
        notes.warn(fitting=False)
        if odd.far:
            _warn_far(odd.far)
        if odd.unseen:
            warn(describe_unseen(odd.unseen))
        if self._text is None:
            return EncodedTable(torch.from_numpy(dense))
        texts = self._text.transform(self._text_columns(table, positions))
        return EncodedTable(torch.from_numpy(dense), texts)

    def describe(self) -> ColumnReport:
        """What was understood of each column.

        Returns
        -------
        ColumnReport
            One row per input column; prints as a table.
        """
        d_text = 0 if self._text is None else self._text.d_text
        note = "" if self._text is None else self._text.note
        return ColumnReport.from_specs(self.specs, d_text, note)

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted, as tensors and JSON-able facts.

        Returns
        -------
        tuple of dict
            Tensors and facts for :meth:`from_state`.
        """
        tensors = self._dense.to_state()
        meta: dict[str, Any] = {
            "config": self.config.to_dict(),
            "columns": [spec.to_dict() for spec in self.specs],
            "has_names": self._has_names,
            "text": None,
        }
        if self.bins is not None:
            tensors["bins"] = self.bins
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
        """Rebuild a fitted encoder; that its text model is there is checked here, not at first use.

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
        statistics = {kind: Standardizer.from_tensor(tensors[kind]) for kind in STANDARDIZED_KINDS}
        encoder._settle(statistics, meta["has_names"], text)
        encoder.bins = tensors["bins"].clone() if "bins" in tensors else None
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

    def _leave_out_text(self, error: TextTooSlowError) -> None:
        """Drop the text columns, for which there is no time; an error if they are all there is."""
        names = ", ".join(repr(spec.name) for spec in self.specs if spec.kind == "text")
        found = (
            f"{error.work} would take about {error.seconds:.0f} s, which is over half of the "
            f"{error.seconds_left:.1f} s left of time_limit"
        )
        longer = 2 * error.seconds - error.seconds_left
        remedy = f"Raise time_limit by about {longer:.0f} s"
        if error.n_done and self.config.text_cache:
            remedy += f"; the {error.n_done:,} texts embedded so far are in the cache"
        if all(spec.kind in ("drop", "text") for spec in self.specs):
            raise InvalidOptionError(
                "time_limit must be long enough for the text of a table without other columns. "
                f"{found}. {remedy}."
            ) from error
        warn(f"{found}. The text columns {names} are left out of this fit. {remedy}.")
        note = "left out: embedding its text takes longer than half of time_limit"
        self.specs = [
            replace(spec, kind="drop", note=note) if spec.kind == "text" else spec
            for spec in self.specs
        ]

    def _settle(
        self, statistics: dict[str, Standardizer], has_names: bool, text: TextBlock | None
    ) -> None:
        """Derive from `specs` all that need not be saved."""
        embed = self.config.category_encoding == "embedding"
        d_text = 0 if text is None else text.d_text
        layout = Layout.of(self.specs, d_text=d_text, embed_categories=embed)
        self._dense = DenseBlock(
            layout, **statistics, clip=self.config.clip_outliers, embed_categories=embed
        )
        self._text = text
        self._names = [spec.name for spec in self.specs]
        self._has_names = has_names
        self.feature_names = layout.names
        self.feature_columns = layout.columns
        self.category_sizes = layout.category_sizes
        self.n_features = len(layout.names)

    def _find_bins(
        self, dense: NDArray[np.float32], rows: NDArray[np.int64] | None
    ) -> Tensor | None:
        if not self.config.n_bins:
            return None
        is_number = np.array(self.category_sizes[: dense.shape[1]]) == 0
        return find_bins(dense, rows, is_number, self.n_features, self.config.n_bins)

    def _positions_in(self, table: Table) -> Sequence[int]:
        """Where each column of the fit is in a new table."""
        n_columns = len(self._names)
        if not (self._has_names and table.has_names):
            if table.n_columns != n_columns:
                raise InvalidDataError(
                    f"X has {table.n_columns} features, but TabNSMRegressor is expecting "
                    f"{n_columns} features as input."
                )
            self._warn_about_names(table)
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

    def _warn_about_names(self, table: Table) -> None:
        # The wording is scikit-learn's, by which users and its own tools know the problem.
        if self._has_names and not table.has_names:
            warn(
                "X does not have valid feature names, but TabNSMRegressor was fitted with feature "
                "names. Columns are taken by their position; pass a table with these names to "
                "have them matched."
            )
        elif table.has_names and not self._has_names:
            warn(
                "X has feature names, but TabNSMRegressor was fitted without feature names. "
                "Columns are taken by their position; fit on a table with names to have them "
                "matched."
            )

    def _text_columns(self, table: Table, positions: Sequence[int]) -> list[Any]:
        return [
            table.column(table.names[positions[spec.position]]).to_factor()
            for spec in self.specs
            if spec.kind == "text"
        ]


def _fit_all(fitter: ColumnFitter, table: Table) -> list[FittedColumn]:
    fitted: dict[int, FittedColumn] = {}
    kinds = fitter.config.column_kinds
    plain = [
        ColumnSpec(position, name, "numeric")
        for position, (name, is_number) in enumerate(zip(table.names, table.is_number, strict=True))
        if is_number and kinds.get(name, "numeric") == "numeric"
    ]
    for block, matrix in number_blocks(table, plain, range(table.n_columns)):
        for k, spec in enumerate(block):
            fitted[spec.position] = fitter.fit_number(spec.name, spec.position, matrix[:, k])
    for position, name in enumerate(table.names):
        if position not in fitted:
            fitted[position] = fitter.fit(table.column(name), position)
    return [fitted[position] for position in range(table.n_columns)]


def _warn_reading(fitted: list[FittedColumn]) -> None:
    used = [column for column in fitted if column.spec.kind != "drop"]
    notes = ReadingNotes(
        [column.unreadable for column in used if column.unreadable is not None],
        {
            column.spec.name: column.date_format
            for column in used
            if column.date_format is not None and column.date_format.ambiguous
        },
    )
    notes.warn(fitting=True)


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
    warn(
        f"{sum(far.values())} value(s) lie far outside the range of the training rows and were "
        f"clipped to it, in {named}{more}. Predictions for these rows are extrapolations."
    )
