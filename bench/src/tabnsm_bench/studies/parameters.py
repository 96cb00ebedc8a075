"""Parameters of the network against the number of features; nothing is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm.options import Options, resolve_options
from tabnsm_bench.studies.study import Scope, Study
from tabnsm_bench.studies.table import Column, StudyTable
from tabnsm_bench.studies.variant import Variant

if TYPE_CHECKING:
    from torch import Tensor

N_FEATURES = tuple(2**k for k in range(4, 15))
SHARES = (0.25, 0.5, 0.75, 1.0)
# Twice the features may cost this much more than twice the parameters and still count as linear.
TOLERANCE = 0.05


class NoiseTextEncoder:
    """Stands in for a text encoder where only the number of features matters."""

    name = fingerprint = "noise"
    d_text = 384

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """A random row of its own per string: texts differ in as many directions as they can."""
        rows = np.empty((len(texts), self.d_text), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            np.random.default_rng(crc32(text.encode())).standard_normal(dtype=np.float32, out=row)
        return rows

    def count_truncated(self, texts: list[str]) -> int:
        """None is too long."""
        return 0


def count_parameters(
    n_features: int,
    options: Options,
    category_sizes: Sequence[int] | None = None,
    bins: Tensor | None = None,
) -> int:
    """Parameters of the network for a number of features, by default all numbers.

    Examples
    --------
    >>> options = resolve_options({"preset": "fast"})
    >>> count_parameters(40, options) > count_parameters(20, options)
    True
    """
    import torch

    from tabnsm.nn.model import TabNSM

    architecture = options.to_dict()["architecture"]
    if category_sizes is None:
        bins = torch.ones(n_features, 2, options.encoder.n_bins)
    model = TabNSM(n_features, category_sizes=category_sizes, bins=bins, **architecture)
    return sum(parameter.numel() for parameter in model.parameters())


def growth(n_features: Sequence[int], n_parameters: Sequence[int]) -> dict[str, Any]:
    """How the count grows: the exponent between neighbours, and a linear fit through all.

    Returns
    -------
    dict
        ``exponents``: log ratio of counts over log ratio of features, 1 is linear, 2 square;
        ``slope``, ``intercept`` and ``r2`` of the line; ``is_linear``: whether the last
        doubling at most doubles the count, within 5 %.

    Examples
    --------
    >>> growth([1, 2, 4], [10, 20, 40])["is_linear"], growth([1, 2, 4], [1, 4, 16])["is_linear"]
    (True, False)
    """
    x, y = np.asarray(n_features, float), np.asarray(n_parameters, float)
    exponents = np.diff(np.log(y)) / np.diff(np.log(x))
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - (slope * x + intercept)
    return {
        "exponents": [round(float(value), 4) for value in exponents],
        "slope": float(slope),
        "intercept": float(intercept),
        "r2": float(1 - residual.var() / y.var()),
        "is_linear": bool(exponents[-1] <= 1 + np.log2(1 + TOLERANCE)),
    }


class ParameterStudy(Study):
    """A study that counts; it has no runs."""

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Counts over powers of two, then over shares of each dataset's columns."""
        options = resolve_options({"preset": scope.preset})
        rows = [_row("any table", "", n, count_parameters(n, options)) for n in N_FEATURES]
        found = growth(N_FEATURES, [row["n_parameters"] for row in rows])
        for dataset in scope.datasets:
            rows += _dataset_rows(dataset, options, scope)
        for row, exponent in zip(rows[1:], found["exponents"], strict=False):
            row["exponent"] = exponent
        notes = [
            f"Line through the powers of two: {found['slope']:,.0f} parameters per feature, "
            f"R2 {found['r2']:.4f}. The last doubling has the exponent "
            f"{found['exponents'][-1]:.3f}: growth is {'' if found['is_linear'] else 'not '}"
            f"linear there. The greatest exponent, {max(found['exponents']):.3f}, is where the "
            "head's maps are still dense."
        ]
        columns = [
            Column("dataset", "dataset"),
            Column("share", "columns"),
            Column("n_features", "features"),
            Column("n_parameters", "parameters"),
            Column("per_feature", "per feature", ",.0f"),
            Column("exponent", "exponent", ".3f"),
        ]
        return StudyTable(self.name, self.title(scope), columns, rows, notes, {"growth": found})


def _row(dataset: str, share: str, n_features: int, n_parameters: int) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "share": share,
        "n_features": n_features,
        "n_parameters": n_parameters,
        "per_feature": n_parameters / n_features,
    }


def _dataset_rows(dataset: str, options: Options, scope: Scope) -> list[dict[str, Any]]:
    """Counts over shares of a table's columns, which are drawn as runs draw them."""
    if scope.data_dir is None:
        raise InvalidOptionError(
            f"data_dir must be given to count the features of {dataset!r}. Add --data-dir."
        )
    from tabnsm.columns import TableEncoder
    from tabnsm.tables import Table
    from tabnsm_bench.datasets import load
    from tabnsm_bench.splits import subset

    frame = load(dataset, scope.data_dir, target=scope.caps.get("target")).frame
    config = replace(options.encoder, text_encoder=NoiseTextEncoder(), text_cache=False)
    rows = []
    n_all = frame.shape[1]
    for share in SHARES:
        kept = subset(n_all, max(1, round(share * n_all)), scope.caps.get("split", 42))
        encoder = TableEncoder(config)
        encoder.fit_transform(Table.from_native(frame.iloc[:, kept]))
        sizes, bins = encoder.category_sizes, encoder.bins
        count = count_parameters(encoder.n_features, options, sizes, bins)
        rows.append(_row(dataset, f"{share:.0%}", encoder.n_features, count))
    return rows


def no_variants(preset: str) -> list[Variant]:
    """No runs are needed."""
    return []


STUDIES = (
    ParameterStudy(
        "parameters",
        "Parameters against the number of features",
        "parameter scaling with feature dimensionality",
        no_variants,
        measures=(),
        seeds=(),
    ),
)
