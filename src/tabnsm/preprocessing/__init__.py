"""The target, and the names of this package that moved to `tables`, `columns` and `text`."""

from tabnsm.columns import (
    ColumnReport,
    ColumnRow,
    EncodedTable,
    EncoderConfig,
    TableEncoder,
    warn_about_columns,
)
from tabnsm.preprocessing.linear_fit import LinearFit
from tabnsm.preprocessing.target import TargetScaler, check_target
from tabnsm.tables import Table
from tabnsm.text import CacheInfo, TextEncoder, cache_info, clear_cache

__all__ = [
    "CacheInfo",
    "ColumnReport",
    "ColumnRow",
    "EncodedTable",
    "EncoderConfig",
    "LinearFit",
    "Table",
    "TableEncoder",
    "TargetScaler",
    "TextEncoder",
    "cache_info",
    "check_target",
    "clear_cache",
    "warn_about_columns",
]
