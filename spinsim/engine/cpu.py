"""Engine of the CPU, which carries out each request at once. It combines the parts that an update provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.given import apply_in_host_memory
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Quantities
from spinsim.engine.measuring.cpu import Compare, CpuMeasuring, HostSquares, Measurement, Succession, Successions
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.measuring.reduction import Reduced
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import (
    NO_LADDER,
    CpuTempering,
    Exchange,
    Ladder,
    Times,
    exchange_of,
    holders,
    snapshot_of,
)
from spinsim.engine.moves.move import FastPaths, Moment, Move
from spinsim.engine.moves.resample import Moves, moves_of
from spinsim.engine.protocols import Begun, Engine, Reduction, Spins
from spinsim.errors import InputError
from spinsim.inputs.arguments import as_stated
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import Bits, Packing, packed_spins

Words = npt.NDArray[np.uint64]
AT_ONCE: Final = 256  # most measurements that threads make without meeting
FEWER: Final = 16  # the same limit for problems that are not small
KEPT_BYTES: Final = 2**25  # most bytes of such measurements
SMALL_BYTES: Final = 2**21  # most bytes of measurements that are counted and compared together
_OF_COPY, _OF_PAIR = 10, 6  # approximate numbers per copy and per pair


class CpuState(Protocol):
    """Spins of all replicas of all samples."""

    nbytes: int  # bytes of the state that ``keep`` copies

    def words(self) -> Words:
        """Return the words of a snapshot."""

    def words_of(self, samples: slice) -> Words:
        """Return the words of some samples, for comparisons of their replicas."""

    def set_words(self, words: Words) -> None:
        """Restore the words of a snapshot."""

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """Return one configuration, shape (sites,), +1 or -1."""

    def copy(self, moves: Moves) -> None:
        """Copy configurations."""

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        """Make room for configurations; return functions that copy samples there and read a configuration."""


class CpuSweeper(ABC):
    """Attempts flips at the temperatures that have been set."""

    colours: int
    tasks: int  # parts that run side by side

    @abstractmethod
    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: one, or one per replica (replicas,), or for two terms (replicas, 2)."""

    def set_ladder(self, ladder: Ladder) -> None:  # noqa: B027  (not all have something to prepare)
        """Make room for the temperatures of each sample's replicas."""

    @abstractmethod
    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""

    @abstractmethod
    def sweep(self, count: int, half_sweep: int) -> None:
        """Attempt every spin ``count`` times; ``half_sweep`` half-sweeps have been done before."""

    def words_of_round(self, sweeps: int) -> int | None:
        """Words of 128 spins whose update takes as long as ``sweeps`` sweeps of all samples and an exchange.

        None if samples are not tempered independently, because threads meet in each round.
        """
        return None

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        """Do rounds of some samples, after ``half_sweep`` half-sweeps; ``tempering.round`` stays unchanged."""
        raise NotImplementedError

    def end_rounds(self, tempering: CpuTempering) -> None:
        """Prepare sweeps at the places where the rounds of all samples have left their replicas."""
        self.set_places(tempering.ladder, tempering.exchange.place)


# number of times that rounds are done, and the arrays into which the state and the exchanges are copied after each time
Kept = tuple[int, Words, Exchange]


def nothing_kept(state: Words, tempering: CpuTempering) -> Kept:
    return 1, state[:0], Exchange._make(array[:0] for array in tempering.exchange)


class KeptWords(NamedTuple):
    """Functions that keep states, and that count and read the kept states."""

    temper: Callable[[CpuTempering, Times, int, slice, Kept], None]  # does the rounds of all samples several times
    counts: Callable[[Words], Counts]  # takes words of all samples, for one or several consecutive states
    reading: Callable[[Words], Spins]  # takes words of all samples


class CpuParts(NamedTuple):
    """Functions and arrays that an update provides to an engine of the CPU."""

    packing: Packing  # name of the update
    state: CpuState
    sweeper: CpuSweeper  # moves the spins
    counts: Callable[[slice | None], Counts]  # counts all replicas of some samples; None: of all samples
    compare: Compare  # compares copies at equal temperatures
    threads: Threads  # threads shared by all parts
    # numbers of inverse temperatures per replica that the update accepts: one, one for each of two terms, or both. An
    # update that accepts only two uses a single one for both terms
    temperatures: tuple[int, ...] = (1,)
    # finds the configuration of a sample and replica as bits (``spinsim.packing``) without unpacking spins; else None
    bits: Callable[[int, int], Bits] | None = None
    kept: KeptWords | None = None  # for consecutive measurements of small problems


class CpuEngine(Engine):
    """An ``Engine`` on the CPU."""

    device_name, devices = "cpu", 1

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, parts: CpuParts) -> None:
        self.model, self.replicas, self.half_sweep = model, replicas, 0
        self.packing, self.colours, self.tasks = parts.packing, parts.sweeper.colours, parts.sweeper.tasks
        self._dynamics, self._state, self._sweeper, self._counts = dynamics, parts.state, parts.sweeper, parts.counts
        self._threads = parts.threads
        self._measuring = CpuMeasuring(model, parts.compare, parts.state.words_of, max(parts.temperatures))
        self.temperatures, self._bits, self._kept = parts.temperatures, parts.bits, parts.kept
        self._fast_paths = FastPaths("cpu", parts.packing, model, replicas, dynamics.first_sample, parts)
        self._has_temperatures = False
        self._tempering: CpuTempering | None = None
        self._unread = deque[Measurement](maxlen=1)
        self._fetched = deque[Measurement](maxlen=0)  # gets the number of kept measurements as its length, once known
        self._taken: Ladder | None = None
        self._successions = Successions(self._measuring)

    def set_beta(self, beta: npt.ArrayLike) -> None:
        self._sweeper.set_beta(beta)
        self._tempering, self._has_temperatures = None, True

    def sweep(self, count: int) -> None:
        count = as_stated("count", count, "int")
        if not self._has_temperatures:
            raise InputError(NO_TEMPERATURE)
        self._sweeper.sweep(count, self.half_sweep)
        self.half_sweep += count * self.colours

    def wait(self) -> None:
        """Return at once: sweeps return when they are done."""

    def begin_counts(self) -> Callable[[], Counts]:
        counts = self._counts(None)
        return lambda: counts

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._state.spins(sample, replica)

    def bits(self, sample: int, replica: int) -> Bits:
        return packed_spins(self.spins(sample, replica)) if self._bits is None else self._bits(sample, replica)

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        self._state.copy(moves_of(parent))

    def apply(self, move: Move, moment: Moment) -> None:
        fast_path, tempering = self._fast_paths.of(move), self._tempering
        if fast_path is None:
            apply_in_host_memory(self, move, moment, self._dynamics.first_sample)
        elif tempering is None:
            fast_path(moment, holders(np.zeros((self.model.samples, self.replicas), np.int32), self.replicas))
        else:
            fast_path(moment, holders(tempering.exchange.place, tempering.ladder.copies))

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        ladder = Ladder.of_engine(beta, copies, self.replicas, self.temperatures)
        self._tempering = CpuTempering(ladder, self.model, self._dynamics)
        self._fetched, self._successions = deque(maxlen=0), Successions(self._measuring)
        self._sweeper.set_ladder(ladder)
        self._sweeper.set_places(ladder, self._tempering.exchange.place)
        self._has_temperatures = True

    def adopt_ladder(self, ladder: Ladder) -> None:
        self._tempering, self._taken, self._has_temperatures = None, ladder, True
        self._sweeper.set_ladder(ladder)

    def begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        assert self._taken is not None  # noqa: S101  (set by ``adopt_ladder``)
        self._sweeper.set_places(self._taken, place)
        self.sweep(count)
        return self.begin_counts()

    def _on_ladder(self) -> CpuTempering:
        if self._tempering is None:
            raise InputError(NO_LADDER)
        return self._tempering

    def temper(self, rounds: int, sweeps: int) -> None:
        tempering, words = self._on_ladder(), self._sweeper.words_of_round(sweeps)
        if words is None:
            for _ in range(rounds):
                self.sweep(sweeps)
                tempering.attempt(self._counts(None))
                self._sweeper.set_places(tempering.ladder, tempering.exchange.place)
            return
        times, half_sweep = (tempering.round, rounds, sweeps), self.half_sweep

        def task(first: int, stop: int) -> None:
            self._sweeper.temper(tempering, times, half_sweep, slice(first, stop))

        self._threads.share_out(task, self.model.samples, rounds * words)
        self._end_rounds(rounds, sweeps)

    def _end_rounds(self, rounds: int, sweeps: int) -> None:
        tempering = self._on_ladder()
        tempering.round += rounds
        self.half_sweep += rounds * sweeps * self.colours
        self._sweeper.end_rounds(tempering)

    def begin_exchange(self) -> Callable[[], Exchange]:
        copy = self._on_ladder().exchange.copied()
        return lambda: copy

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        require(kept * self.at_once * self._state.nbytes, "keeping the configurations of measurements under way")
        self._fetched = deque(maxlen=kept * self.at_once)
        # A single kept measurement is read before the next ones are made. Otherwise any room may still be in use.
        self._successions = Successions(self._measuring, 1 if kept == 1 else kept * self.at_once)

    @property
    def at_once(self) -> int:
        """Measurements whose rounds form one task for each thread."""
        if self._tempering is None or self._sweeper.words_of_round(1) is None:
            return 1
        each = self._measured_bytes
        return max(1, min(AT_ONCE, max(FEWER, SMALL_BYTES // each), KEPT_BYTES // each))

    @property
    def _measured_bytes(self) -> int:
        """Approximate bytes of a measurement, with its configurations."""
        ladder = self._on_ladder().ladder
        of_copies, of_pairs = _OF_COPY * ladder.copies, _OF_PAIR * ladder.copies * (ladder.copies - 1) // 2
        return self._state.nbytes + 8 * self.model.samples * ladder.temperatures * (of_copies + of_pairs)

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        tempering, words = self._on_ladder(), self._sweeper.words_of_round(sweeps) if rounds else None
        if words is not None and self._are_small(count, count * rounds * words, wanted, reduction):
            are_fetched = [True] * count if reduction is None or fetched is None else fetched
            succession = self._in_succession(count, rounds, sweeps, wanted, reduction, any(are_fetched))
            return succession.fetched(are_fetched)
        rooms = [self._room(wanted, reduction, fetched is None or fetched[k]) for k in range(count)]
        number = 0 if reduction is None else reduction.measurements
        of_measuring = self._measuring.words(wanted, self.replicas)
        if words is None:
            for k, room in enumerate(rooms):
                if rounds:
                    self.temper(rounds, sweeps)
                self._measure_all(room, reduction, number + k, of_measuring)
            return self._measured(rooms, reduction)
        before, half_sweep = tempering.round, self.half_sweep

        def task(first: int, stop: int) -> None:
            mine = slice(first, stop)
            for k, room in enumerate(rooms):
                times = before + k * rounds, rounds, sweeps
                self._sweeper.temper(tempering, times, half_sweep + k * rounds * sweeps * self.colours, mine)
                self._measure(room, self._counts(mine), reduction, number + k, mine)

        self._threads.share_out(task, self.model.samples, count * (rounds * words + of_measuring))
        self._end_rounds(count * rounds, sweeps)
        return self._measured(rooms, reduction)

    def _are_small(self, count: int, words: int, wanted: Quantities, reduction: Reduction | None) -> bool:
        """Return True if kernel calls would take most of the time of ``count`` measurements."""
        is_plain = self.model.graph.slices == 1 and not wanted.times and self._kept is not None
        adds = reduction is None or (isinstance(reduction, HostReduction) and reduction.adds_successions)
        is_little = self._threads.alone(words, self.model.samples) and count * self._measured_bytes <= SMALL_BYTES
        return count > 1 and is_plain and adds and is_little

    def temper_together(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None,
    ) -> Begun:  # fmt: skip
        words = self._sweeper.words_of_round(sweeps) if rounds else None
        if words is None or not self._are_small(count, count * rounds * words, wanted, reduction):
            return None
        together = self._in_succession(count, rounds, sweeps, wanted, reduction, True).together
        return lambda: together

    def _in_succession(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities, reduction: Reduction | None, is_read: bool
    ) -> Succession:
        """Make consecutive measurements of all samples, then count, compare and add them up together."""
        assert self._kept is not None  # noqa: S101  (only for small problems)
        tempering, samples, whole = self._on_ladder(), self.model.samples, slice(0, self.model.samples)
        present, how = self._state.words_of(whole), (reduction is not None, is_read)
        succession = self._successions.room(tempering, wanted, count, present, self._kept.reading, *how)
        room, kept = succession.room, (count, succession.words, succession.room.measurement.exchange)
        self._kept.temper(tempering, (tempering.round, rounds, sweeps), self.half_sweep, whole, kept)
        counts = self._kept.counts(succession.words)
        self._measuring.measure(room, counts, slice(0, count * samples), succession.words)
        if isinstance(reduction, HostReduction):
            reduction.add_in_succession(room.measurement, room.compared, reduction.measurements)
            reduction.keep_lowest(counts.energy.reshape(count, samples, -1), succession.spins, whole)
            reduction.end(count)
        self._end_rounds(count * rounds, sweeps)
        return succession

    def _measure_all(self, room: Measurement, reduction: Reduction | None, number: int, words: int) -> None:
        """Measure all samples in their present state; the work is worth the update of ``words`` words."""
        counts = self._counts(None)

        def task(first: int, stop: int) -> None:
            mine = slice(first, stop)
            self._measure(room, counts.of(mine), reduction, number, mine)

        self._threads.share_out(task, self.model.samples, words)

    def _room(self, wanted: Quantities, reduction: Reduction | None, is_fetched: bool) -> Measurement:
        """Make room for a measurement. With a reduction, rooms are reused when their readers are done."""
        assert reduction is None or isinstance(reduction, HostReduction)  # noqa: S101  (CPU engines make this type)
        tempering, rooms = self._on_ladder(), self._fetched if is_fetched else self._unread
        if reduction is not None and rooms and not rooms[0].serves(tempering, wanted):
            rooms.clear()
        if reduction is not None and rooms and len(rooms) == rooms.maxlen:
            rooms.rotate(-1)
            return rooms[-1]
        keep, spins = self._state.keep() if is_fetched or reduction is None else (None, self.spins)
        room = self._measuring.begin(tempering.ladder, tempering.exchange, wanted, spins, keep)
        if reduction is not None:
            rooms.append(room)
        return room

    def _measure(
        self, room: Measurement, counts: Counts, reduction: Reduction | None, number: int, samples: slice
    ) -> None:
        """Measure some samples, given their ``counts``, and add the measurements to the reduction."""
        self._measuring.measure(room, counts, samples)
        if isinstance(reduction, HostReduction):
            reduction.add_samples(room.measurement, number, samples, room.compared)
            reduction.keep_lowest(counts.energy[None], lambda moment: self.spins, samples)

    @staticmethod
    def _measured(rooms: list[Measurement], reduction: Reduction | None) -> list[Begun]:
        if isinstance(reduction, HostReduction):
            reduction.end(len(rooms))
        return [room.later if room.is_fetched else None for room in rooms]

    def reduction(self, reduced: Reduced) -> HostReduction:
        return HostReduction(reduced, self._threads)

    def local_squares(self) -> HostSquares:
        return HostSquares(self.model, self._on_ladder().ladder)

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        tempering = self._tempering
        exchange, rounds = (None, 0) if tempering is None else (tempering.exchange, tempering.round)
        return snapshot_of(self._state.words(), self.half_sweep, rounds, exchange)

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._state.set_words(np.asarray(saved["spins"], np.uint64))
        self.half_sweep = int(saved["half_sweep"])
        if (tempering := self._tempering) is not None:
            tempering.exchange, tempering.round = exchange_of(saved), int(saved["round"])
            self._sweeper.set_places(tempering.ladder, tempering.exchange.place)
