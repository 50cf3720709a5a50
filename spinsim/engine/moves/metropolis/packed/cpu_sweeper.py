"""What the sweepers of words of replicas share on the CPU: acceptance tables of each lane, and sweeps of all blocks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.layouts.replica_packed.adders import ONE, ZERO
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.packed.classes import Limits, SomeClasses, Tables, empty_tables
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import LANES


@kernel
def lay_one_temperature(costs, beta, zero_acceptance, always, planes, thresholds):  # type: ignore[no-untyped-def]
    """``Tables`` (blocks, ...) for one temperature; returns the last class, of the cheapest first, with bits in planes.

    ``costs`` (table, class) are flip costs in quanta, ``beta`` is the inverse temperature times the quantum. The
    numbers are those of ``acceptance``; annealing asks for them so often that small models would wait for NumPy.
    """
    classes, last = costs.shape[1], 0
    for table in range(costs.shape[0]):
        for c in range(classes):
            cost, probability = costs[table, c], 1.0
            if cost == 0:
                probability = zero_acceptance
            elif cost > 0:
                mantissa, power = exp_reduced(-min(beta * np.float64(cost), LARGEST_EXPONENT))
                probability = math.ldexp(mantissa, int(power))
            sure, threshold = ZERO, ZERO
            if probability >= 1.0:
                sure = ~ZERO
            else:
                threshold = np.uint64(math.ldexp(probability, 64))
            always[:, table, c] = sure
            thresholds[:, table, c] = threshold
            in_planes = sure
            for plane in range(planes.shape[2]):
                word = ZERO - (threshold >> np.uint64(63 - plane) & ONE)
                planes[:, table, plane, c] = word
                in_planes |= word
            if in_planes != ZERO:
                last = max(last, classes - 1 - c)
    return last


@kernel
def lay_tables(place, used, certain, limits, always, planes, thresholds):  # type: ignore[no-untyped-def]
    """One sample's ``Tables`` for replicas at temperatures ``place`` (replicas,).

    ``certain`` and ``limits`` hold, for each table, class and temperature, whether a flip needs no random number and
    else its threshold. Sites look at the tables from ``used[0]`` to below ``used[1]``; others, and lanes past the last
    replica, are left as they are.
    """
    temperatures = limits.shape[2]
    for block in range(always.shape[0]):
        places = place[block * LANES : (block + 1) * LANES]
        lanes = np.zeros((2, temperatures), np.uint64)  # those at each temperature
        for lane in range(places.size):
            lanes[lane // 64, places[lane]] |= ONE << np.uint64(lane % 64)
        for table in range(used[0], used[1]):
            for c in range(limits.shape[1]):
                of_class, sure = limits[table, c], certain[table, c]
                of_lanes = thresholds[block, table, c]
                for lane in range(places.size):
                    of_lanes[lane] = of_class[np.uint32(places[lane])]  # an index without sign needs no check
                for half in range(2):
                    here = lanes[half]
                    word = ZERO
                    for t in range(temperatures):
                        word |= (ZERO - np.uint64(sure[t])) & here[t]
                    always[block, table, c, half] = word
                    for plane in range(planes.shape[2]):
                        word, shift = ZERO, np.uint64(63 - plane)
                        for t in range(temperatures):
                            word |= (ZERO - (of_class[t] >> shift & ONE)) & here[t]
                        planes[block, table, plane, c, half] = word


class TabledPlan(Protocol):
    """What acceptance tables follow from.

    Attributes:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they move.
        colours: Half-sweeps in a sweep.
        used_tables: The first of the tables that sites look at, and the last plus one.
    """

    model: Ising
    replicas: int
    dynamics: Dynamics
    colours: int
    used_tables: tuple[int, int]

    @property
    def classes(self) -> SomeClasses:
        """Flip classes."""

    def tables(self, beta: npt.ArrayLike) -> tuple[Tables, Limits]:
        """Acceptance tables for inverse temperatures as the update takes them, and what they follow from."""

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """Returns what decides flips at inverse temperatures of a ladder."""


AnyPlan = TypeVar("AnyPlan", bound=TabledPlan)


class TableSweeper(ABC, Generic[AnyPlan]):
    """A ``CpuSweeper`` of words of replicas.

    Args:
        plan: What devices share.
        blocks: The words.
        threads: Samples are tempered side by side.
    """

    def __init__(self, plan: AnyPlan, blocks: Blocks, threads: Threads) -> None:
        self.colours, self.tasks = plan.colours, blocks.count
        self._plan, self._blocks, self._threads = plan, blocks, threads
        self._key, self._rng_rounds = rng.split_seed(plan.dynamics.seed), plan.dynamics.rng_rounds
        self._tables: Tables | None = None
        self._limits: Limits | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each of two terms (replicas, 2)."""
        self._tables, limits = self._plan.tables(beta)
        self._limits = None
        self._look_at(limits)

    def set_ladder(self, ladder: Ladder) -> None:
        """Make room for tables of each sample."""
        self._limits = self._plan.limits(ladder.beta)
        self._tables = empty_tables(self._plan.classes, self._plan.model.samples, self._plan.replicas)
        self._look_at(self._limits)

    def _look_at(self, limits: Limits) -> None:
        """Take what else follows from what decides flips from now on."""

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""
        assert self._limits is not None  # noqa: S101  (there is a ladder)
        for k, row in enumerate(place):
            lay_tables(row, self._plan.used_tables, *self._limits, *self._tables_of(k))

    def _tables_of(self, sample: int) -> tuple[npt.NDArray[np.uint64], ...]:
        """Returns the tables of one sample, or those of all."""
        tables = self._tables
        assert tables is not None  # noqa: S101  (``sweep`` has looked)
        k = sample % len(tables.always)
        return tables.always[k], tables.planes[k], tables.thresholds[k]

    def sweep(self, count: int, half_sweep: int) -> None:
        """Attempt every spin ``count`` times, after so many half-sweeps."""
        if self._tables is None:
            raise InputError(NO_TEMPERATURE)
        self._blocks.sweep(self._sweep_part, count, half_sweep, self.colours)

    @abstractmethod
    def _sweep_part(
        self, count: int, half_sweep: int, colours: tuple[int, int], part: int, sample: int, block: int
    ) -> None:
        """Sweep a part of a block, as ``Blocks.sweep`` asks for it."""

    @abstractmethod
    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of sweeps and exchanges in one call, if that is faster than one by one; whether it did."""
