"""Tables to arrays: kinds of columns, statistics of the fit rows, text embeddings, the target."""

from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.report import ColumnReport
from tabnsm.preprocessing.table import TableEncoder
from tabnsm.preprocessing.table_input import Table
from tabnsm.preprocessing.text import TextEncoder

__all__ = [
    "ColumnReport",
    "EncodedTable",
    "EncoderConfig",
    "Table",
    "TableEncoder",
    "TextEncoder",
]
