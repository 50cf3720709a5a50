"""Records as HDF5 groups: dimension scales on every axis, units, one order, no time stamps: equal records, equal bytes.

An axis without coordinates is a netCDF-4 dimension without a variable. An array that repeats one number, such as equal
couplings of a large lattice, is stored as its fill value. An array that is mostly zeros, such as sums of few
measurements, is compressed. Arrays in segments become virtual datasets.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import mmap
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from typing import Any, BinaryIO, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.machine.threads import available_threads
from spinsim.record import Array, Record
from spinsim.store.segments import Stored

LIBRARY: Final = ("v110", "v110")  # HDF5 1.10 can read it; headers have checksums, so that damage is detected at once
_HEAP: Final = re.compile(rb"GCOL\x01\0\0\0")
_BARE: Final = "This is a netCDF dimension but not a netCDF variable. {:10}"
_CHUNK: Final = 2**17  # numbers in a chunk
_SPARSE_CHUNK: Final = 2**13  # numbers in a chunk of an array that is mostly zeros
_TOGETHER: Final = 64  # number of sparse chunks that a thread compresses at once
_LEVEL: Final = 1  # of compression
_PIECE: Final = 2**22  # bytes that a thread hashes at once
_SMALL: Final = 2**13  # largest array, in bytes, that is always stored uncompressed
_MOST_FILLED: Final = 4
"""Inverse of the largest fraction of nonzero numbers at which an array is compressed."""
_EMPTY: Final = "empty"
"""Attribute of a group with the axes, type, shape and descriptions of its arrays without numbers, as JSON."""
_OF_HDF5: Final = frozenset({_EMPTY, "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Encoding"})

_OBJECT: Final = h5py.string_dtype()
_TEXT: Final = h5py.h5t.py_create(_OBJECT, logical=True)
_ONE: Final = h5py.h5s.create(h5py.h5s.SCALAR)
_WORDS: Final = {"long_name": "", "units": "1"}  # descriptions of arrays, and their defaults
_REFERENCES: Final = h5py.special_dtype(vlen=h5py.ref_dtype)
_LISTS: Final = h5py.h5t.py_create(_REFERENCES, logical=True)
_TEXT_HERE, _LISTS_HERE = h5py.h5t.py_create(_OBJECT), h5py.h5t.py_create(_REFERENCES)  # in memory, as Python has them


class _Scale(NamedTuple):
    """A dataset that names an axis, or holds the coordinates along it."""

    length: int
    reference: Any


class _Writer:
    """Writes records through h5py's low-level API, four times faster; axes of one length are dimensions of the root."""

    def __init__(self, file: h5py.File) -> None:
        self._root, self._shared, self._kinds = file.id, dict[str, _Scale](), dict[np.dtype[Any], Any]()
        self._plain, self._timeless = (_untimed(kind) for kind in (h5py.h5p.DATASET_CREATE, h5py.h5p.GROUP_CREATE))

    def write(self, record: Record) -> None:
        self._write_group(self._root, "", record)

    def _write_group(self, group: Any, path: str, record: Record) -> None:
        for name, value in sorted(record.attributes.items()):
            if isinstance(value, str):
                _add_text(group, name, value)
            else:
                h5py.AttributeManager(h5py.Group(group))[name] = value
        own, arrays = dict[str, _Scale](), sorted(record.arrays.items())
        empty = {name: _described(a) for name, a in arrays if 0 in a.values.shape and not isinstance(a.values, Stored)}
        if empty:
            _add_text(group, _EMPTY, json.dumps(empty))
            arrays = [(name, array) for name, array in arrays if name not in empty]
        for name, array in arrays:
            if array.axes == (name,):
                dataset = self._write_array(group, name, array)
                h5py.h5ds.set_scale(dataset, name.encode())
                own[name] = self._scale(f"{path}/{name}", len(array.values))
        for name, array in arrays:
            if array.axes != (name,):
                self._name_axes(group, path, self._write_array(group, name, array), array, own)
        for name, below in sorted(record.groups.items()):
            self._write_group(h5py.h5g.create(group, name.encode(), gcpl=self._timeless), f"{path}/{name}", below)

    def _scale(self, path: str, length: int) -> _Scale:
        return _Scale(length, np.array([h5py.h5r.create(self._root, path.encode(), h5py.h5r.OBJECT)], h5py.ref_dtype))

    def _name_axes(self, group: Any, path: str, dataset: Any, array: Array, own: dict[str, _Scale]) -> None:
        """Attach an array's scales, as ``H5DSattach_scale`` does, but without the scales' lists of their users."""
        if not array.axes:
            return
        scales = np.empty(len(array.axes), _REFERENCES)
        for k, (axis, length) in enumerate(zip(array.axes, array.values.shape, strict=True)):
            scale = own.get(axis) or self._shared.get(axis)
            if scale is None:
                scale = self._shared[axis] = self._bare(self._root, "", axis, length)
            elif scale.length != length:
                scale = own[axis] = self._bare(group, path, axis, length)
            scales[k] = scale.reference
        space = h5py.h5s.create_simple(scales.shape)
        h5py.h5a.create(dataset, b"DIMENSION_LIST", _LISTS, space).write(scales, _LISTS_HERE)

    def _bare(self, group: Any, path: str, name: str, length: int) -> _Scale:
        """Create a named axis without coordinates; nothing is written into it, so it takes no room at any length."""
        space = h5py.h5s.create_simple((length,))
        dataset = h5py.h5d.create(group, name.encode(), h5py.h5t.STD_I8LE, space, self._plain)
        h5py.h5ds.set_scale(dataset, _BARE.format(length).encode())
        return self._scale(f"{path}/{name}", length)

    def _write_array(self, group: Any, name: str, array: Array) -> Any:
        values = array.values
        if isinstance(values, Stored):
            dataset = _stored(h5py.Group(group), name, values).id
        elif values.size > 1 and not any(values.strides):
            dataset = self._create(group, name, values, _chunked(values, _CHUNK, values.flat[:1]))
        elif values.nbytes > _SMALL and _MOST_FILLED * np.count_nonzero(values) < values.size:
            dataset = self._write_sparse(group, name, values)
        else:
            dataset = self._create(group, name, values, self._plain)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))
        if (array.long_name, array.units) != tuple(_WORDS.values()):
            _add_text(dataset, "long_name", array.long_name)
            _add_text(dataset, "units", array.units)
        if values.dtype.kind == "S":
            _add_text(dataset, "_Encoding", "utf-8")  # the netCDF attribute that makes xarray read text
        return dataset

    def _create(self, group: Any, name: str, values: npt.NDArray[Any], how: Any) -> Any:
        if values.dtype not in self._kinds:
            self._kinds[values.dtype] = h5py.h5t.py_create(values.dtype, logical=True)
        space = h5py.h5s.create_simple(values.shape) if values.ndim else _ONE
        return h5py.h5d.create(group, name.encode(), self._kinds[values.dtype], space, how)

    def _write_sparse(self, group: Any, name: str, values: npt.NDArray[Any]) -> Any:
        """Write an array that is mostly zeros: all-zero chunks take no room and no time, others are compressed."""
        how = _chunked(values, _SPARSE_CHUNK)
        dataset, chunk = self._create(group, name, values, how), how.get_chunk()
        starts = list(itertools.product(*(range(0, n, step) for n, step in zip(values.shape, chunk, strict=True))))

        def packed(start: tuple[int, ...]) -> bytes:
            part = values[tuple(slice(at, at + step) for at, step in zip(start, chunk, strict=True))]
            whole = np.ascontiguousarray(part)
            if not whole.view(np.uint8).any():  # -0.0 counts as nonzero
                return b""
            if part.shape != chunk:
                whole = np.pad(part, [(0, step - n) for step, n in zip(chunk, part.shape, strict=True)])
            return zlib.compress(whole.data, _LEVEL)

        def all_packed(some: Sequence[tuple[int, ...]]) -> list[bytes]:
            return [packed(start) for start in some]

        tasks, is_empty = [starts[k : k + _TOGETHER] for k in range(0, len(starts), _TOGETHER)], True
        threads = min(available_threads(), len(tasks))
        with ThreadPoolExecutor(threads) if threads > 1 else contextlib.nullcontext() as pool:
            contents = itertools.chain.from_iterable((pool.map if pool else map)(all_packed, tasks))
            for start, content in zip(starts, contents, strict=True):
                # an array without any chunk would be read as one number that is repeated
                if content or (is_empty and start == starts[-1]):
                    nothing = bytes(prod(chunk) * values.itemsize)
                    dataset.write_direct_chunk(start, content or zlib.compress(nothing, _LEVEL))
                    is_empty = False
        return dataset


def write_record(file: h5py.File, record: Record) -> None:
    """Write a record into an empty file."""
    _Writer(file).write(record)


def _add_text(item: Any, name: str, text: str) -> None:
    h5py.h5a.create(item, name.encode(), _TEXT, _ONE).write(np.array(text, _OBJECT), _TEXT_HERE)


def _untimed(kind: Any) -> Any:
    """Return creation properties without time stamps, so that equal records have equal bytes."""
    how = h5py.h5p.create(kind)
    how.set_obj_track_times(False)
    return how


def _chunked(values: npt.NDArray[Any], room: int, fill: npt.NDArray[Any] | None = None) -> Any:
    how = _untimed(h5py.h5p.DATASET_CREATE)
    how.set_chunk(_chunks(values.shape, room))
    if fill is None:
        how.set_deflate(_LEVEL)
    else:
        how.set_fill_value(fill)
    return how


def _described(array: Array) -> list[Any]:
    return [array.axes, array.values.dtype.str, array.values.shape, array.long_name, array.units]


def _stored(group: h5py.Group, name: str, values: Stored) -> h5py.Dataset:
    if values.is_virtual:
        return group.create_virtual_dataset(name, values.layout())
    dataset = group.create_dataset(name, values.shape, values.dtype)
    for first, rows in values.pieces():
        dataset[first : first + len(rows)] = rows
    return dataset


def _chunks(shape: tuple[int, ...], room: int) -> tuple[int, ...]:
    """Return the shape of chunks of at most ``room`` numbers, whole along the last axes."""
    chunks = list[int]()
    for length in reversed(shape):
        chunks.append(max(1, min(length, room)))
        room //= chunks[-1]
    return tuple(reversed(chunks))


Named = tuple[dict[str, set[str]], set[str]]
"""Names of attributes of each group by its path, and paths of arrays."""


def read_group(group: h5py.Group, path: str, lazy: frozenset[str], named: Named | None = None) -> Record:
    """Read a group of an open file as a record, with all parts or only the named ones.

    Arrays of groups in ``lazy`` are read on access.
    """
    where = group.name.strip("/")
    attributes = {name for name in group.attrs if name not in _OF_HDF5}
    if named is not None:
        attributes &= named[0][where]
    record = Record({name: _text(group.attrs[name]) for name in sorted(attributes)})
    for name, (axes, kind, shape, *words) in json.loads(group.attrs.get(_EMPTY, "{}")).items():
        record.arrays[name] = Array(np.empty(shape, kind), tuple(axes), *words)
    for name in group:
        own = f"{where}/{name}".lstrip("/")
        if named is not None and own not in named[0] and own not in named[1]:
            continue
        item = group.get(name)
        if isinstance(item, h5py.Group):
            record.groups[name] = read_group(item, path, lazy, named)
        elif isinstance(item, h5py.Dataset) and item.shape is not None and not _is_bare(item):
            is_lazy = item.is_virtual or (where in lazy and item.ndim > 1 and item.id.get_storage_size() > 0)
            values: Any = Stored.in_file(item, path) if is_lazy else _values(item)
            own_words = {key: _read_text(item.id, key, usual) for key, usual in _WORDS.items()}
            record.arrays[name] = Array(values, _axes(item, name, opens_scales=named is not None), **own_words)
    record.arrays = dict(sorted(record.arrays.items()))
    return record


def has_others(group: h5py.Group, named: Named) -> bool:
    """True if a group, or one of its subgroups, has attributes, arrays or groups that are not named."""
    where = group.name.strip("/")
    if set(group.attrs) - _OF_HDF5 - named[0][where]:
        return True
    for name in group:
        own, item = f"{where}/{name}".lstrip("/"), group.get(name)
        if own in named[0]:
            is_other = has_others(item, named)
        elif own in named[1]:
            is_other = bool(set(item.attrs) - _OF_HDF5 - _WORDS.keys())
        else:
            is_other = not (isinstance(item, h5py.Dataset) and _is_bare(item))
        if is_other:
            return True
    return False


def has_sound_heaps(file: BinaryIO) -> bool:
    """False if a heap of texts has objects on which HDF5 would hang; heaps are the only parts without checksums."""
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


def _read_text(item: Any, name: str, usual: str) -> str:
    """Return a text attribute, or ``usual`` if it is missing."""
    if not h5py.h5a.exists(item, name.encode()):
        return usual
    text = np.empty((), _OBJECT)
    h5py.h5a.open(item, name.encode()).read(text)
    return str(_text(text[()]))


def _is_bare(item: h5py.Dataset) -> bool:
    is_scale = h5py.h5ds.is_scale(item.id)
    return is_scale and bool(h5py.h5ds.get_scale_name(item.id).decode().startswith(_BARE.partition("{")[0]))


def _values(item: h5py.Dataset) -> Any:
    if item.size and not item.id.get_storage_size():
        return np.broadcast_to(np.asarray(item.fillvalue, item.dtype), item.shape)
    return item[...]


def _axes(item: h5py.Dataset, name: str, opens_scales: bool) -> tuple[str, ...]:
    """Return the names of an array's axes; ``opens_scales`` also detects damage of their scales."""
    if h5py.h5ds.is_scale(item.id):
        return (name,)
    axes, number = [f"{name}_axis_{k}" for k in range(item.ndim)], b"DIMENSION_LIST"
    if item.ndim and h5py.h5a.exists(item.id, number):
        scales = np.empty(item.ndim, _REFERENCES)
        h5py.h5a.open(item.id, number).read(scales)
        for k, of_axis in enumerate(scales):
            if len(of_axis):
                if opens_scales:
                    h5py.h5r.dereference(of_axis[0], item.id)
                axes[k] = h5py.h5r.get_name(of_axis[0], item.id).decode().rpartition("/")[2]
    return tuple(axes)


def digest_of(record: Record) -> str:
    """SHA-256 of all arrays and attributes of a record, in hexadecimal: the digest of their digests, ordered by name.

    Threads compute the digests of large arrays in pieces.
    """
    with ThreadPoolExecutor(available_threads()) as pool:
        found = list(_digests(record, "", pool))
        return hashlib.sha256(b"".join(one if isinstance(one, bytes) else one.result() for one in found)).hexdigest()


def _digests(record: Record, prefix: str, pool: ThreadPoolExecutor) -> Iterator[bytes | Future[bytes]]:
    yield _sha256(repr((prefix, sorted(_plain(record.attributes).items()))).encode())
    for name, array in sorted(record.arrays.items()):
        values = array.values
        about = f"{prefix}{name}", array.axes, array.long_name, array.units, values.dtype.str, values.shape
        yield _sha256(repr(about).encode())
        if isinstance(values, Stored) and values.is_virtual:
            yield _sha256(values.identity())
        elif isinstance(values, Stored):
            yield from map(_sha256, _cut(_octets(rows) for _, rows in values.pieces()))
        elif values.size and not any(values.strides):
            yield _sha256(values.flat[0].tobytes())
        else:
            pieces = list(_cut([_octets(values)]))
            if len(pieces) == 1:
                yield _sha256(pieces[0])
            else:
                yield from (pool.submit(_sha256, one) for one in pieces)
    for name, group in sorted(record.groups.items()):
        yield from _digests(group, f"{prefix}{name}/", pool)


def _octets(values: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _cut(contents: Iterable[memoryview]) -> Iterator[memoryview]:
    """Cut contents into pieces of ``_PIECE`` bytes, across their boundaries; yield at least one piece."""
    rest, is_cut = memoryview(b""), False
    for content in contents:
        joined = memoryview(bytes(rest) + bytes(content)) if len(rest) else content
        whole = len(joined) // _PIECE * _PIECE
        for first in range(0, whole, _PIECE):
            yield joined[first : first + _PIECE]
            is_cut = True
        rest = joined[whole:]
    if len(rest) or not is_cut:
        yield rest


def _sha256(content: Any) -> bytes:
    return hashlib.sha256(content).digest()


def _plain(attributes: dict[str, Any]) -> dict[str, str]:
    """Return attributes in the form that they have after HDF5 has stored them, for comparison."""
    return {name: repr(np.asarray(value).tolist()) for name, value in attributes.items()}
