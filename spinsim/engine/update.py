"""Properties by which every update is chosen and its engines are made: an ``Update`` for each folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Final, NamedTuple

from spinsim.engine.dynamics import Dynamics
from spinsim.engine.protocols import Engine
from spinsim.model.hamiltonian import degrees_of_terms, most_units
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.packing import LANES, Packing, block_count
from spinsim.parallel.group import Group


class ModelSizes:
    """Sizes of a model, from which its update and its need of memory follow; computed when they are asked for."""

    def __init__(self, model: Ising) -> None:
        self._model = model
        self.sites, self.bonds, self.samples = model.sites, model.bonds, model.samples
        self.lattice, self.one_coupling, self.slices = model.lattice, model.one_coupling, model.graph.slices
        self.in_terms = model.terms is not None

    @property
    def largest_degree(self) -> int:
        return self._model.graph.largest_degree

    @property
    def one_magnitude(self) -> bool:
        return self._model.magnitude is not None

    @property
    def most_units(self) -> int | None:
        return None if self._model.field_changes and self._model.uniform_field != 0 else self._model.once(most_units)

    @property
    def one_field(self) -> bool:
        return self._model.uniform_field is not None

    @property
    def in_field(self) -> bool:
        return self._model.uniform_field != 0

    @property
    def degrees_of_terms(self) -> tuple[int, int] | None:
        return degrees_of_terms(self._model)


@dataclass(frozen=True)
class PlannedSizes:
    """The same sizes of a model on a lattice that is yet to be built."""

    lattice: Lattice  # with all of its bonds; of a model, if there is one
    samples: int
    one_magnitude: bool  # True if all couplings are +J or -J
    one_coupling: bool  # True if all couplings are equal
    one_field: bool = True  # True if all sites are in the same field
    slices: int = 1  # in time, 1 where there is no time
    in_field: bool = False
    in_terms: bool = False  # True if bonds belong to two terms
    degrees_of_terms: tuple[int, int] | None = None  # most bonds of a site of each of two terms of +J or -J
    # sum of |J| of a site's bonds and of its |h|, at most, in units (``Ising.units``); None without them, as for a
    # lattice's couplings of several sizes, which are updated one replica at a time
    most_units = None

    @property
    def sites(self) -> int:
        return self.lattice.sites

    @property
    def bonds(self) -> int:
        """Bonds of a configuration, at most: those of a periodic lattice."""
        return self.lattice.most_bonds

    @property
    def largest_degree(self) -> int:
        return self.lattice.cell.coordination


Sizes = ModelSizes | PlannedSizes


class Counters(NamedTuple):
    """Sizes of a run's fields of the random counter."""

    groups: int  # groups of spins that one call serves
    blocks: int  # blocks of replicas
    block_name: str = f"blocks of {LANES} replicas"  # what a block is, in words


class Slab(NamedTuple):
    """Part of a lattice that is cut along its last axis."""

    layers: range  # rows or, in three dimensions, planes, an even number from an even one on
    group: Group  # who has the slabs, in their order; the last one is before the first


class Busy(NamedTuple):
    """Replicas that keep a multiprocessor of a GPU busy."""

    group: int = LANES  # replicas that a thread block updates together
    most: int = 4  # groups of these that it is given of a lattice that it has for itself
    spins: int = 2**20  # from which on its rate hardly rises; lattices of which a group has more are shared by several


class Pace(NamedTuple):
    """Time that a GPU does without the host."""

    rate: float = 3000.0  # updates a nanosecond of an H200 that has enough to do, about
    in_one_call: bool = True  # True if many sweeps are asked for at once; else each is a call of its own, or several


BUSY: Final = Busy()
PACE: Final = Pace()


@dataclass(frozen=True)
class Update:
    """One way to hold spins and to attempt their flips, on every device."""

    packing: Packing  # its name
    # True if it can update so many replicas of each sample of a model, and should where later updates can too
    suits: Callable[[Sizes, int], bool]
    # memory of the host that a run of so many replicas takes at most: edges, couplings, adjacency, spins and what is
    # measured
    needed_bytes: Callable[[Sizes, int], int]
    counters: Callable[[Sizes, int], Counters]  # fields of the random counter of a run of so many replicas
    cpu: str  # ``module:function`` that makes an engine on the CPU; the module is imported when it is asked for one
    cuda: str  # likewise on a GPU
    # consecutive replicas of a sample that one device must have: those of a block of the random counter, which are
    # blocks of the second axis of a snapshot's spins
    together: int = LANES
    in_slabs: bool = False  # True if its engines can have a slab of a lattice; they then know nothing of ladders
    busy: Busy = BUSY  # how many replicas a GPU should have
    pace: Pace = PACE  # how long a GPU does without the host
    one_by_one: bool = False  # True if a CPU visits one replica after the other, so that few take less time than many

    def on_cpu(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None, *slab: Slab) -> Engine:
        engine: Engine = resolve_name(self.cpu)(model, replicas, dynamics, threads, *slab)
        return engine

    def on_cuda(self, model: Ising, replicas: int, dynamics: Dynamics, gpu: int, *slab: Slab) -> Engine:
        engine: Engine = resolve_name(self.cuda)(model, replicas, dynamics, gpu, *slab)
        return engine


def bytes_with_adjacency(sizes: Sizes, replicas: int, bytes_a_site: int) -> int:
    """Memory of a run that lists neighbours, with ``bytes_a_site`` for a site of 128 replicas."""
    edges, adjacency, couplings = 8 + 8, 16 + 16 + 16, 40
    measured = 96 * replicas  # seen: up to 84
    spins = sizes.sites * bytes_a_site * block_count(replicas)
    shared = sizes.bonds * (edges + adjacency) + sizes.sites * 64
    fields = 0 if sizes.one_field else 40 * sizes.sites
    return shared + sizes.samples * (sizes.bonds * couplings + fields + spins + measured)


def by_sites(sizes: Sizes, replicas: int) -> Counters:
    """The counters of a run in which each site has random numbers of its own for 128 replicas."""
    return Counters(sizes.sites, block_count(replicas))
