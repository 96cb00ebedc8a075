"""Tables to arrays: kinds of columns, statistics of the fit rows, text embeddings."""

from tabnsm.preprocessing.checks import warn_about_columns
from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.report import ColumnReport, ColumnRow
from tabnsm.preprocessing.table import TableEncoder
from tabnsm.preprocessing.table_input import Table
from tabnsm.preprocessing.text_cache import CacheInfo, cache_info, clear_cache
from tabnsm.preprocessing.text_encoder import TextEncoder

__all__ = [
    "CacheInfo",
    "ColumnReport",
    "ColumnRow",
    "EncodedTable",
    "EncoderConfig",
    "Table",
    "TableEncoder",
    "TextEncoder",
    "cache_info",
    "clear_cache",
    "warn_about_columns",
]
