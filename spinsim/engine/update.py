"""Properties that determine the choice of an update and the making of its engines: one ``Update`` per folder."""

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
    """Sizes of a model, which determine its update and its need of memory; computed on demand."""

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
    """Sizes of a model on a lattice that is not built yet."""

    lattice: Lattice  # with all of its bonds; the model's lattice, if it has one
    samples: int
    one_magnitude: bool  # True if all couplings are +J or -J
    one_coupling: bool  # True if all couplings are equal
    one_field: bool = True  # True if all sites are in the same field
    slices: int = 1  # slices in time, 1 without time
    in_field: bool = False
    in_terms: bool = False  # True if bonds belong to two terms
    degrees_of_terms: tuple[int, int] | None = None  # most bonds of a site in each of two terms of +J or -J
    # most units (``Ising.units``) of a site: sum of |J| of its bonds and of |h|. None without units, as for a lattice's
    # couplings of several sizes, which are updated one replica at a time
    most_units = None

    @property
    def sites(self) -> int:
        return self.lattice.sites

    @property
    def bonds(self) -> int:
        """Most bonds of a configuration: all bonds of a periodic lattice."""
        return self.lattice.most_bonds

    @property
    def largest_degree(self) -> int:
        return self.lattice.cell.coordination


Sizes = ModelSizes | PlannedSizes


class Counters(NamedTuple):
    """Sizes of a run's fields in the random counter."""

    groups: int  # groups of spins, each served by one call
    blocks: int  # blocks of replicas
    block_name: str = f"blocks of {LANES} replicas"  # name of a block, in words


class Slab(NamedTuple):
    """Part of a lattice that is cut along its last axis."""

    layers: range  # rows or, in three dimensions, planes: an even number, from an even one on
    group: Group  # members with slabs, in order; the last one precedes the first


class Busy(NamedTuple):
    """Number of replicas that keeps a multiprocessor of a GPU busy."""

    group: int = LANES  # replicas that a thread block updates together
    most: int = 4  # groups that it gets of a lattice that it does not share
    spins: int = 2**20  # spins above which its rate hardly rises; lattices with more spins in a group are shared


class Pace(NamedTuple):
    """Time that a GPU works without the host."""

    rate: float = 3000.0  # approximate updates per nanosecond of a busy H200
    in_one_call: bool = True  # True if many sweeps are requested at once; else each sweep is one call or several


BUSY: Final = Busy()
PACE: Final = Pace()


@dataclass(frozen=True)
class Update:
    """One way to store spins and to attempt their flips, on every device."""

    packing: Packing  # its name
    # True if it supports a model with this number of replicas per sample, and is preferable to later updates
    suits: Callable[[Sizes, int], bool]
    # most host memory of a run with this number of replicas: edges, couplings, adjacency, spins and measurements
    needed_bytes: Callable[[Sizes, int], int]
    counters: Callable[[Sizes, int], Counters]  # fields of the random counter for this number of replicas
    cpu: str  # ``module:function`` that makes an engine on the CPU; the module is imported on demand
    cuda: str  # the same for a GPU
    # consecutive replicas of a sample that must be on one device: a block of the random counter, which is a block of
    # the second axis of a snapshot's spins
    together: int = LANES
    in_slabs: bool = False  # True if its engines can have a slab of a lattice; they then have no ladders
    busy: Busy = BUSY  # replicas that a GPU should have
    pace: Pace = PACE  # time that a GPU works without the host
    one_by_one: bool = False  # True if a CPU visits replicas one by one, so that few take less time than many

    def on_cpu(self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None, *slab: Slab) -> Engine:
        engine: Engine = resolve_name(self.cpu)(model, replicas, dynamics, threads, *slab)
        return engine

    def on_cuda(self, model: Ising, replicas: int, dynamics: Dynamics, gpu: int, *slab: Slab) -> Engine:
        engine: Engine = resolve_name(self.cuda)(model, replicas, dynamics, gpu, *slab)
        return engine


def bytes_with_adjacency(sizes: Sizes, replicas: int, bytes_a_site: int) -> int:
    """Memory of a run that lists neighbours, with ``bytes_a_site`` for a site of 128 replicas."""
    edges, adjacency, couplings = 8 + 8, 16 + 16 + 16, 40
    measured = 96 * replicas  # observed: up to 84
    spins = sizes.sites * bytes_a_site * block_count(replicas)
    shared = sizes.bonds * (edges + adjacency) + sizes.sites * 64
    fields = 0 if sizes.one_field else 40 * sizes.sites
    return shared + sizes.samples * (sizes.bonds * couplings + fields + spins + measured)


def by_sites(sizes: Sizes, replicas: int) -> Counters:
    """Counters of a run in which each site has its own random numbers for 128 replicas."""
    return Counters(sizes.sites, block_count(replicas))
