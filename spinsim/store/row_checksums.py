"""Checksums of the rows of a file that is not finished, a number for each row of each group of series.

A finished file has HDF5's own checksums on every dataset. While rows are appended, chunks are written in place and
carry none: a series beside the others holds the CRC-32 of each row, and grows together with them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.store.datasets import pieces
from spinsim.store.forms import DamageError

CHECKSUM: Final = "row_checksum"
"""Dataset of the checksums in each group of series; older files have none."""
LONG_NAME: Final = "CRC-32 of the bytes of the row, of all series in the order of their names; 0 while it is replaced"
UNKNOWN: Final = 0
_SHORT_ROW: Final = 2**12  # bytes


def row_checksums(values: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint32]:
    """Return the checksum of each row.

    Args:
        values: Rows of every series of a group but the checksums, by name, in the types of the file.
    """
    if not values:
        return np.empty(0, np.uint32)
    columns = [np.ascontiguousarray(values[name]) for name in sorted(values)]
    rows = len(columns[0])
    octets = [column.reshape(rows, -1).view(np.uint8) for column in columns if column.size]
    if sum(part.shape[1] for part in octets) <= _SHORT_ROW:  # one call a row is faster than one for each series
        octets = [np.concatenate(octets, axis=1)]
    return np.fromiter((_crc32(part[row] for part in octets) for row in range(rows)), np.uint32, rows)


def _crc32(parts: Iterable[npt.NDArray[np.uint8]]) -> int:
    total = 0
    for part in parts:
        total = zlib.crc32(part.data, total)
    return total or 1  # 0 has a meaning of its own


def check_rows(series: Mapping[str, h5py.Dataset], end: int) -> None:
    """Compare the first rows of a group with their checksums, if it has any.

    Args:
        series: All series of the group, by name.
        end: Rows that are compared.
    """
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
