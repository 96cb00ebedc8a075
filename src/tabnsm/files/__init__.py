"""Table files in and out, in one piece or in batches of rows."""

from __future__ import annotations

from tabnsm.files.opening import open_table, read_table
from tabnsm.files.output import TableWriter
from tabnsm.files.output_path import check_output
from tabnsm.files.table_file import TableFile

__all__ = ["TableFile", "TableWriter", "check_output", "open_table", "read_table"]
