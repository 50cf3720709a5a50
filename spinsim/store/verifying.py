"""Reading all of a file, so that whatever does not fit together in it comes to light."""

from __future__ import annotations

from math import prod
from typing import Final

import h5py
import numpy as np

from spinsim.store.checkpoints import CHECKPOINTS, read_checkpoint
from spinsim.store.configurations import check_configurations
from spinsim.store.forms import DamageError, check_texts, form_of
from spinsim.store.reading import complete_rows, groups_of, series_by_group
from spinsim.store.row_checksums import CHECKSUM, check_rows

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
    check_texts(file)
    summed = True
    for name in groups_of(file):
        group = file[name]
        for item in [group[key] for key in list(group) if isinstance(group.get(key), h5py.Dataset)]:
            _read(item)
            summed &= not item.chunks or not item.id.get_storage_size() or item.fletcher32 or CHECKSUM in group
    rows = complete_rows(file)
    if not written:
        _check_rows(file, rows)
    _check_steps(file)
    form_of(file).check_numbers(file, rows)
    check_configurations(file, rows)
    if CHECKPOINTS in file and not written:
        _, problem, _ = read_checkpoint(file[CHECKPOINTS])
        if problem:
            raise DamageError(problem.partition(":")[0])
    return summed


def _read(item: h5py.Dataset) -> None:
    """Every number, in pieces."""
    if not item.size or item.dtype.hasobject or not item.id.get_storage_size():
        return
    rows = max(1, _PIECE_BYTES // max(1, prod(item.shape[1:]) * item.dtype.itemsize)) if item.ndim else 0
    for first in range(0, len(item), rows) if rows else ():
        item[first : first + rows]
    if not rows:
        item[()]


def _check_rows(file: h5py.File, rows: int) -> None:
    """Rows are as they were written, in files that have a checksum for each."""
    for every, series in series_by_group(file):
        check_rows(series, rows // every)


def _check_steps(file: h5py.File) -> None:
    """Rows are numbered from 0."""
    for name in groups_of(file):
        if "step" in file[name]:
            steps = file[name]["step"][...]
            if not np.array_equal(steps, np.arange(len(steps))):
                raise DamageError(f"the rows of {name} are not numbered in turn")
