"""Records as HDF5 groups: dimension scales on every axis, units, one order, no time stamps: equal records, equal bytes.

An axis without coordinates is a dimension of netCDF-4 without a variable. An array that repeats one number, such as
equal couplings of a large lattice, is stored as its fill value; one that is mostly zeros is compressed, as sums of few
measurements are. Arrays in segments become virtual datasets.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.record import Array, Record
from spinsim.store.segments import Stored

LIBRARY: Final = ("v110", "v110")  # HDF5 1.10 reads it; headers have checksums, so that damage is an error at once
_HEAP: Final = re.compile(rb"GCOL\x01\0\0\0")
_BARE: Final = "This is a netCDF dimension but not a netCDF variable. {:10}"
_CHUNK: Final = 2**17  # numbers of a chunk
_SMALL: Final = 2**13  # bytes of an array that is stored as it is
_MOST_FILLED: Final = 4
"""Inverse of the part of an array that is not 0 up to which it is compressed, such as sums of few measurements."""
_OF_HDF5: Final = frozenset({"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Encoding"})

_OBJECT: Final = h5py.string_dtype()
_TEXT: Final = h5py.h5t.py_create(_OBJECT, logical=True)
_ONE: Final = h5py.h5s.create(h5py.h5s.SCALAR)
_WORDS: Final = frozenset({"long_name", "units"})


def write_group(group: h5py.Group, record: Record) -> None:
    """Write attributes, arrays and groups of a record into an empty group of a file."""
    for name, value in sorted(record.attributes.items()):
        if isinstance(value, str):
            _add_text(group.id, name, value)
        else:
            group.attrs[name] = value
    scales: dict[str, Any] = {}  # h5py's low level: these are hundreds of calls, each of which takes four times less
    arrays = sorted(record.arrays.items())
    for name, array in arrays:
        if array.axes == (name,):
            scales[name] = _written(group, name, array)
            h5py.h5ds.set_scale(scales[name], name.encode())
    for name, array in arrays:
        for axis, length in zip(array.axes, np.shape(array.values), strict=True):
            if axis not in scales:
                scales[axis] = _bare_dimension(group, axis, length)
        if array.axes != (name,):
            dataset = _written(group, name, array)
            for k, axis in enumerate(array.axes):
                h5py.h5ds.attach_scale(dataset, scales[axis], k)
    for name, below in sorted(record.groups.items()):
        write_group(group.create_group(name), below)


def _add_text(item: Any, name: str, text: str) -> None:
    h5py.h5a.create(item, name.encode(), _TEXT, _ONE).write(np.array(text, _OBJECT))


def _as_it_is(group: h5py.Group, name: str, values: npt.NDArray[Any]) -> Any:
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_obj_track_times(False)
    kind, space = h5py.h5t.py_create(values.dtype, logical=True), h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(group.id, name.encode(), kind, space if values.ndim else _ONE, how)
    if values.size:
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))
    return dataset


def _written(group: h5py.Group, name: str, array: Array) -> Any:
    values = array.values
    if isinstance(values, Stored):
        dataset = _stored(group, name, values).id
    elif values.size > 1 and not any(values.strides):
        chunks, fill = _chunks(values.shape), values.flat[0]
        dataset = group.create_dataset(name, values.shape, values.dtype, chunks=chunks, fillvalue=fill).id
    elif values.nbytes > _SMALL and _MOST_FILLED * np.count_nonzero(values) < values.size:
        how: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        dataset = group.create_dataset(name, data=values, chunks=_chunks(values.shape), **how).id
    else:
        dataset = _as_it_is(group, name, values)
    _add_text(dataset, "long_name", array.long_name)
    _add_text(dataset, "units", array.units)
    if values.dtype.kind == "S":
        _add_text(dataset, "_Encoding", "utf-8")  # netCDF's word for it: xarray reads text then
    return dataset


def _stored(group: h5py.Group, name: str, values: Stored) -> h5py.Dataset:
    if values.is_virtual:
        return group.create_virtual_dataset(name, values.layout())
    dataset = group.create_dataset(name, values.shape, values.dtype)
    for first, rows in values.pieces():
        dataset[first : first + len(rows)] = rows
    return dataset


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of so many numbers, whole along the last axes."""
    room, chunks = _CHUNK, list[int]()
    for length in reversed(shape):
        chunks.append(max(1, min(length, room)))
        room //= chunks[-1]
    return tuple(reversed(chunks))


def _bare_dimension(group: h5py.Group, name: str, length: int) -> Any:
    """A named axis without coordinates; it takes no room however long it is."""
    dataset = group.create_dataset(name, (length,), np.int8, chunks=(min(length, 2**20),) if length else None)
    dataset.make_scale(_BARE.format(length))
    return dataset.id


Named = tuple[dict[str, set[str]], set[str]]
"""Attributes of each group by its path, and paths of arrays."""


def read_group(group: h5py.Group, path: str, lazy: frozenset[str], named: Named | None = None) -> Record:
    """The record that a group of an open file holds, all of it or what is named.

    Arrays of groups in ``lazy`` are read when they are used.
    """
    where = group.name.strip("/")
    attributes = {name for name in group.attrs if name not in _OF_HDF5}
    if named is not None:
        attributes &= named[0][where]
    record = Record({name: _text(group.attrs[name]) for name in sorted(attributes)})
    for name in group:
        own = f"{where}/{name}".lstrip("/")
        if named is not None and own not in named[0] and own not in named[1]:
            continue
        item = group.get(name)
        if isinstance(item, h5py.Group):
            record.groups[name] = read_group(item, path, lazy, named)
        elif isinstance(item, h5py.Dataset) and item.shape is not None and not _is_bare(item):
            is_lazy = item.is_virtual or (where in lazy and item.ndim > 1)
            values = Stored.in_file(item, path) if is_lazy else _values(item)
            words = {key: _text(item.attrs.get(key, "")) for key in _WORDS}
            record.arrays[name] = Array(values, _axes(item, name), **words)
    return record


def has_others(group: h5py.Group, named: Named) -> bool:
    """True if a group, or one within it, has attributes, arrays or groups that are not named."""
    where = group.name.strip("/")
    if set(group.attrs) - _OF_HDF5 - named[0][where]:
        return True
    for name in group:
        own, item = f"{where}/{name}".lstrip("/"), group.get(name)
        if own in named[0]:
            is_other = has_others(item, named)
        elif own in named[1]:
            is_other = bool(set(item.attrs) - _OF_HDF5 - _WORDS)
        else:
            is_other = not (isinstance(item, h5py.Dataset) and _is_bare(item))
        if is_other:
            return True
    return False


def has_sound_heaps(file: BinaryIO) -> bool:
    """False if a heap of texts has objects that HDF5 would never get past: such heaps alone have no checksums."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for heap in re.finditer(_HEAP, content):
            end = heap.start() + int.from_bytes(content[heap.end() : heap.end() + 8], "little")
            at = heap.end() + 8
            while at + 16 <= end <= len(content):
                index, length = (int.from_bytes(content[at + k : at + k + n], "little") for k, n in ((0, 2), (8, 8)))
                step = 16 + -(-length // 8) * 8 if index else length
                if step < 16 or at + step > end:
                    return False
                at += step
    return True


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _is_bare(item: h5py.Dataset) -> bool:
    return bool(item.is_scale) and _text(item.attrs.get("NAME", "")).startswith(_BARE.partition("{")[0])


def _values(item: h5py.Dataset) -> Any:
    if item.size and item.chunks and not item.id.get_storage_size():
        return np.broadcast_to(np.asarray(item.fillvalue, item.dtype), item.shape)
    return item[...]


def _axes(item: h5py.Dataset, name: str) -> tuple[str, ...]:
    if item.is_scale:
        return (name,)
    labels = [dimension[0].name.rpartition("/")[2] if len(dimension) else "" for dimension in item.dims]
    return tuple(label or f"{name}_axis_{k}" for k, label in enumerate(labels))


def parts(record: Record, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Path and SHA-256 of each array, and of each group's attributes, in the order of their names."""
    yield f"{prefix}@", hashlib.sha256(repr(sorted(_plain(record.attributes).items())).encode()).digest()
    for name in sorted(record.arrays):
        array = record.arrays[name]
        digest = hashlib.sha256(repr((array.axes, array.long_name, array.units)).encode())
        digest.update(repr((array.values.dtype.str, array.values.shape)).encode())
        if isinstance(array.values, Stored) and array.values.is_virtual:
            digest.update(array.values.identity())
        elif isinstance(array.values, Stored):
            for _, rows in array.values.pieces():
                digest.update(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        elif array.values.size and not any(array.values.strides):
            digest.update(array.values.flat[0].tobytes())
        else:
            digest.update(np.ascontiguousarray(array.values).reshape(-1).view(np.uint8).data)
        yield prefix + name, digest.digest()
    for name in sorted(record.groups):
        yield from parts(record.groups[name], f"{prefix}{name}/")


def _plain(attributes: dict[str, Any]) -> dict[str, str]:
    """Attributes as they compare after HDF5 has stored them."""
    return {name: repr(np.asarray(value).tolist()) for name, value in attributes.items()}
