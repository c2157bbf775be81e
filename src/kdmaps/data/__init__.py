"""Where samples come from: arrays, streams, files, trajectories, Dask; and tables of modes written to files."""

from kdmaps.data.formats import DESCRIPTORS, open_table, open_tables, read_column
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source, StreamSource, as_source
from kdmaps.data.table import Table, gather
from kdmaps.data.writers import TABLE_FORMATS, make_writer

__all__ = [
    "DESCRIPTORS",
    "PREVIEW_SAMPLES",
    "TABLE_FORMATS",
    "ArraySource",
    "Sample",
    "Source",
    "StreamSource",
    "Table",
    "as_source",
    "gather",
    "make_writer",
    "open_table",
    "open_tables",
    "read_column",
]
