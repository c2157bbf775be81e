"""Tables of samples on disk, read in blocks of rows: the end of a file's name tells its format."""

from kdmaps.tables._formats import DESCRIPTORS, open_table, open_tables, read_column
from kdmaps.tables._table import Table, gather
from kdmaps.tables._write import TABLE_FORMATS, make_writer

__all__ = ["DESCRIPTORS", "TABLE_FORMATS", "Table", "gather", "make_writer", "open_table", "open_tables", "read_column"]
