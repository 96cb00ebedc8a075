"""Tables to arrays: kinds of columns, statistics of the fit rows, text embeddings, the target."""

from tabnsm.preprocessing.checks import warn_about_columns
from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.linear_fit import LinearFit
from tabnsm.preprocessing.report import ColumnReport, ColumnRow
from tabnsm.preprocessing.table import TableEncoder
from tabnsm.preprocessing.table_input import Table
from tabnsm.preprocessing.target import TargetScaler, check_target
from tabnsm.preprocessing.text_cache import CacheInfo, cache_info, clear_cache
from tabnsm.preprocessing.text_encoder import TextEncoder

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
