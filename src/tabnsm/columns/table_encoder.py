"""The table encoder: from a mixed table to numbers, with everything fitted on chosen rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.code import CodeColumns
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.dense import Dense, make_dense
from tabnsm.columns.encoded import EncodedTable, TextFeatures
from tabnsm.columns.fitting import FitScope, FittedColumn, row_numbers, warn_reading
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.kinds import KINDS, fit_columns
from tabnsm.columns.layout import Layout
from tabnsm.columns.matched import MatchedTable, warn_about_names
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.recurring_days import date_features
from tabnsm.columns.relevance import MIN_SHARE, code_shares
from tabnsm.columns.report import ColumnReport
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.target_means import MAX_FEATURES, TargetMeans
from tabnsm.columns.text import NO_SHARE, TextColumns, leave_out_text
from tabnsm.columns.text_direction import Directions
from tabnsm.columns.value_means import mean_feature
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.tables.table_input import Table
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError
from tabnsm.text.encoder import TextEncoder
from tabnsm.work_folder import WorkFolder

Texts = tuple[TextFeatures, ...]


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
        self,
        table: Table,
        fit_rows: Any = None,
        seconds_left: SecondsLeft | None = None,
        target: NDArray[np.float64] | None = None,
    ) -> EncodedTable:
        """Fit on some rows, all by default, and encode all of them.

        Text columns that would take more than half of the `seconds_left` of a time limit are left
        out with a warning. Raises `InvalidDataError` if every column is empty, and
        `InvalidOptionError` if `column_kinds` names an unknown column or asks for the impossible,
        or if the time limit is too short for the text and there are no other columns.
        Of the `target`, (n_rows, t), only the fit rows are looked at; without it there are no means
        of the target, and all text columns are kept.
        """
        with table.keep_columns():
            texts = self.fit_columns(table, fit_rows, seconds_left)
            return self.encode_fitted(table, texts, fit_rows, target)

    def fit_columns(
        self,
        table: Table,
        fit_rows: Any = None,
        seconds_left: SecondsLeft | None = None,
        folder: WorkFolder | None = None,
    ) -> Texts:
        """Fit every column, one after the other, and embed the text: the first half of a fit.

        With a `folder`, embeddings are kept in its files.
        """
        rows = row_numbers(fit_rows, table.n_rows)
        self._check_names(table)
        with table.keep_columns():
            matched = MatchedTable.at_fit(table, folder)
            fitted = self._fit_columns(matched, rows)
            warn_reading(fitted)
            self.specs = [column.spec for column in fitted]
            groups = [group.from_fitted(fitted, self.config) for group in KINDS.values()]
            texts = self._fit_together(groups, matched, rows, seconds_left)
            self.bins = None
            self._finish(groups, table.has_names)
        return texts

    def encode_fitted(
        self,
        table: Table,
        texts: Texts,
        fit_rows: Any = None,
        target: NDArray[np.float64] | None = None,
        folder: WorkFolder | None = None,
    ) -> EncodedTable:
        """Encode the rows of `fit_columns`, and fit what depends on the target.

        With a `folder`, the features are in a file of its, one after the other.
        """
        rows = row_numbers(fit_rows, table.n_rows)
        n_dates = len(date_features(self._groups, self._layout))
        n_means = 0 if target is None else (MAX_FEATURES + n_dates) * target.shape[1]
        dense = make_dense(folder, "columns", table.n_rows, self._layout.n_dense, n_means)
        with table.keep_columns():
            self.write_features(MatchedTable.at_fit(table, folder), dense.array)
        if target is None:
            texts = self._text_features(texts, (), folder)
        else:
            texts = self._fit_to_target(dense, texts, target, rows, folder)
        self.bins = self._find_bins(dense, rows)
        return EncodedTable(torch.from_numpy(dense.array), texts)

    def _fit_to_target(
        self,
        dense: Dense,
        texts: Texts,
        target: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
        folder: WorkFolder | None = None,
    ) -> Texts:
        """Add means of the target, and leave out text and codes that say nothing about it."""
        if self.config.select_text:
            self._select_codes(dense, bool(texts), target, rows)
        if self.config.target_means:
            sizes = self.category_sizes[: dense.array.shape[1]]
            dates = date_features(self._groups, self._layout)
            means, added = dense.fit_means(target, rows, sizes, dates)
            self._finish(self._groups, self._has_names, means)
            dense.append(added)
        directions: Directions = ()
        if texts and self.config.select_text and self.config.text_columns == "separate":
            group, sizes = self._text_group(), self.category_sizes
            before = {spec.position for spec in group.specs}
            texts, directions = group.select(dense.array, sizes, texts, target, rows)
            self._drop(before - {spec.position for spec in group.specs})
        return self._text_features(texts, directions, folder)

    def _drop(self, positions: set[int]) -> None:
        """Mark columns that say nothing about the target."""
        self.specs = [
            replace(spec, kind="drop", note=NO_SHARE) if spec.position in positions else spec
            for spec in self.specs
        ]

    def _text_features(
        self, texts: Texts, directions: Directions, folder: WorkFolder | None
    ) -> Texts:
        """Features of embedded texts; how many there are is known only then."""
        block = self._text_group().block
        features = () if block is None else block.project(texts, directions, folder)
        self._finish(self._groups, self._has_names, self._means)
        return features

    def _select_codes(
        self,
        dense: Dense,
        has_text: bool,
        target: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
    ) -> None:
        """Leave out columns of codes that say nothing about the target."""
        group = next(group for group in self._groups if isinstance(group, CodeColumns))
        columns = np.array(self.feature_columns[: dense.array.shape[1]])
        codes = [np.flatnonzero(columns == spec.position).tolist() for spec in group.specs]
        sizes = self.category_sizes
        shares = code_shares(dense.array, sizes, codes, target, rows) if codes else None
        gone = {
            spec.position
            for spec, share in zip(group.specs, shares or (), strict=shares is not None)
            if share < MIN_SHARE
        }
        kept = ~np.isin(columns, list(gone))
        if not gone or not (kept.any() or has_text):
            return
        group.specs = [spec for spec in group.specs if spec.position not in gone]
        self._drop(gone)
        self._finish(self._groups, self._has_names)
        dense.keep(kept)

    def _text_group(self) -> TextColumns:
        return next(group for group in self._groups if isinstance(group, TextColumns))

    def transform(self, table: Table, folder: WorkFolder | None = None) -> EncodedTable:
        """Encode new rows; columns are found by name when the encoder was fitted with names.

        Warns, once, of values far outside the range of the fit rows when these are clipped, of
        category columns with mostly unseen values, and of names that only one of the tables has.

        Parameters
        ----------
        table : Table
            The same columns as at fit; further ones are ignored, the order is free.
        folder : WorkFolder or None
            Where the features are kept, one after the other; None is in memory.

        Returns
        -------
        EncodedTable
            The rows, encoded.

        Raises
        ------
        InvalidDataError
            If a column is missing, or holds text where it held numbers.
        """
        matched = self.match(table)
        warn_about_names(table, self._has_names)
        matched = replace(matched, folder=folder)
        dense = make_dense(folder, "new_columns", table.n_rows, self._layout.n_dense).array
        self.write_features(matched, dense).warn()
        texts = [text for group in self._groups for text in group.encode_distinct(matched)]
        return EncodedTable(torch.from_numpy(dense), tuple(texts))

    def match(self, table: Table) -> MatchedTable:
        """The same columns in another table, without a warning about names.

        Parameters
        ----------
        table : Table
            As for :meth:`transform`, which raises the same errors.

        Returns
        -------
        MatchedTable
            Its rows, and where each column of the fit is.
        """
        return MatchedTable.by_name(table, self.specs, self._has_names)

    @property
    def target_mean_features(self) -> range:
        """Places of the features that hold means of a target."""
        return range(self._n_own, self._layout.n_dense)

    def describe(self) -> ColumnReport:
        """What was understood of each column.

        Returns
        -------
        ColumnReport
            One row per input column; prints as a table.
        """
        facts = {name: fact for group in self._groups for name, fact in group.to_state()[1].items()}
        return ColumnReport.from_specs(self.specs, facts)

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted, as tensors and JSON-able facts."""
        tensors: dict[str, Tensor] = {} if self.bins is None else {"bins": self.bins}
        meta: dict[str, Any] = {
            "config": self.config.to_dict(),
            "columns": [spec.to_dict() for spec in self.specs],
            "has_names": self._has_names,
        }
        for group in self._groups:
            group_tensors, facts = group.to_state()
            tensors |= group_tensors
            meta |= facts
        mean_tensors, meta["target_means"] = self._means.to_state()
        tensors |= mean_tensors
        return tensors, json.loads(json.dumps(meta))

    @classmethod
    def from_state(
        cls,
        tensors: dict[str, Tensor],
        meta: dict[str, Any],
        text_encoder: str | TextEncoder | None = None,
    ) -> TableEncoder:
        """Rebuild a fitted encoder; that its text model is there is checked here, not at first use.

        `text_encoder` is the text model, where the saved name does not lead to it on this machine.
        Raises `MissingExtraError` or `ModelFileError` if it is not there, or not the one the
        encoder was fitted with.
        """
        options = dict(meta["config"])
        if text_encoder is not None:
            options["text_encoder"] = text_encoder
        encoder = cls(EncoderConfig(**options))
        encoder.specs = [ColumnSpec.from_dict(entries) for entries in meta["columns"]]
        groups = [
            group.from_state(encoder.specs, tensors, meta, encoder.config)
            for group in KINDS.values()
        ]
        means = TargetMeans.from_state(tensors, meta.get("target_means", ()))
        encoder._finish(groups, meta["has_names"], means)
        encoder.bins = tensors["bins"].clone() if "bins" in tensors else None
        return encoder

    def _check_names(self, table: Table) -> None:
        unknown = [name for name in self.config.column_kinds if name not in table.names]
        if unknown:
            known = ", ".join(map(repr, table.names[:10]))
            raise InvalidOptionError(
                f"column_kinds must name columns of the table, got {', '.join(map(repr, unknown))}."
                f" The columns are {known}{', ...' if table.n_columns > 10 else ''}."
            )

    def _fit_each(self, table: MatchedTable, scope: FitScope) -> list[FittedColumn]:
        return fit_columns(table, scope)

    def _fit_columns(
        self, table: MatchedTable, rows: NDArray[np.int64] | None
    ) -> list[FittedColumn]:
        fitted = self._fit_each(table, FitScope(self.config, rows))
        if all(column.spec.kind == "drop" for column in fitted):
            fitted = self._fit_each(table, FitScope(self.config, rows, keep_constant=True))
        if all(column.spec.kind == "drop" for column in fitted):
            notes = sorted({column.spec.note for column in fitted})
            raise InvalidDataError(
                f"A table must have a column with values, got {len(fitted)} column(s), all "
                f"{' or '.join(notes)}. Check how the file was read."
            )
        return fitted

    def _fit_together(
        self,
        groups: list[ColumnGroup],
        table: MatchedTable,
        rows: NDArray[np.int64] | None,
        seconds_left: SecondsLeft | None,
    ) -> Texts:
        """Fit each group as a whole; one that takes too long is left out."""
        texts: list[TextFeatures] = []
        for k, group in enumerate(groups):
            try:
                texts += group.fit_together(table, rows, seconds_left)
            except TextTooSlowError as error:
                self.specs = leave_out_text(self.specs, error, self.config)
                groups[k] = group.from_fitted([], self.config)
        return tuple(texts)

    def _finish(
        self, groups: list[ColumnGroup], has_names: bool, means: TargetMeans | None = None
    ) -> None:
        """Derive from the groups all that need not be saved."""
        self._means = means or TargetMeans()
        self._groups = groups
        self._names = [spec.name for spec in self.specs]
        self._has_names = has_names
        layout = Layout.of(groups, self._names)
        self._n_own = layout.n_dense
        added = [mean_feature(part, layout, self.specs) for part in self._means.parts]
        self._layout = layout.with_dense(added)
        self.feature_names = self._layout.names
        self.feature_columns = self._layout.columns
        self.category_sizes = self._layout.category_sizes
        self.n_features = len(self._layout.names)

    def write_features(self, table: MatchedTable, dense: NDArray[np.float32]) -> RowNotes:
        """Write all features but text; what the rows hold that the fit rows did not."""
        notes = RowNotes()
        for group in self._groups:
            group.write(table, self._layout, dense, notes)
        if self._means.parts:
            dense[:, self._n_own :] = self._means.transform(dense)
        return notes

    def _find_bins(self, dense: Dense, rows: NDArray[np.int64] | None) -> Tensor | None:
        if not self.config.n_bins:
            return None
        is_number = np.array(self.category_sizes[: dense.array.shape[1]]) == 0
        return dense.find_bins(rows, is_number, self.n_features, self.config.n_bins)
