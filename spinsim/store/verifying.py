"""Reading all of a file, so that whatever does not fit together in it comes to light."""

from __future__ import annotations

from math import prod
from typing import Final

import h5py
import numpy as np

from spinsim.layout import MEASUREMENTS, TEMPERING
from spinsim.store.checkpoints import CHECKPOINTS, read_checkpoint
from spinsim.store.reading import GROUPS, complete_rows
from spinsim.store.schema import DamageError

_PIECE_BYTES: Final = 2**24


def verify(file: h5py.File, written: bool) -> bool:
    """Read every number of a file whose schema has been checked; HDF5 compares the checksums that it has.

    Args:
        file: Open for reading.
        written: Whether another process writes it meanwhile: its checkpoints are left alone then.

    Returns:
        Whether every series has checksums.

    Raises:
        DamageError: for what can be read and is wrong all the same.
        OSError: for what cannot be read, numbers with a wrong checksum among it.
    """
    summed = True
    for name in GROUPS:
        group = file.get(name, {})
        for item in [group[key] for key in list(group)]:
            _read(item)
            summed &= not item.chunks or not item.id.get_storage_size() or bool(item.fletcher32)
    _check_steps(file)
    if TEMPERING in file:
        _check_permutation(file)
    if CHECKPOINTS in file and not written:
        _, problem = read_checkpoint(file[CHECKPOINTS])
        if problem:
            raise DamageError(problem.partition(":")[0])
    return summed


def _read(item: h5py.Dataset) -> None:
    """Every number, in pieces."""
    if not item.size or not item.id.get_storage_size():
        return
    rows = max(1, _PIECE_BYTES // max(1, prod(item.shape[1:]) * item.dtype.itemsize)) if item.ndim else 0
    for first in range(0, len(item), rows) if rows else ():
        item[first : first + rows]
    if not rows:
        item[()]


def _check_steps(file: h5py.File) -> None:
    """Rows are numbered from 0."""
    for name in GROUPS:
        if name in file and "step" in file[name]:
            steps = file[name]["step"][...]
            if not np.array_equal(steps, np.arange(len(steps))):
                raise DamageError(f"the rows of {name} are not numbered in turn")


def _check_permutation(file: h5py.File) -> None:
    """Every replica is at one temperature."""
    series, rows = file[TEMPERING]["permutation"], complete_rows(file)
    copies, temperatures = file[MEASUREMENTS]["energy"].shape[2:]
    replicas = np.arange(copies * temperatures)
    piece = max(1, _PIECE_BYTES // max(1, series.dtype.itemsize * prod(series.shape[1:])))
    for first in range(0, rows, piece):
        found = series[first : min(first + piece, rows)].reshape(-1, len(replicas))
        if not (np.sort(found, axis=1) == replicas).all():
            raise DamageError("its permutation does not name every replica once")
