"""Making the file of a run, complete with its model and with room for every row."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from spinsim.machine.files import Disk, new_file
from spinsim.model.ising import Ising
from spinsim.store import checkpoints
from spinsim.store.contents import BEST, BITS, BYTE, ENERGY, START, Arrays, Contents, Series
from spinsim.store.datasets import CHECKSUM, LONG_NAME, bare_dimension, label, scale, set_aside, written_once
from spinsim.store.models import write_model, write_start
from spinsim.store.reading import SCHEMA
from spinsim.store.schema import TEXTS

CONVENTIONS: Final = {
    "hamiltonian": "H = - sum over bonds J s_i s_j - sum over sites h s_i, s = +1 or -1, each bond once",
    "units": "k_B = 1; energies (totals), fields and temperatures are in the unit in which the couplings are given",
    "site_order": "i = x + Lx * (y + Ly * z)",
    "bond_order": "bond d * i + a goes from site i along axis a; open boundaries leave bonds out",
    "maxcut": "J = -w; cut = (sum of weights - energy) / 2",
    "binder_cumulant": "U = 1 - <m^4> / (3 <m^2>^2), and likewise for the overlap q",
    "quantum": "couplings and fields are whole multiples of the attribute quantum of /model, so that local fields are "
    "exact sums; rounded says whether values as given were changed for that, rounding_error by how much at most",
    "correlation_length": "xi = sqrt(<m^2> / <|m(k)|^2> - 1) / (2 sin(k / 2)), k = 2 pi / L along the longest axes",
}
_CHUNK_BYTES: Final = 2**18
_LARGEST_CHUNK_BYTES: Final = 2**26  # HDF5 refuses 4 GiB
_OLD_HEADER: Final = ("earliest", "v110")  # newer superblocks may mark files as open: after a kill they would stay shut
_FIXED_INDEX: Final = ("v110", "v110")  # chunks in one block set aside at once, found without an index
_NO_STRADDLING: Final = {"meta_block_size": 0, "alignment_threshold": 1, "alignment_interval": 1024}  # of 4 KiB pages
_STAMP_BYTES: Final = 25


def stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def create(
    path: Path,
    model: Ising,
    contents: Contents,
    rows: int,
    attributes: Mapping[str, str],
    best_of: int = 0,
    checkpoint: Arrays | None = None,
) -> None:
    """Make the file of a run that has not begun, complete with its model and with room for so many rows.

    Its folder is made if missing. Root attributes are given beside the conventions, as are the replicas of each sample
    whose lowest states are kept, ``best_of``, 0 for none, and arrays like those that checkpoints hold.

    Raises:
        InputError: where the path exists or cannot be written; nothing is left behind.
    """
    unknown = dict.fromkeys(TEXTS, "") | {"config": "{}"}
    root = CONVENTIONS | unknown | {"schema": SCHEMA, "created": stamp()} | dict(attributes)
    with new_file(path) as disk, ThreadPoolExecutor(1) as thread:
        thread.submit(write_new, disk, model, contents, max(1, rows), root, best_of, checkpoint or {}).result()


def write_new(
    disk: Disk,
    model: Ising,
    contents: Contents,
    rows: int,
    root: Mapping[str, str],
    best_of: int,
    checkpoint: Arrays,
    as_bytes: bool = False,
) -> None:
    """Write the file of a run that has not begun; ``root`` are all of its attributes, the rest as for ``create``.

    Lowest states are stored ``as_bytes`` of any lattice where that is asked for, as earlier versions did.
    """
    begin(disk, root)
    with extended(disk) as file:
        write_model(file.create_group("model"), model)
        if contents.start is not None:
            write_start(file.create_group(START), contents.start)
        for name in contents.groups:
            _make_series(file.create_group(name), contents, rows)
        file[contents.groups[0]].attrs.update(root)  # so that who opens the measurements alone knows what they are
        if best_of:
            _make_best(file.create_group(BEST), model, best_of, as_bytes)
        if checkpoint:
            checkpoints.make(file.create_group(checkpoints.GROUP), checkpoint)


def begin(disk: Disk, root: Mapping[str, Any], finished: bool = False) -> None:
    """Make a file that holds its root attributes alone, among them that its run is finished now, if it is."""
    with h5py.File(disk, "w", libver=_OLD_HEADER) as file:
        file.attrs.update(root)
        if finished:
            file.attrs["finished"] = stamp()
        else:  # empty until then; it is changed in place
            file.attrs.create("finished", np.bytes_(b""), dtype=f"S{_STAMP_BYTES}")
    disk.check()


def extended(disk: Disk) -> h5py.File:
    return h5py.File(disk, "r+", libver=_FIXED_INDEX, **_NO_STRADDLING)


def _make_series(group: h5py.Group, contents: Contents, rows: int) -> None:
    name = group.name.strip("/")
    if coordinates := contents.coordinates(name):
        group.attrs["coordinates"] = " ".join(coordinates)
    group.attrs.update(contents.numbers.get(name, {}))
    for axis in contents.axes(name):
        scale(group, axis, contents.scales[axis], contents.units.get(axis, "1"))
    own = [series for series in contents.series if series.group == name]
    if own:
        own.append(Series(CHECKSUM, (), np.uint32, LONG_NAME, group=name))
    for series in own:
        _series(group, series, contents.shape(series), max(1, rows // contents.every(name)))
    for series in contents.sums:
        if series.group == name:
            empty = np.nan if series.dtype is np.float64 else 0
            shape = contents.shape(series)
            dataset = group.create_dataset(series.name, shape, series.dtype, fillvalue=empty, dcpl=set_aside())
            label(dataset, series.axes, series.long_name, series.units)
    for series, values in contents.given:
        if series.group == name:
            label(written_once(group, series.name, values), series.axes, series.long_name, series.units)


def _make_best(group: h5py.Group, model: Ising, replicas: int, as_bytes: bool) -> None:
    samples, sites = model.samples, model.sites
    scale(group, "sample", np.arange(samples))
    scale(group, "replica", np.arange(replicas))
    energy = group.create_dataset("energy", (samples, replicas), np.float64, fillvalue=np.nan, dcpl=set_aside())
    label(energy, ("sample", "replica"), "lowest energy met", ENERGY)
    # contiguous: compressed chunks would move when they are written again
    if as_bytes or model.graph.is_listed:
        bare_dimension(group, "site", sites)
        spins = group.create_dataset("spins", (samples, sites), np.int8, fillvalue=0, dcpl=set_aside())
        label(spins, ("sample", "site"), "state of lowest energy met", "1")
    else:
        bare_dimension(group, BYTE, -(-sites // 8))
        bits = group.create_dataset("bits", (samples, -(-sites // 8)), np.uint8, dcpl=set_aside())
        label(bits, ("sample", BYTE), f"state of lowest energy met, {BITS}", "1")


def _series(group: h5py.Group, series: Series, shape: tuple[int, ...], rows: int) -> None:
    """A dataset that grows along its first axis up to ``rows`` rows, for which there is room already."""
    size = np.dtype(series.dtype).itemsize
    largest = _LARGEST_CHUNK_BYTES // (size * prod(shape[1:]))
    inner = (max(1, min(shape[0], largest)), *shape[1:]) if shape else ()
    deep = max(1, min(1024, rows, _CHUNK_BYTES // (size * prod(inner))))
    properties = set_aside()
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
    for axis, name in enumerate(series.axes, 1):
        dataset.dims[axis].attach_scale(group[name])
