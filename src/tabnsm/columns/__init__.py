"""Columns of a table as features: kinds, statistics of the fit rows, encoding and reports."""

from tabnsm.columns.checks import warn_about_columns
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.encoded import EncodedTable
from tabnsm.columns.report import ColumnReport, ColumnRow
from tabnsm.columns.table_encoder import TableEncoder

__all__ = [
    "ColumnReport",
    "ColumnRow",
    "EncodedTable",
    "EncoderConfig",
    "TableEncoder",
    "warn_about_columns",
]
