"""SharedEncoder: fitted by tasks that have some of the columns each, on one machine or many.

A column is what a task reads, because medians, vocabularies, quantiles and sums of floats are those
of one machine, to the bit, only if one process sees all rows of a column in their order. Parquet
stores columns apart, so that no byte is read twice in a pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.bins import bin_ends, bin_limits, stack_bins
from tabnsm.columns.checks import describe_suspects, find_suspects
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.fitting import FitScope, FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.kinds import KINDS, fit_columns
from tabnsm.columns.layout import Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.recurring_days import DateFeatures
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.columns.table_encoder import TableEncoder
from tabnsm.columns.target_means import FoundMeans, MeansFit, TargetMeans, best_means
from tabnsm.columns.text import TextColumns
from tabnsm.columns.value_means import ValueMeans
from tabnsm.errors import warn
from tabnsm.tables.table_input import Table
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError
from tabnsm.work_folder import work_folder

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FitInput:
    """What all tasks of a fit have: a table, its fit rows and targets, (n, t)."""

    table: Table
    rows: Rows
    target: NDArray[np.float64]


Run = Callable[[str, Callable[[Any, Any], Any], Any, Sequence[Any]], list[Any]]
"""Runs a function of an input and of one share each; takes a title and gives all results."""


@dataclass(frozen=True)
class OwnColumn:
    """A fitted column, and the places of its features among all dense ones."""

    fitted: FittedColumn
    places: tuple[int, ...]

    def features(self, table: Table, config: EncoderConfig) -> Floats:
        """Its features in all rows of a table, (n_rows, n_own)."""
        groups = [group.from_fitted([self.fitted], config) for group in KINDS.values()]
        layout = Layout.of(groups, [self.fitted.spec.name])
        dense = np.empty((table.n_rows, layout.n_dense), dtype=np.float32)
        for group in groups:
            group.write(MatchedTable.at_fit(table), layout, dense, RowNotes())
        return dense


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Values of the means of the target in the rows that they come from, each from other folds."""

    rows: Rows
    values: Floats  # (len(rows), n_means)

    def write(self, rows: Rows, features: Floats) -> None:
        """Put them into the features of some rows, (len(rows), n_means), both ascending."""
        place = np.searchsorted(self.rows, rows).clip(max=max(len(self.rows) - 1, 0))
        is_known = self.rows[place] == rows if len(self.rows) else np.zeros(len(rows), bool)
        features[is_known] = self.values[place[is_known]]


class SharedEncoder(TableEncoder):
    """A table encoder whose columns are fitted by tasks; its state is that of `TableEncoder`.

    Parameters
    ----------
    config : EncoderConfig
    given : FitInput
    run : callable
        Runs the tasks, see `Run`.
    n_shares : int
        Into how many the columns are divided.
    """

    def __init__(self, config: EncoderConfig, given: FitInput, run: Run, n_shares: int) -> None:
        super().__init__(config)
        self.given, self.run, self.n_shares = given, run, n_shares

    def fit(self, seconds_left: SecondsLeft | None) -> tuple[tuple[TextFeatures, ...], CrossFitted]:
        """Fit on the given rows; the features of their texts, and the means of the target."""
        given = self.given
        texts = self.fit_columns(given.table, given.rows, seconds_left)
        dense = SharedDense(self)
        texts = self._fit_to_target(dense, texts, given.target, given.rows)
        self.bins = self._find_bins(dense, given.rows)
        return texts, dense.means

    def suspects(self) -> list[str]:
        """Messages as those of `warn_about_columns`."""
        used = [spec for spec in self.specs if spec.kind != "drop"]
        found = self.run("Checking columns", _check_share, self.given, self.deal(used))
        ids, leaks = (
            [spec.name for spec in used if any(spec.name in part[k] for part in found)]
            for k in (0, 1)
        )
        return describe_suspects(self.specs, self.given.target.shape[1], ids, leaks)

    def deal(self, columns: Sequence[Any]) -> list[list[Any]]:
        """Shares of some columns, none of them empty."""
        n_shares = min(self.n_shares, len(columns))
        return [list(columns[k::n_shares]) for k in range(n_shares)]

    def _fit_each(self, table: MatchedTable, scope: FitScope) -> list[FittedColumn]:
        shares = self.deal(range(table.table.n_columns))
        plain = replace(scope, rows=None)  # which all tasks have
        tasks = [(plain, share) for share in shares]
        fitted = [
            column
            for part in self.run("Reading columns", _fit_share, self.given, tasks)
            for column in part
        ]
        self.fitted = sorted(fitted, key=lambda column: column.spec.position)
        return self.fitted

    def _fit_together(
        self,
        groups: list[ColumnGroup],
        table: MatchedTable,
        rows: Rows | None,
        seconds_left: SecondsLeft | None,
    ) -> tuple[TextFeatures, ...]:
        for k, group in enumerate(groups):
            if isinstance(group, TextColumns):
                groups[k] = _TextTask(group.specs, group.statistics, group.config)
                groups[k].__dict__.update(given=self.given, run=self.run)
        return super()._fit_together(groups, table, rows, seconds_left)


class SharedDense:
    """Features that no process has all of; `array` gives those of some rows."""

    def __init__(self, encoder: SharedEncoder) -> None:
        self.encoder = encoder
        self.columns = encoder.feature_columns[: encoder.target_mean_features.stop]
        self.means = CrossFitted(np.empty(0, np.int64), np.empty((0, 0), np.float32))
        self.parts: list[ValueMeans] = []

    @property
    def array(self) -> Floats:
        """Something that has a shape and takes an array of rows, which is all that is needed."""
        return cast("Floats", self)

    @property
    def shape(self) -> tuple[int, int]:
        """Of all features."""
        return len(self), len(self.columns) + len(self.parts)

    def __len__(self) -> int:
        return self.encoder.given.table.n_rows

    def __getitem__(self, rows: Rows) -> Floats:
        """All features of some rows, by a pass over the columns."""
        chosen, back = np.unique(rows, return_inverse=True)
        dense = np.empty((len(chosen), len(self.columns)), dtype=np.float32)
        tasks = [(self.encoder.config, share, chosen) for share in self._shares()]
        for part in self._run("Looking at some rows", _sample_share, tasks):
            for places, values in part:
                dense[:, places] = values
        features = TargetMeans(self.parts).transform(dense)
        if self.parts:
            self.means.write(chosen, features)
        return np.hstack([dense, features])[back]

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out some features."""
        self.columns = [column for column, stays in zip(self.columns, kept, strict=True) if stays]

    def append(self, added: CrossFitted) -> None:
        """Add the features of `fit_means`."""
        self.means = added

    def fit_means(
        self,
        target: NDArray[np.float64],
        rows: Rows | None,
        sizes: Sequence[int],
        dates: Sequence[DateFeatures],
    ) -> tuple[TargetMeans, CrossFitted]:
        """Means of the target, and their values in the rows that they come from.

        Days that recur are left to fits on one machine.
        """
        tasks = [(self.encoder.config, share, tuple(sizes)) for share in self._shares()]
        found = [e for part in self._run("Means of the target", _means_share, tasks) for e in part]
        best = best_means(sorted(found, key=lambda entry: entry[0].feature))
        # Copies, since what a task has sent may be memory for reading only.
        self.parts = [
            replace(part, values=part.values.copy(), means=part.means.copy()) for part, _ in best
        ]
        used = MeansFit.rows_of(self.encoder.given.rows)
        values = np.empty((len(used), len(best)), dtype=np.float32)
        for k, (_, held_out) in enumerate(best):
            values[:, k] = held_out
        return TargetMeans(self.parts), CrossFitted(used, values)

    def find_bins(
        self, rows: Rows | None, is_number: NDArray[np.bool_], n_features: int, n_bins: int
    ) -> Tensor:
        """Bins of all features."""
        limits, n_own = bin_limits(n_features, n_bins), len(self.columns)
        tasks = []
        for share in self._shares():
            places = {place for column in share for place in column.places}
            means = [
                (n_own + k, part, self.means.rows, self.means.values[:, k])
                for k, part in enumerate(self.parts)
                if part.feature in places
            ]
            numbers = {place for place in places if is_number[place]}
            tasks.append((self.encoder.config, share, limits, numbers, means))
        ends_of: dict[int, Floats] = {}
        for part in self._run("Bins of numbers", _bins_share, tasks):
            ends_of |= part
        return stack_bins(ends_of, n_features)

    def _run(
        self, title: str, function: Callable[[FitInput, Any], Any], tasks: list[Any]
    ) -> list[Any]:
        return self.encoder.run(title, function, self.encoder.given, tasks)

    def _shares(self) -> list[list[OwnColumn]]:
        places: dict[int, list[int]] = {}
        for place, position in enumerate(self.columns):
            places.setdefault(position, []).append(place)
        columns = [OwnColumn(self.encoder.fitted[k], tuple(own)) for k, own in places.items()]
        return self.encoder.deal(columns)


class _TextTask(TextColumns):
    """Text columns, which one task reads and embeds."""

    given: FitInput
    run: Run

    def fit_together(
        self, table: MatchedTable, rows: Rows | None, seconds_left: SecondsLeft | None
    ) -> tuple[TextFeatures, ...]:
        """As that of the base class."""
        if not self.specs:
            return ()
        task = (self.specs, self.config, None if seconds_left is None else seconds_left())
        (found,) = self.run("Embedding texts", _text_share, self.given, [task])
        if "slow" in found:
            raise TextTooSlowError(*found["slow"])
        for message in found["messages"]:
            warn(message)
        tensors, facts = found["state"]
        self.block = TextColumns.from_state(self.specs, tensors, facts, self.config).block
        return tuple(TextFeatures(*map(torch.tensor, pair)) for pair in found["texts"])


def dense_state(encoder: TableEncoder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of an encoder without its text, for `encode_dense`."""
    tensors, meta = encoder.to_state()
    columns = [
        spec | {"kind": "drop"} if spec["kind"] == "text" else spec for spec in meta["columns"]
    ]
    return tensors, meta | {"columns": columns, "text": None}


def encode_dense(
    state: tuple[dict[str, Tensor], dict[str, Any]],
    table: Table,
    rows: Rows,
    means: CrossFitted,
    out: Callable[[tuple[int, int]], Floats],
) -> Floats:
    """Features but text of some rows of the fit's table, as the fit has them.

    Parameters
    ----------
    state : tuple
        From `dense_state`.
    table : Table
        The rows alone.
    rows : ndarray of int64
        Their numbers in the table of the fit, ascending.
    means : CrossFitted
    out : callable
        Makes room for an array of some shape.
    """
    encoder = TableEncoder.from_state(*state)
    at = encoder.target_mean_features
    dense = out((table.n_rows, at.stop))
    encoder.write_features(MatchedTable.at_fit(table), dense)
    if len(at):
        means.write(rows, dense[:, at.start :])
    return dense


def _fit_share(given: FitInput, task: tuple[FitScope, list[int]]) -> list[FittedColumn]:
    """Fit some of the columns, as `fit_columns` fits all."""
    scope, positions = task
    mine = set(positions)
    others = {name: "drop" for k, name in enumerate(given.table.names) if k not in mine}
    config = replace(scope.config, column_kinds={**scope.config.column_kinds, **others})
    scope = replace(scope, config=config, rows=given.rows)
    with given.table.keep_columns():
        fitted = fit_columns(MatchedTable.at_fit(given.table), scope)
    return [fitted[position] for position in positions]


def _check_share(given: FitInput, specs: list[ColumnSpec]) -> tuple[list[str], list[str]]:
    with given.table.keep_columns():
        return find_suspects(given.table, specs, given.target, given.rows)


def _sample_share(
    given: FitInput, task: tuple[EncoderConfig, list[OwnColumn], Rows]
) -> list[tuple[tuple[int, ...], Floats]]:
    config, columns, rows = task
    some = given.table.take(rows)
    return [(column.places, column.features(some, config)) for column in columns]


def _means_share(
    given: FitInput, task: tuple[EncoderConfig, list[OwnColumn], tuple[int, ...]]
) -> list[FoundMeans]:
    config, columns, sizes = task
    fit = MeansFit(given.target, given.rows)
    found: list[FoundMeans] = []
    for column in columns:
        features = column.features(given.table, config)
        for k, place in enumerate(column.places):
            found += fit.of_feature(features[fit.rows, k], place, sizes[place])
        found = best_means(sorted(found, key=lambda entry: entry[0].feature))
    return found


def _bins_share(
    given: FitInput,
    task: tuple[
        EncoderConfig,
        list[OwnColumn],
        tuple[int, int],
        set[int],
        list[tuple[int, ValueMeans, Rows, Floats]],
    ],
) -> dict[int, Floats]:
    config, columns, limits, numbers, means = task
    found: dict[int, Floats | None] = {}
    for column in columns:
        features = column.features(given.table, config)
        for k, place in enumerate(column.places):
            if place in numbers:
                found[place] = bin_ends(features[given.rows, k], limits)
            for at, part, rows, held_out in means:
                if part.feature == place:
                    values = part.look_up(features[:, k])
                    values[rows] = held_out
                    found[at] = bin_ends(values[given.rows], limits)
    return {place: ends for place, ends in found.items() if ends is not None}


def _text_share(
    given: FitInput, task: tuple[list[ColumnSpec], EncoderConfig, float | None]
) -> dict[str, Any]:
    specs, config, seconds = task
    seconds_left = None if seconds is None else (lambda: seconds)
    group = TextColumns(specs, Standardizer.stack([]), config)
    with work_folder(None) as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            texts = group.fit_together(
                MatchedTable.at_fit(given.table, folder), given.rows, seconds_left
            )
        except TextTooSlowError as error:
            return {"slow": (error.work, error.seconds, error.seconds_left, error.n_done)}
        arrays = [(text.values.numpy().copy(), text.index.numpy().copy()) for text in texts]
    messages = [str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
    return {"state": group.to_state(), "texts": arrays, "messages": messages}
