"""Required contents of a file before anything of it is used: one check for all readers and for resuming.

It looks at every group, dataset and attribute that readers use: whether it is there, a plain part of this very file, of
the right type, and of the shape that its axes give it. Numbers themselves are not read, but for axes and attributes.

The group /configurations holds the spins of all replicas at every so many-th row of a run, a bit each. Bit b of byte k
is site 8 k + b, set where the spin is +1; bits past the last site are 0. Replicas stand in the order of their copies
and temperatures, whatever configurations they exchanged before.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import isfinite
from typing import Final

import h5py
import numpy as np

from spinsim.bits import spins_up
from spinsim.model.geometry.cells import KNOWN
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.problems.quadratic import BINARY, SPIN
from spinsim.registry import FOLDERS
from spinsim.store import checkpoints
from spinsim.store.contents import (
    BEST,
    BITS,
    BYTE,
    DRAWN,
    EVERY,
    MEASUREMENTS,
    OF_LATTICE,
    OWN,
    START,
    SUMMARY_GROUP,
    Contents,
    DamageError,
    Form,
    Series,
    Sizes,
    attribute_of,
    axis_of,
    dataset_of,
    form_of,
    group_of,
    item_of,
    number_of,
    plain_of,
    rows_of,
    text_of,
)
from spinsim.store.datasets import CHECKSUM, pieces

CONFIGURATIONS: Final = "configurations"  # the group, and what runs without a file call the same
TEXTS: Final = ("job", "config", "config_sha256", "spinsim_version", "command", "created", "engine", "devices")
"""Root attributes that every file has, beside ``schema`` and ``finished``."""
_BOUNDARIES: Final = ("periodic", "open")
_OF_MODEL: Final = {"edges", "couplings", "fields", "terms", "labels", "bond", "end", "sample", "site"}
_GIVEN: Final = {"given", "given_ends", "given_values"}


def with_configurations(contents: Contents, every: int, sites: int) -> Contents:
    """Returns contents that have room for configurations too, of all replicas that the first series is measured of.

    Beside the spins of so many sites stands what says where a row of the measurements stands, such as its temperature,
    and the sweeps done. There are so many rows of the run for ``every`` saved one; where it is 0 contents stay as they
    are.
    """
    if not every:
        return contents
    measured = {series.name: series for series in contents.series if series.group == MEASUREMENTS}
    sweep = Series("sweep", (), np.int64, "sweeps done")
    series = (
        Series("step", (), np.int64, "saved row"),
        Series("measurement", (), np.int64, "row of /measurements of the same moment"),
        *({"sweep": sweep} | {name: measured[name] for name in contents.coordinates(MEASUREMENTS)}).values(),
        Series("spins", (*next(one.axes for one in measured.values() if one.axes), BYTE), np.uint8, f"spins, {BITS}"),
    )
    return replace(
        contents,
        scales={**contents.scales, BYTE: np.arange(-(-sites // 8))},
        series=(*contents.series, *(one._replace(group=CONFIGURATIONS) for one in series)),
        numbers={**contents.numbers, CONFIGURATIONS: {EVERY: every, "sites": sites}},
    )


def with_saved(contents: Contents, file: h5py.File, sites: int) -> Contents:
    """Returns contents together with the configurations in a file, which have a multiple of the model's sites."""
    if CONFIGURATIONS not in file:
        return contents
    every, own = (int(number_of(group_of(file, CONFIGURATIONS), name, "iu")) for name in (EVERY, "sites"))
    if every < 1 or own < 1 or own % sites:
        raise DamageError(f"its configurations are said to be of {own} sites, saved at every {every}th row")
    return with_configurations(contents, every, own)


def check_configurations(file: h5py.File, rows: int) -> None:
    """Refuse configurations with other rows or sums of spins than the first rows of the measurements."""
    if CONFIGURATIONS not in file:
        return
    group, measured = file[CONFIGURATIONS], file[MEASUREMENTS]
    every, sites = (int(group.attrs[name]) for name in (EVERY, "sites"))
    spins, own = group["spins"], rows // every
    at = np.arange(every - 1, rows, every)
    for name in set(group) & set(measured) - {"step", "spins", CHECKSUM}:
        if not group[name].is_scale and not np.array_equal(group[name][:own], measured[name][...][at]):
            raise DamageError(f"{name} of its configurations is not that of its measurements")
    if not np.array_equal(group["measurement"][:own], at):
        raise DamageError("the configurations are not numbered by every so many-th measurement")
    for piece in pieces([spins], own):
        bits = spins[piece]
        sums = 2 * spins_up(bits) - sites
        if sites % 8 and (bits[..., -1] >> np.uint8(sites % 8)).any():
            raise DamageError("its configurations have bits set past the last site")
        if any((sums[k] != measured["magnetization"][at[piece.start + k]]).any() for k in range(len(bits))):
            raise DamageError("its configurations do not have the sums of spins that were measured")


def check_schema(file: h5py.File) -> None:
    """Refuse a file that lacks something or holds it in another form."""
    texts = {name: text_of(file, name) for name in TEXTS}
    _finished(file)
    if "dynamics" in file.attrs and not re.fullmatch("[0-9]{1,9}", text_of(file, "dynamics")):
        raise DamageError("its attribute dynamics is no whole number")
    if texts["job"] not in FOLDERS:
        raise DamageError(f"its job {texts['job']!r} is none of {', '.join(FOLDERS)}")
    form = form_of(file)
    _check_config(texts["job"], form, texts["config"])
    sizes = _check_model(group_of(file, "model"))
    plain, replicas = form.contents(file, sizes)
    contents = with_saved(plain, file, sizes.sites)
    rows: dict[Series, int] = {}
    for name in contents.groups:
        rows |= _check_group(group_of(file, name), contents)
    if file.attrs["finished"]:  # all series are as long as they should be
        most = max((rows[series] for series in contents.series if contents.every(series.group) == 1), default=0)
        if any(rows[series] != most // contents.every(series.group) for series in contents.series):
            raise DamageError("its series have rows of different numbers though the run is finished")
    if BEST in file or form.has_best:
        best = group_of(file, BEST)
        for axis, length in (("sample", sizes.samples), ("replica", replicas)):
            dataset_of(best, axis, np.int64, (length,))
        dataset_of(best, "energy", np.float64, (sizes.samples, replicas))
        by_site = "edges" in file["model"] or "spins" in best
        kind, axis, name = (np.int8, "site", "spins") if by_site else (np.uint8, BYTE, "bits")
        length = sizes.sites if by_site else -(-sizes.sites // 8)
        dataset_of(best, axis, np.int8, (length,))
        dataset_of(best, name, kind, (sizes.samples, length))
    if START in file:  # one configuration for all where an axis has length 1
        start = group_of(file, START)
        shape = plain_of(start, "spins").shape
        if len(shape) != 3 or shape[0] not in (1, sizes.samples) or shape[1] not in (1, replicas):
            raise DamageError(f"its start has the shape {shape}")
        dataset_of(start, "spins", np.int8, (*shape[:2], sizes.sites))
    if checkpoints.GROUP in file:
        _check_checkpoints(file, form)
    if SUMMARY_GROUP in file:
        axes = [contents.scales[name] for name in ("temperature", "k", "gamma", "beta") if name in contents.scales]
        group = group_of(file, SUMMARY_GROUP)
        for name in list(group):
            dataset_of(group, name, np.float64, (len(axes[0]) if axes else -1,))


def contents_of(file: h5py.File) -> Contents:
    """Return the contents of a file whose schema has been checked, with the configurations that it holds."""
    model = file["model"]
    cell = KNOWN.get(model.attrs.get("lattice"))
    samples = model["sample" if "couplings" in model.attrs else "couplings"].shape[0]
    sizes = Sizes(samples, int(model.attrs["sites"]), model["bond"].shape[0], cell.dimension if cell else 0)
    return with_saved(form_of(file).contents(file, sizes)[0], file, sizes.sites)


def _check_config(job: str, form: Form, text: str) -> None:
    """The configuration is JSON, with the numbers of the job's table that say how long a run is."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamageError("its config is no JSON") from error
    if not isinstance(config, dict):
        raise DamageError("its config is no table")
    table = config.get(job, {})
    known = isinstance(table, dict)
    for name, kinds in form.planned.items() if known and job in config else ():
        known &= isinstance(table.get(name, ()), kinds) and not (kinds == (int,) and table[name] < 1)
    if not known or not isinstance(config.get("k", []), list):
        raise DamageError(f"its config has no valid table of {job}")


def _check_group(group: h5py.Group, contents: Contents) -> dict[Series, int]:
    """Checks all axes and datasets that contents has in a group; returns the rows of its series."""
    name = group.name.strip("/")
    for said in {EVERY} & set(group.attrs) | set(contents.numbers.get(name, {})):
        if number_of(group, said, "iu") != contents.numbers.get(name, {}).get(said):
            raise DamageError(f"the attribute {said} of {group.name} is not what it should be")
    for axis in contents.axes(name):
        values = contents.scales[axis]
        if not np.array_equal(axis_of(group, axis, values.dtype if values.dtype.kind != "S" else None), values):
            raise DamageError(f"the axis {name}/{axis} has other values than it should have")
    shapes = {series: (None, *contents.shape(series)) for series in contents.series if series.group == name}
    own = {series: dataset_of(group, series.name, series.dtype, shape) for series, shape in shapes.items()}
    room = {dataset.maxshape[0] for dataset in own.values()}
    if own and CHECKSUM in group:
        room.add(dataset_of(group, CHECKSUM, np.uint32, (None,)).maxshape[0])
    if len(room) > 1:
        raise DamageError(f"the series of {group.name} have room for rows of different numbers")
    for series in (*contents.sums, *(given for given, _ in contents.given)):
        if series.group == name:
            dataset_of(group, series.name, series.dtype, contents.shape(series))
    return {series: len(dataset) for series, dataset in own.items()}


def _check_model(group: h5py.Group) -> Sizes:
    text_of(group, "name")
    sites, lattice = int(number_of(group, "sites", "iu")), None
    for name, kinds in (("quantum", "f"), ("offset", "f"), ("rounded", "b"), ("maxcut_weight", "f")):
        if (name in group.attrs or name != "maxcut_weight") and not isfinite(number_of(group, name, kinds)):
            raise DamageError(f"its model has no finite {name}")
    if "lattice" in group.attrs:
        lattice = _lattice(group)
    slices = int(number_of(group, "slices", "iu")) if "slices" in group.attrs else 1
    if slices < 1 or sites % slices or (lattice and slices > 1 and lattice.shape[0] != slices):
        raise DamageError(f"its model of {sites} sites has no {slices} slices")
    follow = _implied_datasets(group, lattice)
    bonds = lattice.bonds if lattice and not _has_own_bonds(group) else rows_of(item_of(group, "edges"))
    samples = rows_of(item_of(group, "sample" if "couplings" in follow else "couplings"))
    if sites < 1 or samples < 1 or (lattice.sites != sites if lattice else sites >= 2**31):
        raise DamageError(f"its model of {sites} sites and {samples} samples is not that of its lattice or couplings")
    in_bytes = "edges" in follow and "couplings" not in follow and plain_of(group, "couplings").dtype == np.int8
    forms: dict[str, tuple[type, tuple[int, ...]]] = {
        "edges": (np.int32, (bonds, 2)),
        "couplings": (np.int8 if in_bytes else np.float64, (samples, bonds)),
        "fields": (np.float64, (samples, sites)),
        "terms": (np.uint8, (bonds,)),
    }
    forms |= {name: (np.int8, (n,)) for name, n in (("bond", bonds), ("end", 2), ("sample", samples), ("site", sites))}
    for name, form in forms.items():
        if name in group or name not in follow | {"fields", "terms", "site"}:
            dataset_of(group, name, *form)
    if "given" in group:
        given = rows_of(item_of(group, "given"))
        number_of(group, "given_offset", "f")
        dataset_of(group, "given_ends", np.int32, (given, 2))
        dataset_of(group, "given_values", np.float64, (given,))
    _check_labels(group, sites)
    unknown = set(group) - _OF_MODEL - (_GIVEN if "given" in group else set())
    if unknown or ("site" in group) != ("fields" in group or "labels" in group):
        raise DamageError(f"its model holds {', '.join(sorted(unknown)) or 'an axis of sites'} without a meaning")
    return Sizes(samples, sites, bonds, lattice.dimension if lattice else 0)


def _has_own_bonds(group: h5py.Group) -> bool:
    """True where bonds are listed that are not those of the lattice beside them."""
    return "edges" in group.attrs and text_of(group, "edges") == OWN


def _implied_datasets(group: h5py.Group, lattice: Lattice | None) -> set[str]:
    """Datasets that a model does without: the bonds of a lattice, and couplings that were drawn from a seed."""
    if "edges" not in group.attrs or (lattice and _has_own_bonds(group)):
        return set()
    if lattice is None or text_of(group, "edges") != OF_LATTICE or "edges" in group:
        raise DamageError("the bonds of its model are said to be those of another lattice")
    if "couplings" not in group.attrs:
        return {"edges"}
    if text_of(group, "couplings") != DRAWN or "couplings" in group:
        raise DamageError("the couplings of its model are said to be drawn in an unknown way")
    number_of(group, "disorder_seed", "u")
    if not 0 <= number_of(group, "bond_fraction", "f") <= 1:
        raise DamageError("its bond fraction is no probability")
    return {"edges", "couplings"}


def _check_labels(group: h5py.Group, sites: int) -> None:
    if "vartype" in group.attrs and text_of(group, "vartype") not in (SPIN, BINARY):
        raise DamageError("its model has variables of no known kind")
    if "first_label" in group.attrs:
        number_of(group, "first_label", "i")
    if "variables" in group.attrs and (number_of(group, "variables", "iu") or sites > 1):
        raise DamageError("its model has another number of variables than sites")
    if "labels" in group:
        labels = plain_of(group, "labels")
        if labels.dtype.kind != "S" or labels.shape != (sites,):
            raise DamageError(f"the labels of its model are {labels.dtype} {labels.shape}")


def _lattice(group: h5py.Group) -> Lattice:
    name, boundary = text_of(group, "lattice"), text_of(group, "boundary")
    sides = attribute_of(group, "shape")
    cell = KNOWN.get(name)
    if cell is None or sides.dtype.kind not in "iu" or sides.shape != (cell.dimension,):
        raise DamageError("its lattice has no shape")
    shape = tuple(int(side) for side in group.attrs["shape"])
    lattice = Lattice(shape, boundary == "periodic", cell) if min(shape) > 0 and boundary in _BOUNDARIES else None
    if lattice is None or (lattice.sites >= 2**31 and not lattice.rows_can_be_packed):
        raise DamageError(f"its lattice of shape {shape} and boundary {boundary!r} is none")
    return lattice


def _check_checkpoints(file: h5py.File, form: Form) -> None:
    """Two slots of the same arrays; those that say the same as other datasets are of their shape."""
    group = group_of(file, checkpoints.GROUP)
    if "dynamics" in group.attrs:
        number_of(group, "dynamics", "iu")
    for name in checkpoints.NUMBERS:
        if name in group or name != "rows":
            dataset_of(group, name, np.int64, (2,))
    for name in text_of(group, checkpoints.SAME).split() if checkpoints.SAME in group.attrs else ():
        if checkpoints.saved_as(form).get(name, name) not in file:
            raise DamageError(f"its checkpoints lack {name}")
        plain_of(file, checkpoints.saved_as(form)[name])
    slots = [group_of(group, slot) for slot in ("0", "1")]
    arrays = [{name: plain_of(slot, name) for name in list(slot)} for slot in slots]
    kinds = [{name: (item.shape, item.dtype) for name, item in datasets.items()} for datasets in arrays]
    if kinds[0] != kinds[1]:
        raise DamageError("its two checkpoints differ in form")
    for name, path in checkpoints.saved_as(form).items():
        if name in kinds[0] and path in file and kinds[0][name] != (file[path].shape, file[path].dtype):
            raise DamageError(f"{name} of its checkpoints has another form than {path}")


def _finished(file: h5py.File) -> None:
    """The time of the end is text, of a fixed length where it may yet be written."""
    if attribute_of(file, "finished").dtype.kind != "S":
        text_of(file, "finished")
        return
    text = file.attrs["finished"]
    if not isinstance(text, bytes) or not text.isascii():
        raise DamageError("its attribute finished is no text")
