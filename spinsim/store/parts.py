"""Pieces of a new file: labelled datasets, their axes, and room that is set aside."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.store.chunks import LEVEL


def set_aside() -> h5py.h5p.PropDCID:
    """Creation properties of a dataset whose room is set aside at once."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return properties


def compressed() -> dict[str, Any]:
    """Compression of what is written once."""
    return {"compression": "gzip", "compression_opts": LEVEL, "shuffle": True}


def written_once(group: h5py.Group, name: str, values: npt.NDArray[np.generic]) -> h5py.Dataset:
    """A dataset of numbers that never change, with a checksum."""
    return group.create_dataset(name, data=values, **({"fletcher32": True} if values.size else {}))


def scale(group: h5py.Group, name: str, values: npt.NDArray[np.generic], units: str = "1") -> None:
    """An axis with coordinates."""
    dataset = written_once(group, name, values)
    dataset.attrs.update(scale_attributes(name, units))
    if values.dtype.kind == "S":
        dataset.attrs["_Encoding"] = "utf-8"  # netCDF's word for it: xarray reads text then
    dataset.make_scale(name)


def scale_attributes(name: str, units: str = "1") -> dict[str, str]:
    """What an axis says of itself."""
    return {"long_name": name.replace("_", " "), "units": units}


def bare_dimension(group: h5py.Group, name: str, length: int) -> None:
    """A named axis without coordinates, by netCDF-4's convention: it takes no room however long it is."""
    dataset = group.create_dataset(name, (length,), np.int8, chunks=(min(length, 2**20),) if length else None)
    dataset.make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:10}")
    dataset.attrs["long_name"] = f"an axis of length {length}, numbered from 0, without values of its own"


def name_axes(group: h5py.Group) -> None:
    """Give the datasets of a group and of its groups axes that are named by their lengths, as netCDF asks for names."""
    found: list[h5py.Dataset] = []
    group.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
    for dataset in found:
        used: list[int] = []
        for axis, length in enumerate(dataset.shape):
            again = used.count(length)
            name = f"length_{length}" + (f"_{again + 1}" if again else "")
            if name not in group:
                bare_dimension(group, name, length)
            dataset.dims[axis].attach_scale(group[name])
            used.append(length)


def label(dataset: h5py.Dataset, scales: tuple[str, ...], long_name: str, units: str) -> None:
    """Say what a dataset is, and which axes of its group it has."""
    dataset.attrs.update({"long_name": long_name, "units": units})
    group = dataset.parent
    for axis, scale in enumerate(scales):
        dataset.dims[axis].attach_scale(group[scale])
