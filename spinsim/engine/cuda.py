"""Engine of a GPU, which queues each request. It combines the parts that an update provides."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy, names
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import NO_TEMPERATURE
from spinsim.engine.given import apply_in_host_memory
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Quantities
from spinsim.engine.measuring.cpu import HostSquares
from spinsim.engine.measuring.cuda import CudaState, LadderMeasuring, Measurements, Measuring
from spinsim.engine.measuring.cuda_comparison import Comparison
from spinsim.engine.measuring.cuda_reduction import CudaReduction
from spinsim.engine.measuring.reduction import Reduced
from spinsim.engine.measuring.sums import Counts, CudaCounting
from spinsim.engine.moves.exchange import NO_LADDER, Exchange, Ladder, exchange_of, snapshot_of
from spinsim.engine.moves.exchange_cuda import CudaTempering, GivenPlaces, ReplicaPlaces
from spinsim.engine.moves.move import FastPaths, Moment, Move
from spinsim.engine.moves.resample import moves_of
from spinsim.engine.protocols import Begun, Engine, LocalSquares, Reduction
from spinsim.errors import InputError
from spinsim.inputs.arguments import as_stated
from spinsim.model.ising import Ising
from spinsim.packing import Bits, Packing, packed_spins

NO_NOTES: Final = 0, 0, 0


class LaunchedRounds(ABC):
    """Rounds of sweeps and exchanges in one launch, with measurements in between; lattices stay in place meanwhile.

    Args:
        tables: Acceptance tables of the replicas' places on the ladder, which sweeps read. Rounds do not update them;
            ``are_laid`` is True if they match the present places. None if there are no exchanges.
        counting: Receives the sums of the state at the end of a launch.
    """

    counts_in_sweeps = False  # True if sweeps count bonds: rounds without sweeps then go one by one

    def __init__(
        self, queue: Queue, colours: int, tempering: CudaTempering, tables: Any, counting: CudaCounting,
        most_sweeps: int,
    ) -> None:  # fmt: skip
        self._queue, self._colours = queue, colours
        self._tempering, self._tables, self._counting = tempering, tables, counting
        self._most_sweeps = most_sweeps

    def most(self, sweeps: int) -> int:
        """Most rounds of ``sweeps`` sweeps in one launch; 0 if each round needs its own launches."""
        return self._most_sweeps // max(1, sweeps) if sweeps or not self.counts_in_sweeps else 0

    def temper(self, rounds: int, sweeps: int, half_sweep: int) -> None:
        self._queue_rounds(rounds, sweeps, half_sweep, notes=NO_NOTES)

    def measured(
        self, rounds: int, sweeps: int, half_sweep: int, measuring: Measuring, into: Measurements, numbers: range
    ) -> None:
        """Queue one launch that does ``rounds`` rounds before each of the measurements ``numbers``."""
        notes = into.address(numbers.start), into.state_copies.address(numbers.start), rounds
        self._queue_rounds(len(numbers) * rounds, sweeps, half_sweep, notes=notes, measured=measuring.record)

    def _queue_rounds(self, rounds: int, sweeps: int, half_sweep: int, **notes: Any) -> None:
        half_sweeps = rounds * sweeps * self._colours
        self._start(
            rounds, half_sweeps, sums=self._counting.room(), first_half_sweep=half_sweep, sweeps=sweeps,
            first_round=self._tempering.round, rounds=rounds, **notes,
        )  # fmt: skip
        self._tempering.round += rounds
        self._counting.left_at(half_sweep + half_sweeps)
        if self._tables is not None:
            self._tables.are_laid = False

    @abstractmethod
    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch ``count`` rounds, ``half_sweeps`` half-sweeps in total, with the arguments of all round kernels."""


class CudaSweeper(ABC):
    """Attempts flips at the temperatures that have been set."""

    colours: int
    tasks: int
    rounds: LaunchedRounds | None = None  # many rounds in one launch on the present ladder, if possible

    @abstractmethod
    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: one, or one per replica (replicas,), or for two terms (replicas, 2)."""

    @abstractmethod
    def set_ladder(self, places: ReplicaPlaces) -> None:
        """Make room for the temperatures of each sample's replicas, and prepare launches."""

    @abstractmethod
    def lay_tables(self) -> None:
        """Queue the kernels that give replicas the temperatures of their places."""

    @abstractmethod
    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin; ``half_sweep`` half-sweeps have been queued before."""


class CudaParts(NamedTuple):
    """Functions and arrays that an update provides to an engine of a GPU."""

    packing: Packing  # name of the update
    queue: Queue  # where all parts queue their work
    state: CudaState
    sweeper: CudaSweeper  # moves the spins
    counting: CudaCounting
    compare: Callable[[CudaTempering, Quantities], Comparison]  # compares copies of a ladder, as fully as requested
    temperatures: tuple[int, ...] = (1,)  # as in ``CpuParts``
    squares: Callable[[Ladder], LocalSquares] | None = None  # sums along world lines; None: done on the host
    bits: Callable[[int, int], Bits] | None = None  # as in ``CpuParts``
    copied_bits: Callable[[int, int], Callable[[], Bits]] | None = None
    """Copies a configuration within GPU memory and returns a function to read the copy; None: small, read at once."""


class OnLadder(NamedTuple):
    """State of an engine while it is on a ladder."""

    tempering: CudaTempering  # exchanges of temperatures
    measuring: LadderMeasuring  # measurements of the ladder


class CudaEngine(Engine):
    """An ``Engine`` on one GPU."""

    devices = 1

    def __init__(self, model: Ising, replicas: int, parts: CudaParts) -> None:
        self.model, self.replicas, self.half_sweep = model, replicas, 0
        self.packing, self.colours, self.tasks = parts.packing, parts.sweeper.colours, parts.sweeper.tasks
        self.device_name = names()[parts.queue.device]
        self.parts, self._queue, self._state, self._sweeper = parts, parts.queue, parts.state, parts.sweeper
        self._counting, self._compare, self.temperatures = parts.counting, parts.compare, parts.temperatures
        self._squares = parts.squares or partial(HostSquares, model)
        self._has_temperatures = False
        self._ladder: OnLadder | None = None
        self._fast_paths = FastPaths("cuda", parts.packing, model, replicas, int(self._queue.first_sample), parts)
        self._given: GivenPlaces | None = None
        self._copies: Any = None
        weakref.finalize(self, self._queue.stream.synchronize).atexit = False  # before its memory is reused

    @property
    def at_once(self) -> int:
        return 1 if self._ladder is None else self._ladder.measuring.at_once

    def set_beta(self, beta: npt.ArrayLike) -> None:
        with self._queue.here():
            self._sweeper.set_beta(beta)
        self._ladder, self._has_temperatures = None, True

    def sweep(self, count: int) -> None:
        count = as_stated("count", count, "int")
        if not self._has_temperatures:
            raise InputError(NO_TEMPERATURE)
        with self._queue.here():
            self._sweeper.sweep(count, self.half_sweep)
        self.half_sweep += count * self.colours

    def wait(self) -> None:
        self._queue.stream.synchronize()

    def begin_counts(self) -> Callable[[], Counts]:
        with self._queue.here():
            return self._counting.begin(self.half_sweep)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        with self._queue.here():
            return self._state.read(self._state.present, sample, replica)

    def bits(self, sample: int, replica: int) -> Bits:
        if self.parts.bits is None:
            return packed_spins(self.spins(sample, replica))
        with self._queue.here():
            return self.parts.bits(sample, replica)

    def copied_bits(self, sample: int, replica: int) -> Callable[[], Bits]:
        """Copy a configuration (a large one within GPU memory) and return a function that reads the copy as bits."""
        if self.parts.copied_bits is None:
            bits = self.bits(sample, replica)
            return lambda: bits
        with self._queue.here():
            read = self.parts.copied_bits(sample, replica)

        def read_here() -> Bits:
            with self._queue.here():
                return read()

        return read_here

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        with self._queue.here():
            self._state.copy(moves_of(parent))
        self._counting.forget()

    def apply(self, move: Move, moment: Moment) -> None:
        with self._queue.here():
            fast_path, first_sample = self._fast_paths.of(move), int(self._queue.first_sample)
            if self._copies is None:  # with one temperature for all, each replica is a copy
                each = np.arange(self.replicas, dtype=np.int32)[:, None]
                self._copies = cupy.asarray(np.tile(each, (self.model.samples, 1, 1)))
            if fast_path is None:
                apply_in_host_memory(self, move, moment, first_sample)
            else:
                fast_path(moment, self._copies if self._ladder is None else self._ladder.tempering.holder)
        self._counting.forget()

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        queue, counting = self._queue, self._counting
        ladder = Ladder.of_engine(beta, copies, self.replicas, self.temperatures)
        with queue.here():
            steps = ladder.steps(self.model)
            tempering = CudaTempering(queue, ladder, steps, counting.shape, counting.observables)
            measuring = LadderMeasuring(self.model, queue, tempering, counting, self._compare, self._state.present)
            self._ladder, self._has_temperatures = OnLadder(tempering, measuring), True
            self._sweeper.set_ladder(tempering)
            self._sweeper.lay_tables()

    def adopt_ladder(self, ladder: Ladder) -> None:
        with self._queue.here():
            self.sweep_at_places(GivenPlaces(ladder, cupy.zeros((self.model.samples, self.replicas), cupy.int32)))

    def sweep_at_places(self, given: GivenPlaces) -> None:
        """Sweep at given places of a ladder from now on. CuPy's present device and stream must be the engine's."""
        self._ladder, self._given, self._has_temperatures = None, given, True
        self._sweeper.set_ladder(given)
        self._sweeper.lay_tables()

    def begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        assert self._given is not None  # noqa: S101  (set by ``adopt_ladder``)
        with self._queue.here():
            self._given.place.set(np.ascontiguousarray(place))
            self._sweeper.lay_tables()
            self.sweep(count)
            return self.begin_counts()

    def follow(self, tempering: CudaTempering, half_sweep: int) -> None:
        """Queue copying a ladder's state from the same device, for spins after ``half_sweep`` half-sweeps."""
        self._counting.forget()
        self.half_sweep = half_sweep
        self._on_ladder().tempering.follow(tempering)

    def _on_ladder(self) -> OnLadder:
        if self._ladder is None:
            raise InputError(NO_LADDER)
        return self._ladder

    def temper(self, rounds: int, sweeps: int) -> None:
        tempering, many = self._on_ladder().tempering, self._sweeper.rounds
        most = many.most(sweeps) if many is not None else 0
        with self._queue.here():
            if not most and tempering.ladder.temperatures == 1:
                self._temper_without_exchanges(tempering, rounds, sweeps)
                return
            while many is not None and most and rounds:
                several = min(most, rounds)
                many.temper(several, sweeps, self.half_sweep)
                self.half_sweep += several * sweeps * self.colours
                rounds -= several
            for _ in range(rounds):
                self._sweeper.sweep(sweeps, self.half_sweep)
                self.half_sweep += sweeps * self.colours
                self._counting.add(tempering.sums)
                tempering.exchange()
                self._sweeper.lay_tables()

    def _temper_without_exchanges(self, tempering: CudaTempering, rounds: int, sweeps: int) -> None:
        """Sweep at one temperature. The first exchange notes replicas at the hot end; later ones would do nothing."""
        self._sweeper.sweep(rounds * sweeps, self.half_sweep)
        self.half_sweep += rounds * sweeps * self.colours
        if rounds and tempering.round == 0:
            tempering.exchange()
            rounds -= 1
        tempering.round += rounds

    def begin_exchange(self) -> Callable[[], Exchange]:
        with self._queue.here():
            return self._on_ladder().tempering.begin_exchange()

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        with self._queue.here():
            self._on_ladder().measuring.prepare(kept, wanted)

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        assert reduction is None or isinstance(reduction, CudaReduction)  # noqa: S101  (GPU engines make this type)
        all_fetched = [True] * count if reduction is None or fetched is None else fetched
        begun: list[Begun] = []
        with self._queue.here():
            measuring = self._on_ladder().measuring.of(wanted)
            while len(begun) < count:
                several = min(self.at_once, count - len(begun))
                measurements = measuring.open(self._state.present, several)
                self._temper_into(measuring, measurements, rounds, sweeps)
                own = all_fetched[len(begun) : len(begun) + several]
                begun += measuring.close(measurements, self._state, reduction, own)
        return begun

    def temper_together(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None,
    ) -> Begun:  # fmt: skip
        assert reduction is None or isinstance(reduction, CudaReduction)  # noqa: S101  (GPU engines make this type)
        with self._queue.here():
            measuring = self._on_ladder().measuring.of(wanted)
            if count > self.at_once or not measuring.are_small(count):
                return None
            measurements = measuring.open(self._state.present, count)
            self._temper_into(measuring, measurements, rounds, sweeps)
            return measuring.close_together(measurements, self._state, reduction)

    def _temper_into(self, measuring: Measuring, into: Measurements, rounds: int, sweeps: int) -> None:
        """Temper and measure, with as many measurements per launch as its rounds allow."""
        many = self._sweeper.rounds
        together = many.most(sweeps) // rounds if many is not None and rounds else 0
        if many is not None and together:
            for first in range(0, into.several, together):
                numbers = range(first, min(first + together, into.several))
                many.measured(rounds, sweeps, self.half_sweep, measuring, into, numbers)
                self.half_sweep += len(numbers) * rounds * sweeps * self.colours
            return
        for k in range(into.several):
            self.temper(rounds, sweeps)
            counted = self._counting.claim(self.half_sweep)
            measuring.write(into, k, self._state.present, counted)
            self._counting.give_back(counted)

    def reduction(self, reduced: Reduced) -> CudaReduction:
        self._on_ladder()
        with self._queue.here():
            return CudaReduction(self._queue.device, reduced, self._state.present, self._state.read)

    def local_squares(self) -> LocalSquares:
        return self._squares(self._on_ladder().tempering.ladder)

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        with self._queue.here():
            exchange, rounds = None, 0
            if self._ladder is not None:
                tempering = self._ladder.tempering
                exchange, rounds = tempering.begin_exchange()(), tempering.round
            return snapshot_of(self._state.words(), self.half_sweep, rounds, exchange)

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        with self._queue.here():
            self._state.set_words(np.asarray(saved["spins"], np.uint64))
            self._counting.forget()
            self.half_sweep = int(saved["half_sweep"])
            if self._ladder is not None:
                self._ladder.tempering.restore(exchange_of(saved), int(saved["round"]))
                self._sweeper.lay_tables()
            self._queue.stream.synchronize()
