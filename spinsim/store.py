"""The HDF5 file of a run: schema ``spinsim/1``, created at once or not at all, appended row by row.

A file is written complete with its model under a temporary name and then linked to its own, so it never exists half
made and never replaces another. A process killed at any instant leaves a file that opens and holds the rows up to one
of its last flushes: room for every planned row is set aside at creation (sparse, so it takes no disk), and appending
writes the rows in place and then, each at one stroke, the lengths of the series; no index, heap or superblock changes.
Datasets carry no time stamps: equal runs make equal files but for the stamps in the root attributes.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.files import Disk, new_file, not_written
from spinsim.layout import Layout, Series
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice

SCHEMA: Final = "spinsim/1"
CONVENTIONS: Final = {
    "hamiltonian": "H = - sum over bonds J s_i s_j - sum over sites h s_i, s = +1 or -1, each bond once",
    "units": "k_B = 1; energies are totals in units of |J|, temperatures likewise",
    "site_order": "i = x + Lx * (y + Ly * z)",
    "bond_order": "bond d * i + a goes from site i along axis a; open boundaries leave bonds out",
    "maxcut": "J = -w; cut = (sum of weights - energy) / 2",
    "binder_cumulant": "U = 1 - <m^4> / (3 <m^2>^2), and likewise for the overlap q",
}
_CHUNK_BYTES: Final = 2**18
_LARGEST_CHUNK_BYTES: Final = 2**26  # HDF5 refuses 4 GiB
_OLD_HEADER: Final = ("earliest", "v110")  # newer superblocks may mark files as open: after a kill they would stay shut
_FIXED_INDEX: Final = ("v110", "v110")  # chunks in one block set aside at once, found without an index
_NO_STRADDLING: Final = {"meta_block_size": 0, "alignment_threshold": 1, "alignment_interval": 1024}  # of 4 KiB pages
_STAMP_BYTES: Final = 25
_FLUSH_SECONDS: Final = 0.5
_PENDING_BYTES: Final = 2**24


def stamp() -> str:
    """The time now, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class RunFile:
    """The file of a run open for appending.

    Args:
        file: As made by ``create``.
        disk: What it is written to.
        thread: Where everything is written.
    """

    def __init__(self, file: h5py.File, disk: Disk, thread: Executor) -> None:
        self._file, self._disk, self._thread = file, disk, thread
        self._pending: list[Mapping[str, Any]] = []
        self._flushed = time.monotonic()
        self._series = _growing(file)

    def write(self, row: Mapping[str, Any]) -> None:
        """Write the row of number ``row["step"]``, a value for each series by name.

        It is the next one, or one already there (a run started again): that is written again with the same numbers.
        """
        self._pending.append(row)
        large = len(self._pending) * sum(np.asarray(value).nbytes for value in row.values()) > _PENDING_BYTES
        if large or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand every row to the operating system."""
        self._thread.submit(self._write_pending).result()
        self._flushed = time.monotonic()

    def _write_pending(self) -> None:
        rows, self._pending = self._pending, []
        if rows:
            first, end = rows[0]["step"], rows[-1]["step"] + 1
            for dataset in self._series:
                if len(dataset) < end:
                    dataset.resize(end, axis=0)
                dataset[first:end] = [row[dataset.name.rpartition("/")[2]] for row in rows]
        self._file.flush()
        self._disk.check()

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write datasets of fixed size, by path."""

        def write() -> None:
            for path, value in values.items():
                self._file[path][...] = value

        self._thread.submit(write).result()

    def save(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Replace the older of the two checkpoints; whenever the process dies, one of them is whole.

        A file that Python wrote has none: its run begins anew.
        """
        self.flush()
        if "checkpoint" not in self._file:
            return
        self._thread.submit(self._save, arrays).result()

    def _save(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        group = self._file["checkpoint"]
        serials = group["serial"][...]
        slot = int(serials.argmin())
        group["serial"][slot] = 0
        self._file.flush()
        for name, value in arrays.items():
            group[f"{slot}/{name}"][...] = value
        group["checksum"][slot] = _checksum(arrays)
        self._file.flush()
        self._disk.sync()
        group["serial"][slot] = serials.max() + 1  # the mark of a whole one, last
        self._file.flush()
        self._disk.check()

    def saved(self) -> tuple[dict[str, npt.NDArray[Any]] | None, str]:
        """The newest checkpoint that is whole, if any, and a sentence where a newer one is damaged."""
        group = self._file.get("checkpoint", {})
        damaged = ""
        serials = group["serial"][...] if group else np.zeros(0, np.int64)
        for slot in np.argsort(-serials):
            if serials[slot] == 0:
                continue
            arrays = {name: dataset[...] for name, dataset in group[str(slot)].items()}
            if _checksum(arrays) == group["checksum"][slot]:
                return arrays, damaged
            damaged = "the last checkpoint is damaged: the run goes on from the one before it"
        return None, damaged and "both checkpoints are damaged: the run begins anew"

    def forget_summary(self) -> None:
        """What an analysis of fewer rows found is no longer true."""
        group = self._file.get("summary", {})
        stale = [dataset.name for dataset in group.values() if not dataset.is_scale]
        self.write_again({name: np.full(self._file[name].shape, np.nan) for name in stale})

    def take_over(self, old: h5py.File) -> None:
        """Copy everything measured and saved from another file."""

        def copy() -> None:
            for dataset in _growing(old):
                new, rows = self._file[dataset.name], len(dataset)
                new.resize(rows, axis=0)
                step = max(1, _PENDING_BYTES // (dataset.dtype.itemsize * prod(dataset.shape[1:])))
                for first in range(0, rows, step):
                    new[first : first + step] = dataset[first : first + step]
            for name in ("checkpoint", "tempering"):
                old[name].visititems(lambda path, item, name=name: self._take(item) if _is_fixed(item) else None)
            self._file.flush()
            self._disk.sync()

        self._thread.submit(copy).result()

    def _take(self, dataset: h5py.Dataset) -> None:
        self._file[dataset.name][...] = dataset[...]

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8]) -> None:
        """Write the lowest states met so far."""
        self.write_again({"best/energy": energy, "best/spins": spins})

    def finish(self) -> None:
        """Mark the run complete."""
        self.flush()
        self._thread.submit(self._file.attrs.modify, "finished", np.bytes_(stamp())).result()


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> int:
    """CRC-32 of all arrays in the order of their names."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).data, total)
    return total


def create(
    path: Path,
    model: Ising,
    layout: Layout,
    rows: int,
    attributes: Mapping[str, str],
    best_of: int = 0,
    checkpoint: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Make the file of a run that has not begun.

    Args:
        path: Where; its folder is made if missing.
        model: Stored in full: the file stands alone.
        layout: What is measured.
        rows: Rows that there is room for.
        attributes: Root attributes beside the conventions: job, config, config_sha256, engine and so on.
        best_of: Replicas of each sample whose lowest states are kept, 0 for none.
        checkpoint: Arrays like those that checkpoints hold; None where there will be none.

    Raises:
        InputError: where the path exists or cannot be written; nothing is left behind.
    """
    root = CONVENTIONS | {"schema": SCHEMA, "created": stamp()} | dict(attributes)
    with new_file(path) as disk, ThreadPoolExecutor(1) as thread:
        thread.submit(_write_new, disk, model, layout, max(1, rows), root, best_of, checkpoint or {}).result()


def _write_new(
    disk: Disk,
    model: Ising,
    layout: Layout,
    rows: int,
    root: Mapping[str, str],
    best_of: int,
    checkpoint: Mapping[str, npt.NDArray[Any]],
) -> None:
    with h5py.File(disk, "w", libver=_OLD_HEADER) as file:
        file.attrs.update(root)
        file.attrs.create("finished", np.bytes_(b""), dtype=f"S{_STAMP_BYTES}")  # empty until then
    disk.check()
    with h5py.File(disk, "r+", libver=_FIXED_INDEX, **_NO_STRADDLING) as file:
        _write_model(file.create_group("model"), model)
        for name in layout.groups:
            _make_series(file.create_group(name), layout, rows)
        if best_of:
            _make_best(file.create_group("best"), model.samples, best_of, model.sites)
        if checkpoint:
            _make_checkpoint(file.create_group("checkpoint"), checkpoint)


def _make_checkpoint(group: h5py.Group, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    group.attrs["long_name"] = "two states to go on from, for spinsim itself; the one of the higher serial is newer"
    for name in ("serial", "checksum"):
        group.create_dataset(name, (2,), np.int64, dcpl=_set_aside())
    for slot in ("0", "1"):
        for name, value in arrays.items():
            group.create_dataset(f"{slot}/{name}", value.shape, value.dtype, dcpl=_set_aside())


def _make_series(group: h5py.Group, layout: Layout, rows: int) -> None:
    name = group.name.strip("/")
    for axis in layout.axes(name):
        _scale(group, axis, layout.scales[axis], layout.units.get(axis, "1"))
    for series in layout.series:
        if series.group == name:
            _series(group, series, layout.shape(series), rows)
    for series in layout.sums:
        if series.group == name:
            empty = np.nan if series.dtype is np.float64 else 0
            shape = layout.shape(series)
            dataset = group.create_dataset(series.name, shape, series.dtype, fillvalue=empty, dcpl=_set_aside())
            _label(dataset, series.axes, series.long_name, series.units)


def _make_best(group: h5py.Group, samples: int, replicas: int, sites: int) -> None:
    _scale(group, "sample", np.arange(samples))
    _scale(group, "replica", np.arange(replicas))
    _bare_dimension(group, "site", sites)
    energy = group.create_dataset("energy", (samples, replicas), np.float64, fillvalue=np.nan, dcpl=_set_aside())
    # contiguous: compressed chunks would move when they are written again
    spins = group.create_dataset("spins", (samples, sites), np.int8, fillvalue=0, dcpl=_set_aside())
    _label(energy, ("sample", "replica"), "lowest energy met", "|J|")
    _label(spins, ("sample", "site"), "state of lowest energy met", "1")


@contextlib.contextmanager
def open_to_append(path: Path) -> Iterator[RunFile]:
    """The file of a run, open for appending; write errors become one sentence.

    Raises:
        InputError: where the file cannot be opened or the disk is full.
    """
    try:
        with Disk(path, "r+") as disk, ThreadPoolExecutor(1) as thread:
            disk.lock()
            file = thread.submit(h5py.File, disk, "r+").result()
            appended = RunFile(file, disk, thread)
            try:
                yield appended
            finally:
                with contextlib.suppress(OSError):  # kept by the disk
                    appended.flush()
                thread.submit(file.close).result()
                disk.check()
    except OSError as error:
        raise not_written(path, error) from error


def extend(path: Path, layout: Layout, rows: int, attributes: Mapping[str, str]) -> None:
    """Give a run's file room for ``rows`` rows and other attributes: a copy takes its place at one stroke.

    Raises:
        InputError: where the file has no checkpoint, is open elsewhere, or its copy cannot be written.
    """
    path = path.resolve()
    copy = path.with_name(f".{path.name}.{os.getpid()}.extended")
    try:
        with Disk(path, "r+") as disk:
            disk.lock()
            with h5py.File(disk, "r") as old:
                if "checkpoint" not in old:
                    raise InputError(f"{path} holds no checkpoint to go on from: resume the file that the run wrote")
                arrays = {name: dataset[...] for name, dataset in old["checkpoint/0"].items()}
                kept = text_attributes(old) | dict(attributes)
                kept.pop("finished", None)
                create(copy, read_model(old), layout, rows, kept, checkpoint=arrays)
                with open_to_append(copy) as new:
                    new.take_over(old)
            os.replace(copy, path)
    except OSError as error:
        raise not_written(path, error) from error
    finally:
        copy.unlink(missing_ok=True)


def _write_model(group: h5py.Group, model: Ising) -> None:
    group.attrs.update(
        {
            "name": model.name,
            "sites": model.sites,
            "quantum": model.quantum,
            "rounded": model.rounded,
            "offset": model.offset,
        }
    )
    if model.maxcut_weight is not None:
        group.attrs["maxcut_weight"] = model.maxcut_weight
    if model.lattice is not None:
        boundary = "periodic" if model.lattice.periodic else "open"
        group.attrs.update({"lattice": model.lattice.name, "shape": model.lattice.shape, "boundary": boundary})
    for name, length in (("bond", model.bonds), ("end", 2), ("sample", model.samples)):
        _bare_dimension(group, name, length)
    edges = group.create_dataset("edges", data=model.graph.edges, **_compressed(model.bonds))
    _label(edges, ("bond", "end"), "end sites of each bond", "1")
    _rows(group, "couplings", model.couplings, ("sample", "bond"), "coupling J of each bond")
    if np.any(model.fields):
        _bare_dimension(group, "site", model.sites)
        _rows(group, "fields", model.fields, ("sample", "site"), "field h at each site")


def _rows(group: h5py.Group, name: str, rows: npt.NDArray[Any], scales: tuple[str, ...], long_name: str) -> None:
    """Rows by sample; one number for all is stored as the fill value, whatever the size."""
    shape = (len(group["sample"]), rows.shape[1])
    if rows.size and rows.strides[-1] == 0:
        dataset = group.create_dataset(name, shape, np.float64, fillvalue=rows[0, 0], chunks=True)
    else:
        dataset = group.create_dataset(name, shape, np.float64, **_compressed(rows.shape[-1]))
        dataset[...] = np.broadcast_to(rows, shape)
    _label(dataset, scales, long_name, "|J|")


def _compressed(length: int) -> dict[str, Any]:
    """Compression for what is large enough to gain by it."""
    return {"compression": "gzip", "compression_opts": 1, "shuffle": True} if 0 < length <= 2**22 else {}


def _set_aside() -> h5py.h5p.PropDCID:
    """Creation properties of a dataset whose room is set aside at once."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return properties


def _series(group: h5py.Group, series: Series, shape: tuple[int, ...], rows: int) -> None:
    """A dataset that grows along its first axis up to ``rows`` rows, for which there is room already."""
    size = np.dtype(series.dtype).itemsize
    largest = _LARGEST_CHUNK_BYTES // (size * prod(shape[1:]))
    inner = (max(1, min(shape[0], largest)), *shape[1:]) if shape else ()
    deep = max(1, min(1024, rows, _CHUNK_BYTES // (size * prod(inner))))
    properties = _set_aside()
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    dataset = group.create_dataset(
        series.name, (1, *shape), series.dtype, maxshape=(max(2, rows), *shape), chunks=(deep, *inner), dcpl=properties
    )
    dataset.resize(0, axis=0)  # HDF5 sets no room aside for a dataset that begins empty, or that can have one row only
    dataset.attrs.update({"long_name": series.long_name, "units": series.units})
    if series.name == "step":
        dataset.make_scale("step")
    else:
        dataset.dims[0].attach_scale(group["step"])
    for axis, scale in enumerate(series.axes, 1):
        dataset.dims[axis].attach_scale(group[scale])


def _scale(group: h5py.Group, name: str, values: npt.NDArray[np.generic], units: str = "1") -> None:
    dataset = group.create_dataset(name, data=values)
    dataset.attrs.update({"long_name": name.replace("_", " "), "units": units})
    dataset.make_scale(name)


def _bare_dimension(group: h5py.Group, name: str, length: int) -> None:
    """A named axis without coordinates, by netCDF-4's convention: it takes no room however long it is."""
    dataset = group.create_dataset(name, (length,), np.int8, chunks=(min(length, 2**20),) if length else None)
    dataset.make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:10}")


def _label(dataset: h5py.Dataset, scales: tuple[str, ...], long_name: str, units: str) -> None:
    dataset.attrs.update({"long_name": long_name, "units": units})
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(dataset.parent[scale])


def _growing(file: h5py.File) -> list[h5py.Dataset]:
    """All series: what grows is chunked."""
    groups = [group for group in file.values() if "step" in group]
    return [dataset for group in groups for dataset in group.values() if dataset.chunks]


def _is_fixed(item: h5py.Dataset | h5py.Group) -> bool:
    """Whether this is a dataset that is written again and again."""
    return isinstance(item, h5py.Dataset) and not item.chunks and not item.is_scale


def complete_rows(file: h5py.File) -> int:
    """Rows that all series have."""
    return min((len(dataset) for dataset in _growing(file)), default=0)


def attributes(file: h5py.File) -> dict[str, Any]:
    """The root attributes of a spinsim file, ``finished`` only where it is."""
    values = {key: value.decode() if isinstance(value, bytes) else value for key, value in file.attrs.items()}
    return {key: value for key, value in values.items() if key != "finished" or value}


def text_attributes(file: h5py.File) -> dict[str, str]:
    """The same as ``attributes``, as text."""
    return {key: str(value) for key, value in attributes(file).items()}


def read_attributes(path: Path) -> dict[str, Any]:
    """The root attributes of a spinsim file.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    with open_to_read(path) as file:
        return attributes(file)


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[h5py.File]:
    """A spinsim file, open for reading.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory: give a file that spinsim wrote")
    if not os.path.isfile(path):
        raise InputError(f"{path} is not there: give the path of a spinsim file")
    try:
        file = h5py.File(path, "r")
    except BlockingIOError as error:
        raise InputError(f"{path} is open in another process: wait until that one is done") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    except OSError as error:
        raise InputError(f"{path} is not an HDF5 file: give a file that spinsim wrote") from error
    with file:
        schema = str(file.attrs.get("schema"))
        if schema != SCHEMA:
            raise InputError(f"{path} has schema {schema!r}, not {SCHEMA}: give a file that spinsim wrote")
        try:
            yield file
        except (KeyError, OSError) as error:
            raise InputError(
                f"{path} is damaged, a part cannot be read: give another file that spinsim wrote"
            ) from error


def read_model(file: h5py.File) -> Ising:
    """The model of a run, rebuilt from its file."""
    group = file["model"]
    attrs = group.attrs
    lattice = None
    if "lattice" in attrs:
        lattice = Lattice(tuple(int(side) for side in attrs["shape"]), attrs["boundary"] == "periodic")
    model = Ising(
        Graph(int(attrs["sites"]), group["edges"][...], lattice),
        group["couplings"][...],
        group["fields"][...] if "fields" in group else 0.0,
        name=attrs["name"],
        offset=float(attrs["offset"]),
        maxcut_weight=float(attrs["maxcut_weight"]) if "maxcut_weight" in attrs else None,
    )
    model.rounded = bool(attrs["rounded"])  # what is stored is round already
    return model
