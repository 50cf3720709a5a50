"""Simulated annealing of one problem on the CPU, whole schedules in one compiled call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.engine.choosing import check_run, choose_packing, update_of
from spinsim.engine.dynamics import Dynamics, fill_start
from spinsim.engine.given import as_spins
from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.moves.metropolis.by_replica.cpu_sweep import anneal_packed, anneal_unpacked, begin
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.graph import adjacency, colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing

MOST_IN_MATRIX: Final = 2048  # sites up to which couplings may stand in a matrix, of 32 MB at most
SPARSEST: Final = 8  # at most so many times their mean number of bonds are sites whose couplings stand in a matrix
LANES_APART: Final = 32
"""Replicas of which no two share a column of lanes (packed/classes.py), so that threads may share them out."""
ATTEMPTS: Final = 8
"""Attempts that take as long as 128 spins of other updates, in whose words the worth of a thread is told."""
Quanta = npt.NDArray[np.int64]
_ALL_LANES: Final = packing.lane_masks(LANES)[0]


class Bonds(NamedTuple):
    """Twice the couplings of a model in units, sites in the order of their visits."""

    matrix: npt.NDArray[np.signedinteger]  # of all pairs, (sites, sites); empty where most would be 0
    # where the neighbours of each site begin, (sites + 1,); one number where there is a matrix
    start: npt.NDArray[np.int64]
    near: npt.NDArray[np.uint32]  # the neighbours
    doubled: npt.NDArray[np.signedinteger]  # 2 J of each


class ReplicaByReplica:
    """A problem of one sample as annealing needs it, whatever its replicas.

    Attributes:
        unit: In quanta, the largest of which all couplings and fields are multiples.
        fields: h in units, (sites,), in the order of visits.
        is_packed: True if it moves as the replica-packed update does, else as the unpacked one.
    """

    def __init__(self, model: Ising) -> None:
        colour = colouring(model.graph)
        self.is_packed = choose_packing(model) is Packing.REPLICA
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour = colour[self.order].astype(np.uint32)
        self.colours = int(colour.max()) + 1
        couplings, fields = model.integer_couplings(0), model.integer_fields(0)
        self.unit = max(1, int(np.gcd(np.gcd.reduce(couplings), np.gcd.reduce(fields))))
        doubled = 2 * couplings // self.unit
        width: type[np.signedinteger] = np.int32 if self._are_narrow(model, couplings, fields) else np.int64
        self.fields = (fields // self.unit)[self.order].astype(width)
        self.bonds = self._bonds(model, doubled.astype(width))

    def _are_narrow(self, model: Ising, couplings: Quanta, fields: Quanta) -> bool:
        """Return whether ``int32`` holds twice every local field, in units; rough bounds say so of most models."""
        sizes, limit = np.abs(couplings), 2**31
        if 2 * (int(sizes.sum()) + int(np.abs(fields).max())) // self.unit < limit:
            return True
        is_wide = 2 * int(sizes.max(initial=0)) // self.unit >= limit
        return not is_wide and 2 * model.largest_local_field // self.unit < limit

    def _bonds(self, model: Ising, doubled: npt.NDArray[np.signedinteger]) -> Bonds:
        sites, place = model.sites, np.argsort(self.order).astype(np.uint32)
        if sites <= MOST_IN_MATRIX and sites**2 <= SPARSEST * 2 * model.bonds:
            one, other = place.astype(np.intp)[model.graph.edges].T
            matrix = np.zeros((sites, sites), doubled.dtype)
            np.add.at(matrix.reshape(-1), one * sites + other, doubled)
            matrix += matrix.T
            return Bonds(matrix, np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, doubled.dtype))
        rows = adjacency(model.graph)
        degree = np.diff(rows.start)[self.order]
        start = np.concatenate([[0], np.cumsum(degree)])
        at = np.repeat(rows.start[self.order] - start[:-1], degree) + np.arange(start[-1])
        return Bonds(np.empty((0, 0), doubled.dtype), start, place[rows.neighbour[at]], doubled[rows.bond[at]])


def suits(model: Ising, replicas: int, sweeps: float) -> bool:
    """Return whether this takes less time than an engine that does so many sweeps at each temperature.

    The times are rough, from an EPYC with AVX-512 (docs/benchmarks/performance.md); no bit depends on them.
    """
    kind = choose_packing(model)
    if model.samples > 1 or kind not in (Packing.REPLICA, Packing.UNPACKED) or model.terms is not None:
        return False
    colours = model.once(ReplicaByReplica).colours
    sites, degree, blocks = model.sites, 2 * model.bonds / model.sites, packing.block_count(replicas)
    own = 8.0 * sites * replicas
    if kind is Packing.REPLICA:
        engine = 20_000 / sweeps + blocks * (500.0 * colours + (sites / 8 + colours / 2) * (150 + 12 * degree))
    elif update_of(model).one_by_one:
        own *= 1 + sites / 256
        engine = 40_000 / sweeps + 11.5 * sites * replicas
    else:
        engine = 40_000 / sweeps + sites * (100 * blocks + 1.4 * replicas)
    return own <= engine


class Annealer:
    """Replicas of a problem of one sample that go through inverse temperatures, with the lowest state of each.

    Args:
        start: Initial configurations as ``create_engine`` takes them; None for those of the dynamics.

    Raises:
        InputError: for a run that does not fit its memory or random counters, and a start that does not fit the model.
    """

    device_name, devices = "cpu", 1

    def __init__(
        self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None,
        start: npt.ArrayLike | None = None,
    ) -> None:  # fmt: skip
        check_run(model, replicas, 0, 1)
        self.model, self.replicas, self._dynamics, self._threads = model, replicas, dynamics, Threads(threads)
        self._plan = plan = model.once(ReplicaByReplica)
        self.colours, self.half_sweep = plan.colours, 0
        require((4 * plan.fields.itemsize + 4) * replicas * model.sites, f"{replicas} replicas of {model.sites} sites")
        self._spins = np.empty((replicas, model.sites), np.int8)
        if start is None:
            self._begin_as_stated()
        else:
            self._spins[:] = as_spins(start, model, replicas)[0][:, plan.order]
        self._local = np.empty((replicas, model.sites), plan.fields.dtype)
        self._energy = np.empty(replicas, np.int64)
        self._best_energy, self._best_spins = np.full(replicas, np.iinfo(np.int64).max), np.empty_like(self._spins)
        begin(self._spins, plan.fields, plan.bonds, self._local, self._energy)
        self._parts = self._shared_out()

    def _begin_as_stated(self) -> None:
        sites = self.model.sites
        for first in range(0, self.replicas, LANES):
            words, lanes = np.empty((sites, 2), np.uint64), min(LANES, self.replicas - first)
            fill_start(words, _ALL_LANES, self._dynamics, 0, first // LANES)
            up = np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=1, count=lanes, bitorder="little")
            self._spins[first : first + lanes] = 2 * up.view(np.int8)[self._plan.order].T - 1

    def _shared_out(self) -> list[tuple[int, int]]:
        """Return first and last plus one of the replicas of each task."""
        apart = not self._plan.is_packed or self.replicas <= LANES_APART
        size = min(LANES, -(-self.replicas // (WORDS * self._threads.count)) * WORDS) if apart else LANES
        ends = {*range(0, self.replicas, size), *range(0, self.replicas, LANES), self.replicas}
        cuts = sorted(ends)
        return list(pairwise(cuts))

    def anneal(
        self, betas: npt.NDArray[np.float64], sweeps: npt.NDArray[np.int64], looks: npt.NDArray[np.bool_]
    ) -> None:
        """Sweep at each inverse temperature in turn, and look at the energies after those that ``looks`` marks."""
        attempts = int(sweeps.sum()) * self.model.sites * self.replicas
        tasks: list[Callable[[], None]] = [
            partial(self._anneal_part, betas, sweeps, looks, *ends) for ends in self._parts
        ]
        self._threads.run(tasks, attempts // ATTEMPTS)
        self.half_sweep += int(sweeps.sum()) * self.colours

    def _anneal_part(self, betas: Any, sweeps: Any, looks: Any, first: int, stop: int) -> None:
        plan, dynamics, mine = self._plan, self._dynamics, slice(first, stop)
        block, lane = divmod(first, LANES)
        scaled = betas * self.model.quantum
        (anneal_packed if plan.is_packed else anneal_unpacked)(
            (self._spins[mine], self._local[mine], self._energy[mine]),
            (self._best_energy[mine], self._best_spins[mine]), plan.bonds, (plan.order, plan.colour, plan.colours),
            plan.unit, scaled if plan.is_packed else 2.0 * scaled, sweeps, looks, dynamics.zero_acceptance,
            (dynamics.counter_block(0, block), lane), (*rng.split_seed(dynamics.seed), dynamics.rng_rounds),
            np.uint64(self.half_sweep),
        )  # fmt: skip

    def look(self) -> None:
        lower = self._energy < self._best_energy
        self._best_energy[lower], self._best_spins[lower] = self._energy[lower], self._spins[lower]

    def present(self) -> npt.NDArray[np.int8]:
        """Present configurations, +1 and -1, (replicas, sites)."""
        return self._in_order_of_sites(self._spins)

    def states(self) -> npt.NDArray[np.int8]:
        """Configurations of lowest energy where energies were looked at, +1 and -1, (replicas, sites)."""
        return self._in_order_of_sites(self._best_spins)

    def _in_order_of_sites(self, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        ordered = np.empty_like(spins)
        ordered[:, self._plan.order] = spins
        return ordered
