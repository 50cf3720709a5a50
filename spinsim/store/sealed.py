"""Files with a seal: 512 bytes in front of an HDF5 file that hold the SHA-256 of every byte after them.

HDF5 calls such bytes a user block; h5py, h5netcdf, xarray and netCDF4 open the files unchanged. Damage is detected
before HDF5 reads a byte. A second SHA-256, of the parts that spinsim wrote, distinguishes a file with a user's
additions from a damaged one.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, NamedTuple

from spinsim.machine.threads import available_threads

SCHEMA: Final = "spinsim/1"
BYTES: Final = 512
_PIECE: Final = 2**24  # bytes that a thread hashes at a time
_SCHEMA: Final = re.compile(rb"(spinsim/[0-9]+) ")
_FORM: Final = re.compile(rb"spinsim/1 sha256=([0-9a-f]{64}) bytes=([0-9]+) parts=([0-9a-f]{64}) seal=[0-9a-f]{16}\n")
_HDF5: Final = b"\x89HDF\r\n\x1a\n"


class NoSealError(Exception):
    """The file does not begin with a seal of this version; the text is another schema, HDF5, or empty."""


class Seal(NamedTuple):
    """Contents of a seal."""

    sha256: str  # of all bytes after the seal, in hexadecimal
    size: int  # number of these bytes
    parts: str  # SHA-256 of the parts of the record, in hexadecimal

    def text(self) -> bytes:
        line = f"{SCHEMA} sha256={self.sha256} bytes={self.size} parts={self.parts} seal=".encode()
        line += f"{hashlib.sha256(line).hexdigest()[:16]}\n".encode()
        return line + b"\0" * (BYTES - len(line))


def seal_of(file: BinaryIO | io.RawIOBase) -> Seal:
    """Read the seal at the beginning of a file.

    Raises:
        NoSealError: if there is no seal, or one of another schema.
    """
    file.seek(0)
    head = file.read(BYTES) or b""
    schema, found = _SCHEMA.match(head), _FORM.match(head)
    if schema is not None and schema[1].decode() != SCHEMA:
        raise NoSealError(schema[1].decode())
    if found is None:
        raise NoSealError("HDF5" if head.startswith(_HDF5) else "")
    sha256, size, parts = (one.decode() for one in found.groups())
    seal = Seal(sha256, int(size), parts)
    if seal.text() != head:
        raise NoSealError("")
    return seal


def digest_of(file: Any) -> str:
    """SHA-256 of all bytes after the seal, in hexadecimal; for several pieces, the digest of their digests.

    Threads share the pieces, because a single thread would take as long for a large file as HDF5 does.
    """
    starts, one_by_one = range(BYTES, max(file.seek(0, os.SEEK_END), BYTES + 1), _PIECE), threading.Lock()
    descriptor = None if isinstance(file, io.BytesIO) or not hasattr(os, "pread") else file.fileno()

    def digest(start: int) -> Any:
        if descriptor is not None:
            return hashlib.sha256(_read_at(descriptor, start, _PIECE))
        with one_by_one:
            file.seek(start)
            piece = file.read(_PIECE)
        return hashlib.sha256(piece)

    if len(starts) == 1:
        return str(digest(BYTES).hexdigest())
    with ThreadPoolExecutor(min(len(starts), available_threads())) as pool:
        return hashlib.sha256(b"".join(one.digest() for one in pool.map(digest, starts))).hexdigest()


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    """Read ``size`` bytes of a file from ``start`` on, or fewer if it ends before."""
    pieces = [os.pread(descriptor, size, start)]
    while pieces[-1] and (found := sum(map(len, pieces))) < size:  # a network file system may return fewer at once
        pieces.append(os.pread(descriptor, size - found, start + found))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def add_seal(file: Any, parts: str) -> Seal:
    """Write the seal of a file whose other bytes are complete."""
    found = Seal(digest_of(file), file.seek(0, os.SEEK_END) - BYTES, parts)
    file.seek(0)
    file.write(found.text())
    return found
