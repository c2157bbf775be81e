"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kdmaps.data import DESCRIPTORS

DataArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Samples: .npy, .npz, .csv, .tsv, .txt, .dat, .parquet, .zarr, or a trajectory with --topology. Several "
        "files with the same columns are joined.",
        show_default=False,
    ),
]
ColumnsOption = Annotated[str | None, typer.Option(help="Columns to use: names, numbers or slices, as in a,b or 0:3.")]
StrideOption = Annotated[int, typer.Option(min=1, help="Use every n-th row.")]
ArrayOption = Annotated[str | None, typer.Option(help="Name of the array in an .npz or .zarr file.")]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text holds names of columns. (default: if it holds no number, or 0, 1, 2, …)",
    ),
]
TopologyOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Topology (such as a .pdb) of a trajectory.")
]
WeightsOption = Annotated[str | None, typer.Option(help="Weights of the samples: a column, or a file with one.")]
GroupsOption = Annotated[
    str | None,
    typer.Option(help="Trajectory of each sample: a column, or a file with one. (default: each file is one)"),
]
AnglesOption = Annotated[
    str | None, typer.Option(help="Columns that are angles, as in phi,psi: cosine and sine take their place.")
]
DegreesOption = Annotated[bool, typer.Option("--degrees", help="Whether angles are in degrees instead of radians.")]
DescriptorOption = Annotated[str, typer.Option(help=f"Coordinates of a trajectory: {' or '.join(DESCRIPTORS)}.")]
