"""Chunks that are compressed side by side: HDF5's own filters work on one after the other, in one thread.

What is written is what the filters shuffle, deflate and fletcher32 would make, in this order, so that HDF5 reads it.
"""

from __future__ import annotations

import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from math import prod
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.machine.threads import available_threads

LEVEL: Final = 1  # of deflate
_MODULUS: Final = 65535  # of Fletcher's sums
_AHEAD: Final = 2  # chunks a thread that are read before they are compressed

Place = tuple[slice, ...]


def copy_chunks(old: h5py.Dataset, new: h5py.Dataset) -> None:
    """Fill a new dataset, which has these filters and nothing yet, with the numbers of one of its shape and type."""
    ranges = [range(0, length, size) for length, size in zip(old.shape, new.chunks, strict=True)]
    many = prod(map(len, ranges))
    if many == 1:
        new.id.write_direct_chunk((0,) * old.ndim, filtered(_chunk(old, new, (0,) * old.ndim)))
        return
    threads = min(available_threads(), many)
    waiting: deque[tuple[tuple[int, ...], Future[bytes]]] = deque()

    def store_first() -> None:
        first, made = waiting.popleft()
        new.id.write_direct_chunk(first, made.result())

    with ThreadPoolExecutor(threads) as pool:
        for first in product(*ranges):
            waiting.append((first, pool.submit(filtered, _chunk(old, new, first))))
            if len(waiting) > _AHEAD * threads:
                store_first()
        while waiting:
            store_first()


def _chunk(old: h5py.Dataset, new: h5py.Dataset, first: tuple[int, ...]) -> npt.NDArray[Any]:
    """The numbers of one chunk; past the ends of the dataset the fill value."""
    values: npt.NDArray[Any] = old[
        tuple(slice(start, start + size) for start, size in zip(first, new.chunks, strict=True))
    ]
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
