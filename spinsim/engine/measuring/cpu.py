"""Measuring a ladder on the CPU: numbers by temperature, and correlations of copies at equal temperatures.

Models of space and time have more counts. The product of the two spins of a bond in space is an operator of even
parity. It is counted like a spin, in words with a bit for each bond at each slice. Items are ordered bond by bond, like
world lines: bond b at slice tau is item tau + slices b.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import (
    Correlations,
    Items,
    Quantities,
    all_bonds,
    all_bonds_in_space,
    all_sites,
    by_kind,
    compared,
    ends_of_bonds,
    layers,
    lines_of_bonds,
    overlaps_only,
    pairs_in_time,
    slices,
    waves,
)
from spinsim.engine.measuring.cpu_comparison import (
    Along,
    WordList,
    compare_ladder,
    count_items,
    second_and_fourth_powers,
    word_list,
    word_lists,
)
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import CpuTempering, Exchange, Ladder, copy_pairs
from spinsim.engine.protocols import Begun, LadderMeasurement, Spins, bits_of
from spinsim.machine.compiled import kernel
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Bits, block_count, spins_up

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class CpuInTime:
    """Lists for the additional counts of models of space and time, from replica-packed words; else empty."""

    def __init__(self, graph: Graph, wanted: Quantities) -> None:
        self.slices = slices(graph) if graph.slices > 1 else None
        self.times, self.sites = wanted.times, graph.sites
        self.pairs = pairs_in_time(graph.world_lines(), wanted.times) if wanted.times else None
        self.even = wanted.even
        if wanted.even:
            self.ends, self.bonds = ends_of_bonds(graph), all_bonds_in_space(graph)
            self.pairs_of_bonds = pairs_in_time(lines_of_bonds(graph), wanted.times)


class InTimeCounts:
    """Counts in time of all samples."""

    def __init__(self, lists: CpuInTime, samples: int, ladder: Ladder) -> None:
        self._lists, self._copies = lists, ladder.copies
        self.is_needed = bool(lists.slices or lists.pairs)
        self._shape = samples, len(copy_pairs(ladder.copies)), ladder.temperatures
        self._first, times = self._shape[1] * self._shape[2], len(lists.times)
        self._powers = np.zeros((samples, self._first + ladder.replicas, 2 if lists.slices else 0), np.int64)
        self._in_time = np.empty((samples, ladder.replicas, times), np.int64)
        self._even = np.empty((samples, ladder.replicas, times if lists.even else 0), np.int64)
        self._in_space = np.empty((samples, self._shape[1] if lists.even else 0, ladder.temperatures), np.int64)

    def count(self, k: int, words: Words, holder: Integers) -> None:
        """Count sample k from its ``words`` (blocks, sites, 2) and its replicas ``holder`` (copies, temperatures)."""
        lists, first = self._lists, self._first
        one, other = compared(holder, self._copies, LANES * len(words))
        if lists.slices:
            differing = count_items(words, lists.slices, one, other)
            self._powers[k] = 0
            second_and_fourth_powers(differing, lists.slices.size, self._powers[k])
        if lists.pairs:
            self._in_time[k] = lists.sites - 2 * count_items(words, lists.pairs, one[first:], other[first:]).T
        if lists.even:
            products = np.ascontiguousarray(words[:, lists.ends[:, 0]] ^ words[:, lists.ends[:, 1]])
            differing = count_items(products, lists.bonds, one[:first], other[:first]).sum(axis=0)
            self._in_space[k] = len(lists.ends) - 2 * differing.reshape(self._shape[1:])
            in_time = count_items(products, lists.pairs_of_bonds, one[first:], other[first:])
            self._even[k] = len(lists.ends) - 2 * in_time.T

    def results(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """Return the last five fields of ``Correlations``, as views of the counts."""
        samples, _, temperatures = self._shape
        of_copies = samples, self._copies, temperatures, -1 if self._lists.times else 0
        in_time = self._in_time.reshape(of_copies)
        even = self._even.reshape(*of_copies[:3], -1 if self._lists.even else 0)
        return *by_kind(self._powers, self._shape), in_time, even, self._in_space


def shape_of_sums(model: Ising, ladder: Ladder) -> tuple[int, int, int, int]:
    """Return (samples, copies, places, sites of space) of a model of space and time."""
    return model.samples, ladder.copies, ladder.temperatures, model.sites // model.graph.slices


def world_line_sums(graph: Graph, bits: Bits) -> Integers:
    """Sum the spins over the slices of each site of space, (..., sites of space), from bits (..., bytes)."""
    slices, in_cell = graph.slices, graph.lattice.cell.sites if graph.lattice else 1
    outer = bits.shape[:-1]
    if in_cell == 1 and slices % 8 == 0:  # a site's slices are whole bytes
        up = spins_up(bits.reshape(*outer, -1, slices // 8))
    else:
        spins = np.unpackbits(bits, axis=-1, count=graph.sites, bitorder="little")
        up = spins.reshape(*outer, -1, slices, in_cell).sum(axis=-2, dtype=np.int64).reshape(*outer, -1)
    return np.asarray(2 * up - slices)


class HostSquares:
    """``LocalSquares`` that fetches configurations and adds them up on the host."""

    def __init__(self, model: Ising, ladder: Ladder) -> None:
        self._graph, self._replicas = model.graph, ladder.replicas
        self._sums = np.zeros(shape_of_sums(model, ladder), np.int64)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        for k, sums in enumerate(self._sums):
            squares = world_line_sums(self._graph, bits_of(spins, k, self._replicas)) ** 2
            sums += squares[holder[k]]

    def sums(self) -> Integers:
        return self._sums.copy()

    def set_sums(self, sums: Integers) -> None:
        self._sums[...] = sums


Floats = npt.NDArray[np.float64]

Keep = Callable[[slice], None]
FULLY: Final = 4  # cost of a full comparison of copies, in units of counting overlaps


class Compared(NamedTuple):
    """Results of ``Compare``; quantities that are not requested have no pairs or no axes."""

    overlap: Integers  # as in ``Correlations``, int64 (samples, pairs, temperatures)
    link_overlap: Integers
    modes: Floats  # squared modes along each axis, float64 (axes, samples, pairs, then copies if wanted, temperatures)


Compare = Callable[[Words, Integers, Compared, slice], None]
"""Fills the ``Compared`` of some samples, from their words and the replicas at the temperatures of all samples."""


class CpuReplicaComparison:
    """Comparison of copies at equal temperatures, by replica-packed words (blocks, sites, 2) of each sample."""

    def __init__(self, model: Ising) -> None:
        self._model = model

    @cached_property
    def _fully(self) -> Callable[..., None]:
        """``compare_ladder`` for sites, with layers along all axes, and for bonds."""
        lattice = self._model.embedding
        of_axes = [] if lattice is None else [layers(lattice, axis) for axis in range(lattice.dimension)]
        along = [Along(k, *one) for k, one in enumerate(zip(of_axes, waves(lattice), strict=True))]
        return _compare(word_lists(all_sites(self._model), along), all_bonds(self._model))

    @cached_property
    def _sites(self) -> Callable[..., None]:
        return _compare([word_list(all_sites(self._model))], Items(np.empty((0, 2), np.int32), 1, 0))

    def compare(self, words: Words, holder: Integers, results: Compared, samples: slice) -> None:
        """Fill the ``results`` of some samples; ``holder`` is (all samples, copies, temperatures)."""
        compare = self._fully if results.link_overlap.shape[1] or len(results.modes) else self._sites
        compare(words, holder, *results, samples.start, samples.stop)


def _compare(orders: Sequence[WordList], bonds: Items) -> Callable[..., None]:
    kernel: Callable[..., None] = compare_ladder.given(tuple(orders), word_list(bonds))
    return kernel


class Measurement:
    """Memory for a measurement of a ladder, which is filled sample by sample.

    ``keep`` copies configurations of some samples. It is None for a measurement that nobody reads; the exchange state
    is then not copied. ``holder`` is the replica at each temperature, (samples, copies, temperatures). Consecutive
    measurements have their samples one after the other, as in ``exchange``.
    """

    def __init__(
        self, model: Ising, ladder: Ladder, exchange: Exchange, wanted: Quantities, in_time: CpuInTime, spins: Spins,
        terms: int, keep: Keep | None,
    ) -> None:  # fmt: skip
        self._model, self._exchange, self.wanted, samples = model, exchange, wanted, len(exchange.place)
        copies = ladder.copies if wanted.full or wanted.overlaps else 1
        pairs, shape = len(copy_pairs(copies)), (samples, ladder.copies, ladder.temperatures)
        of_pairs = samples, pairs, ladder.temperatures
        axes = model.embedding.dimension if wanted.full and model.embedding else 0
        in_modes = pairs + (copies if wanted.magnetization_modes else 0)
        modes = np.empty((axes, samples, in_modes, ladder.temperatures))
        links = np.empty(of_pairs if wanted.full else (samples, 0, ladder.temperatures), np.int64)
        self.compared = Compared(np.empty(of_pairs, np.int64), links, modes)
        self.in_time = InTimeCounts(in_time, samples, ladder) if wanted.full else None
        correlations = overlaps_only(self.compared.overlap, ladder)
        if self.in_time is not None:
            last = np.moveaxis(modes, 0, -1)
            of_spins = last[:, pairs:] if wanted.magnetization_modes else np.empty((*shape, 0))
            correlations = Correlations(*self.compared[:2], last[:, :pairs], of_spins, *self.in_time.results())
        self.is_fetched, self._keep, self.holder = keep is not None, keep, np.empty(shape, np.int64)
        energy = np.empty(shape)
        self.measurement = LadderMeasurement(
            energy, np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.int32),
            self._exchange.copied() if keep else self._exchange, correlations, spins,
            energy[..., None] if terms == 1 else np.empty((*shape, terms)),
        )  # fmt: skip
        numbers = energy, self.measurement.magnetization, self.measurement.staggered_magnetization
        self._sort = sort_numbers.given(np.float64(model.quantum), self.holder, self.measurement.holder, *numbers)

    def later(self) -> LadderMeasurement:
        return self.measurement

    def serves(self, tempering: CpuTempering, wanted: Quantities) -> bool:
        return self._exchange is tempering.exchange and self.wanted == wanted

    def record(self, counts: Counts, samples: slice) -> None:
        """Store the counts of some samples, (samples, replicas), and the state of their exchanges."""
        measurement = self.measurement
        if self._keep is not None:
            self._keep(samples)
            for name, now in self._exchange._asdict().items():
                getattr(measurement.exchange, name)[samples] = now[samples]
        self._sort(self._exchange.place, *counts[:3], samples.start, samples.stop)
        if counts.terms is not None:
            of_term = np.take_along_axis(counts.terms[:, None], self.holder[samples][..., None], axis=2)
            measurement.energy_by_term[samples] = of_term * np.float64(self._model.quantum)


@kernel
def sort_numbers(  # type: ignore[no-untyped-def]
    quantum, holder, holder_32, energies, magnetizations, of_sublattices, place, energy, magnetization, staggered,
    begin, end,
):  # fmt: skip
    """Sort numbers (samples, replicas) of some samples by copy and temperature."""
    temperatures = holder.shape[2]
    for sample in range(begin, end):
        k = sample - begin
        for replica in range(place.shape[1]):
            copy, t = replica // temperatures, place[sample, replica]
            holder[sample, copy, t] = holder_32[sample, copy, t] = replica
            energies[sample, copy, t] = np.float64(energy[k, replica]) * quantum
            magnetizations[sample, copy, t] = magnetization[k, replica]
            of_sublattices[sample, copy, t] = staggered[k, replica]


def _unread(sample: int, replica: int) -> npt.NDArray[np.int8]:
    """Fail: configurations of consecutive measurements must be read through one of the measurements."""
    raise NotImplementedError


def _given(measurement: LadderMeasurement) -> LadderMeasurement:
    return measurement


class Succession:
    """Consecutive measurements of a small problem; states are kept, then counted and compared together.

    In such problems kernel calls take most of the time. ``words`` and the arrays of ``room`` have all samples of the
    first measurement, then all samples of the second, and so on.
    """

    def __init__(
        self, room: Measurement, exchange: Exchange, words: Words, count: int, reading: Callable[[Words], Spins]
    ) -> None:
        self.room, self.words, self.count, self._exchange, self._reading = room, words, count, exchange, reading
        self._samples = len(words) // count
        self.measurements = [self._view(number) for number in range(count)]
        self.together = self._together()

    def of(self, number: int) -> slice:
        return slice(number * self._samples, (number + 1) * self._samples)

    def fetched(self, which: Sequence[bool]) -> list[Begun]:
        """Return the measurements that are fetched, and None for the others."""
        every = zip(self.measurements, which, strict=True)
        return [partial(_given, one) if is_fetched else None for one, is_fetched in every]

    def spins(self, number: int) -> Spins:
        return self._reading(self.words[self.of(number)])

    def _view(self, number: int) -> LadderMeasurement:
        """Return one of the measurements, as views of the arrays of all."""
        whole, mine = self.room.measurement, self.of(number)
        return LadderMeasurement(
            whole.energy[mine], whole.magnetization[mine], whole.staggered_magnetization[mine], whole.holder[mine],
            Exchange._make(array[mine] for array in whole.exchange),
            Correlations._make(array[mine] for array in whole.correlations), self.spins(number),
            whole.energy_by_term[mine],
        )  # fmt: skip

    def _together(self) -> LadderMeasurement:
        """Return views of the same arrays, (measurements, samples, ...), with the last one's exchange and spins."""
        whole, last = self.room.measurement, self.measurements[-1]

        def apart(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return array.reshape(self.count, self._samples, *array.shape[1:])

        return LadderMeasurement(
            apart(whole.energy), apart(whole.magnetization), apart(whole.staggered_magnetization), apart(whole.holder),
            last.exchange, Correlations._make(map(apart, whole.correlations)), last.spins, apart(whole.energy_by_term),
        )  # fmt: skip

    def serves(self, tempering: CpuTempering, wanted: Quantities, count: int) -> bool:
        return self._exchange is tempering.exchange and (self.room.wanted, self.count) == (wanted, count)


class CpuMeasuring:
    """Measures every copy at every temperature of a ladder."""

    def __init__(self, model: Ising, compare: Compare, words_of: Callable[[slice], Words], terms: int) -> None:
        self._model, self._compare, self._words_of, self._terms = model, compare, words_of, terms
        self._in_time: dict[Quantities, CpuInTime] = {}

    def begin(
        self, ladder: Ladder, exchange: Exchange, wanted: Quantities, spins: Spins, keep: Keep | None = None
    ) -> Measurement:
        """Make room for a measurement; arguments are as in ``Measurement``."""
        if wanted not in self._in_time:
            self._in_time = {wanted: CpuInTime(self._model.graph, wanted)}
        in_time = self._in_time[wanted]
        return Measurement(self._model, ladder, exchange, wanted, in_time, spins, self._terms, keep)

    def begin_succession(
        self, tempering: CpuTempering, wanted: Quantities, count: int, words: Words, reading: Callable[[Words], Spins]
    ) -> Succession:
        """Make room for measurements of states like ``words``; ``reading`` makes readers of such words."""
        exchange = Exchange._make(np.empty((count * len(a), *a.shape[1:]), a.dtype) for a in tempering.exchange)
        room = self.begin(tempering.ladder, exchange, wanted, _unread)
        kept = np.empty((count * len(words), *words.shape[1:]), words.dtype)
        return Succession(room, tempering.exchange, kept, count, reading)

    def measure(self, room: Measurement, counts: Counts, samples: slice, words: Words | None = None) -> None:
        """Measure some samples, given their ``counts``, in their present state or in ``words``."""
        room.record(counts, samples)
        compared = room.compared
        if not (compared.overlap.size or compared.modes.size):
            return
        words = self._words_of(samples) if words is None else words
        self._compare(words, room.holder, compared, samples)
        if room.in_time is not None and room.in_time.is_needed:
            for k, sample in enumerate(range(samples.start, samples.stop)):
                room.in_time.count(sample, words[k], room.holder[sample])

    def words(self, wanted: Quantities, replicas: int) -> int:
        """Words of 128 spins whose update takes about as long as a measurement of all samples."""
        return self._model.samples * self._model.sites * block_count(replicas) * (1 + (FULLY if wanted.full else 1))


class Successions:
    """Memory for consecutive measurements on one ladder, reused when its readers are done.

    ``kept`` is the largest number of rooms whose measurements are read later; 0 if these rooms are never reused.
    """

    def __init__(self, measuring: CpuMeasuring, kept: int = 0) -> None:
        self._measuring = measuring
        self._read, self._unread = deque[Succession](maxlen=kept), deque[Succession](maxlen=1)

    def room(
        self, tempering: CpuTempering, wanted: Quantities, count: int, words: Words,
        reading: Callable[[Words], Spins], serves_again: bool, is_read: bool,
    ) -> Succession:  # fmt: skip
        """Make room as ``CpuMeasuring.begin_succession`` does; ``is_read`` if a measurement will be read later."""
        rooms = self._read if is_read else self._unread
        is_free = serves_again and rooms and len(rooms) == rooms.maxlen
        if is_free and rooms[0].serves(tempering, wanted, count):
            rooms.rotate(-1)
            return rooms[-1]
        room = self._measuring.begin_succession(tempering, wanted, count, words, reading)
        if serves_again:
            rooms.append(room)
        return room
