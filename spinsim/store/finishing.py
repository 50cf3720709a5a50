"""The file of a run written anew, in place of the old one: packed where the run is finished, or with more room.

A packed one is compressed, has checksums, and lacks the room that a finished run no longer needs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from spinsim.errors import InputError
from spinsim.machine.files import Disk, new_file, not_written, remove_stale, replacement
from spinsim.store import checkpoints
from spinsim.store.contents import BEST, Contents, check_texts, damage_of, form_of
from spinsim.store.creating import begin, extended, stamp, write_new
from spinsim.store.datasets import CHECKSUM, Compressing, compressed, pieces, row_checksums
from spinsim.store.models import identity, read_model
from spinsim.store.reading import complete_rows, every_of, growing, series_by_group

_CHUNK_BYTES: Final = 2**20
_PIECE_BYTES: Final = 2**24
_REWRITTEN: Final = "/summary"  # in place, by every analysis: compressed chunks would move
_OF_SPINSIM: Final = frozenset({"/model", f"/{checkpoints.GROUP}", _REWRITTEN})  # groups to which nothing can be added
_LARGE: Final = "/best/bits"  # half a minute a gigabyte, of spins that hardly become fewer


@contextlib.contextmanager
def hold(path: Path) -> Iterator[Disk]:
    """The file under a path, locked, or an OSError; what killed processes left near it is removed."""
    remove_stale(Path(os.path.realpath(path)).parent, os.path.basename(os.path.realpath(path)))
    while True:
        with Disk(path, "r+") as disk:
            disk.lock()
            if disk.is_at(path):  # else another one took its place before it was locked
                yield disk
                return


def finish_file(path: Path, disk: Disk, keep_checkpoint: bool) -> bool:
    """Let the packed file take the place of a run's file, with its mark of being finished.

    The file is open and locked, and HDF5 is done with it. A process that is killed on the way leaves the one or the
    other, whole. Where there is no room for the packed one, or the file has a second name, which would go on naming the
    old one, the file is marked as it is. Returns False where something else lies under the path by now.
    """
    try:
        if path.stat().st_nlink > 1:
            raise OSError
        with replacement(path, disk) as new, h5py.File(disk, "r") as file:
            pack(file, new, keep_checkpoint)
    except (OSError, RuntimeError):  # HDF5 raises the latter where it cannot read what it could not write
        with h5py.File(disk, "r+") as file:
            file.attrs.modify("finished", np.bytes_(stamp()))
        return disk.is_at(path)
    return True


def keep(path: Path, disk: Disk, finished: bool, keep_checkpoint: bool) -> Path:
    """Write a run's file that has gone from its path under the first free name there, such as ``run-1.h5``."""
    for number in count(1):
        name = path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            if not os.path.lexists(name):
                with new_file(name, disk) as new:
                    if finished:
                        with h5py.File(disk, "r") as file:
                            pack(file, new, keep_checkpoint)
                    else:
                        _copy_file(disk, new)
                    new.sync()
                return name
        except InputError:
            if not os.path.lexists(name):  # else somebody else was faster
                raise
    raise AssertionError


def _copy_file(old: Disk, new: Disk) -> None:
    """Copy all bytes; rows that are not written yet take no room."""
    old.seek(0)
    while piece := old.read(_CHUNK_BYTES):
        if piece.count(0) < len(piece):
            new.seek(old.tell() - len(piece))
            new.write(piece)
    new.truncate(old.tell())


def pack(old: h5py.File, disk: Disk, keep_checkpoint: bool) -> None:
    begin(disk, {name: old.attrs[name] for name in list(old.attrs) if name != "finished"}, finished=True)
    with extended(disk) as new, Compressing() as compressing:
        for name in list(old):
            if name != checkpoints.GROUP:
                _copy_item(old, new, name, compressing)
        _attach_scales(old, new, {})
        saved, _, rows = checkpoints.read(old.get(checkpoints.GROUP) if keep_checkpoint else None)
        if saved is not None:
            saved_as = checkpoints.saved_as(form_of(old))
            paths = {name: path for name, path in saved_as.items() if name in saved and path in old}
            large = {name: path for name, path in paths.items() if saved[name].nbytes > _CHUNK_BYTES}
            same = [name for name, path in large.items() if np.array_equal(old[path][...], saved[name])]
            checkpoints.pack(new.create_group(checkpoints.GROUP), saved, rows, compressing, same)


def copy_unknown(old: h5py.File, new: h5py.File) -> None:
    """Copy what a new file of the same run lacks: datasets, groups and attributes that a user has added."""
    with Compressing() as compressing:
        copied = _copy_lacking(old, new, compressing)
    scales: dict[str, h5py.Dataset] = {}
    for path in copied:
        if new.get(path) is not None:
            _attach_scales(old[path], new[path], scales)


def _copy_lacking(old: h5py.Group, new: h5py.Group, compressing: Compressing) -> list[str]:
    """Copy members and attributes that a group lacks; returns the paths of the copies."""
    for name in set(old.attrs) - set(new.attrs):
        new.attrs[name] = old.attrs[name]
    copied = []
    for name in list(old):
        path = f"{old.name.rstrip('/')}/{name}"
        if name not in new and path not in _OF_SPINSIM and name != CHECKSUM:
            _copy_item(old, new, name, compressing)
            copied.append(path)
        elif path not in _OF_SPINSIM and old.get(name, getclass=True) is new.get(name, getclass=True) is h5py.Group:
            copied += _copy_lacking(old[name], new[name], compressing)
    return copied


def _copy_item(old: h5py.Group, new: h5py.Group, name: str, compressing: Compressing) -> None:
    """Copy a member of a group, links to elsewhere as links."""
    link = old.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        new[name] = link
        return
    item = old[name]
    if isinstance(item, h5py.Group):
        group = new.create_group(name)
        _copy_attributes(item, group)
        for member in list(item):
            if member != CHECKSUM:
                _copy_item(item, group, member, compressing)
    elif isinstance(item, h5py.Dataset):
        _copy_dataset(item, new, name, compressing)
    else:
        new[name] = item.dtype


def _copy_dataset(old: h5py.Dataset, group: h5py.Group, name: str, compressing: Compressing) -> None:
    """Copy a dataset into compressed chunks; one that takes no room stays as it is."""
    if old.dtype.hasobject or old.shape is None:  # added by a user
        old.file.copy(old, group, name, without_attrs=True)
        new = group[name]
    elif not old.shape and old.size:
        new = group.create_dataset(name, data=old[()])
    elif not old.size or not old.id.get_storage_size():
        kind, space, how = old.id.get_type(), old.id.get_space(), old.id.get_create_plist()
        new = h5py.Dataset(h5py.h5d.create(group.id, name.encode(), kind, space, dcpl=how))
    else:
        chunks = _chunks(old)
        filters = {} if group.name == _REWRITTEN or old.name == _LARGE else compressed()
        plain = old.dtype.kind in "iuf"
        fill = old.fillvalue if plain else None  # HDF5 has no room for a long text there
        how = {"chunks": chunks, "fillvalue": fill, "fletcher32": True} | filters
        new = group.create_dataset(name, old.shape, old.dtype, **how)
        if filters and plain:
            compressing.fill(new, old)
        else:
            rows = max(1, _PIECE_BYTES // (prod(old.shape[1:]) * old.dtype.itemsize) // chunks[0]) * chunks[0]
            for first in range(0, len(old), rows):
                new[first : first + rows] = old[first : first + rows]
    if old.is_scale:
        new.make_scale(h5py.h5ds.get_scale_name(old.id))
    _copy_attributes(old, new)


def _chunks(dataset: h5py.Dataset) -> tuple[int, ...]:
    """Whole along the last axes, as many rows as there is room for along the first."""
    room, chunks = max(1, _CHUNK_BYTES // dataset.dtype.itemsize), []
    for length in reversed(dataset.shape):
        chunks.append(max(1, min(length, room)))
        room //= chunks[-1]
    return tuple(reversed(chunks))


def _copy_attributes(old: h5py.Group | h5py.Dataset, new: h5py.Group | h5py.Dataset) -> None:
    """All but those by which HDF5 knows scales."""
    for name in list(old.attrs):
        if name not in ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"):
            new.attrs[name] = old.attrs[name]


def _attach_scales(old: Any, new: Any, scales: dict[str, h5py.Dataset]) -> None:
    """Give a dataset, or those of a group, their axes; ``scales`` holds those of the new file by their names."""
    if isinstance(old, h5py.Group):
        for name in list(new):
            if isinstance(new.get(name, getlink=True), h5py.HardLink):
                _attach_scales(old[name], new[name], scales)
    has_axes = isinstance(old, h5py.Dataset) and not old.is_scale and old.shape
    for axis in range(old.ndim) if has_axes else ():
        attached: list[h5py.h5d.DatasetID] = []
        if h5py.h5ds.get_num_scales(old.id, axis):  # what users add has none
            h5py.h5ds.iterate(old.id, axis, attached.append, 0)
        for one in attached:
            path = h5py.h5i.get_name(one)
            if path not in scales:
                scales[path] = new.file[path]
            h5py.h5ds.attach_scale(new.id, scales[path].id, axis)


def extend(
    path: Path,
    contents: Contents,
    rows: int,
    check: Callable[[Mapping[str, str], str], None],
    attributes: Mapping[str, str],
    saved: Mapping[str, tuple[int, ...]],
    thin: int = 1,
) -> None:
    """Give a run's file room for ``rows`` rows and other root attributes: a copy takes its place at one stroke.

    Its ``contents`` may have series that a file of an older version lacks. ``check`` is called with its root attributes
    and the SHA-256 of the model in it, and raises where they are wrong. Arrays of checkpoints are to have the shapes
    ``saved``, which may be longer along the first axis. Of ``thin`` rows one is kept; saved configurations all stay.

    Raises:
        InputError: where the file has no checkpoint or one of other dynamics, is open elsewhere, or its copy cannot be
            written.
    """

    def write(disk: Disk) -> None:
        with h5py.File(disk, "r") as old:
            check_texts(old)
            stated, model_sha256 = identity(old)
            check(stated, model_sha256)
            if checkpoints.GROUP not in old:
                raise InputError(
                    f"{path} holds no checkpoint to go on from, like copies from Python and searches that earlier "
                    "versions finished: resume the file that the run wrote, or begin another run"
                )
            checkpoints.check(old[checkpoints.GROUP], path)
            slot = checkpoints.datasets_of(old[checkpoints.GROUP], 0)
            arrays = {name: np.empty(saved.get(name, one.shape), one.dtype) for name, one in slot.items()}
            root = {name: value for name, value in stated.items() if name != "finished"} | dict(attributes)
            best_of = old["best/energy"].shape[1] if "best" in old else 0
            longer = replace(contents, series=tuple(series for series in contents.series if series.path in old))
            with replacement(path, disk) as room:
                write_new(room, read_model(old), longer, rows, root, best_of, arrays, "best/spins" in old)
                with h5py.File(room, "r+") as new:
                    _copy_rows(old, new, thin)
                    copy_unknown(old, new)

    try:
        with damage_of(path), hold(path) as disk, ThreadPoolExecutor(1) as thread:
            thread.submit(write, disk).result()
    except OSError as error:
        raise not_written(path, error) from error


def _copy_rows(old: h5py.File, new: h5py.File, thin: int) -> None:
    """Copy everything measured and saved, of groups with all rows of the run every so many-th row."""
    for dataset in growing(old):
        copy, every = new[dataset.name], thin if every_of(dataset.parent) == 1 else 1
        copy.resize(len(dataset) // every, axis=0)
        for piece in pieces([dataset], len(copy)):
            first, stop = piece.start * every, piece.stop * every
            copy[piece] = dataset[first:stop][every - 1 :: every]
    for _, series in series_by_group(new):
        if thin > 1:  # the rows that are left get numbers, and saved configurations those that they belong to
            series["step"][...] = np.arange(len(series["step"]))
            if "measurement" in series:
                series["measurement"][...] = (series["measurement"][...] + 1) // thin - 1
        if thin > 1 or series[CHECKSUM].name not in old:
            _add_checksums(series)
    checkpoints.copy(old[checkpoints.GROUP], new[checkpoints.GROUP], complete_rows(old), thin)
    for group in (BEST, *form_of(old).groups):
        for name in list(new[group]) if group in old else []:
            item = new[group][name]
            if isinstance(item, h5py.Dataset) and not item.chunks and not item.is_scale:  # written again and again
                checkpoints.copy_into(item, old[item.name])


def _add_checksums(series: Mapping[str, h5py.Dataset]) -> None:
    """Fill in the checksums of a group's rows, which a finished file or an older one does not have."""
    measured = {name: dataset for name, dataset in series.items() if name != CHECKSUM}
    rows = min(map(len, measured.values()))
    series[CHECKSUM].resize(rows, axis=0)
    for piece in pieces(list(measured.values()), rows):
        series[CHECKSUM][piece] = row_checksums({name: dataset[piece] for name, dataset in measured.items()})
