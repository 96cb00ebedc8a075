"""Where each encoded feature goes, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tabnsm.columns.schema import ColumnSpec


@dataclass(frozen=True)
class Layout:
    """Order of the features: numbers, date parts, missing indicators, categories, text.

    Parameters
    ----------
    numeric, dates, categories, texts : list of ColumnSpec
        Columns by kind, in the order of the table.
    value_at : dict of int to int
        First feature of a column's values, by its position in the table.
    indicator_at : dict of int to int
        Feature that says a column's value is missing.
    names : list of str
        One name per feature, no two alike: a made-up one gets a "_" where a column has it.
    columns : list of int
        Input column of each feature, -1 for those of joined text.
    category_sizes : tuple of int
        Number of codes of each feature that is embedded, else 0.
    n_dense : int
        Number of features that are not text.
    """

    numeric: list[ColumnSpec]
    dates: list[ColumnSpec]
    categories: list[ColumnSpec]
    texts: list[ColumnSpec]
    value_at: dict[int, int]
    indicator_at: dict[int, int]
    names: list[str]
    columns: list[int]
    category_sizes: tuple[int, ...]
    n_dense: int

    @classmethod
    def of(
        cls, specs: Sequence[ColumnSpec], *, d_text: int | Sequence[int], embed_categories: bool
    ) -> Layout:
        """Lay out the features of some columns.

        Parameters
        ----------
        specs : sequence of ColumnSpec
            All columns.
        d_text : int or sequence of int
            Number of features of the joined text, 0 without text columns; or of each text column.
        embed_categories : bool
            Whether categories are codes to embed.

        Returns
        -------
        Layout
            The order of the features.
        """
        by_kind = {
            kind: [spec for spec in specs if spec.kind == kind]
            for kind in ("numeric", "date", "category", "text")
        }
        value_at: dict[int, int] = {}
        indicator_at: dict[int, int] = {}
        names: list[str] = []
        columns: list[int] = []
        sizes: list[int] = []

        taken = {spec.name for spec in specs}

        def make_name(name: str) -> str:
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        def add(spec: ColumnSpec, name: str, size: int = 0) -> None:
            names.append(name)
            columns.append(spec.position)
            sizes.append(size)

        for spec in by_kind["numeric"]:
            if spec.has_value:
                value_at[spec.position] = len(names)
                add(spec, spec.name)
        for spec in by_kind["date"]:
            value_at[spec.position] = len(names)
            for part in spec.date_parts:
                add(spec, make_name(f"{spec.name}_{part}"))
        for spec in [*by_kind["numeric"], *by_kind["date"]]:
            if spec.has_indicator:
                indicator_at[spec.position] = len(names)
                add(spec, make_name(f"{spec.name}_missing"))
        for spec in by_kind["category"]:
            value_at[spec.position] = len(names)
            add(spec, spec.name, spec.n_codes if embed_categories else 0)
        n_dense = len(names)
        if isinstance(d_text, int):
            names += [make_name(f"text_{k}") for k in range(d_text)]
            columns += [-1] * d_text
        else:
            for spec, width in zip(by_kind["text"], d_text, strict=True):
                names += [make_name(f"{spec.name}_text_{k}") for k in range(width)]
                columns += [spec.position] * width
        return cls(
            numeric=by_kind["numeric"],
            dates=by_kind["date"],
            categories=by_kind["category"],
            texts=by_kind["text"],
            value_at=value_at,
            indicator_at=indicator_at,
            names=names,
            columns=columns,
            category_sizes=(*sizes, *([0] * (len(names) - n_dense))),
            n_dense=n_dense,
        )
