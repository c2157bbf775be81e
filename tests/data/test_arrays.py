"""Archives of samples do not use more memory than their size allows, whatever they declare."""

import zipfile

import numpy as np
import pytest

from kdmaps.data import gather, open_table
from shared import traced_peak

HEADER = "{{'descr': '<f8', 'fortran_order': {}, 'shape': {}, }}"


def declare(path, shape, content, fortran=False):
    """Write an archive whose array X declares this shape."""
    header = HEADER.format(fortran, shape).ljust(117).encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + content)
    return path


@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("shape", [(10**9, 2), (2, 10**9), (3, 2)])
def test_shape_does_not_match_the_content(shape, fortran, tmp_path):
    path = declare(tmp_path / "t.npz", shape, bytes(32), fortran)

    def read():
        with pytest.raises(ValueError, match=r"t\.npz .*X\.npy does not match its shape"):
            open_table(path)

    assert traced_peak(read) < 1e6


@pytest.mark.parametrize(("shape", "fortran"), [((2, 2**21), False), ((2**21, 2), True)])
def test_decompression_bomb(shape, fortran, tmp_path):
    """A row, or all of a column-major array, must be in memory at once."""
    path = declare(tmp_path / "t.npz", shape, bytes(2**25), fortran)
    assert path.stat().st_size < 2**16

    def read():
        with pytest.raises(ValueError, match="store it uncompressed"):
            open_table(path)

    assert traced_peak(read) < 1e6


@pytest.mark.parametrize("fortran", [False, True])
def test_valid_arrays(fortran, tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3))
    path = declare(tmp_path / "t.npz", X.shape, X.tobytes(order="F" if fortran else "C"), fortran)
    np.testing.assert_array_equal(gather(open_table(path).select()), X)
    zeros = declare(tmp_path / "zeros.npz", (2**18, 2), bytes(2**22))  # compressed a thousand times, but read in blocks
    assert gather(open_table(zeros).select()).shape == (2**18, 2)
