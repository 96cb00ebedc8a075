"""Whatever table a user has, as columns that can be read as numbers, dates or strings."""

from tabnsm.tables.table_input import Table

__all__ = ["Table"]
