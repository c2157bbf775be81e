"""Public names of kdmaps.data, imported when they are first used."""

from .check import check_data as check_data
from .detached import RareGroup as RareGroup
from .files import TABLE_FORMATS as TABLE_FORMATS
from .files import make_writer as make_writer
from .files import open_table as open_table
from .files import open_tables as open_tables
from .files import read_column as read_column
from .formats.descriptors import DESCRIPTORS as DESCRIPTORS
from .given_pairs import Pairs as Pairs
from .given_pairs import as_pairs as as_pairs
from .inputs import angles as angles
from .inputs import as_source as as_source
from .inputs import delays as delays
from .inputs import split_at_gaps as split_at_gaps
from .sources import PREVIEW_SAMPLES as PREVIEW_SAMPLES
from .sources import ArraySource as ArraySource
from .sources import Sample as Sample
from .sources import Source as Source
from .sources import gather as gather
from .streams import StreamSource as StreamSource
from .table import Table as Table
