"""What CPU engines share: they do at once what is asked of them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.cpu_exchange import exchange
from spinsim.engine.ladder.ladder import NO_LADDER, Exchange, Ladder, check_ladder, copy_pairs, holders
from spinsim.engine.measuring.correlations import (
    Correlations,
    Items,
    all_bonds,
    all_sites,
    by_kind,
    compared,
    layers,
    overlaps_alone,
    wave,
)
from spinsim.engine.measuring.cpu_comparison import differing_items, squared_modes
from spinsim.engine.protocols import Counts, LadderMeasurement, Spins
from spinsim.engine.random_start import fill_start
from spinsim.engine.snapshots import exchange_of, snapshot_of
from spinsim.errors import InputError
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.packing import LANES, block_count
from spinsim.threads import Threads

AnyTables = TypeVar("AnyTables")
Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class CpuEngine(ABC):
    """The part of an ``Engine`` that follows from working synchronously."""

    device_name = "cpu"
    at_once = 1
    model: Ising
    replicas: int
    dynamics: Dynamics
    half_sweep: int
    _threads: Threads
    _exchange: Exchange
    _ladder: Ladder | None = None
    _round = 0

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, as engine/ladder/ladder.py says."""
        self._ladder = ladder = check_ladder(beta, copies, self.replicas)
        self._exchange, self._round = ladder.begin(self.model.samples), 0
        self._set_places(ladder, range(self.model.samples))

    def _on_ladder(self) -> Ladder:
        if self._ladder is None:
            raise InputError(NO_LADDER)
        return self._ladder

    @abstractmethod
    def _set_places(self, ladder: Ladder, samples: Iterable[int]) -> None:
        """Give the replicas of some samples the temperatures of ``_exchange.place``."""

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        ladder = self._on_ladder()
        steps, key = ladder.steps(self.model), rng.split_seed(self.dynamics.seed)
        samples = range(self.model.samples)
        for _ in range(rounds):
            self.sweep(sweeps)
            energy = self.counts().energy
            for k in samples:
                rows = (array[k] for array in self._exchange)
                exchange(energy[k], steps, ladder.copies, self._round, k, key, self.dynamics.rng_rounds, *rows)
            self._set_places(ladder, samples)
            self._round += 1

    def begin_exchange(self) -> Callable[[], Exchange]:
        """The present state of the exchange, taken at once."""
        self._on_ladder()
        copy = self._exchange.copied()
        return lambda: copy

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs."""
        exchange = None if self._ladder is None else self._exchange
        return snapshot_of(self._words_of_state(), self.half_sweep, self._round, exchange)

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot``."""
        self._set_words(np.asarray(saved["spins"], np.uint64))
        self.half_sweep = int(saved["half_sweep"])
        if self._ladder is not None:
            self._round, self._exchange = int(saved["round"]), exchange_of(saved)
            self._set_places(self._ladder, range(self.model.samples))

    @abstractmethod
    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        """The state in packed words."""

    @abstractmethod
    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Set the state."""

    def prepare_measurements(self, kept: int, full: bool = True) -> None:
        """Refuse measurements that have no room, where ``kept`` of them are there at a time."""
        require(kept * self._state_bytes, "keeping the configurations of measurements under way")

    @property
    @abstractmethod
    def _state_bytes(self) -> int:
        """Of what ``_keep_spins`` keeps."""

    def begin_measurement(self, full: bool = True) -> Callable[[], LadderMeasurement]:
        """What is measured of every copy at every temperature, at once."""
        ladder, model = self._on_ladder(), self.model
        exchange = self._exchange.copied()
        holder = holders(exchange.place, ladder.copies)
        among_all = np.arange(0, model.samples * self.replicas, self.replicas)[:, None, None] + holder
        energy, magnetization = (x.reshape(-1)[among_all] for x in self.counts())
        found = LadderMeasurement(
            energy * np.float64(model.quantum),
            magnetization,
            holder.astype(np.int32),
            exchange,
            self._correlations(ladder, holder) if full else overlaps_alone(self._overlaps(ladder, holder), ladder),
            self._keep_spins(),
        )
        return lambda: found

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, full: bool = True
    ) -> list[Callable[[], LadderMeasurement]]:
        """``count`` times: ``temper``, then ``begin_measurement``."""
        begun = []
        for _ in range(count):
            self.temper(rounds, sweeps)
            begun.append(self.begin_measurement(full))
        return begun

    @abstractmethod
    def _keep_spins(self) -> Spins:
        """The present configurations, whatever comes later."""

    def _overlaps(self, ladder: Ladder, holder: Integers) -> Integers:
        """Overlaps of copies at equal temperatures."""
        pairs = copy_pairs(ladder.copies)
        found = np.empty((self.model.samples, len(pairs), ladder.temperatures), np.int64)
        for k in range(self.model.samples):
            one, other = holder[k, pairs[:, 0]], holder[k, pairs[:, 1]]
            differing = self._differing(self._words_of(k), one.ravel(), other.ravel())
            found[k] = self.model.sites - 2 * differing.reshape(one.shape)
        return found

    def _correlations(self, ladder: Ladder, holder: Integers) -> Correlations:
        """Overlaps, link overlaps and modes."""
        model, pairs = self.model, len(copy_pairs(ladder.copies))
        shape = model.samples, pairs, ladder.temperatures
        overlap, links = np.empty(shape, np.int64), np.empty(shape, np.int64)
        modes = np.empty((model.samples, len(self._waves), shape[1] * shape[2] + ladder.replicas))

        def task(k: int) -> None:
            one, other = compared(holder[k], ladder.copies, self._reference)
            first = overlap[k].size
            words = self._words_of(k)
            links[k] = self._differing_bonds(words, one[:first], other[:first]).reshape(shape[1:])
            if not self._waves:
                overlap[k] = self._differing(words, one[:first], other[:first]).reshape(shape[1:])
                return
            by_layer = self._differing_in_layers(words, one, other)
            overlap[k] = by_layer[0][:, :first].sum(axis=0).reshape(shape[1:])
            for differing, of_axis, found in zip(by_layer, self._waves, modes[k], strict=True):
                squared_modes(differing, model.sites // len(differing), of_axis, found)

        self._threads.run(partial(task, k) for k in range(model.samples))
        return Correlations(model.sites - 2 * overlap, model.bonds - 2 * links, *by_kind(modes.swapaxes(1, 2), shape))

    @cached_property
    def _waves(self) -> list[npt.NDArray[np.float64]]:
        """The smallest wave of each axis."""
        return [wave(side) for side in self.model.lattice.shape] if self.model.lattice else []

    @property
    @abstractmethod
    def _reference(self) -> int:
        """Number of a replica that stands for all spins -1 in ``_differing_in_layers``."""

    @abstractmethod
    def _words_of(self, sample: int) -> Words:
        """The spins of one sample in the form that is compared."""

    @abstractmethod
    def _differing(self, words: Words, one: Integers, other: Integers) -> Integers:
        """Sites at which replicas differ, for pairs ``one[p]``, ``other[p]`` of one sample."""

    @abstractmethod
    def _differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        """Likewise bonds at which the products of both ends differ."""

    @abstractmethod
    def _differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        """Likewise sites of each layer along each axis, (layers, pairs)."""

    @abstractmethod
    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    @abstractmethod
    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds it took."""
        began = time.perf_counter()
        self.sweep(count)
        return time.perf_counter() - began

    def wait(self) -> None:  # noqa: B027  (it is what every CPU engine does)
        """Nothing to wait for: sweeps return when they are done."""

    def begin_counts(self) -> Callable[[], Counts]:
        """The present energies and magnetisations, taken at once."""
        counts = self.counts()
        return lambda: counts


class ByReplicas(CpuEngine):
    """Comparing replicas by replica-packed words, (blocks, sites, 2)."""

    @property
    def _reference(self) -> int:
        return LANES * block_count(self.replicas)

    @cached_property
    def _sites_in_order(self) -> Items:
        return all_sites(self.model)

    @cached_property
    def _layers(self) -> list[Items]:
        lattice = self.model.lattice
        return [layers(lattice, axis) for axis in range(lattice.dimension)] if lattice else []

    def _differing(self, words: Words, one: Integers, other: Integers) -> Integers:
        return np.asarray(_count(words, self._sites_in_order, one, other).sum(axis=0))

    def _differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        return np.asarray(_count(words, all_bonds(self.model), one, other).sum(axis=0))

    def _differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        return [_count(words, items, one, other) for items in self._layers]


def _count(words: Words, items: Items, one: Integers, other: Integers) -> Integers:
    """Items of each segment in which replicas differ, (segments, pairs)."""
    count = np.zeros((items.segments, one.size), np.int64)
    differing_items(words, items.ends, items.size, one, other, count)
    return count


class BlockEngine(CpuEngine, Generic[AnyTables]):
    """A ``CpuEngine`` of packed words: a task for each (sample, block), or several that share its sites.

    Args:
        shape: Of the state, uint64 (samples, blocks, ..., 2).
        lanes: Lanes in use, uint64 (blocks, 2).
        dynamics: How replicas move.
        threads: CPU threads, None for all.
        large: Whether a half-sweep of one block is worth starting threads for.
    """

    colours: int

    def __init__(
        self,
        shape: tuple[int, ...],
        lanes: npt.NDArray[np.uint64],
        dynamics: Dynamics,
        threads: int | None,
        large: bool,
    ) -> None:
        self.dynamics, self._lanes = dynamics, lanes
        self.half_sweep = 0
        self.state = np.empty(shape, np.uint64)
        self._threads = Threads(threads)
        self._parts = max(1, self._threads.count // (shape[0] * shape[1])) if large else 1
        self._tables: AnyTables | None = None
        self._each(self._start)

    def _each(self, task: Callable[[int, int, int], None], parts: int = 1) -> None:
        """Run ``task(part, sample, block)`` for all of them."""
        samples, blocks = self.state.shape[:2]
        self._threads.run(partial(task, p, s, b) for s in range(samples) for b in range(blocks) for p in range(parts))

    def _start(self, _: int, sample: int, block: int) -> None:
        counter, d = rng.counter_block(np.uint64(sample), np.uint64(block)), self.dynamics
        words = self.state[sample, block].reshape(-1, 2)
        fill_start(words, self._lanes[block], d.start, d.seed, counter, d.rng_rounds)

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._tables is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        end = self.half_sweep + count * self.colours
        if self._parts == 1:
            self._each(partial(self._sweep_part, self._tables, count, self.half_sweep, (0, self.colours)))
        else:
            for half_sweep in range(self.half_sweep, end):
                colour = half_sweep % self.colours
                task = partial(self._sweep_part, self._tables, 1, half_sweep, (colour, colour + 1))
                self._each(task, self._parts)
        self.half_sweep = end

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        return self._spins_in(self.state, sample, replica)

    @property
    def _state_bytes(self) -> int:
        return self.state.nbytes

    def _keep_spins(self) -> Spins:
        return partial(self._spins_in, self.state.copy())

    @abstractmethod
    def _spins_in(self, state: npt.NDArray[np.uint64], sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""

    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        return self.state.copy()

    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.state[:] = words

    @abstractmethod
    def _sweep_part(
        self,
        tables: AnyTables,
        count: int,
        half_sweep: int,
        colours: tuple[int, int],
        part: int,
        sample: int,
        block: int,
    ) -> None:
        """Sweep ``count`` times from ``half_sweep`` on, in some colours, one of the parts that share a block."""
