"""Archives of arrays (`.npz`) with one digest over all of them, read in memory that the size of the file bounds.

The last member is the SHA-256 of all others, with their names and in their order. It detects damage, and edits that
leave every member valid. It is not a signature: anybody can write an archive with a valid digest.
"""

import hashlib
import io
import math
import os
import zipfile
from typing import BinaryIO

import numpy as np

from kdmaps.utils.types import PathLike

#: The member that holds the digest of the others.
DIGEST = "digest"


def write_archive(file: BinaryIO, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays and their digest to an open file, uncompressed: `numpy.load` reads it too."""
    members = {name: _to_npy(array) for name, array in arrays.items()}
    members[DIGEST] = _to_npy(np.frombuffer(_digest(members), dtype=np.uint8))
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)  # without a date: equal models, equal files


def read_archive(path: PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of an archive, including its digest, if there is one; a damaged file raises a ValueError."""
    foreign = f"{os.fspath(path)} is not a kdmaps model, or is truncated"
    if not os.path.exists(path):
        raise FileNotFoundError(f"The model {os.fspath(path)} does not exist.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)} is a directory; give the model.npz in it.")
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{foreign}: it is not an .npz archive.")
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, os.fstat(file.fileno()).st_size)
            arrays = {name: _from_npy(name, content) for name, content in members.items()}
        except Exception as error:  # whatever a damaged archive makes zipfile, zlib and numpy raise
            raise ValueError(f"{foreign}: {error}") from error
    if members.pop(DIGEST, None) is not None and arrays[DIGEST].tobytes() != _digest(members):
        raise ValueError(f"{os.fspath(path)} was damaged or edited: its digest does not belong to its content.")
    return arrays


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    """Return the members of an archive whose file has `size` bytes; together they never hold more."""
    infos = archive.infolist()
    # A few compressed bytes could unpack to more than the memory holds, and so could bytes that many members share.
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("it is compressed, which kdmaps models never are.")
    # Both sizes of a member are claims, and memory for the larger one is asked for.
    if sum(max(info.file_size, info.compress_size) for info in infos) > size:
        raise ValueError("its members claim to hold more than the file.")
    names = [info.filename.removesuffix(".npy") for info in infos]
    if len(set(names)) < len(names):
        raise ValueError("it names a member twice.")
    return {name: archive.read(info) for name, info in zip(names, infos, strict=True)}


def _digest(members: dict[str, bytes]) -> bytes:
    """Return the digest of members with their names, in their order."""
    digest = hashlib.sha256()
    for name, content in members.items():
        digest.update(f"{len(name)}:{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.digest()


def _to_npy(array: np.ndarray) -> bytes:
    """Return an array as the content of an `.npy` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def _from_npy(name: str, content: bytes) -> np.ndarray:
    """Invert `_to_npy`, if the array has the size that it claims to have."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"array {name} has the unknown version {version}.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(f"Object arrays cannot be loaded: {name}.")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"array {name} does not have the size of its shape {shape}.")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C").copy("K")
