"""The model in a file, written and read."""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.bits import States
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.drawing import Drawn
from spinsim.model.geometry.cells import KNOWN
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.problems.labels import Labels, label_in, label_text
from spinsim.model.problems.quadratic import SPIN, Quadratic
from spinsim.model.quanta import distinct
from spinsim.store.contents import BEST, DRAWN, ENERGY, OF_LATTICE, OWN, START, Arrays, BestSpins, DamageError
from spinsim.store.datasets import bare_dimension, compressed, label
from spinsim.store.reading import text_attributes

_ROOM: Final = 2  # times what is stored, to read and check it
_MEND: Final = "read it on a machine with more memory"
_LABELS_AT_ONCE: Final = 2**23  # bytes of labels that are written or read at once
_BYTES_A_GIVEN: Final = 16  # of a value, and where it stands


def write_model(group: h5py.Group, model: Ising) -> None:
    """Store a model in full: the file stands alone. Of a large lattice bonds and drawn couplings follow from it."""
    for name in ("name", "sites", "quantum", "rounded", "rounding_error", "offset"):
        group.attrs[name] = getattr(model, name)
    if model.maxcut_weight is not None:
        group.attrs["maxcut_weight"] = model.maxcut_weight
    if model.graph.slices > 1:
        group.attrs["slices"] = model.graph.slices
    if model.vartype != SPIN:
        group.attrs["vartype"] = model.vartype
    if (lattice := model.embedding) is not None:
        boundary = "periodic" if lattice.periodic else "open"
        group.attrs.update({"lattice": lattice.name, "shape": lattice.shape, "boundary": boundary})
        if model.lattice is None:
            group.attrs["edges"] = OWN
    for name, length in (("bond", model.bonds), ("end", 2), ("sample", model.samples)):
        bare_dimension(group, name, length)
    if model.graph.is_listed:
        edges = group.create_dataset("edges", data=model.graph.edges, **_filters(model.bonds))
        label(edges, ("bond", "end"), "end sites of each bond", "1")
    else:
        group.attrs["edges"] = OF_LATTICE
    if model.terms is not None:
        terms = group.create_dataset("terms", data=model.terms, **_filters(model.bonds))
        label(terms, ("bond",), "term of the energy that each bond belongs to", "1")
    if not _is_drawn(model):
        _rows(group, "couplings", model.couplings, ("sample", "bond"), "coupling J of each bond")
    elif model.drawn is not None:
        group.attrs.update({"couplings": DRAWN, "bond_fraction": model.drawn.bond_fraction})
        group.attrs["disorder_seed"] = np.uint64(model.drawn.seed)
    names, in_field = model.labels, bool(distinct(model.fields).any())
    if isinstance(names, range) and names.start:
        group.attrs["first_label"] = names.start
    if in_field or (len(names) and not isinstance(names, range)):
        bare_dimension(group, "site", model.sites)
    if not len(names):
        group.attrs["variables"] = 0  # the site is idle
    elif not isinstance(names, range):
        _write_labels(group, names)
    if in_field:
        _rows(group, "fields", model.fields, ("sample", "site"), "field h at each site")
    if model.rounded and model.problem is not None:
        _write_given(group, model.problem)


def _write_given(group: h5py.Group, problem: Quadratic) -> None:
    """Store the values of a problem as they were given, where couplings and fields have been rounded."""
    group.attrs["given_offset"] = float(problem.offset)
    bare_dimension(group, "given", len(problem.values))
    ends = group.create_dataset("given_ends", data=problem.ends, dtype=np.int32, **_filters(len(problem.ends)))
    label(ends, ("given", "end"), "variables of each value as given, twice the same of a linear one", "1")
    values = group.create_dataset("given_values", data=problem.values, **_filters(len(problem.ends)))
    label(values, ("given",), "value as given, to be minimised", ENERGY)


def _read_given(group: h5py.Group, model: Ising) -> Quadratic | None:
    """The problem as it was given, None where a file does not have it."""
    if "given_values" not in group:
        return None
    ends, cut = group["given_ends"][...].astype(np.int64), model.maxcut_weight is not None
    if ends.size and not 0 <= ends.min() <= ends.max() < model.sites:
        raise InputError("values as given are of variables that its model has not: ")
    values, offset = group["given_values"][...], float(group.attrs["given_offset"])
    return Quadratic(model.sites, ends, values, model.vartype, offset, model.labels, cut, model.name).check()


def stored_bytes(model: Ising) -> int:
    """Room that a model and the lowest state of each sample take in a file, and its checkpoints a part of it."""
    if model.graph.is_listed:
        given = _BYTES_A_GIVEN * len(model.problem.values) if model.rounded and model.problem is not None else 0
        return (16 * model.bonds + 9 * model.sites) * model.samples + given
    follow = _is_drawn(model) or model.one_coupling
    fields = model.fields.nbytes if model.fields.strides[-1] and model.fields.any() else 0
    return (0 if follow else model.couplings.nbytes) + fields + model.sites * model.samples


def _is_drawn(model: Ising) -> bool:
    """True where the couplings of all samples follow from how they are drawn, and files say no more."""
    return model.drawn is not None and not model.graph.is_listed and model.drawn.samples == model.samples


def lists_bonds(file: h5py.File) -> bool:
    return "edges" in file["model"]


def _write_labels(group: h5py.Group, names: Labels) -> None:
    texts = [label_text(name).encode() for name in names]
    if len(set(texts)) < len(texts):
        raise InputError("some labels cannot be told apart in a file: name sites by texts, numbers or tuples of them")
    longest = max(map(len, texts))
    rows = max(1, _LABELS_AT_ONCE // longest)  # all take as much room as the longest
    require(float(_ROOM * min(rows, len(texts)) * longest), f"labels of {longest} characters", "give shorter ones")
    chunks = {} if len(texts) <= rows else {"chunks": (rows,)}
    stored = group.create_dataset("labels", (len(texts),), f"S{longest}", **_filters(len(texts)), **chunks)
    for first in range(0, len(texts), rows):
        stored[first : first + rows] = np.array(texts[first : first + rows], stored.dtype)
    stored.attrs["_Encoding"] = "utf-8"
    label(stored, ("site",), "what the caller calls each site, as JSON", "1")


def _read_labels(group: h5py.Group, sites: int) -> Labels:
    if "variables" in group.attrs:
        return ()
    if "labels" not in group:
        first = int(group.attrs.get("first_label", 0))
        return range(first, first + sites)
    stored = group["labels"]
    rows = max(1, _LABELS_AT_ONCE // max(1, stored.dtype.itemsize))
    pieces = (stored[first : first + rows].tolist() for first in range(0, len(stored), rows))
    return [label_in(text.decode("ascii", "replace")) for part in pieces for text in part]


def _filters(length: int) -> dict[str, Any]:
    """Checksums, and compression of what is large enough to gain by it and small enough not to wait for it."""
    return ({"fletcher32": True} if length else {}) | (compressed() if 0 < length <= 2**22 else {})


def _rows(group: h5py.Group, name: str, rows: npt.NDArray[Any], scales: tuple[str, ...], long_name: str) -> None:
    """Rows by sample; one number for all is stored as the fill value, whatever the size."""
    shape = (len(group["sample"]), rows.shape[1])
    if rows.size and rows.strides[-1] == 0:
        dataset = group.create_dataset(name, shape, np.float64, fillvalue=rows[0, 0], chunks=True)
    else:
        kind = np.float64 if "edges" in group else rows.dtype
        dataset = group.create_dataset(name, shape, kind, **_filters(rows.shape[-1]))
        dataset[...] = np.broadcast_to(rows, shape)
    label(dataset, scales, long_name, ENERGY)


def write_start(group: h5py.Group, start: npt.NDArray[np.int8]) -> None:
    for name, length in zip(("sample", "replica", "site"), start.shape, strict=True):
        bare_dimension(group, name, length)
    spins = group.create_dataset("spins", data=start, **_filters(start.size))
    label(spins, ("sample", "replica", "site"), "initial configurations, one for all where an axis has length 1", "1")


def read_start(file: h5py.File) -> npt.NDArray[np.int8] | None:
    return file[f"{START}/spins"][...] if START in file else None


def read_model(file: h5py.File) -> Ising:
    """The model of a run, rebuilt from its file; DamageError where bonds lead elsewhere or numbers are none."""
    group = file["model"]
    attrs = group.attrs
    lattice = None
    if "lattice" in attrs:
        cell, shape = KNOWN[attrs["lattice"]], tuple(int(side) for side in attrs["shape"])
        lattice = Lattice(shape, attrs["boundary"] == "periodic", cell)
    there = [group[name] for name in ("edges", "couplings", "given_ends", "given_values") if name in group]
    drawn = None
    if "couplings" in attrs:
        drawn = Drawn(float(attrs["bond_fraction"]), int(attrs["disorder_seed"]), len(group["sample"]))
    require(_ROOM * sum(map(_bytes, there)), "the model of the file", _MEND)
    try:
        edges = group["edges"][...] if "edges" in group else None
        graph = Graph(int(attrs["sites"]), edges, lattice, int(attrs.get("slices", 1)))
        if graph.lattice is None and lattice is not None and attrs.get("edges") != OWN:
            raise DamageError("bonds of its model are not those of its lattice")
        model = Ising(
            graph,
            drawn or _stored(group["couplings"]),
            _stored(group["fields"]) if "fields" in group else 0.0,
            name=attrs["name"],
            offset=float(attrs["offset"]),
            maxcut_weight=float(attrs["maxcut_weight"]) if "maxcut_weight" in attrs else None,
            terms=group["terms"][...] if "terms" in group else None,
            labels=_read_labels(group, int(attrs["sites"])),
            vartype=attrs.get("vartype", SPIN),
        )
        model.problem = _read_given(group, model)
    except InputError as error:
        raise DamageError(str(error).split(": ")[0]) from error
    model.rounded = bool(attrs["rounded"])  # what is stored is round already
    model.rounding_error = float(attrs.get("rounding_error", 0.0))
    model.stated_sha256 = str(file.attrs.get("model_sha256", ""))
    return model


def best_of(file: h5py.File, saved: Arrays) -> tuple[npt.NDArray[np.float64], BestSpins]:
    """The lowest energies and states of a run, of its last checkpoint, ``saved`` by path, where that has them."""
    there = {name: saved.get(f"{BEST}/{name}") for name in ("energy", "spins", "bits") if name in file[BEST]}
    arrays = {name: file[f"{BEST}/{name}"][...] if array is None else array for name, array in there.items()}
    if "spins" in arrays:
        return arrays["energy"], arrays["spins"]
    return arrays["energy"], States(arrays["bits"], int(file["model"].attrs["sites"]))


def as_shown(states: BestSpins, model: Ising) -> BestSpins:
    """Lowest states as results show them: ``int8`` (samples, sites), ``States`` of huge lattices alone."""
    return states if model.graph.is_huge else np.asarray(states)


def _bytes(stored: h5py.Dataset) -> int:
    """Memory that a dataset takes when it is read: none where one number serves all."""
    return int(stored.nbytes) if stored.id.get_storage_size() else 0


def _stored(dataset: h5py.Dataset) -> npt.NDArray[Any]:
    """Rows as they were written: one number for all takes no memory either."""
    if dataset.size and not dataset.id.get_storage_size():
        return np.broadcast_to(np.asarray(dataset.fillvalue), dataset.shape)
    return np.asarray(dataset[...])


def identity(file: h5py.File) -> tuple[dict[str, str], str]:
    """Root attributes of a file, and the SHA-256 of the model in it."""
    return text_attributes(file), read_model(file).content_sha256()
