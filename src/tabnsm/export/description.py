"""Everything of a model but its networks, as JSON and arrays (docs/guide/export.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabnsm._version import __version__
from tabnsm.columns.category import CategoryColumns
from tabnsm.columns.code import CodeColumns, varying_places
from tabnsm.columns.date import DateColumns
from tabnsm.columns.number import NumberColumns
from tabnsm.columns.standardize import CLIP_MARGIN, VALUE_LIMIT, Standardizer
from tabnsm.columns.text import TextColumns
from tabnsm.errors import InvalidOptionError
from tabnsm.export.network import rows_per_run
from tabnsm.export.reader import VERSION
from tabnsm.files.delimited import MISSING
from tabnsm.intervals.difficulty import EVEN_SHARE
from tabnsm.tables.date_format import ANY_DATE, MONTH_NUMBERS, date_patterns
from tabnsm.tables.number_format import REPLACEMENTS

if TYPE_CHECKING:
    from tabnsm.columns import TableEncoder
    from tabnsm.columns.layout import Layout
    from tabnsm.columns.schema import ColumnSpec
    from tabnsm.fitted import FittedRegressor
    from tabnsm.intervals.calibration import TargetCalibration
    from tabnsm.target import TargetModel

Entry = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def describe_model(model: FittedRegressor, network_files: Sequence[str]) -> tuple[Entry, Arrays]:
    """What the reader needs beside the networks: JSON-able facts, and arrays that they name."""
    encoder = model.encoder_
    arrays: Arrays = {}
    columns = _columns(encoder)
    text = _texts(encoder, arrays)
    sizes = encoder.category_sizes
    ends = np.cumsum(sizes).tolist()
    facts: Entry = {
        "format": "tabnsm-onnx",
        "version": VERSION,
        "tabnsm_version": __version__,
        "networks": list(network_files),
        "rows_per_run": rows_per_run(encoder.n_features),
        "needs": list(dict.fromkeys(_names(columns, text))),
        "features": encoder.feature_names,
        "categories": [[k, ends[k] - size, size] for k, size in enumerate(sizes) if size],
        "columns": columns,
        "target_means": _target_means(encoder, arrays),
        "text": text,
        "targets": _targets(model.target_, "target", arrays),
        "network_weight": 1.0,
        "members": [],
        "raw_targets": [],
        "quantiles": _quantiles(model, arrays),
        "missing_cells": MISSING,
        "replacements": [list(pair) for pair in REPLACEMENTS],
        "months": MONTH_NUMBERS,
    }
    return facts | _blend(model, arrays), arrays


def _names(columns: list[Entry], text: list[Entry]) -> list[str]:
    return [e["name"] for e in columns] + [name for e in text for name in e["columns"]]


def _columns(encoder: TableEncoder) -> list[Entry]:
    entries: dict[int, Entry] = {}
    places: list[Entry] = []
    layout = encoder._layout
    for group in encoder._groups:
        if isinstance(group, NumberColumns):
            found = _number_entries(group, layout)
        elif isinstance(group, DateColumns):
            found = _date_entries(group, layout)
        elif isinstance(group, CategoryColumns):
            found = _category_entries(group, layout)
            places = [_places_entry(spec, layout) for spec in group.specs if spec.places]
        elif isinstance(group, CodeColumns):
            found = [_code_entry(spec, spec.vocabulary, layout) for spec in group.specs]
        else:
            continue
        entries |= {spec.position: entry for spec, entry in zip(group.specs, found, strict=True)}
    used = (entries[position] for position in sorted(entries))
    kept = [entry for entry in used if entry["width"] or entry["missing_at"] is not None]
    return kept + places


def _entry(spec: ColumnSpec, layout: Layout, width: int, **facts: Any) -> Entry:
    return {
        "name": spec.name,
        "kind": spec.kind,
        "at": layout.value_at.get(spec.position, 0),
        "width": width,
        "missing_at": layout.indicator_at.get(spec.position),
        "statistics": None,
        **facts,
    }


def _statistics(standardizer: Standardizer, *, clip: bool) -> list[list[float]]:
    """Of each column: power of two, mean, deviation, limits, and what infinities become."""
    s = standardizer
    margin = CLIP_MARGIN * (s.high - s.low)
    limit = np.full(len(s.center), VALUE_LIMIT)
    low, high = (s.low - margin, s.high + margin) if clip else (-limit, limit)
    ends = (s.low, s.high) if clip else (0 * limit, 0 * limit)
    rows = [s.pre_scale, s.center, s.scale]
    rows += [np.clip(values, -limit, limit) for values in (low, high, *ends)]
    return [row.tolist() for row in rows]


def _number_entries(group: NumberColumns, layout: Layout) -> list[Entry]:
    clip = group.config.clip_outliers
    rows = iter(range(len(group.statistics.center)))
    entries = []
    for spec in group.specs:
        form = spec.number_format
        # Files of earlier versions mark every number; only dates were asked for by name.
        if spec.from_dates and group.config.column_kinds.get(spec.name) == spec.kind:
            raise InvalidOptionError(
                f"A numeric column of a model to export must not hold dates, got {spec.name!r}. "
                "Convert it to numbers and fit again, or let it be a date."
            )
        entry = _entry(
            *(spec, layout, int(spec.has_value)),
            takes_infinite=clip,
            thousands=form.thousands,
            decimal=form.decimal,
            pattern=form.pattern,
        )
        if spec.has_value:
            entry["statistics"] = _statistics(group.statistics.select([next(rows)]), clip=clip)
        entries.append(entry)
    return entries


def _date_entries(group: DateColumns, layout: Layout) -> list[Entry]:
    clip, first, entries = group.config.clip_outliers, 0, []
    for spec in group.specs:
        last = first + len(spec.date_parts)
        statistics = group.statistics.select(slice(first, last))
        entries.append(
            _entry(
                *(spec, layout, len(spec.date_parts)),
                parts=list(spec.date_parts),
                origin=spec.date_origin,
                patterns=date_patterns(spec.date_format or ANY_DATE),
                statistics=_statistics(statistics, clip=clip) if last > first else None,
            )
        )
        first = last
    return entries


def _category_entries(group: CategoryColumns, layout: Layout) -> list[Entry]:
    entries = []
    for k, spec in enumerate(group.specs):
        is_number = group.config.category_encoding == "code"
        none = None if is_number else 0  # as numbers, unseen values are missing ones
        entry = _entry(
            *(spec, layout, 1),
            codes={value: code for code, value in enumerate(spec.vocabulary, start=1)},
            unseen=none,
            missing=len(spec.vocabulary) + 1 if spec.missing_code else none,
        )
        if is_number:
            entry["statistics"] = _statistics(group.statistics.select([k]), clip=False)
        entries.append(entry)
    return entries


def _code_entry(spec: ColumnSpec, places: Sequence[str], layout: Layout) -> Entry:
    codes = [
        [k, {character: code for code, character in enumerate(found, start=1)}]
        for k, found in varying_places(places)
    ]
    return _entry(spec, layout, len(codes), places=codes)


def _places_entry(spec: ColumnSpec, layout: Layout) -> Entry:
    """The places of a category's codes, which are laid out behind the category."""
    entry = _code_entry(spec, spec.places, layout)
    return entry | {"kind": CodeColumns.kind, "at": entry["at"] + 1}


def _target_means(encoder: TableEncoder, arrays: Arrays) -> list[Entry]:
    entries = []
    parts = zip(encoder._means.parts, encoder.target_mean_features, strict=True)
    for k, (part, at) in enumerate(parts):
        means, look_up = f"target_means.{k}.means", []
        arrays[means] = part.means
        for j, (feature, values) in enumerate(part.look_ups):
            name = f"target_means.{k}.values.{j}"
            arrays[name] = values
            look_up.append([feature, name])
        entries.append({"look_up": look_up, "at": at, "means": means})
    return entries


def _texts(encoder: TableEncoder, arrays: Arrays) -> list[Entry]:
    group = next(group for group in encoder._groups if isinstance(group, TextColumns))
    if group.block is None:
        return []
    names = [spec.name for spec in group.specs]
    joined = encoder.config.text_columns == "joined"
    at, entries = encoder._layout.n_dense, []
    columns = [names] if joined else [[name] for name in names]
    for k, (part, wanted) in enumerate(zip(group.block._projections, columns, strict=True)):
        placed = {name: f"text.{k}.{name}" for name in ("center", "scale", "directions")}
        axes = part.directions
        arrays |= {
            placed["center"]: part.center.numpy(),
            placed["scale"]: part.scale.numpy(),
            placed["directions"]: np.eye(len(part.center)) if axes is None else axes.numpy(),
        }
        entries.append({"columns": wanted, "at": at, **placed})
        at += len(part.scale)
    return entries


def _targets(target: TargetModel, prefix: str, arrays: Arrays) -> list[Entry]:
    tensors, entries = target.to_state()
    arrays |= {f"{prefix}.{name}": tensor.numpy() for name, tensor in tensors.items()}
    return [
        {
            "name": label,
            "scale": _scale(entry["scaler"]),
            "linear": entry["linear_scaler"]
            and {
                "slopes": f"{prefix}.{k}.slope",
                "code_values": f"{prefix}.{k}.code_value",
                "scale": _scale(entry["linear_scaler"]),
            },
        }
        for k, (label, entry) in enumerate(zip(_labels(target), entries, strict=True))
    ]


def _labels(target: TargetModel) -> Sequence[str]:
    if target.n_targets == 1 and target.names is None:
        return ("prediction",)
    return target.labels


def _scale(state: Mapping[str, Any]) -> Entry:
    return {"asinh": None, "limits": None, **state}


def _blend(model: FittedRegressor, arrays: Arrays) -> Entry:
    blend = model.blend_
    if blend is None or not (blend.members or blend.neighbors):
        return {}
    has_raw = blend.raw_target is not None
    members: list[Entry] = [
        {
            "name": member.name,
            "weight": weight,
            "on": "raw_targets" if member.on_raw_scale and has_raw else "targets",
        }
        for member, weight in zip(blend.members, blend.member_weights, strict=True)
    ]
    if blend.neighbors is not None:
        nearest = {"name": "nearest rows", "weight": blend.neighbor_weight, "on": "targets"}
        members.append(nearest)
    raw = [] if blend.raw_target is None else _targets(blend.raw_target, "raw_target", arrays)
    return {"network_weight": blend.network_weight, "members": members, "raw_targets": raw}


def _quantiles(model: FittedRegressor, arrays: Arrays) -> list[Entry]:
    """What makes quantiles of difficulties; none for a model without a calibration."""
    targets = calibrated_targets(model)
    largest, entries = float(np.finfo(np.float64).max), []
    for k, target in enumerate(targets):
        names = [f"quantiles.{k}.{name}" for name in ("scores", "below", "above")]
        n = len(target.scores)
        share = np.ones(n) if target.weight is None else target.weight / target.weight.mean()
        scores = np.concatenate([[-np.inf], target.scores, [np.inf]])
        found = (scores, np.cumsum(share), np.cumsum(share[::-1]))
        arrays |= dict(zip(names, found, strict=True))
        low, high = np.clip(target.limits, -largest, largest).tolist()
        unit = target.difficulty.unit
        entries.append(
            {"arrays": names, "unit": unit, "even_share": EVEN_SHARE, "low": low, "high": high}
        )
    return entries


def calibrated_targets(model: FittedRegressor) -> list[TargetCalibration]:
    """The calibration of every target; empty where one has none."""
    targets = () if model.calibration_ is None else model.calibration_.targets
    found = [target for target in targets if target is not None]
    return found if len(found) == len(targets) else []
