"""Rows that grow beyond memory: segments of a run's file, each a file that is written once, and arrays that read them.

A run that saves many configurations does not write them anew at each checkpoint. Those since the last one go into
a segment, ``<name>.parts/<group>-<number>.h5``, which the run's file lists with its SHA-256.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.store import sealed

LISTED: Final = "segments"
"""The attribute of a group that lists its segments, as JSON: name, SHA-256 and rows of each."""


class Segment(NamedTuple):
    """A file with some successive rows of all arrays of a group."""

    name: str  # of the file, relative to the folder of the run's file
    sha256: str
    rows: int


def listed(text: str) -> list[Segment]:
    return [Segment(str(name), str(sha256), int(rows)) for name, sha256, rows in json.loads(text or "[]")]


def folder_of_segments(path: Path) -> Path:
    return path.with_name(f"{path.stem}.parts")


class Stored:
    """An array that stays in a file; indexing reads a part of it. Segments are verified when they are first read."""

    def __init__(
        self, path: str, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike, segments: Sequence[Segment] = ()
    ) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, np.dtype(dtype)
        self.segments = tuple(segments)

    @classmethod
    def in_file(cls, item: h5py.Dataset, path: str) -> Stored:
        segments = listed(str(item.parent.attrs.get(LISTED, ""))) if item.is_virtual else []
        return cls(os.path.abspath(path), item.name, item.shape, item.dtype, segments)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> npt.NDArray[Any]:
        first, stop, _ = which.indices(len(self)) if isinstance(which, slice) else (0, len(self), 1)
        row = 0
        for one in self.segments:
            if row < stop and first < row + one.rows:
                verify(Path(self.path).parent, one)
            row += one.rows
        with h5py.File(self.path, "r", locking=False) as file:
            return np.asarray(file[self.name][which])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype)

    def without_segments(self) -> Stored:
        """The same rows, which a new file is to hold itself."""
        return Stored(self.path, self.name, self.shape, self.dtype)

    def identity(self) -> bytes:
        return json.dumps(self.segments).encode()

    def layout(self) -> h5py.VirtualLayout:
        layout, row = h5py.VirtualLayout(self.shape, self.dtype), 0
        for one in self.segments:
            shape = (one.rows, *self.shape[1:])
            layout[row : row + one.rows] = h5py.VirtualSource(one.name, self.name.rpartition("/")[2], shape, self.dtype)
            row += one.rows
        return layout


_verified: Final[dict[tuple[int, int], tuple[int, int, str]]] = {}  # time of writing, size and SHA-256, by file


def verify(folder: Path, segment: Segment) -> None:
    """Compare a segment with its SHA-256, once for each state of its file.

    Raises:
        InputError: where it is missing or damaged.
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
        raise InputError(f"{path}, which has rows of a run, cannot be read: keep it beside the run's file") from error
    if not is_whole:
        raise InputError(f"{path}, which has rows of a run, is damaged: take another copy of it")
    _verified[status.st_dev, status.st_ino] = known


def remove(path: Path, kept: Iterable[Segment]) -> None:
    """Remove the segments beside a run's file, but for those that are kept, and their folder where it is empty."""
    folder, names = folder_of_segments(path), {Path(one.name).name for one in kept}
    if not folder.is_dir():
        return
    for one in folder.glob("*-*.h5"):
        if one.name not in names:
            one.unlink(missing_ok=True)
    if not names and not any(folder.iterdir()):
        folder.rmdir()
