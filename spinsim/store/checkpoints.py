"""Two checkpoints in slots of fixed size, written in turn: whenever the process dies, one of them is whole."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.store.contents import BEST, Arrays, Form, form_of
from spinsim.store.datasets import Compressing, compressed, name_axes, set_aside

_LONG_NAME: Final = "two states to go on from, for spinsim itself; the one of the higher serial is newer"

GROUP: Final = "checkpoint"  # their group
_RANDOM: Final = "spins"  # the array of spins in bits, which hardly become fewer when they are compressed
_LARGE: Final = 2**20  # bytes of such an array that is left as it is
SAME: Final = "same"
"""The attribute that names arrays which a finished file does not hold twice: they are those of other datasets."""
NUMBERS: Final = ("serial", "checksum", "rows")
"""Datasets of a number for each slot: its age, its CRC-32 and the rows of the run before it; older files lack rows."""
_BEST: Final = {f"best_{name}": f"{BEST}/{name}" for name in ("energy", "spins", "bits")}
_TRIES: Final = 100


def saved_as(form: Form) -> dict[str, str]:
    """Returns the paths of datasets that say the same as arrays of checkpoints, by the names of these arrays."""
    return {**form.sums, **_BEST}


def make(group: h5py.Group, arrays: Arrays) -> None:
    group.attrs.update({"long_name": _LONG_NAME, "dynamics": rng.DYNAMICS})
    for name in NUMBERS:
        group.create_dataset(name, (2,), np.int64, dcpl=set_aside())
    for slot in ("0", "1"):
        for name, value in arrays.items():
            group.create_dataset(f"{slot}/{name}", value.shape, value.dtype, dcpl=set_aside())
    name_axes(group)


def pack(group: h5py.Group, arrays: Arrays, rows: int, compressing: Compressing, same: Sequence[str]) -> None:
    """Two slots that are not written again: a run's last state, without arrays in ``same``, and an empty one."""
    group.attrs.update({"long_name": _LONG_NAME, "dynamics": rng.DYNAMICS})
    if same:
        group.attrs[SAME] = " ".join(same)
    for name, first in zip(NUMBERS, (1, _checksum(arrays), rows), strict=True):
        group.create_dataset(name, data=np.array([first, 0], np.int64), chunks=(2,), fletcher32=True)
    for slot in ("0", "1"):
        for name, value in arrays.items():
            how: dict[str, Any] = {"chunks": True, "fletcher32": True} if value.ndim and value.size else {}
            is_compressed = bool(how) and (name != _RANDOM or value.nbytes < _LARGE)
            if name in same:
                continue
            how |= compressed() if is_compressed else {}
            dataset = group.create_dataset(f"{slot}/{name}", value.shape, value.dtype, **how)
            if slot == "0" and is_compressed:
                compressing.fill(dataset, value)
            elif slot == "0":
                dataset[...] = value
    name_axes(group)


def write(group: h5py.Group, arrays: Arrays, rows: int, sync: Callable[[], None]) -> None:
    """Write the older of the two slots anew, after so many rows; ``sync`` brings all that is flushed to the disk."""
    serials = group["serial"][...]
    slot = int(serials.argmin())
    group["serial"][slot] = 0
    group.file.flush()
    for name, value in arrays.items():
        group[f"{slot}/{name}"][...] = value
    group["checksum"][slot] = _checksum(arrays)
    if "rows" in group:
        group["rows"][slot] = rows
    group.file.flush()
    sync()
    group["serial"][slot] = serials.max() + 1  # the mark of a whole one, last
    group.file.flush()


def read(group: h5py.Group | None) -> tuple[dict[str, npt.NDArray[Any]] | None, str, int]:
    """The newest checkpoint that is whole, if any, a sentence where a newer one is damaged, and the rows before it."""
    if group is None:
        return None, "", 0
    damaged, serials = "", group["serial"][...]
    for slot in np.argsort(-serials):
        if serials[slot] == 0:
            continue
        arrays = _arrays(group, slot)
        if _checksum(arrays) == group["checksum"][slot]:
            return arrays, damaged, int(group["rows"][slot]) if "rows" in group else 0
        damaged = "the last checkpoint is damaged: the run goes on from the one before it"
    return None, damaged and "both checkpoints are damaged: the run begins anew", 0


def copy(old: h5py.Group, new: h5py.Group, rows: int, thin: int = 1) -> None:
    """Copy both slots of a file into those of another one, whose arrays may be longer along the first axis.

    An older file, which does not say how many rows stand before its checkpoints, is taken to have ``rows``. Of ``thin``
    rows the other file has one.
    """
    for slot, serial in enumerate(old["serial"][...]):
        if not serial:
            continue
        whole = old["checksum"][slot] == _checksum(_arrays(old, slot))
        for name, dataset in datasets_of(old, slot).items():
            copy_into(new[f"{slot}/{name}"], dataset)
        new["checksum"][slot] = _checksum(_arrays(new, slot)) if whole else old["checksum"][slot]
        new["rows"][slot] = (old["rows"][slot] if "rows" in old else rows) // thin
        new["serial"][slot] = serial


def copy_into(new: h5py.Dataset, old: h5py.Dataset) -> None:
    new[(slice(len(old)), ...) if old.ndim else ()] = old[()]


def _arrays(group: h5py.Group, slot: int) -> dict[str, npt.NDArray[Any]]:
    return {name: dataset[...] for name, dataset in datasets_of(group, slot).items()}


def datasets_of(group: h5py.Group, slot: int) -> dict[str, h5py.Dataset]:
    """The datasets of a slot by name, those that stand elsewhere in its file among them."""
    paths = saved_as(form_of(group.file))
    others = {name: group.file[paths[name]] for name in str(group.attrs.get(SAME, "")).split()}
    return {name: group[f"{slot}/{name}"] for name in list(group[str(slot)])} | others


def check(group: h5py.Group | None, path: Path) -> None:
    """Refuse to go on from checkpoints of other dynamics; those from before there was a number are of dynamics 1."""
    if group is not None:
        rng.check_dynamics(int(group.attrs.get("dynamics", 1)), f"the checkpoint of {path}")


def last_saved(file: h5py.File) -> dict[str, npt.NDArray[Any]]:
    """Datasets of ``saved_as`` by their paths, from the newest whole checkpoint; empty where there is none.

    It is consistent even while another process writes: whoever writes a slot takes its serial number away first and
    gives it a new one last.
    """
    if GROUP not in file:
        return {}
    group, saved = file[GROUP], saved_as(form_of(file))
    for _ in range(_TRIES):
        serials = group["serial"][...]
        slot = int(serials.argmax())
        names = set(group[str(slot)]) & saved.keys() if serials[slot] else set()
        arrays = {name: group[f"{slot}/{name}"][...] for name in names}
        if group["serial"][slot] == serials[slot]:
            return {saved[name]: array for name, array in arrays.items()}
    return {}


def _checksum(arrays: Arrays) -> int:
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).data, total)
    return total
