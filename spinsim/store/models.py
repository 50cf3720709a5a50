"""Conversion of a model to its group in a record, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.cells import KNOWN
from spinsim.model.couplings import Drawn, distinct
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising, described_in, of_numbers
from spinsim.model.lattice import Lattice
from spinsim.model.quadratic import SPIN, Labels, Quadratic, label_in, label_text
from spinsim.packing import States
from spinsim.record import Array, Record
from spinsim.store.contents import BEST, DRAWN, ENERGY, OF_LATTICE, OWN, BestSpins

NUMBERS: Final = "numbers"  # of the samples of a run that has some of a model's samples
_ROOM: Final = 2  # multiple of the stored size, for labels
_BYTES_A_GIVEN: Final = 16  # of a given value with its two sites


def record_of_model(model: Ising) -> Record:
    """Return a complete record of a model. For a large lattice, bonds and drawn couplings are recomputed.

    The record of some samples has the model of all of them, from which their quantum follows.
    """
    if model.whole is not None and model.numbers is not None:
        whole = record_of_model(model.whole)
        words = "numbers of the samples that go on alone, in the model of all samples"
        return Record(whole.attributes, whole.arrays | {NUMBERS: Array(model.numbers, ("alone",), words)})
    names = ("name", "sites", "quantum", "rounded", "rounding_error", "offset", "samples")
    attributes: dict[str, Any] = {name: getattr(model, name) for name in names}
    arrays: dict[str, Array] = {}
    if model.maxcut_weight is not None:
        attributes["maxcut_weight"] = model.maxcut_weight
    if model.graph.slices > 1:
        attributes["slices"] = model.graph.slices
    if model.vartype != SPIN:
        attributes["vartype"] = model.vartype
    if (lattice := model.embedding) is not None:
        boundary = "periodic" if lattice.periodic else "open"
        attributes |= {"lattice": lattice.name, "shape": lattice.shape, "boundary": boundary}
        if model.lattice is None:
            attributes["edges"] = OWN
    if model.graph.is_listed:
        arrays["edges"] = Array(model.graph.edges, ("bond", "end"), "end sites of each bond")
    else:
        attributes["edges"] = OF_LATTICE
    if model.terms is not None:
        arrays["terms"] = Array(model.terms, ("bond",), "term of the energy that each bond belongs to")
    if not _is_drawn(model):
        arrays["couplings"] = _rows(model, model.couplings, "bond", "coupling J of each bond")
    elif model.drawn is not None:
        attributes |= {"couplings": DRAWN, "bond_fraction": model.drawn.bond_fraction}
        attributes["disorder_seed"] = np.uint64(model.drawn.seed)
    labels = model.labels
    if isinstance(labels, range) and labels.start:
        attributes["first_label"] = labels.start
    if not len(labels):
        attributes["variables"] = 0  # the only site is idle
    elif not isinstance(labels, range):
        arrays["labels"] = Array(_texts(labels), ("site",), "what the caller calls each site, as JSON")
    if distinct(model.fields).any():
        arrays["fields"] = _rows(model, model.fields, "site", "field h at each site")
    if model.rounded and model.problem is not None:
        attributes["given_offset"] = float(model.problem.offset)
        words = "variables of each value as given, twice the same of a linear one"
        arrays["given_ends"] = Array(np.asarray(model.problem.ends, np.int32), ("given", "end"), words)
        arrays["given_values"] = Array(model.problem.values, ("given",), "value as given, to be minimised", ENERGY)
    return Record(attributes, arrays)


def model_of(record: Record) -> Ising:
    """Return the model of a run's record."""
    group = record.group("model")
    a, arrays = group.attributes, group.arrays
    lattice = drawn = None
    if "lattice" in a:
        sides = tuple(int(side) for side in a["shape"])
        lattice = Lattice(sides, a["boundary"] == "periodic", KNOWN[a["lattice"]])
    if "couplings" in a:
        drawn = Drawn(float(a["bond_fraction"]), int(a["disorder_seed"]), int(a["samples"]))
    edges = arrays["edges"].values if "edges" in arrays else None
    model = Ising(
        Graph(int(a["sites"]), edges, lattice, int(a.get("slices", 1))),
        drawn or group["couplings"],
        group["fields"] if "fields" in arrays else 0.0,
        name=a["name"],
        offset=float(a["offset"]),
        maxcut_weight=float(a["maxcut_weight"]) if "maxcut_weight" in a else None,
        terms=group.get("terms"),
        labels=_labels(group, int(a["sites"])),
        vartype=a.get("vartype", SPIN),
    )
    if "given_values" in arrays:
        given = model.sites, group["given_ends"].astype(np.int64), group["given_values"], model.vartype
        is_cut = model.maxcut_weight is not None
        model.problem = Quadratic(*given, float(a["given_offset"]), model.labels, is_cut, model.name).check()
    model.rounded = bool(a["rounded"])  # stored values are already rounded
    model.rounding_error = float(a["rounding_error"])
    model.origin = described_in(json.loads(record.attributes["config"]))
    return of_numbers(model, arrays[NUMBERS].values) if NUMBERS in arrays else model


def stored_bytes(model: Ising) -> int:
    """Bytes of a model and of the lowest state of each sample in a file."""
    if model.graph.is_listed:
        given = _BYTES_A_GIVEN * len(model.problem.values) if model.rounded and model.problem is not None else 0
        return (16 * model.bonds + 9 * model.sites) * model.samples + given
    follow = _is_drawn(model) or model.one_coupling
    fields = model.fields.nbytes if model.fields.strides[-1] and model.fields.any() else 0
    return (0 if follow else model.couplings.nbytes) + fields + model.sites * model.samples


def _is_drawn(model: Ising) -> bool:
    """True if the couplings of all samples follow from their seed, so that files omit them."""
    return model.drawn is not None and not model.graph.is_listed and model.drawn.samples == model.samples


def _rows(model: Ising, rows: npt.NDArray[Any], axis: str, long_name: str) -> Array:
    """Return rows by sample; equal rows, or a single repeated number, are broadcast without memory."""
    return Array(np.broadcast_to(rows, (model.samples, rows.shape[1])), ("sample", axis), long_name, ENERGY)


def _texts(labels: Labels) -> npt.NDArray[np.bytes_]:
    texts = [label_text(name).encode() for name in labels]
    if len(set(texts)) < len(texts):
        raise InputError("some labels cannot be told apart in a file: name sites by texts, numbers or tuples of them")
    longest = max(map(len, texts))
    require(float(_ROOM * len(texts) * longest), f"labels of {longest} characters", "give shorter ones")
    return np.array(texts, f"S{longest}")


def _labels(group: Record, sites: int) -> Labels:
    if "variables" in group.attributes:
        return ()
    if "labels" not in group:
        first = int(group.attributes.get("first_label", 0))
        return range(first, first + sites)
    return [label_in(text.decode("ascii", "replace")) for text in group["labels"].tolist()]


def best_in(arrays: Record | Mapping[str, Any], sites: int) -> tuple[npt.NDArray[np.float64], BestSpins]:
    """Return the lowest energies and states of a run, from its record or its state."""
    spins, bits = f"{BEST}/spins", f"{BEST}/bits"
    return arrays[f"{BEST}/energy"], arrays[spins] if spins in arrays else States(arrays[bits], sites)


def as_shown(states: BestSpins, model: Ising) -> BestSpins:
    """Return lowest states in the form of results: ``int8`` (samples, sites), or ``States`` for huge lattices."""
    return states if model.graph.is_huge else np.asarray(states)
