"""Rows that exceed memory: segments of a run's file, each a file that is written once, and arrays that read them.

A run that saves many configurations does not rewrite them at each checkpoint. Configurations since the last one go
into a segment, ``<file>.parts/<group>-<number>.h5``, which the run's file lists with its SHA-256.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, another_path
from spinsim.store import sealed

LISTED: Final = "segments"
"""Attribute of a group that lists its segments, as JSON: name, SHA-256 and number of rows of each."""

_PIECE: Final = 2**24  # bytes in memory at a time


class Segment(NamedTuple):
    """A file with some consecutive rows of all arrays of a group."""

    name: str  # of the file, relative to the folder of the run's file
    sha256: str
    rows: int

    @property
    def number(self) -> int:
        return int(Path(self.name).stem.rpartition("-")[2])


def listed(text: str) -> list[Segment]:
    return [Segment(str(name), str(sha256), int(rows)) for name, sha256, rows in json.loads(text or "[]")]


def folder_of_segments(path: Path) -> Path:
    return path.with_name(f"{path.name}.parts")


class Stored:
    """An array that stays in files; indexing reads a part of it. Segments are verified when they are first read.

    ``is_virtual`` is True if its file only refers to the rows of the segments, False if the file holds them itself.
    """

    def __init__(
        self,
        path: str,
        name: str,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        segments: Sequence[Segment] = (),
        is_virtual: bool = False,
    ) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, np.dtype(dtype)
        self.segments, self.is_virtual = tuple(segments), is_virtual

    @classmethod
    def in_file(cls, item: h5py.Dataset, path: str) -> Stored:
        segments = listed(str(item.parent.attrs.get(LISTED, ""))) if item.is_virtual else []
        return cls(os.path.abspath(path), item.name, item.shape, item.dtype, segments, item.is_virtual)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> npt.NDArray[Any]:
        if not self.is_virtual and not self.segments:
            return _read(Path(self.path), self.name, which)
        if not isinstance(which, slice) or which.step not in (None, 1):
            return np.asarray(self[:][which])
        (first, stop, _), row = which.indices(len(self)), 0
        pieces = [np.empty((0, *self.shape[1:]), self.dtype)]
        for one in self.segments:
            if row < stop and first < row + one.rows:
                here = slice(max(first - row, 0), min(stop - row, one.rows))
                folder = Path(self.path).parent
                verify(folder, one)
                pieces.append(_read(folder / one.name, self.name.rpartition("/")[2], here))
            row += one.rows
        return np.concatenate(pieces)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype)

    def pieces(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield all rows in pieces, each with the number of its first row."""
        together = max(1, _PIECE * len(self) // max(1, self.nbytes))
        for first in range(0, len(self), together):
            yield first, self[first : first + together]

    def joined(self) -> Stored:
        """Return an array of the same rows, which a new file will hold itself."""
        return Stored(self.path, self.name, self.shape, self.dtype, self.segments)

    def identity(self) -> bytes:
        return json.dumps(self.segments).encode()

    def layout(self) -> h5py.VirtualLayout:
        layout, row = h5py.VirtualLayout(self.shape, self.dtype), 0
        for one in self.segments:
            shape = (one.rows, *self.shape[1:])
            layout[row : row + one.rows] = h5py.VirtualSource(one.name, self.name.rpartition("/")[2], shape, self.dtype)
            row += one.rows
        return layout


def _read(path: Path, name: str, which: Any) -> npt.NDArray[Any]:
    try:
        with h5py.File(path, "r", locking=False) as file:
            return np.asarray(file[name][which])
    except (OSError, KeyError) as error:
        raise _missing(path) from error


_verified: Final[dict[tuple[int, int], tuple[int, int, str]]] = {}  # time of writing, size and SHA-256, by file


def size(folder: Path, segment: Segment) -> int:
    """Size in bytes of a segment's file; InputError if it is missing."""
    try:
        return os.path.getsize(folder / segment.name)
    except OSError as error:
        raise _missing(folder / segment.name) from error


def _missing(path: Path) -> InputError:
    return InputError(f"{path}, which has rows of a run, cannot be read: put it back where it was")


def check_free(path: Path, has_segments: bool) -> None:
    """Refuse a new file with segments if an earlier file of this name has left segments in their place."""
    folder = folder_of_segments(path)
    if has_segments and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} has rows of another run, which are never overwritten: move it, or {another_path()}")


def verify(folder: Path, segment: Segment) -> None:
    """Compare a segment with its SHA-256, once for each state of its file.

    Raises:
        InputError: if it is missing or damaged.
    """
    path = folder / segment.name
    try:
        status = os.stat(path)
        known = status.st_mtime_ns, status.st_size, segment.sha256
        if _verified.get((status.st_dev, status.st_ino)) == known:
            return
        with open(path, "rb") as file:
            is_whole = sealed.seal_of(file).sha256 == segment.sha256 == sealed.digest_of(file)
    except (OSError, sealed.NoSealError) as error:
        raise _missing(path) from error
    if not is_whole:
        raise InputError(f"{path}, which has rows of a run, is damaged: take another copy of it")
    _verified[status.st_dev, status.st_ino] = known


def drop(folder: Path, lost: Iterable[Segment]) -> None:
    """Remove the remaining segments of a run that has lost some of them; never those of another run."""
    for one in lost:
        with contextlib.suppress(InputError, OSError):
            verify(folder, one)
            (folder / one.name).unlink()
            (folder / one.name).parent.rmdir()  # succeeds after the last one


def remove(path: Path, kept: Iterable[Segment]) -> None:
    """Remove the segments of a run's file except those that are kept, and their folder if it is empty."""
    folder, names = folder_of_segments(path), {Path(one.name).name for one in kept}
    with contextlib.suppress(FileNotFoundError):  # no folder, or somebody deletes it at this moment
        for one in folder.glob("*-*.h5"):
            if one.name not in names:
                one.unlink(missing_ok=True)
        if not names and not any(folder.iterdir()):
            folder.rmdir()
