"""An engine whose replicas of each sample are shared by several devices, which exchange temperatures in one ladder.

Random numbers depend on a replica's number in the whole run, so that each part moves its replicas like a single engine.
In each round of exchanges all parts sweep at their given places and count. The exchange is computed here from the
energies of all replicas, as on one device. Temperatures move and configurations stay, so that a measurement may compare
copies on any two devices. It is made from the words of all parts by an engine of all replicas at the first part's
place, which never sweeps. GPUs of one process exchange among themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_beta, check_betas
from spinsim.cuda.device import cupy
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.given import apply_in_host_memory
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Quantities
from spinsim.engine.measuring.reduction import Reduced
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import NO_LADDER, CpuTempering, Exchange, Ladder, exchange_of, snapshot_of
from spinsim.engine.moves.exchange_cuda import TemperingAcross
from spinsim.engine.moves.move import Moment, Move
from spinsim.engine.moves.resample import copy_replicas, moves_of
from spinsim.engine.protocols import Begun, Engine, KeepsPlaces, Reduction
from spinsim.engine.split.engine import EngineOfParts, Part, SplitEngine, SplitReduction, SplitSquares, cut, joined
from spinsim.errors import InputError
from spinsim.inputs.arguments import as_stated
from spinsim.machine.threads import Threads
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising

if TYPE_CHECKING:
    from spinsim.engine.cuda import CudaEngine

REPLICAS: Final = 1  # axis of data of each replica


class HostLadder:
    """Exchanges of all replicas, made here from the energies of all parts."""

    def __init__(self, split: ReplicaSplit, ladder: Ladder, dynamics: Dynamics) -> None:
        self._split, self._tempering = split, CpuTempering(ladder, split.model, dynamics)
        split.adopt_ladder(ladder)

    @property
    def round(self) -> int:
        return self._tempering.round

    def sweep(self, count: int) -> Counts:
        return self._split.sweep_at(self._tempering.exchange.place, count)

    def temper(self, rounds: int, sweeps: int) -> None:
        for _ in range(rounds):
            self._tempering.attempt(self.sweep(sweeps))

    def begin_exchange(self) -> Callable[[], Exchange]:
        copy = self._tempering.exchange.copied()
        return lambda: copy

    def restore(self, exchange: Exchange, rounds: int) -> None:
        self._tempering.exchange, self._tempering.round = exchange, rounds

    def show(self, whole: SplitEngine) -> None:
        whole.restore(self._split.snapshot())


class OnLadder(NamedTuple):
    """Objects of an engine that is on a ladder."""

    exchanges: HostLadder | GpuLadder  # exchanges of all replicas
    whole: SplitEngine  # engine of all replicas, which measures


class ReplicaSplit(EngineOfParts):
    """An ``Engine`` that combines engines of parts of its replicas.

    Args:
        parts: All parts, in the order of their replicas.
        make_whole: Function that makes an engine of all replicas at a place.
        on_gpus: True if all parts are on GPUs of this process.
    """

    axis = REPLICAS

    def __init__(
        self, model: Ising, replicas: int, dynamics: Dynamics, parts: Sequence[Part], make_whole: Callable[[], Part],
        on_gpus: bool,
    ) -> None:  # fmt: skip
        super().__init__(model, replicas, parts)
        self._dynamics, self._make_whole, self._on_gpus = dynamics, make_whole, on_gpus
        self.temperatures: tuple[int, ...] = parts[0].place.request(attrgetter("temperatures"), parts[0].engine)()
        self._ladder: OnLadder | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        check = check_betas if np.ndim(beta) > 1 and MOST_TERMS in self.temperatures else check_beta
        every = check(beta, self.replicas)
        self._ladder = None
        self._do_own(Engine.set_beta, [cut(every, part.share, 0) for part in self.parts])

    def sweep(self, count: int) -> None:
        count = as_stated("count", count, "int")
        if self._ladder is None:
            super().sweep(count)
        else:
            self._ladder.exchanges.sweep(count)
            self._moved(count)

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        """Give each replica the configuration of its parent, (samples, replicas); a parent must be its own parent.

        Parents may be in any part, so that all words are transferred here and back.
        """
        saved = self.snapshot()
        words = np.array(saved["spins"], np.uint64)
        copy_replicas(words, moves_of(parent), Threads())
        self.restore(saved | {"spins": words})

    def apply(self, move: Move, moment: Moment) -> None:
        """Apply a move in the memory of this process, which collects all replicas."""
        apply_in_host_memory(self, move, moment, self._dynamics.first_sample)

    def adopt_ladder(self, ladder: Ladder) -> None:
        """Prepare parts for places on a ladder whose exchanges are made elsewhere."""
        self._do(KeepsPlaces.adopt_ladder, ladder)

    def sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Counts:
        """Sweep parts ``count`` times at places (samples, replicas) of the adopted ladder, and return the counts."""
        counted: list[Counts] = self._of_each([part.own(place) for part in self.parts], _swept_at, count)
        return joined(counted, REPLICAS)

    def part_rates(self) -> list[float]:
        """Updates/ns of each part during its work; unknown for GPUs that one thread drives on a ladder."""
        return [] if self._on_gpus and self._ladder is not None else super().part_rates()

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        ladder = Ladder.of_engine(beta, copies, self.replicas, self.temperatures)
        made = self._ladder
        whole = made.whole if made else SplitEngine(self.model, self.replicas, [self._make_whole()])
        whole.set_ladder(beta, copies)
        exchanges: HostLadder | GpuLadder
        if self._on_gpus:
            exchanges = GpuLadder(self.model, ladder, [part.engine.value for part in self.parts])
        else:
            exchanges = HostLadder(self, ladder, self._dynamics)
        self._ladder = OnLadder(exchanges, whole)

    def _on_ladder(self) -> OnLadder:
        if self._ladder is None:
            raise InputError(NO_LADDER)
        return self._ladder

    def temper(self, rounds: int, sweeps: int) -> None:
        self._on_ladder().exchanges.temper(rounds, sweeps)
        self._moved(rounds * sweeps)

    def begin_exchange(self) -> Callable[[], Exchange]:
        return self._on_ladder().exchanges.begin_exchange()

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        self._on_ladder().whole.prepare_measurements(kept, wanted)

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        exchanges, whole = self._on_ladder()
        begun = []
        for is_fetched in fetched or [True] * count:
            self.temper(rounds, sweeps)
            exchanges.show(whole)
            begun.append(whole.begin_measurement(wanted, reduction, is_fetched))
        return begun

    def reduction(self, reduced: Reduced) -> SplitReduction:
        return self._on_ladder().whole.reduction(reduced)

    def local_squares(self) -> SplitSquares:
        return self._on_ladder().whole.local_squares()

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        words = np.asarray(super().snapshot()["spins"], np.uint64)
        if self._ladder is None:
            return snapshot_of(words, self.half_sweep, 0, None)
        exchanges = self._ladder.exchanges
        return snapshot_of(words, self.half_sweep, exchanges.round, exchanges.begin_exchange()())

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self.half_sweep = int(saved["half_sweep"])
        words = [cut(saved["spins"], part.blocks, REPLICAS) for part in self.parts]
        self._do_own(Engine.restore, [snapshot_of(own, self.half_sweep, 0, None) for own in words])
        if self._ladder is not None:
            self._ladder.exchanges.restore(exchange_of(saved), int(saved["round"]))


def _swept_at(engine: KeepsPlaces, count: int, place: npt.NDArray[np.int32]) -> Counts:
    return engine.begin_sweep_at(place, count)()


class GpuLadder:
    """Exchanges of one sample's replicas on several GPUs, all queued by this thread.

    The thread waits for no GPU. A GPU with a full queue continues, because it waits only for work already queued on
    other GPUs.
    """

    def __init__(self, model: Ising, ladder: Ladder, engines: Sequence[CudaEngine]) -> None:
        self._engines, self._each = engines, list[TemperingAcross]()
        lanes, first = sum(engine.parts.counting.stride for engine in engines), 0
        for engine in engines:
            queue, counting = engine.parts.queue, engine.parts.counting
            with queue.here():
                tempering = TemperingAcross(queue, ladder, model, counting, first, engine.replicas, lanes)
                self._each.append(tempering)
                engine.sweep_at_places(tempering.own)
                queue.stream.synchronize()
            first += engine.replicas
        for tempering in self._each:
            tempering.meet([other for other in self._each if other is not tempering])

    @property
    def round(self) -> int:
        return self._each[0].round

    def sweep(self, count: int) -> None:
        for engine in self._engines:
            engine.sweep(count)

    def temper(self, rounds: int, sweeps: int) -> None:
        both = tuple(zip(self._engines, self._each, strict=True))
        for _ in range(rounds):
            for engine, tempering in both:
                with engine.parts.queue.here():
                    engine.parts.sweeper.sweep(sweeps, engine.half_sweep)
                    engine.half_sweep += sweeps * engine.colours
                    engine.parts.counting.add(tempering.to_count)
                    tempering.give()
            for engine, tempering in both:
                with engine.parts.queue.here():
                    tempering.exchange()
                    engine.parts.sweeper.lay_tables()

    def begin_exchange(self) -> Callable[[], Exchange]:
        with self._engines[0].parts.queue.here():
            return self._each[0].begin_exchange()

    def restore(self, exchange: Exchange, rounds: int) -> None:
        for engine in self._engines:
            engine.wait()
        for engine, tempering in zip(self._engines, self._each, strict=True):
            with engine.parts.queue.here():
                tempering.restore(exchange, rounds)
                engine.parts.sweeper.lay_tables()

    def show(self, whole: SplitEngine) -> None:
        """Queue copying the present state to an engine of all replicas, on the first of these GPUs."""
        shown: CudaEngine = whole.parts[0].engine.value
        queue, first = shown.parts.queue, 0
        for engine in self._engines:
            theirs, stream = engine.parts.state.present, engine.parts.queue.stream
            with engine.parts.queue.here():
                swept = cupy.cuda.Event(disable_timing=True)  # belongs to the current device
                swept.record(stream)
            with queue.here():
                taken = cupy.cuda.Event(disable_timing=True)
                queue.stream.wait_event(swept)
                first += _copy_replicas(shown, theirs, first)
                if engine is self._engines[0]:
                    shown.follow(self._each[0], engine.half_sweep)
                taken.record(queue.stream)
            with engine.parts.queue.here():
                stream.wait_event(taken)


def _copy_replicas(engine: CudaEngine, spins: Any, first: int) -> int:
    """Queue copying the spins of replicas from number ``first`` on along their axis; return their extent on this axis.

    CuPy's present device and stream must be the engine's.
    """
    state, stream = engine.parts.state, engine.parts.queue.stream
    count = int(spins.shape[state.replica_axis])
    if state.replica_axis == 1:  # there is one sample, so that its replicas lie in one piece
        state.present[:, first : first + count].data.copy_from_device_async(spins.data, spins.nbytes, stream)
    else:
        here = cupy.empty(spins.shape, spins.dtype)
        here.data.copy_from_device_async(spins.data, spins.nbytes, stream)
        state.present[..., first : first + count] = here
    return count
