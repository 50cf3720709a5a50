"""What a file must hold before anything of it is used: one check for all readers and for whoever goes on with a run.

It looks at every group, dataset and attribute that readers use: whether it is there, a plain part of this very file, of
the right type, and of the shape that its axes give it. Numbers themselves are not read, but for axes and attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from math import isfinite, prod
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.layout import (
    MEASUREMENTS,
    PLACEMENT,
    SPECTRUM,
    START,
    SUMMARY_GROUP,
    Layout,
    Placement,
    Series,
    Sizes,
    anneal_layout,
    tempering_layout,
    transfer_layout,
)
from spinsim.model.lattice import NAMES, Lattice
from spinsim.store.checkpoints import CHECKPOINTS, SAVED

TEXTS: Final = ("job", "config", "config_sha256", "spinsim_version", "command", "created", "engine", "devices")
"""Root attributes that every file has, beside ``schema`` and ``finished``."""
PLANNED: Final[dict[str, dict[str, tuple[type, ...]]]] = {
    "anneal": {"steps": (int,)},
    "temper": {"sweeps": (int,), "measure_every": (int,)},
    "transfer": {"temperature": (str, type(None)), "k": (str, type(None)), "k_time": (str, type(None))},
}
"""What readers take from a job's table of the configuration."""
SECTORS: Final = (b"even", b"odd", b"all")
_FILTERS: Final = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_LAYOUTS: Final = {h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED}
_BOUNDARIES: Final = ("periodic", "open")


class DamageError(InputError):
    """What is wrong with a file, in words that follow its name."""


def check_schema(file: h5py.File) -> None:
    """Refuse a file that lacks something or holds it in another form.

    Raises:
        DamageError: naming what is wrong.
    """
    texts = {name: _text(file, name) for name in TEXTS}
    _finished(file)
    if "dynamics" in file.attrs and not re.fullmatch("[0-9]{1,9}", _text(file, "dynamics")):
        raise DamageError("its attribute dynamics is no whole number")
    if texts["job"] not in _LAYOUT_OF:
        raise DamageError(f"its job {texts['job']!r} is none of {', '.join(_LAYOUT_OF)}")
    _check_config(texts["job"], texts["config"])
    sizes = _check_model(_group(file, "model"))
    layout, replicas = _LAYOUT_OF[texts["job"]](file, sizes)
    for name in layout.groups:
        _check_group(_group(file, name), layout)
    if file.attrs["finished"] and len({len(file[series.path]) for series in layout.series}) > 1:
        raise DamageError("its series have rows of different numbers though the run is finished")
    if "best" in file or texts["job"] == "anneal":
        best = _group(file, "best")
        for axis, length in (("sample", sizes.samples), ("replica", replicas)):
            _dataset(best, axis, np.int64, (length,))
        _dataset(best, "site", np.int8, (sizes.sites,))
        _dataset(best, "energy", np.float64, (sizes.samples, replicas))
        _dataset(best, "spins", np.int8, (sizes.samples, sizes.sites))
    if START in file:
        _check_start(_group(file, START), sizes, replicas)
    if CHECKPOINTS in file:
        _check_checkpoints(file)
    if SUMMARY_GROUP in file:
        temperatures = len(layout.scales["temperature"]) if "temperature" in layout.scales else -1
        group = _group(file, SUMMARY_GROUP)
        for name in list(group):
            _dataset(group, name, np.float64, (temperatures,))


def _check_start(group: h5py.Group, sizes: Sizes, replicas: int) -> None:
    """Initial configurations, one for all where an axis has length 1."""
    shape = _plain(group, "spins").shape
    if len(shape) != 3 or shape[0] not in (1, sizes.samples) or shape[1] not in (1, replicas):
        raise DamageError(f"its start has the shape {shape}")
    _dataset(group, "spins", np.int8, (*shape[:2], sizes.sites))


def _check_config(job: str, text: str) -> None:
    """The configuration is JSON, with the numbers of the job's table that say how long a run is."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamageError("its config is no JSON") from error
    if not isinstance(config, dict):
        raise DamageError("its config is no table")
    table = config.get(job, {})
    known = isinstance(table, dict)
    for name, kinds in PLANNED[job].items() if known and job in config else ():
        known &= isinstance(table.get(name, ()), kinds) and not (kinds == (int,) and table[name] < 1)
    if not known or not isinstance(config.get("k", []), list):
        raise DamageError(f"its config has no valid table of {job}")


def _anneal(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    replicas = _length(_group(file, MEASUREMENTS), "replica")
    return anneal_layout(sizes.samples, replicas, "field" in file[MEASUREMENTS]), replicas


def _temper(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    group = _group(file, MEASUREMENTS)
    copies, ladder = _length(group, "copy"), _axis(group, "temperature", np.float64)
    if not (len(ladder) and np.isfinite(ladder).all() and (ladder > 0).all() and (np.diff(ladder) > 0).all()):
        raise DamageError("its temperatures do not rise from the lowest to the highest")
    correlations = any(name in group for name in ("link_overlap", "magnetization_mode", "overlap_mode"))
    placement = None
    if PLACEMENT in file:
        iterations, rungs = (_length(_group(file, PLACEMENT), name) for name in ("iteration", "rung"))
        placement = Placement(np.empty((iterations, rungs)), np.empty((iterations, max(0, rungs - 1))))
    return tempering_layout(sizes, copies, ladder, correlations, placement), copies * len(ladder)


def _transfer(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    group = _group(file, SPECTRUM)
    sectors, levels = _axis(group, "sector", None).tolist(), _length(group, "level")
    if not sectors or not set(sectors) <= set(SECTORS) or len(set(sectors)) < len(sectors):
        raise DamageError(f"its sectors {sectors} are none of even, odd and all")
    return transfer_layout(sizes.sites, sizes.bonds, tuple(name.decode() for name in sectors), levels), 0


_LAYOUT_OF: Final[dict[str, Callable[[h5py.File, Sizes], tuple[Layout, int]]]] = {
    "anneal": _anneal,
    "temper": _temper,
    "transfer": _transfer,
}
"""What the file of each job holds, and the replicas of each sample."""


def _check_group(group: h5py.Group, layout: Layout) -> None:
    """All axes and datasets that a layout has in a group."""
    name = group.name.strip("/")
    for axis in layout.axes(name):
        values = layout.scales[axis]
        if not np.array_equal(_axis(group, axis, values.dtype if values.dtype.kind != "S" else None), values):
            raise DamageError(f"the axis {name}/{axis} has other values than it should have")
    for series in layout.series:
        if series.group == name:
            _check_series(group, series, layout.shape(series))
    for series in (*layout.sums, *(given for given, _ in layout.given)):
        if series.group == name:
            _dataset(group, series.name, series.dtype, layout.shape(series))


def _check_series(group: h5py.Group, series: Series, shape: tuple[int, ...]) -> None:
    found = _item(group, series.name)
    rows = found.shape[0] if isinstance(found, h5py.Dataset) and found.shape else -1
    _dataset(group, series.name, series.dtype, (rows, *shape))


def _check_model(group: h5py.Group) -> Sizes:
    """Attributes of the model, shapes of its datasets."""
    _text(group, "name")
    sites, lattice = int(_number(group, "sites", "iu")), None
    for name, kinds in (("quantum", "f"), ("offset", "f"), ("rounded", "b"), ("maxcut_weight", "f")):
        if (name in group.attrs or name != "maxcut_weight") and not isfinite(_number(group, name, kinds)):
            raise DamageError(f"its model has no finite {name}")
    if "lattice" in group.attrs:
        lattice = _lattice(group)
    edges, couplings = (_item(group, name) for name in ("edges", "couplings"))
    bonds = lattice.bonds if lattice else _rows_of(edges)
    samples = _rows_of(couplings)
    if not 1 <= sites < 2**31 or samples < 1 or (lattice and lattice.sites != sites):
        raise DamageError(f"its model of {sites} sites and {samples} samples is not that of its lattice or couplings")
    _dataset(group, "edges", np.int32, (bonds, 2))
    _dataset(group, "couplings", np.float64, (samples, bonds))
    if "fields" in group:
        _dataset(group, "fields", np.float64, (samples, sites))
    for name, length in (("bond", bonds), ("end", 2), ("sample", samples), ("site", sites)):
        if name in group or name != "site":
            _dataset(group, name, np.int8, (length,))
    unknown = set(group) - {"edges", "couplings", "fields", "bond", "end", "sample", "site"}
    if unknown or ("site" in group) != ("fields" in group):
        raise DamageError(f"its model holds {', '.join(sorted(unknown)) or 'an axis of sites'} without a meaning")
    return Sizes(samples, sites, bonds, lattice.dimension if lattice else 0)


def _lattice(group: h5py.Group) -> Lattice:
    name, boundary = _text(group, "lattice"), _text(group, "boundary")
    found = _attribute(group, "shape")
    if found.dtype.kind not in "iu" or len(found.shape) != 1 or NAMES.get(found.shape[0]) != name:
        raise DamageError("its lattice has no shape")
    shape = tuple(int(side) for side in group.attrs["shape"])
    if boundary not in _BOUNDARIES or min(shape) < 1 or prod(shape) >= 2**31:
        raise DamageError(f"its lattice of shape {shape} and boundary {boundary!r} is none")
    return Lattice(shape, boundary == "periodic")


def _check_checkpoints(file: h5py.File) -> None:
    """Two slots of the same arrays; those that say the same as other datasets are of their shape."""
    group = _group(file, CHECKPOINTS)
    if "dynamics" in group.attrs:
        _number(group, "dynamics", "iu")
    for name in ("serial", "checksum"):
        _dataset(group, name, np.int64, (2,))
    slots = [_group(group, slot) for slot in ("0", "1")]
    arrays = [{name: _plain(slot, name) for name in list(slot)} for slot in slots]
    kinds = [{name: (item.shape, item.dtype) for name, item in found.items()} for found in arrays]
    if kinds[0] != kinds[1]:
        raise DamageError("its two checkpoints differ in form")
    for name, path in SAVED.items():
        if name in kinds[0] and path in file and kinds[0][name] != (file[path].shape, file[path].dtype):
            raise DamageError(f"{name} of its checkpoints has another form than {path}")


def _finished(file: h5py.File) -> None:
    found = _attribute(file, "finished")
    if found.dtype.kind != "S" or found.shape != ():
        raise DamageError("its attribute finished is no text")
    try:
        file.attrs["finished"].decode("ascii")
    except UnicodeDecodeError as error:
        raise DamageError("its attribute finished is no text") from error


def _item(group: h5py.Group, name: str) -> Any:
    """What stands under a name, if it is a part of this file."""
    where = f"{group.name.rstrip('/')}/{name}"
    if name not in group:
        raise DamageError(f"{where} is missing")
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise DamageError(f"{where} is a link that leads elsewhere")
    return group[name]


def _group(parent: h5py.Group, name: str) -> h5py.Group:
    found = _item(parent, name)
    if not isinstance(found, h5py.Group):
        raise DamageError(f"{parent.name.rstrip('/')}/{name} is no group")
    return found


def _plain(group: h5py.Group, name: str) -> h5py.Dataset:
    """A dataset whose numbers lie in this file, by means that HDF5 always has."""
    found = _item(group, name)
    if not isinstance(found, h5py.Dataset) or found.shape is None:
        raise DamageError(f"{group.name}/{name} is no dataset")
    how = found.id.get_create_plist()
    filters = {how.get_filter(k)[0] for k in range(how.get_nfilters())}
    if how.get_layout() not in _LAYOUTS or how.get_external_count() or not filters <= _FILTERS:
        raise DamageError(f"{group.name}/{name} is stored in a way that spinsim never uses")
    return found


def _dataset(group: h5py.Group, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> None:
    found = _plain(group, name)
    if found.dtype != np.dtype(dtype) or found.shape != tuple(shape):
        own = f"{found.dtype} {found.shape}"
        raise DamageError(f"{group.name}/{name} is {own} and not {np.dtype(dtype)} {tuple(shape)}")


def _axis(group: h5py.Group, name: str, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """The values along an axis, of short texts where no type is given."""
    found = _plain(group, name)
    fits = found.dtype.kind == "S" if dtype is None else found.dtype == np.dtype(dtype)
    if found.ndim != 1 or not fits:
        raise DamageError(f"{group.name}/{name} is no axis")
    if found.id.get_storage_size() < found.size * found.dtype.itemsize and not found.chunks:
        raise DamageError(f"{group.name}/{name} has no values")
    return np.asarray(found[...])


def _length(group: h5py.Group, name: str) -> int:
    return len(_axis(group, name, np.int64))


def _rows_of(item: Any) -> int:
    """Length along the first axis, -1 of what has none."""
    return int(item.shape[0]) if isinstance(item, h5py.Dataset) and item.shape else -1


def _attribute(item: h5py.Group, name: str) -> h5py.h5a.AttrID:
    if name not in item.attrs:
        raise DamageError(f"the attribute {name} of {item.name} is missing")
    return item.attrs.get_id(name)


def _text(item: h5py.Group, name: str) -> str:
    found = _attribute(item, name)
    value = item.attrs[name] if h5py.check_string_dtype(found.dtype) and found.shape == () else None
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise DamageError(f"the attribute {name} of {item.name} is no text")
    return value


def _number(item: h5py.Group, name: str, kinds: str) -> float:
    found = _attribute(item, name)
    if found.dtype.kind not in kinds or found.shape != ():
        raise DamageError(f"the attribute {name} of {item.name} is no number")
    return float(item.attrs[name])
