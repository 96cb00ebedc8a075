"""A fitted encoder for new rows: new categories, wider ranges, new columns and absent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.bins import find_bins
from tabnsm.columns.fitting import FitScope, join_notes
from tabnsm.columns.kinds import fit_column
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.table_encoder import TableEncoder
from tabnsm.errors import warn
from tabnsm.tables.table_input import Table

ABSENT = "absent from the rows of a refit: missing where it is absent"
ADDED = "added by a refit: missing where it is absent"


@dataclass(frozen=True, eq=False)
class ExtendedEncoder:
    """An encoder, and where features and codes of the one that it was made from have gone.

    Parameters
    ----------
    encoder : TableEncoder
    place_of : ndarray of int64
        Of each earlier feature among the new ones, ascending.
    code_of : dict of int to ndarray of int64
        By the place of an earlier feature that is a category: the new code of each of its codes.
    """

    encoder: TableEncoder
    place_of: NDArray[np.int64]
    code_of: dict[int, NDArray[np.int64]]

    @property
    def added(self) -> NDArray[np.int64]:
        """Places of the features that are new."""
        return np.setdiff1d(np.arange(self.encoder.n_features), self.place_of)

    def move_rows(self, dense: Tensor) -> Tensor:
        """Rows of the earlier encoder in the new encoding; columns that are new are missing.

        Parameters
        ----------
        dense : Tensor, shape (n, D_earlier)
            All features but text.

        Returns
        -------
        Tensor, shape (n, D_dense)
        """
        dense = dense.clone()
        for feature, codes in self.code_of.items():
            dense[:, feature] = torch.from_numpy(codes)[dense[:, feature].long()].to(dense.dtype)
        if not len(self.added):
            return dense
        known = [spec.name for spec in self.encoder.specs if ADDED not in spec.note]
        lacking = _written(self.encoder, Table.from_native({name: [None] for name in known}))
        moved = torch.from_numpy(lacking).to(dense.dtype).repeat(len(dense), 1)
        moved[:, torch.from_numpy(self.place_of[: dense.shape[1]])] = dense
        return moved


def extend_encoder(
    encoder: TableEncoder, table: Table, rows: NDArray[np.int64] | None
) -> ExtendedEncoder:
    """Make room for what some rows have and the rows of the fit had not.

    Centres and scales stay, and so do bins, projections of text and means of the target: what the
    networks have learned of a value stays true. The ranges to which numbers are limited grow.

    Parameters
    ----------
    encoder : TableEncoder
        Stays as it is.
    table : Table
    rows : ndarray of int64 or None
        Rows that may be looked at, those to train on; None for all.

    Returns
    -------
    ExtendedEncoder
    """
    tensors, meta = encoder.to_state()
    specs = _absent_columns(encoder, table)
    n_earlier = len(specs)
    with table.keep_columns():
        matched = MatchedTable(table, _positions(specs, table, encoder))
        specs = [_with_new_values(spec, matched, rows, encoder) for spec in specs]
        for spec, statistics in _new_columns(encoder, table, rows, n_earlier):
            specs.append(spec)
            if statistics is not None:
                tensors[spec.kind] = torch.cat([tensors[spec.kind], statistics], dim=1)
    tensors.pop("bins", None)
    meta["columns"] = [spec.to_dict() for spec in specs]
    means = meta.pop("target_means")
    extended = _rebuilt(tensors, meta, encoder)
    # Means of the target are laid out behind all other dense features.
    own = ExtendedEncoder(extended, _places(encoder, extended, own_only=True), {})
    codes = _new_codes(encoder, specs)
    meta["target_means"] = [_moved(fact, own.place_of) for fact in means]
    for k, fact in enumerate(means):
        if fact.get("feature") in codes:
            values = tensors[f"target_means.{k}.values"].long()
            moved = torch.from_numpy(codes[fact["feature"]])[values].float()
            tensors[f"target_means.{k}.values"] = moved  # ascending: only the last code moves
    extended = _rebuilt(_with_ranges(tensors, meta, encoder, table, rows), meta, encoder)
    result = ExtendedEncoder(extended, _places(encoder, extended), codes)
    extended.bins = _bins(encoder, result, table, rows)
    return result


def _moved(fact: dict[str, Any], place_of: NDArray[np.int64]) -> dict[str, Any]:
    """The facts of a mean of the target whose features have other places."""
    if "features" in fact:
        return fact | {"features": [int(place_of[feature]) for feature in fact["features"]]}
    return fact | {"feature": int(place_of[fact["feature"]])}


def _rebuilt(
    tensors: dict[str, Tensor], meta: dict[str, Any], encoder: TableEncoder
) -> TableEncoder:
    config = encoder.config
    return TableEncoder.from_state(tensors, meta, text_encoder=config.text_encoder)


def _absent_columns(encoder: TableEncoder, table: Table) -> list[ColumnSpec]:
    """The columns of the fit, of which those that the table lacks may be absent from now on."""
    if not (encoder._has_names and table.has_names):
        return list(encoder.specs)
    known = set(table.names)
    absent = [s for s in encoder.specs if s.kind != "drop" and s.name not in known]
    newly = [spec.name for spec in absent if not spec.optional]
    if newly:
        warn(
            f"The rows have no column named {', '.join(map(repr, newly[:5]))}"
            f"{f' and {len(newly) - 5} more' if len(newly) > 5 else ''}, which the model was "
            "fitted with: its values are taken as missing, here and in predict. Add it if it "
            "should be there, or check the spelling."
        )
    return [
        replace(spec, optional=True, note=join_notes(spec.note, ABSENT))
        if spec.name in newly
        else spec
        for spec in encoder.specs
    ]


def _positions(specs: Sequence[ColumnSpec], table: Table, encoder: TableEncoder) -> Sequence[int]:
    if not (encoder._has_names and table.has_names):
        return encoder.match(table).positions
    known = set(table.names)
    return [table.position(spec.name) if spec.name in known else -1 for spec in specs]


def _with_new_values(
    spec: ColumnSpec, table: MatchedTable, rows: NDArray[np.int64] | None, encoder: TableEncoder
) -> ColumnSpec:
    """A column with the categories, or the characters of codes, that it has in these rows, too."""
    if spec.kind == "category" and encoder.config.category_encoding == "embedding":
        found, _ = table.column(spec).to_factor().used(rows)
        new = sorted(set(found) - set(spec.vocabulary))
        vocabulary = (*spec.vocabulary, *new)
        return replace(spec, vocabulary=vocabulary, distinct=len(vocabulary)) if new else spec
    if spec.kind == "code":
        found, _ = table.column(spec).to_factor().used(rows)
        places = []
        for k, characters in enumerate(spec.vocabulary):
            here = sorted({value[k] for value in found if len(value) > k} - set(characters))
            # A place that did not vary has no feature.
            places.append(characters + "".join(here) if len(characters) > 1 else characters)
        return replace(spec, vocabulary=tuple(places))
    return spec


def _new_columns(
    encoder: TableEncoder, table: Table, rows: NDArray[np.int64] | None, n_earlier: int
) -> list[tuple[ColumnSpec, Tensor | None]]:
    """Columns that the fit did not have, and their statistics; not those of free text."""
    if not (encoder._has_names and table.has_names):
        return []
    known = {spec.name for spec in encoder.specs}
    scope, matched = FitScope(encoder.config, rows), MatchedTable.at_fit(table)
    found: list[tuple[ColumnSpec, Tensor | None]] = []
    for name in (name for name in table.names if name not in known):
        fitted = fit_column(matched, n_earlier + len(found), name, scope)
        spec = fitted.spec
        if spec.kind == "text":
            warn(
                f"The new column {name!r} is free text, which a refit cannot add: it is left out. "
                "Fit a new model to use it."
            )
            spec = replace(spec, kind="drop", note="left out: text that a refit cannot add")
        if spec.kind != "drop":
            spec = replace(spec, optional=True, note=join_notes(spec.note, ADDED))
        statistics = None if fitted.standardizer is None else fitted.standardizer.to_tensor()
        found.append((spec, statistics if spec.kind != "drop" else None))
    added = [spec.name for spec, _ in found if spec.kind != "drop"]
    if added:
        warn(
            f"The rows have {len(added)} column(s) that the model does not know, such as "
            f"{added[0]!r}. They become features; leave out those that should not."
        )
    return found


def _places(
    encoder: TableEncoder, extended: TableEncoder, own_only: bool = False
) -> NDArray[np.int64]:
    """Place of each earlier feature among the new ones.

    A column has the same features in the same order in both, `own_only` without means of targets.
    """
    place_of: dict[tuple[int, int], int] = {}
    for k, key in enumerate(_keys(extended.feature_columns)):
        place_of[key] = k
    means = set(encoder.target_mean_features) if own_only else set()
    keys = _keys([c for k, c in enumerate(encoder.feature_columns) if k not in means])
    return np.array([place_of[key] for key in keys], dtype=np.int64)


def _keys(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Column of each feature, and how many features of that column come before it."""
    counts: dict[int, int] = {}
    keys = []
    for column in columns:
        keys.append((column, counts.get(column, 0)))
        counts[column] = counts.get(column, 0) + 1
    return keys


def _new_codes(encoder: TableEncoder, specs: Sequence[ColumnSpec]) -> dict[int, NDArray[np.int64]]:
    """New code of each code of every category: those of missing values have moved."""
    codes = {}
    for k, size in enumerate(encoder.category_sizes):
        if not size:
            continue
        spec, earlier = (of[encoder.feature_columns[k]] for of in (specs, encoder.specs))
        codes[k] = np.arange(size)
        is_whole = encoder.feature_names[k] == earlier.name  # not a place of its codes
        if earlier.kind == "category" and earlier.missing_code and is_whole:
            codes[k][-1] = spec.n_codes - 1
    return codes


def _written(encoder: TableEncoder, table: Table) -> NDArray[np.float32]:
    """All features but text."""
    dense = np.empty((table.n_rows, encoder._layout.n_dense), dtype=np.float32)
    encoder.write_features(encoder.match(table), dense)
    return dense


def _with_ranges(
    tensors: dict[str, Tensor],
    meta: dict[str, Any],
    encoder: TableEncoder,
    table: Table,
    rows: NDArray[np.int64] | None,
) -> dict[str, Tensor]:
    """Statistics whose ranges hold the numbers of these rows, too."""
    config = meta["config"]
    unlimited = _rebuilt(tensors, meta | {"config": config | {"clip_outliers": False}}, encoder)
    dense = _written(unlimited, table)
    dense = dense if rows is None else dense[rows]
    ranges, first = dict(tensors), 0
    for group in unlimited._groups:
        if not group.has_indicators:
            continue
        n_features = len(group.features())
        values = dense[:, first : first + n_features].astype(np.float64)
        first += n_features
        *kept, low, high = tensors[group.kind].numpy()
        lowest, highest = values.min(axis=0), values.max(axis=0)
        widened = [*kept, np.minimum(low, lowest), np.maximum(high, highest)]
        ranges[group.kind] = torch.from_numpy(np.stack(widened))
    return ranges


def _bins(
    encoder: TableEncoder,
    extended: ExtendedEncoder,
    table: Table,
    rows: NDArray[np.int64] | None,
) -> Tensor | None:
    """Bins of earlier features as they were; new ones have bins of their own."""
    if encoder.bins is None:
        return None
    new, added = extended.encoder, extended.added
    if not len(added) and len(extended.place_of) == new.n_features:
        return encoder.bins.clone()
    dense = _written(new, table)
    is_number = np.array(new.category_sizes[: dense.shape[1]]) == 0
    is_number[extended.place_of[extended.place_of < dense.shape[1]]] = False
    fresh = find_bins(dense, rows, is_number, new.n_features, encoder.config.n_bins)
    width = max(fresh.shape[2], encoder.bins.shape[2])
    bins = torch.stack(
        [torch.full((new.n_features, width), torch.inf), torch.ones(new.n_features, width)], dim=1
    )
    bins[:, :, : fresh.shape[2]] = fresh
    place = torch.from_numpy(extended.place_of)
    bins[place] = torch.stack(
        [torch.full((len(place), width), torch.inf), torch.ones(len(place), width)], dim=1
    )
    bins[place, :, : encoder.bins.shape[2]] = encoder.bins
    return bins
