"""Interface of an engine (sweeping, counting, tempering, measuring a ladder, saving) and the types of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Correlations, Quantities
from spinsim.engine.measuring.reduction import Reduced
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import Exchange, Ladder
from spinsim.engine.moves.move import Moment, Move
from spinsim.model.ising import Ising
from spinsim.packing import Bits, Packing, States, packed_spins

Spins = Callable[[int, int], npt.NDArray[np.int8]]  # finds the configuration (sites,) of a sample and replica
Configurations = npt.NDArray[np.int8] | States  # one configuration per sample, (samples, sites)


class LadderMeasurement(NamedTuple):
    """Measurements of every copy at every temperature of a ladder."""

    energy: npt.NDArray[np.float64]  # totals in units of the couplings, ``float64`` (samples, copies, temperatures)
    magnetization: npt.NDArray[np.int64]  # sums of spins, ``int64``, same shape
    # sums over the first sublattice minus sums over the second, same shape; 0 if the model is not bipartite
    staggered_magnetization: npt.NDArray[np.int64]
    holder: npt.NDArray[np.int32]  # replica at each temperature, ``int32``, same shape
    exchange: Exchange  # state of the exchange
    correlations: Correlations  # of copies at equal temperatures; if only overlaps, links have no pairs, modes no axes
    spins: Spins  # finds configurations of this moment, whatever comes later
    energy_by_term: npt.NDArray[np.float64]  # energy of each term, (samples, copies, temperatures, 1 or 2)

    @property
    def replica_energy(self) -> npt.NDArray[np.float64]:
        """Energies in the order of replicas, (samples, replicas)."""
        samples = len(self.energy)
        ordered = np.empty((samples, self.energy[0].size))
        np.put_along_axis(ordered, self.holder.reshape(samples, -1), self.energy.reshape(samples, -1), axis=1)
        return ordered


Begun = Callable[[], LadderMeasurement] | None
"""Waits for a measurement; None for a measurement that is only added up."""


class LowestStates(NamedTuple):
    """Lowest states of all measurements so far."""

    energy: npt.NDArray[np.float64]  # lowest of each replica, (samples, replicas); infinite before any measurement
    # finds a sample's configuration of lowest energy, int8 (sites,), the first found among equals. It must be called
    # before the next measurement.
    spins: Callable[[int], npt.NDArray[np.int8]]
    changed: npt.NDArray[np.int64]  # samples with a lower state since the last call


class Reduction(Protocol):
    """Adds measurements of a ladder up where they are made, in the arrays of ``Reduced.arrays``.

    The engine that made it adds measurements to it. Measurements that are not ``fetched`` are available only through
    it.
    """

    reduced: Reduced
    measurements: int  # number of measurements added, or requested to be added

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name; they are the same on every device."""

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore arrays that ``state`` returned."""

    def lowest(self) -> LowestStates:
        """Return the lowest states of all requested measurements."""

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        """Restore lowest energies (samples, replicas) and the configuration of each sample.

        A sample's configuration is kept until a measurement finds a lower one.
        """


class LocalSquares(Protocol):
    """Adds up (sum over slices of the spin)^2 of each site of space, with replicas sorted by copy and ladder place."""

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Add a measurement: its configurations, and the replica at each place, (samples, copies, places)."""

    def sums(self) -> npt.NDArray[np.int64]:
        """Return the sums so far, (samples, copies, places, sites of space)."""

    def set_sums(self, sums: npt.NDArray[np.int64]) -> None:
        """Restore such sums."""


class Engine(Protocol):
    """Replicas of every sample of one model, in packed form on devices of one kind."""

    model: Ising
    replicas: int  # configurations per sample
    packing: Packing  # layout of spins in memory, which names the update
    device_name: str  # device it runs on
    devices: int  # number of devices
    colours: int  # half-sweeps in a sweep
    half_sweep: int  # half-sweeps done
    tasks: int  # parts that run side by side

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number, or one per replica (replicas,).

        An update of two terms also accepts one for each term of each replica, (1 or replicas, 2).
        """

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    def wait(self) -> None:
        """Wait until all requested sweeps are done."""

    def part_rates(self) -> list[float]:
        """Updates/ns of each part during its work, if several parts share the replicas; else an empty list."""
        return []

    def begin_counts(self) -> Callable[[], Counts]:
        """Request the present energies and magnetisations; the returned function waits for them.

        Sweeps requested meanwhile neither disturb them nor wait for them.
        """

    def counts(self) -> Counts:
        """Return the energy and magnetisation of every replica."""
        return self.begin_counts()()

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """Return one configuration, shape (sites,), +1 or -1."""

    def bits(self, sample: int, replica: int) -> Bits:
        """Return one configuration as bits (``spinsim.packing``), shape (bytes,)."""

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        """Give each replica the configuration of its parent, (samples, replicas); a parent must be its own parent."""

    def apply(self, move: Move, moment: Moment) -> None:
        """Apply a move to all replicas; ladder and random numbers continue unchanged (``moves/move.py``).

        Raises:
            InputError: if the move does not fit in memory, or leaves values other than +1 and -1.
        """

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, which ``set_beta`` removes again."""

    def temper(self, rounds: int, sweeps: int) -> None:
        """Do ``rounds`` times: ``sweeps`` sweeps, then one attempt to exchange neighbouring temperatures."""

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Request the present state of the exchange; the returned function waits for it."""

    @property
    def at_once(self) -> int:
        """Number of measurements best made by one call of ``temper_measured`` on the present ladder."""

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        """Refuse measurements of the present ladder that do not fit, if ``kept`` of them exist at a time."""

    def begin_measurement(
        self, wanted: Quantities = WITHOUT_TIMES, reduction: Reduction | None = None, fetched: bool = True
    ) -> Begun:
        """Request a measurement of every copy at every temperature; the returned function waits for it.

        Sweeps requested meanwhile neither disturb it nor wait for it. A reduction of this engine adds it up; None is
        then returned unless it is also ``fetched``.
        """
        return self.temper_measured(1, 0, 0, wanted, reduction, [fetched])[0]

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        """Do ``count`` times: ``temper``, then ``begin_measurement`` with its entry of ``fetched``."""

    def temper_together(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None,
    ) -> Begun:  # fmt: skip
        """Do ``temper_measured`` for a small problem, with all measurements in arrays (count, samples, ...).

        Spins and exchange belong to the last measurement. If measurements are made one by one, do nothing and return
        None.
        """
        return None

    def reduction(self, reduced: Reduced) -> Reduction:
        """Make a reduction, which adds up measurements of the present ladder where this is fastest.

        Raises:
            InputError: if the sums do not fit in memory.
        """

    def local_squares(self) -> LocalSquares:
        """Make an object that adds up squares along world lines over measurements of the present ladder.

        Raises:
            InputError: if the sums do not fit in memory.
        """

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return all data for a later ``restore``, of fixed shapes; the arrays are the same on every device."""

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Restore a ``snapshot`` of an engine made in the same way, including the ladder if one had been set."""


class KeepsPlaces(Protocol):
    """Keeps replicas at places of a ladder that is shared with other engines and whose exchanges are made elsewhere."""

    temperatures: tuple[int, ...]  # as in ``CpuParts``

    def adopt_ladder(self, ladder: Ladder) -> None:
        """Prepare places on a ladder with any number of replicas."""

    def begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        """Sweep ``count`` times at places (samples, replicas) of the adopted ladder, and request counts."""


@dataclass(eq=False)
class KeptSpins:
    """Configurations of one moment, or of the present, with functions that read them as bits."""

    read: Spins
    bits: Callable[[int], Bits] | None = None  # finds the bits of a sample's replicas; None: one by one is as fast
    one: Callable[[int, int], Bits] | None = None  # finds the bits of one sample and replica; None: from its spins
    copied: Callable[[int, int], Callable[[], Bits]] | None = None
    """Copies one configuration in place, such as on a GPU, and returns a function to read it; None: read at once."""

    def __call__(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self.read(sample, replica)


def room_like(present: npt.NDArray[Any]) -> tuple[Callable[[slice], None], npt.NDArray[Any]]:
    """Return a function that copies some samples of a state, and the array that receives the copies."""
    kept = np.empty_like(present)

    def copy(samples: slice) -> None:
        kept[samples] = present[samples]

    return copy, kept


def bits_of_one(spins: Spins, sample: int, replica: int) -> Bits:
    if isinstance(spins, KeptSpins) and spins.one is not None:
        return spins.one(sample, replica)
    return packed_spins(spins(sample, replica))


def bits_of(spins: Spins, sample: int, replicas: int) -> Bits:
    """Return the configurations of all replicas of a sample as bits, (replicas, bytes)."""
    if isinstance(spins, KeptSpins) and spins.bits is not None:
        return spins.bits(sample)
    return np.stack([bits_of_one(spins, sample, r) for r in range(replicas)])


def present_measurement(engine: Engine, wanted: Quantities = WITHOUT_TIMES) -> LadderMeasurement:
    begun = engine.begin_measurement(wanted)
    assert begun is not None  # noqa: S101  (no reduction adds it up)
    return begun()
