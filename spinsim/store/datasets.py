"""Datasets of a file: labelled, with named axes, with room set aside; compressed chunks; checksums of rows.

HDF5 filters one chunk after the other, in one thread. What is compressed here is what its filters shuffle, deflate and
fletcher32 would make, in this order, so that HDF5 reads it.

A finished file has HDF5's own checksums on every dataset. While rows are appended, chunks are written in place and
carry none: a series beside the others holds the CRC-32 of each row, and grows together with them.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from itertools import product
from math import prod
from typing import Any, Final, Self

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.machine.threads import available_threads
from spinsim.store.contents import DamageError

LEVEL: Final = 1  # of deflate
_PIECE_BYTES: Final = 2**24  # of datasets that are in memory at a time
_MODULUS: Final = 65535  # of Fletcher's sums
_AHEAD_BYTES: Final = 2**26  # of chunks that are read before the first of them is written; file layouts depend on it
Place = tuple[slice, ...]
CHECKSUM: Final = "row_checksum"  # dataset of the checksums in each group of series; older files have none
LONG_NAME: Final = "CRC-32 of the bytes of the row, of all series in the order of their names; 0 while it is replaced"
UNKNOWN: Final = 0
_SHORT_ROW: Final = 2**12  # bytes


def set_aside() -> h5py.h5p.PropDCID:
    """Creation properties of a dataset whose room is set aside at once."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return properties


def compressed() -> dict[str, Any]:
    return {"compression": "gzip", "compression_opts": LEVEL, "shuffle": True}


def written_once(group: h5py.Group, name: str, values: npt.NDArray[np.generic]) -> h5py.Dataset:
    return group.create_dataset(name, data=values, **({"fletcher32": True} if values.size else {}))


def scale(group: h5py.Group, name: str, values: npt.NDArray[np.generic], units: str = "1") -> None:
    dataset = written_once(group, name, values)
    dataset.attrs.update(scale_attributes(name, units))
    if values.dtype.kind == "S":
        dataset.attrs["_Encoding"] = "utf-8"  # netCDF's word for it: xarray reads text then
    dataset.make_scale(name)


def scale_attributes(name: str, units: str = "1") -> dict[str, str]:
    return {"long_name": name.replace("_", " "), "units": units}


def bare_dimension(group: h5py.Group, name: str, length: int) -> None:
    """A named axis without coordinates, by netCDF-4's convention: it takes no room however long it is."""
    dataset = group.create_dataset(name, (length,), np.int8, chunks=(min(length, 2**20),) if length else None)
    dataset.make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:10}")
    dataset.attrs["long_name"] = f"an axis of length {length}, numbered from 0, without values of its own"


def name_axes(group: h5py.Group) -> None:
    """Give the datasets of a group and of its groups axes that are named by their lengths, as netCDF asks for names."""
    datasets: list[h5py.Dataset] = []
    group.visititems(lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None)
    for dataset in datasets:
        for axis, length in enumerate(dataset.shape):
            again = dataset.shape[:axis].count(length)
            name = f"length_{length}" + (f"_{again + 1}" if again else "")
            if name not in group:
                bare_dimension(group, name, length)
            dataset.dims[axis].attach_scale(group[name])


def label(dataset: h5py.Dataset, scales: tuple[str, ...], long_name: str, units: str) -> None:
    """Say what a dataset is, and which axes of its group it has."""
    dataset.attrs.update({"long_name": long_name, "units": units})
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(dataset.parent[scale])


def pieces(series: Sequence[h5py.Dataset], rows: int) -> Iterator[slice]:
    """Rows of datasets that fit in memory together, in turn."""
    step = max(1, _PIECE_BYTES // max(1, sum(one.dtype.itemsize * prod(one.shape[1:]) for one in series)))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))


class Compressing:
    """Chunks of new datasets, compressed in threads; at the end of the context all are written, in turn."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(available_threads())
        self._waiting: deque[tuple[h5py.Dataset, tuple[int, ...], int, Future[bytes]]] = deque()
        self._bytes = 0

    def fill(self, new: h5py.Dataset, values: h5py.Dataset | npt.NDArray[Any]) -> None:
        """Fill a new, empty dataset with the filters of ``compressed`` by the end of the context."""
        ranges = [range(0, length, size) for length, size in zip(values.shape, new.chunks, strict=True)]
        for first in product(*ranges):
            chunk = _chunk(values, new, first)
            self._waiting.append((new, first, chunk.nbytes, self._pool.submit(filtered, chunk)))
            self._bytes += chunk.nbytes
            while self._bytes > _AHEAD_BYTES:
                self._write_first()

    def _write_first(self) -> None:
        new, first, nbytes, made = self._waiting.popleft()
        self._bytes -= nbytes
        new.id.write_direct_chunk(first, made.result())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._pool:
            while self._waiting and kind is None:
                self._write_first()


def _chunk(old: h5py.Dataset | npt.NDArray[Any], new: h5py.Dataset, first: tuple[int, ...]) -> npt.NDArray[Any]:
    """The numbers of one chunk; past the ends of the dataset the fill value."""
    within = tuple(slice(start, start + size) for start, size in zip(first, new.chunks, strict=True))
    values: npt.NDArray[Any] = old[within]
    if values.shape == new.chunks:
        return values
    whole = np.full(new.chunks, new.fillvalue, old.dtype)
    whole[tuple(slice(0, length) for length in values.shape)] = values
    return whole


def filtered(values: npt.NDArray[Any]) -> bytes:
    """The bytes of a chunk behind all filters."""
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(values.size, values.itemsize)
    packed = zlib.compress(np.ascontiguousarray(octets.T).data, LEVEL)  # neither holds the interpreter lock
    return packed + fletcher32(packed).to_bytes(4, "little")


def fletcher32(content: bytes) -> int:
    """Fletcher's checksum as HDF5 has it, of words with the higher byte first; an odd byte is one.

    Source: J. G. Fletcher, IEEE Trans. Commun. 30, 247 (1982); H5_checksum_fletcher32 in H5checksum.c.
    """
    padded = content + b"\0" * (len(content) % 2)
    words = np.frombuffer(padded, ">u2").astype(np.uint64)
    sums = int(words.sum()), int((words * np.arange(len(words), 0, -1, dtype=np.uint64)).sum())
    low, high = ((total - 1) % _MODULUS + 1 if total else 0 for total in sums)  # sums are folded, never 0 again
    return high << 16 | low


def row_checksums(values: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint32]:
    """Return the checksum of each row, from every series of a group but the checksums, in the types of the file."""
    if not values:
        return np.empty(0, np.uint32)
    columns = [np.ascontiguousarray(values[name]) for name in sorted(values)]
    rows = len(columns[0])
    octets = [column.reshape(rows, -1).view(np.uint8) for column in columns if column.size]
    if sum(part.shape[1] for part in octets) <= _SHORT_ROW:  # one call a row is faster than one for each series
        octets = [np.concatenate(octets, axis=1)]
    sums = (reduce(lambda total, part: zlib.crc32(part[row].data, total), octets, 0) for row in range(rows))
    return np.fromiter((total or 1 for total in sums), np.uint32, rows)  # 0 has a meaning of its own


def check_rows(series: Mapping[str, h5py.Dataset], end: int) -> None:
    """Compare the first rows of a group, all of its series by name, with their checksums, if it has any."""
    named = dict(series)
    stored = named.pop(CHECKSUM, None)
    if stored is None or not named:
        return
    end = min(max(end, 0), len(stored))
    for rows in pieces(list(named.values()), end):
        known = stored[rows]
        wrong = (known != UNKNOWN) & (known != row_checksums({name: dataset[rows] for name, dataset in named.items()}))
        if wrong.any():
            row = rows.start + int(wrong.argmax())
            raise DamageError(f"row {row} of {stored.parent.name.strip('/')} is not the one that was written")
