"""Samples: arrays, streams, files, trajectories and Dask as sources; tables of modes written to files."""

from kdmaps.data.check import check_data
from kdmaps.data.files import TABLE_FORMATS, make_writer, open_table, open_tables, read_column
from kdmaps.data.findings import Finding
from kdmaps.data.formats.descriptors import DESCRIPTORS
from kdmaps.data.inputs import angles, as_source, delays, split_at_gaps
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source, gather
from kdmaps.data.streams import StreamSource
from kdmaps.data.table import Table

__all__ = [
    "DESCRIPTORS",
    "PREVIEW_SAMPLES",
    "TABLE_FORMATS",
    "ArraySource",
    "Finding",
    "Sample",
    "Source",
    "StreamSource",
    "Table",
    "angles",
    "as_source",
    "check_data",
    "delays",
    "gather",
    "make_writer",
    "open_table",
    "open_tables",
    "read_column",
    "split_at_gaps",
]
