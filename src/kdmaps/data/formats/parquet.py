"""Parquet files (pyarrow)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kdmaps.data.formats.base import Extras, block_rows, column_blocks, reading
from kdmaps.data.table import Blocks, Table


def open_parquet(path: Path) -> Table:
    """Inspect a Parquet file and return its columns."""
    from pyarrow import parquet, types

    with reading(path, "Parquet"), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        fields, n_samples = list(file.schema_arrow), file.metadata.num_rows
    kinds = (types.is_floating, types.is_integer, types.is_boolean)
    numeric = [field.name for field in fields if any(is_kind(field.type) for is_kind in kinds)]

    def read(names: list[str]) -> Blocks:
        with reading(path, "Parquet"), parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=block_rows(len(names)), columns=names):
                yield np.column_stack([batch.column(name).to_numpy(zero_copy_only=False) for name in names])

    others: dict[str, Callable[[], Blocks]] = {
        field.name: partial(read, [field.name]) for field in fields if field.name not in numeric
    }
    words = tuple(others)
    return Table(
        len(numeric), lambda j: read([numeric[i] for i in j]), numeric, others, n_samples=n_samples, words=words
    )


def write_parquet(file: BinaryIO, values: np.ndarray, names: Sequence[str], extras: Extras) -> None:
    """Write a table as Parquet."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    writer = None
    for block in column_blocks(values, names, extras):
        table = pyarrow.table({name: np.ascontiguousarray(column) for name, column in block.items()})
        writer = writer or ParquetWriter(file, table.schema, write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()
