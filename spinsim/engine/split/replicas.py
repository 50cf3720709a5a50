"""An engine whose replicas of each sample are shared out to several devices, which exchange temperatures in one ladder.

Random numbers depend on a replica's number in the whole run, so that each part moves its replicas as one engine of all
would. In each round of exchanges all parts sweep at the places that they are given and count; from the energies of all
replicas the exchange is computed here, as on one device. Temperatures move and configurations stay, so that the copies
that a measurement compares may be on any two devices: it is made of the words of all parts by an engine of all
replicas at the first part's place, which never sweeps. GPUs of one process exchange among themselves (gpus.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_beta, check_betas
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Wanted
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import NO_LADDER, Exchange, Ladder, check_ladder, exchange_of, snapshot_of
from spinsim.engine.moves.resample.moves import copy_replicas, moves_of
from spinsim.engine.protocols import Counts, Engine, KeepsPlaces, LadderMeasurement
from spinsim.engine.split.parts import Part, ReplicaPart, SplitSpins, SplitSquares
from spinsim.engine.split.together import Together, begun, done, finished, joined, timed
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.mesh.places import Kept
from spinsim.model.ising import Ising
from spinsim.model.terms import MOST_TERMS

if TYPE_CHECKING:
    from spinsim.engine.cuda import CudaEngine
    from spinsim.engine.split.gpus import GpuLadder

REPLICAS: Final = 1  # axis of what each replica has


class Exchanges(Protocol):
    """Exchanges of all replicas, wherever they are made.

    Attributes:
        round: Exchanges tried.
    """

    @property
    def round(self) -> int:
        """Exchanges tried."""

    def sweep(self, count: int) -> None:
        """Sweep at the present temperatures."""

    def temper(self, rounds: int, sweeps: int) -> None:
        """Do rounds of sweeps and exchanges."""

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state; the function returned waits for it."""

    def restore(self, exchange: Exchange, rounds: int) -> None:
        """Go on from a state after so many rounds."""


class HostLadder:
    """``Exchanges`` that are made here, from the energies of all parts.

    Args:
        tempering: The exchanges.
        begin_sweep_at: As that of ``KeepsPlaces``, of all parts.
    """

    def __init__(
        self, tempering: CpuTempering, begin_sweep_at: Callable[[npt.NDArray[np.int32], int], Callable[[], Counts]]
    ) -> None:
        self._tempering, self._begin_sweep_at = tempering, begin_sweep_at
        self.restore = tempering.restore

    @property
    def round(self) -> int:
        """Exchanges tried."""
        return self._tempering.round

    def _counts_after(self, sweeps: int) -> Counts:
        return self._begin_sweep_at(self._tempering.exchange.place, sweeps)()

    def sweep(self, count: int) -> None:
        """Sweep at the present temperatures."""
        self._counts_after(count)

    def temper(self, rounds: int, sweeps: int) -> None:
        """Do rounds of sweeps and exchanges."""
        for _ in range(rounds):
            self._tempering.attempt(self._counts_after(sweeps))

    def begin_exchange(self) -> Callable[[], Exchange]:
        """The present state, taken at once."""
        copy = self._tempering.exchange.copied()
        return lambda: copy


class OnLadder(NamedTuple):
    """What an engine has while it is on a ladder.

    Attributes:
        exchanges: Those of all replicas.
        whole: What measures: an engine of all replicas.
    """

    exchanges: Exchanges
    whole: Part


class ReplicaSplit(Together):
    """An ``Engine`` put together from engines of parts of its replicas.

    Args:
        model: What is simulated.
        replicas: Configurations of each sample.
        dynamics: How they move.
        parts: All of them, in the order of their replicas.
        make_whole: Makes an engine of all replicas at a place.
        on_gpus: Whether all parts are on GPUs of this process.

    Attributes:
        at_once: Measurements that are best made in succession.
        temperatures: How many inverse temperatures of a replica the update takes.
    """

    at_once = 1

    def __init__(
        self,
        model: Ising,
        replicas: int,
        dynamics: Dynamics,
        parts: Sequence[ReplicaPart],
        make_whole: Callable[[], Part],
        on_gpus: bool,
    ) -> None:
        super().__init__(model, replicas, parts)
        self._parts, self._dynamics, self._make_whole, self._on_gpus = parts, dynamics, make_whole, on_gpus
        self.temperatures: tuple[int, ...] = parts[0].place.ask(_temperatures, parts[0].engine)()
        self._ladder: OnLadder | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number, one for each replica (replicas,), or of two terms (replicas, 2)."""
        check = check_betas if np.ndim(beta) > 1 and MOST_TERMS in self.temperatures else check_beta
        every = check(beta, self.replicas)
        self._ladder = None
        self._do_own(Engine.set_beta, [every[part.replicas.start : part.replicas.stop] for part in self._parts])

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._ladder is None:
            self._do(Engine.sweep, count)
        else:
            self._ladder.exchanges.sweep(count)
        self._moved(count)

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds of the part that took longest."""
        if self._ladder is not None:
            began = time.perf_counter()
            self.sweep(count)
            self.wait()
            return time.perf_counter() - began
        took: list[float] = self._do(Engine.timed_sweep, count)
        self._moved(count)
        return max(took)

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        asked = self._begin(Engine.begin_counts)
        return lambda: joined(self._finish(asked), REPLICAS)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        part = next(part for part in self._parts if replica in part.replicas)
        own = replica - part.replicas.start
        found: npt.NDArray[np.int8] = part.place.ask(done, part.engine, Engine.spins, sample, own)()
        return found

    def take_from(self, parent: npt.NDArray[np.integer]) -> None:
        """Give each replica the configuration of its parent, (samples, replicas), who keeps its own.

        Parents may be at any part, so that all words come here and go back.
        """
        saved = self.snapshot()
        words = np.array(saved["spins"], np.uint64)
        copy_replicas(words, moves_of(parent), Threads())
        self.restore(saved | {"spins": words})

    def take_ladder(self, ladder: Ladder) -> None:
        """Make ready for places on a ladder whose exchanges are made elsewhere."""
        self._do(KeepsPlaces.take_ladder, ladder)

    def begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        """Sweep ``count`` times at places (samples, replicas) of the ladder that was taken, and ask what is counted."""
        begun = self._begin_sweep_at(place, count)
        self._moved(count)
        return begun

    def _begin_sweep_at(self, place: npt.NDArray[np.int32], count: int) -> Callable[[], Counts]:
        each = [(part, part.own(place)) for part in self._parts]
        replies = [part.place.ask(timed, _swept_at, part.engine, mine, count) for part, mine in each]
        return lambda: joined(self._answers(replies), REPLICAS)

    def part_rates(self) -> list[float]:
        """Updates/ns of each part while it worked; of GPUs that one thread asks on a ladder nobody knows."""
        return [] if self._on_gpus and self._ladder is not None else super().part_rates()

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, as engine/moves/exchange/ladder.py says."""
        ladder = check_ladder(beta, copies, self.replicas, self.temperatures)
        whole = self._make_whole() if self._ladder is None else self._ladder.whole
        whole.place.ask(done, whole.engine, Engine.set_ladder, beta, copies)()
        exchanges: Exchanges
        if self._on_gpus:
            from spinsim.engine.split.gpus import GpuLadder

            exchanges = GpuLadder(self.model, ladder, self._engines)
        else:
            self.take_ladder(ladder)
            exchanges = HostLadder(CpuTempering(ladder, self.model, self._dynamics), self._begin_sweep_at)
        self._ladder = OnLadder(exchanges, whole)

    @property
    def _engines(self) -> list[CudaEngine]:
        """Those of GPUs of this process."""
        return [part.engine.value for part in self._parts]

    def _on_ladder(self) -> OnLadder:
        if self._ladder is None:
            raise InputError(NO_LADDER)
        return self._ladder

    def _of_whole(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives for the engine of all replicas."""
        whole = self._on_ladder().whole
        return whole.place.ask(function, whole.engine, *arguments)()

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        self._on_ladder().exchanges.temper(rounds, sweeps)
        self._moved(rounds * sweeps)

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state of the exchange; the function returned waits for it."""
        return self._on_ladder().exchanges.begin_exchange()

    def prepare_measurements(self, kept: int, wanted: Wanted = WITHOUT_TIMES) -> None:
        """Refuse measurements that have no room, where ``kept`` of them are there at a time."""
        self._of_whole(done, Engine.prepare_measurements, kept, wanted)

    def begin_measurement(self, wanted: Wanted = WITHOUT_TIMES) -> Callable[[], LadderMeasurement]:
        """Ask for what is measured of every copy at every temperature; the function returned waits for it."""
        exchanges = self._on_ladder().exchanges
        if self._on_gpus:
            return partial(self._measured, self._of_whole(_measure_on_gpu, exchanges, wanted))
        return partial(self._measured, self._of_whole(_measure, self.snapshot(), wanted))

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Wanted = WITHOUT_TIMES
    ) -> list[Callable[[], LadderMeasurement]]:
        """``count`` times: ``temper``, then ``begin_measurement``."""
        asked = []
        for _ in range(count):
            self.temper(rounds, sweeps)
            asked.append(self.begin_measurement(wanted))
        return asked

    def _measured(self, later: Any) -> LadderMeasurement:
        whole = self._on_ladder().whole
        found: LadderMeasurement = whole.place.ask(finished, later)()
        return found._replace(spins=SplitSpins([whole], [found.spins], self.replicas))

    def local_squares(self) -> SplitSquares:
        """Make what adds up squares along world lines over measurements of the present ladder."""
        return SplitSquares([self._on_ladder().whole], [self._of_whole(begun, Engine.local_squares)])

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs; the same arrays as those of one engine of all replicas."""
        words = np.concatenate([each["spins"] for each in self._do(Engine.snapshot)], REPLICAS)
        if self._ladder is None:
            return snapshot_of(words, self.half_sweep, 0, None)
        exchanges = self._ladder.exchanges
        return snapshot_of(words, self.half_sweep, exchanges.round, exchanges.begin_exchange()())

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot``, of however many parts."""
        self.half_sweep = int(saved["half_sweep"])
        self._do_own(
            Engine.restore,
            [snapshot_of(part.own_spins(saved["spins"]), self.half_sweep, 0, None) for part in self._parts],
        )
        if self._ladder is not None:
            self._ladder.exchanges.restore(exchange_of(saved), int(saved["round"]))


def _temperatures(engine: KeepsPlaces) -> tuple[int, ...]:
    return engine.temperatures


def _swept_at(engine: KeepsPlaces, place: npt.NDArray[np.int32], count: int) -> Counts:
    return engine.begin_sweep_at(place, count)()


def _measure(engine: Engine, saved: Mapping[str, npt.NDArray[np.generic]], wanted: Wanted) -> Kept:
    """Begin to measure a state."""
    engine.restore(saved)
    return Kept(engine.begin_measurement(wanted))


def _measure_on_gpu(engine: CudaEngine, ladder: GpuLadder, wanted: Wanted) -> Kept:
    """Begin to measure the present state of a ladder."""
    ladder.show(engine)
    return Kept(engine.begin_measurement(wanted))
