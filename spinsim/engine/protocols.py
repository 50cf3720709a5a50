"""Interface of an engine: to sweep, to count, to temper, to measure a ladder, to save; and what these return."""

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

Spins = Callable[[int, int], npt.NDArray[np.int8]]  # the configuration (sites,) of a sample and replica
Configurations = npt.NDArray[np.int8] | States  # a configuration of each sample, (samples, sites)


class LadderMeasurement(NamedTuple):
    """Measurements of every copy at every temperature of a ladder."""

    energy: npt.NDArray[np.float64]  # totals in the unit of the couplings, ``float64`` (samples, copies, temperatures)
    magnetization: npt.NDArray[np.int64]  # sums of spins, ``int64``, likewise
    # those over the first sublattice less those over the second, likewise; 0 where the model is not bipartite
    staggered_magnetization: npt.NDArray[np.int64]
    holder: npt.NDArray[np.int32]  # replica at each temperature, ``int32``, likewise
    exchange: Exchange  # state of the exchange
    correlations: Correlations  # of copies at equal temperatures; of overlaps alone, links have no pairs, modes no axes
    spins: Spins  # configurations at this moment, whatever comes later
    energy_by_term: npt.NDArray[np.float64]  # of each term, (samples, copies, temperatures, 1 or 2)

    @property
    def replica_energy(self) -> npt.NDArray[np.float64]:
        """The energies in the order of replicas, (samples, replicas)."""
        samples = len(self.energy)
        ordered = np.empty((samples, self.energy[0].size))
        np.put_along_axis(ordered, self.holder.reshape(samples, -1), self.energy.reshape(samples, -1), axis=1)
        return ordered


Begun = Callable[[], LadderMeasurement] | None
"""Waits for a measurement; None for one that is added up and read nowhere."""


class LowestStates(NamedTuple):
    """The lowest states that measurements have met."""

    energy: npt.NDArray[np.float64]  # lowest of each replica, (samples, replicas); infinite before any
    # finds the configuration of lowest energy of a sample, int8 (sites,), the first met among equals. It is called
    # before the next measurement.
    spins: Callable[[int], npt.NDArray[np.int8]]
    changed: npt.NDArray[np.int64]  # samples with a lower one since lowest states were last asked for


class Reduction(Protocol):
    """Adds measurements of a ladder up where they are made, to the arrays of ``Reduced.arrays``.

    The engine that has made it adds measurements to it; those that are not ``fetched`` are seen nowhere else.
    """

    reduced: Reduced
    measurements: int  # how many have been added, or asked to be

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name; the same arrays on every device."""

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to arrays that ``state`` returned."""

    def lowest(self) -> LowestStates:
        """Return the lowest states of the measurements that have been asked for."""

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        """Go back to lowest energies (samples, replicas) and the configuration of each sample.

        A sample's configuration is kept until a measurement finds a lower one.
        """


class LocalSquares(Protocol):
    """Adds up (sum over slices of the spin)^2 of each site of space, replicas sorted by copy and place of a ladder."""

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Add a measurement: its configurations and the replica at each place, (samples, copies, places)."""

    def sums(self) -> npt.NDArray[np.int64]:
        """The sums so far, (samples, copies, places, sites of space)."""

    def set_sums(self, sums: npt.NDArray[np.int64]) -> None:
        """Go back to such sums."""


class Engine(Protocol):
    """Replicas of every sample of one model, in packed form on devices of one kind."""

    model: Ising
    replicas: int  # configurations of each sample
    packing: Packing  # how spins lie in memory: the name of the update
    device_name: str  # where it runs
    devices: int  # how many of these there are
    colours: int  # half-sweeps in a sweep
    half_sweep: int  # half-sweeps done
    tasks: int  # parts that run side by side

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,).

        An update of two terms takes one for each term of each replica too, (1 or replicas, 2).
        """

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    def wait(self) -> None:
        """Return when all sweeps asked for are done."""

    def part_rates(self) -> list[float]:
        """Updates/ns of each part while it worked, where several share out the replicas; else nothing."""
        return []

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them.

        Sweeps asked for meanwhile neither disturb them nor wait for them.
        """

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        return self.begin_counts()()

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""

    def bits(self, sample: int, replica: int) -> Bits:
        """One configuration as ``spinsim.packing`` says, shape (bytes,)."""

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        """Give each replica the configuration of its parent, (samples, replicas), who must keep its own."""

    def apply(self, move: Move, moment: Moment) -> None:
        """Apply a move to all replicas, whose ladder and random numbers go on as they were (``moves/move.py``).

        Raises:
            InputError: where the move has no room, and for one that leaves anything but +1 and -1.
        """

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, which ``set_beta`` takes away again."""

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state of the exchange; the function returned waits for it."""

    @property
    def at_once(self) -> int:
        """Measurements that are best made by one call of ``temper_measured``, of the present ladder."""

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        """Refuse measurements of the present ladder that have no room, where ``kept`` of them are there at a time."""

    def begin_measurement(
        self, wanted: Quantities = WITHOUT_TIMES, reduction: Reduction | None = None, fetched: bool = True
    ) -> Begun:
        """Ask for what is measured of every copy at every temperature; the function returned waits for it.

        Sweeps asked for meanwhile neither disturb it nor wait for it. A reduction of this engine adds it up, and None
        is returned unless it is ``fetched`` too.
        """
        return self.temper_measured(1, 0, 0, wanted, reduction, [fetched])[0]

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        """``count`` times: ``temper``, then ``begin_measurement``, each with its own of ``fetched``."""

    def temper_together(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None,
    ) -> Begun:  # fmt: skip
        """Do what ``temper_measured`` does, of a small problem, with all measurements in arrays (count, samples, ...).

        Spins and exchange are those of the last. None, with nothing done, where each is made by itself.
        """
        return None

    def reduction(self, reduced: Reduced) -> Reduction:
        """Make what adds measurements of the present ladder up, where that is fastest.

        Raises:
            InputError: where there is no room for the sums.
        """

    def local_squares(self) -> LocalSquares:
        """Make what adds up squares along world lines over measurements of the present ladder.

        Raises:
            InputError: where there is no room for the sums.
        """

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs, of fixed shapes; the same arrays on every device."""

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot`` of an engine made in the same way; with its ladder, where one had been set."""


class KeepsPlaces(Protocol):
    """Keeps replicas at places of a ladder whose exchanges are made elsewhere, where others have replicas of it too."""

    temperatures: tuple[int, ...]  # as those of ``CpuParts``

    def adopt_ladder(self, ladder: Ladder) -> None:
        """Make ready for places on a ladder, however many replicas it has."""

    def begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        """Sweep ``count`` times at places (samples, replicas) of the ladder that was taken, and ask what is counted."""


@dataclass(eq=False)
class KeptSpins:
    """Configurations of one moment, whatever comes later, or of the present, with ways to read them as bits."""

    read: Spins
    bits: Callable[[int], Bits] | None = None  # finds those of all replicas of a sample; None: one by one is as fast
    one: Callable[[int, int], Bits] | None = None  # finds the one of a sample and replica; None: from its spins
    copied: Callable[[int, int], Callable[[], Bits]] | None = None
    """Copies one where it lies, such as on a GPU, and returns what reads the copy later; None: read at once."""

    def __call__(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self.read(sample, replica)


def room_like(present: npt.NDArray[Any]) -> tuple[Callable[[slice], None], npt.NDArray[Any]]:
    """Return a function that copies some samples of a state, and the array that it copies them to."""
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
    assert begun is not None  # noqa: S101  (nothing else adds it up)
    return begun()
