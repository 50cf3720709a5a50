"""Update of dense models, with stored local fields: the models that it suits, its matrix of couplings, its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from spinsim.cuda.compile import instance, parameters
from spinsim.cuda.launch import Launch
from spinsim.engine.moves.metropolis.unpacked import UPDATE as UNPACKED
from spinsim.engine.moves.metropolis.unpacked import needed_bytes as unpacked_bytes
from spinsim.engine.update import Busy, Pace, Sizes, Update, by_sites
from spinsim.model.graph import MOST_KEPT, Graph, add_to_matrix, colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count

SITES: Final = 64  # sites of a block of the sweep on a GPU


class DensePlan:
    """Run of a dense model; its matrices have the sites in the order of their visits.

    Attributes:
        order: Sites, colour by colour, in the order of the unpacked update.
        colour: Colour of each site in ``order``.
        colours: Half-sweeps in a sweep: nearly as many as sites.
        double_couplings: 2 J in quanta, (1 or samples, sites, sites), symmetric with zeros on the diagonal, in the
            narrowest of int16, int32 and int64 that holds local fields and their changes.
        fields: h in quanta, int64 (1 or samples, sites).
        all_down: Local fields if all spins are -1, (1 or samples, sites), of the type of the couplings.
    """

    def __init__(self, model: Ising) -> None:
        colour = colouring(model.graph)
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour = colour[self.order].astype(np.uint32)
        self.colours = int(colour.max()) + 1
        place = np.argsort(self.order)
        width = next(t for t in (np.int16, np.int32, np.int64) if 2 * model.largest_local_field <= np.iinfo(t).max)
        sites, samples = model.sites, max(len(model.couplings), len(model.fields))
        self.double_couplings = np.zeros((len(model.couplings), sites, sites), width)
        for k, matrix in enumerate(self.double_couplings):
            add_to_matrix(model.graph, 2 * model.integer_couplings(k), place, matrix)
        self.fields = np.stack([model.integer_fields(k)[self.order] for k in range(len(model.fields))])
        self.all_down = np.empty((samples, sites), width)
        for k, row in enumerate(self.all_down):
            couplings = self.double_couplings[k % len(self.double_couplings)]
            row[:] = self.fields[k % len(self.fields)] - couplings.sum(axis=1, dtype=np.int64) // 2


_FORMS: Final = WeakKeyDictionary[Graph, tuple[Any, Any, dict[Any, Any]]]()
Form = TypeVar("Form")


def form_of(model: Ising, make: Callable[[Ising], Form]) -> Form:
    """Return ``make(model)``, made once for the couplings and fields of a graph where nobody can change these.

    The anneals of a search have engines of their own, and groups of copies are samples of one problem: all of them have
    the same arrays, of which making another form may take longer than a sweep. Other arrays are those of large models,
    whose forms take much memory, and copies of rows, such as those of several samples in groups.
    """
    arrays = model.couplings, model.fields
    if any(array.flags.writeable or array.size > 2 * MOST_KEPT for array in arrays):
        return model.once(make)
    couplings, fields, made = _FORMS.get(model.graph, (None, None, {}))
    if couplings is not arrays[0] or fields is not arrays[1]:
        made = {}
        _FORMS[model.graph] = *arrays, made
    if make not in made:
        made[make] = make(model)
    found: Form = made[make]
    return found


DRAW_BYTES: Final = 80  # bytes of shared memory for the random-number data of all warps


@dataclass(frozen=True)
class Program:
    """Kernels that sweep and that add energies, and the couplings that they read."""

    name: str  # name of the file in kernels/metropolis/, and suffix of its kernels after ``sweep_`` and ``energies_``
    kind: tuple[object, ...]  # template parameters of both
    group: int  # replicas of a thread block
    cluster: int  # thread blocks per cluster
    threads: int  # threads of a thread block
    shared: int  # bytes of its shared memory
    arguments: dict[str, Any]  # arguments that describe the model; each kernel takes its own

    def launch(self, device: int, kernel: str, more: tuple[object, ...], arguments: dict[str, Any]) -> Launch:
        """Return the kernel ``sweep`` or ``energies``, with ``more`` template parameters and its arguments."""
        file, expression = f"metropolis/dense_{self.name}.cu", instance(f"{kernel}_{self.name}", *self.kind, *more)
        given, names = self.arguments | arguments, parameters(file, expression)
        return Launch(device, file, expression, {name: given[name] for name in names}, self.shared)


def stride(rows: Any, length: int) -> np.uint64:
    """Distance from one sample's row to the next; 0 if samples share one row."""
    return np.uint64(length if len(rows) > 1 else 0)


LEAST_DEGREE: Final = 128  # least bonds of a site for which stored fields are faster than sums over neighbours

SPARSEST: Final = 8
"""Most sites, as a multiple of a site's mean number of bonds, so that the matrix of couplings has few zeros."""

LEAST_ON_CPU: Final = 40
SPARSEST_ON_CPU: Final = 2
"""The same limit if only the CPU stores fields, for models that only the unpacked update takes."""


def suits(sizes: Sizes, _: int) -> bool:
    """Return True for a dense model: a graph with bonds between a large part of all pairs."""
    return _is_dense(sizes, LEAST_DEGREE, SPARSEST)


def suits_on_cpu(sizes: Sizes, _: int) -> bool:
    """Return True for a small and dense model, for which stored fields are faster on a CPU only."""
    return _is_dense(sizes, LEAST_ON_CPU, SPARSEST_ON_CPU)


def _is_dense(sizes: Sizes, least_degree: int, sparsest: int) -> bool:
    degrees = 2 * sizes.bonds
    dense = least_degree * sizes.sites <= degrees and sizes.sites**2 <= sparsest * degrees
    return dense and sizes.lattice is None and sizes.slices == 1 and not sizes.in_terms


def needed_bytes(sizes: Sizes, replicas: int) -> int:
    most = 8  # bytes of a coupling or local field
    making = 3 * most * sizes.sites**2
    matrices = sizes.samples * sizes.sites * (most * sizes.sites + 512)  # rows are padded to whole tiles
    fields = most * sizes.samples * sizes.sites * LANES * block_count(replicas)
    return unpacked_bytes(sizes, replicas) + making + matrices + fields


ENGINE_ON_CPU: Final = f"{__name__}_cpu:engine"
UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, ENGINE_ON_CPU, f"{__name__}_cuda:engine"),
    busy=Busy(group=16, most=1),
    pace=Pace(30),
    one_by_one=True,
)
"""Update of dense models on every device."""

ON_CPU: Final = replace(UNPACKED, suits=suits_on_cpu, needed_bytes=needed_bytes, cpu=ENGINE_ON_CPU, one_by_one=True)
"""Update of small dense models, which are unpacked on a GPU."""
