"""The HDF5 file of a run: schema ``spinsim/1``, created at once or not at all, appended row by row.

A file is written complete with its model under a temporary name and then linked to its own, so it never exists half
made and never replaces another. Rows are appended with plain h5py and flushed: a process killed at any instant leaves
a file that opens. Datasets carry no time stamps: equal runs make equal files but for the stamps in the root attributes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.measure import Measurement
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
_FLUSH_SECONDS: Final = 0.5


def stamp() -> str:
    """The time now, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class AnnealFile:
    """An anneal file open for appending.

    Args:
        file: As made by ``create``.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._measurements = file["measurements"]
        self._flushed = time.monotonic()

    @property
    def rows(self) -> int:
        """Rows written so far."""
        return len(self._measurements["energy"])

    def write(self, step: int, temperature: float, measured: Measurement) -> None:
        """Write one row; a row already there (a run started again) is written again with the same numbers."""
        rows = {
            "step": step,
            "temperature": temperature,
            "energy": measured.energy,
            "magnetization": measured.magnetization,
        }
        for name, row in rows.items():
            dataset = self._measurements[name]
            if len(dataset) <= step:
                dataset.resize(step + 1, axis=0)
            dataset[step] = row
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand everything written to the operating system."""
        self._file.flush()
        self._flushed = time.monotonic()

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8]) -> None:
        """Write the lowest states met so far."""
        self._file["best/energy"][...] = energy
        self._file["best/spins"][...] = spins

    def finish(self) -> None:
        """Mark the run complete."""
        self.flush()
        self._file.attrs["finished"] = stamp()


def create(path: Path, model: Ising, replicas: int, attributes: Mapping[str, str]) -> None:
    """Make the file of a run that has not begun.

    Args:
        path: Where; its folder is made if missing.
        model: Stored in full: the file stands alone.
        replicas: Replicas of each sample.
        attributes: Root attributes beside the conventions: job, config, config_sha256, engine and so on.

    Raises:
        InputError: where the path exists or cannot be written; nothing is left behind.
    """
    with _new_file(path) as file:
        file.attrs.update(CONVENTIONS | {"schema": SCHEMA, "created": stamp()} | dict(attributes))
        _write_model(file.create_group("model"), model)
        measurements = file.create_group("measurements")
        scales = {"sample": np.arange(model.samples), "replica": np.arange(replicas)}
        for name, values in scales.items():
            _scale(measurements, name, values)
        _series(measurements, "step", (), np.int64, {}, "temperature step")
        measurements["step"].make_scale("step")
        _series(measurements, "temperature", (), np.float64, {}, "temperature", "|J|/k_B")
        shape = (model.samples, replicas)
        _series(measurements, "energy", shape, np.float64, scales, "total energy", "|J|")
        _series(measurements, "magnetization", shape, np.int64, scales, "sum of spins", "1")
        best = file.create_group("best")
        for name, values in scales.items():
            _scale(best, name, values)
        _bare_dimension(best, "site", model.sites)
        energy = best.create_dataset("energy", shape, np.float64, fillvalue=np.nan)
        spins = best.create_dataset("spins", (model.samples, model.sites), np.int8, **_compressed(model.sites))
        _label(energy, ("sample", "replica"), "lowest energy met", "|J|")
        _label(spins, ("sample", "site"), "state of lowest energy met", "1")


@contextlib.contextmanager
def open_to_append(path: Path) -> Iterator[AnnealFile]:
    """The file of a run, open for appending; write errors become one sentence.

    Raises:
        InputError: where the file cannot be opened or the disk is full.
    """
    try:
        with h5py.File(path, "r+") as file:
            yield AnnealFile(file)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {_reason(error)}") from error


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[h5py.File]:
    """A new HDF5 file that appears under ``path`` when the block ends well, and else not at all."""
    if path.exists():
        raise InputError(f"{path} exists and is never overwritten: choose another --out or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
        os.close(handle)
        try:
            with h5py.File(temporary, "w") as file:
                yield file
            os.chmod(temporary, 0o666 & ~_umask())
            os.link(temporary, path)
        finally:
            os.unlink(temporary)
    except FileExistsError as error:
        raise InputError(f"{path} exists and is never overwritten: choose another --out or remove it") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {_reason(error)}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    """What the operating system said, in one line."""
    text = error.strerror or str(error).splitlines()[0]
    if error.errno is None and "No space left on device" in str(error):
        text = "No space left on device"
    return text


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


def _rows(group: h5py.Group, name: str, rows: npt.NDArray[np.float64], scales: tuple[str, ...], long_name: str) -> None:
    """Rows by sample; one number for all is stored as the fill value, whatever the size."""
    shape = (len(group["sample"]), rows.shape[1])
    if rows.size and rows.strides[-1] == 0:
        dataset = group.create_dataset(name, shape, np.float64, fillvalue=rows[0, 0], chunks=True)
    else:
        dataset = group.create_dataset(name, data=np.broadcast_to(rows, shape), **_compressed(rows.shape[-1]))
    _label(dataset, scales, long_name, "|J|")


def _compressed(length: int) -> dict[str, Any]:
    """Compression for what is large enough to gain by it."""
    return {"compression": "gzip", "compression_opts": 1, "shuffle": True} if 0 < length <= 2**22 else {}


def _series(
    group: h5py.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: type,
    scales: Mapping[str, object],
    long_name: str,
    units: str = "1",
) -> None:
    """A dataset that grows along its first axis."""
    row = max(1, int(np.prod(shape, dtype=np.int64))) * 8
    chunk = (max(1, min(1024, _CHUNK_BYTES // row)), *shape)
    dataset = group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunk)
    dataset.attrs.update({"long_name": long_name, "units": units})
    if name != "step":
        dataset.dims[0].attach_scale(group["step"])
    for axis, scale in enumerate(scales, 1):
        dataset.dims[axis].attach_scale(group[scale])


def _scale(group: h5py.Group, name: str, values: npt.NDArray[np.int64]) -> None:
    dataset = group.create_dataset(name, data=values)
    dataset.attrs.update({"long_name": name, "units": "1"})
    dataset.make_scale(name)


def _bare_dimension(group: h5py.Group, name: str, length: int) -> None:
    """A named axis without coordinates, by netCDF-4's convention: it takes no room however long it is."""
    dataset = group.create_dataset(name, (length,), np.int8, chunks=(max(1, min(length, 2**20)),))
    dataset.make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:10}")


def _label(dataset: h5py.Dataset, scales: tuple[str, ...], long_name: str, units: str) -> None:
    dataset.attrs.update({"long_name": long_name, "units": units})
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(dataset.parent[scale])


def read_attributes(path: Path) -> dict[str, Any]:
    """The root attributes of a spinsim file.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    with open_to_read(path) as file:
        return dict(file.attrs)


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[h5py.File]:
    """A spinsim file, open for reading.

    Raises:
        InputError: for a missing file and for one that is not of this schema.
    """
    if not path.is_file():
        raise InputError(f"{path} is not there: give the path of a spinsim file")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{path} is not an HDF5 file: give a file that spinsim wrote") from error
    with file:
        if file.attrs.get("schema") != SCHEMA:
            schema = file.attrs.get("schema")
            raise InputError(f"{path} has schema {schema!r}, not {SCHEMA}: give a file that spinsim wrote")
        yield file


def read_model(file: h5py.File) -> Ising:
    """The model of a run, rebuilt from its file."""
    group = file["model"]
    attrs = group.attrs
    lattice = None
    if "lattice" in attrs:
        lattice = Lattice(tuple(int(side) for side in attrs["shape"]), attrs["boundary"] == "periodic")
    return Ising(
        Graph(int(attrs["sites"]), group["edges"][...], lattice),
        group["couplings"][...],
        group["fields"][...] if "fields" in group else 0.0,
        name=attrs["name"],
        offset=float(attrs["offset"]),
        maxcut_weight=float(attrs["maxcut_weight"]) if "maxcut_weight" in attrs else None,
    )
