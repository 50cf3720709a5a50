"""Adding up the measurements of a ladder on the host, for every engine that does not do it on its own device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ldexp
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.cpu import Compared
from spinsim.engine.measuring.cpu_energies import add_over_energy, empty_bins, find_levels, in_units, room_over_energy
from spinsim.engine.measuring.energies import SUMS, is_halved
from spinsim.engine.measuring.reduction import (
    ABSOLUTE,
    CONNECTED,
    LEVELS,
    SAMPLE_AXIS,
    Reduced,
    Source,
    blocks_of,
    merge_blocks,
    tables_of,
)
from spinsim.engine.moves.exchange.ladder import copy_pairs
from spinsim.engine.protocols import Configurations, KeptSpins, LadderMeasurement, LowestStates, Spins, bits_of_one
from spinsim.machine.compiled import kernel, step
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import Bits, States, packed_spins

VALUES_A_WORD: Final = 40  # values that are added up in the time in which a kernel updates a word
_ABSOLUTE, _CONNECTED, _LEVELS = ABSOLUTE, CONNECTED, LEVELS
_OF_CHAINS: Final = ("copy_sums",)
"""Arrays whose copies of one sample stand together in the file, and samples of one copy in memory."""
_ENERGY: Final = Source("energy")
_TOGETHER: Final = 64  # values that are added up side by side
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Sums(NamedTuple):
    """Sums as kernels take them: ``n`` are the places of all samples, one sample after the other."""

    block_sums: Floats  # (terms, blocks, n)
    copy_sums: Floats  # (terms with ``by_copy``, copies, n)
    coldest_sums: Floats  # (judged terms, coldest blocks, samples, copies or pairs)
    level_sums: Floats  # (followed terms, level blocks, levels, n)
    level_squares: Floats
    level_open: Floats  # (followed, levels, n)
    first_value: Floats  # (followed, n)


@step
def raise_to(y, power):  # type: ignore[no-untyped-def]
    """Put |x|, x^2 or x^4 in the place of each x of ``y``, or leave it."""
    if power == _ABSOLUTE:
        for place in range(y.size):
            y[place] = abs(y[place])
    elif power == 2:
        for place in range(y.size):
            y[place] *= y[place]
    elif power == 4:
        for place in range(y.size):
            square = y[place] * y[place]
            y[place] = square * square


@step
def connected_squares(overlap, here, pairs, copies, scale, work, connected):  # type: ignore[no-untyped-def]
    """Write the connected squares of overlaps (pairs, ``here``) into ``connected``.

    They average to the sum over i and j of (<s_i s_j> - <s_i><s_j>)^2: Q_ab^2 - 2 Q_ab Q_ac + Q_ab Q_cd, the mean over
    all choices of copies a, b, c and d that differ, Q_ab being the sum over sites of s_a s_b.

    Sums are of integers, exact in float64: sums over the pairs of each copy, over all pairs, and of squares. ``work``
    is room, (copies + 3, n).
    """
    for row in range(copies + 3):
        for e in range(connected.size):
            work[row, e] = 0.0
    squares, rows, whole = work[copies], work[copies + 1], work[copies + 2]
    for p in range(pairs.shape[0]):
        one, other, of_pair = work[pairs[p, 0]], work[pairs[p, 1]], overlap[p, here]
        for e in range(connected.size):
            x = of_pair[e]
            one[e] += x
            other[e] += x
            squares[e] += x * x
    for copy in range(copies):
        row = work[copy]
        for e in range(connected.size):
            rows[e] += row[e] * row[e]
            whole[e] += row[e]
    choices = copies * (copies - 1.0) * (copies - 2.0) * (copies - 3.0)
    for e in range(connected.size):
        twice = squares[e] * 2.0
        sharing = rows[e] - twice
        apart = whole[e] * whole[e] - 2.0 * twice - 4.0 * sharing
        total = (copies - 2.0) * (copies - 3.0) * twice - 2.0 * (copies - 3.0) * sharing + apart
        connected[e] = total / choices * scale[e]


@step
def follow(c, number, here, sums, squares, waiting):  # type: ignore[no-untyped-def]
    """Add values ``c`` to the levels of their series: sums of 2^l consecutive values, l = 0, 1, ...

    A sum whose other half is yet to come waits; ``number`` counts the values before this one. ``c`` is changed.
    ``here`` are their places among all; ``sums``, ``squares`` and ``waiting`` are (levels, n).
    """
    for level in range(_LEVELS):
        of_level, of_squares, waits = sums[level, here], squares[level, here], waiting[level, here]
        for e in range(c.size):
            of_level[e] += c[e]
            of_squares[e] += c[e] * c[e]
        if (number >> level) & 1 == 0:
            for e in range(c.size):
                waits[e] = c[e]
            return
        for e in range(c.size):
            c[e] = waits[e] + c[e]


@step
def repeat(row, repeated):  # type: ignore[no-untyped-def]
    """Fill ``repeated`` with a row (places,) again and again."""
    for first in range(0, repeated.size, row.size):
        for place in range(row.size):
            repeated[first + place] = row[place]


@step
def find_values(rooms, term, chain, of_copies, of_pairs, tables, pairs, here, work):  # type: ignore[no-untyped-def]
    """Put the values of a term and a copy or pair into the first of ``rooms``; others are as ``add_term`` has them."""
    y, scale, of_other, shift = rooms[0], rooms[3], rooms[4], rooms[5]
    chosen, kind = of_pairs if tables.of_pairs[term] else of_copies, tables.power[term]
    a, b = tables.first[term], tables.second[term]
    if kind == _CONNECTED:
        connected_squares(chosen[a], here, pairs, of_copies.shape[1], scale, work, y)
    elif b >= 0:
        one, other = chosen[a, chain, here], chosen[b, chain, here]
        for e in range(y.size):
            y[e] = scale[e] * one[e] + of_other[e] * other[e] + shift[e]
        raise_to(y, kind)
    else:
        one = chosen[a, chain, here]
        for e in range(y.size):
            y[e] = scale[e] * one[e] + shift[e]
        raise_to(y, kind)


@step
def add_term(  # type: ignore[no-untyped-def]
    rooms, work, term, of_copies, of_pairs, tables, pairs, sums, number, blocks, here, first, column, pair_column,
    scale_of_sums, values, pair_values,
):  # fmt: skip
    """Add a term of some samples, whose places stand side by side: none waits for another in the innermost loops.

    Args:
        rooms: Room for values, of each of these places: (6, n).
        work: Room for ``connected_squares``.
        here: These places among those of all samples.
        column, pair_column: Where sums over energy take values of the term, -1 where they do not.
        values, pair_values: Room for these, as ``room_over_energy`` makes it.
    """
    places, kind = tables.constant.shape[1], tables.power[term]
    track, own, cold = tables.followed[term], tables.by_copy[term], tables.judged[term]
    y, z, added, total = rooms[0], rooms[1], rooms[2], sums.block_sums[term, blocks.block, here]
    n = y.size
    repeat(tables.scales[term, 0], rooms[3])
    repeat(tables.scales[term, 1], rooms[4])
    repeat(tables.constant[term], rooms[5])
    for e in range(n):
        added[e] = 0.0
    chains = of_pairs.shape[1] if tables.of_pairs[term] else of_copies.shape[1]
    for chain in range(1 if kind == _CONNECTED else chains):
        find_values(rooms, term, chain, of_copies, of_pairs, tables, pairs, here, work)
        for e in range(n):
            total[e] += y[e]
            added[e] += y[e]
        if own >= 0:
            of_chain = sums.copy_sums[own, chain, here]
            for e in range(n):
                of_chain[e] += y[e]
        if column >= 0:
            in_units(y, scale_of_sums, values[chain, column])
        if pair_column >= 0:
            in_units(y, scale_of_sums, pair_values[chain, pair_column])
        if cold >= 0:
            for k in range(n // places):
                sums.coldest_sums[cold, blocks.coldest_block, first + k, chain] += y[k * places]
    if track >= 0:
        start = sums.first_value[track, here]
        for e in range(n):
            if number == 0:
                start[e] = added[e]
            z[e] = added[e] - start[e]
        follow(
            z, number, here, sums.level_sums[track, blocks.level_block],
            sums.level_squares[track, blocks.level_block], sums.level_open[track],
        )  # fmt: skip


@step
def add_walks(place, places, sums, squares, begin, end):  # type: ignore[no-untyped-def]
    """Add 2 place - places + 1 of some samples' replicas, and its squares, from ``place`` (samples, replicas).

    ``sums`` (samples, replicas) are those of the present block, ``squares`` (samples,) of the whole run.
    """
    for sample in range(begin, end):
        for replica in range(place.shape[1]):
            c = 2 * np.int64(place[sample, replica]) - places + 1
            sums[sample, replica] += c
            squares[sample] += c * c


@step
def add_overlaps(values, numbers, cell, histogram, begin, end):  # type: ignore[no-untyped-def]
    """Count overlaps of some samples in a ``histogram`` (samples, places, cells); without cells none.

    The overlaps are source ``numbers`` of ``values`` (sources, pairs, places of all samples), and ``cell`` (values,) is
    the cell of each value -n, -n + 2, ..., n.
    """
    most, places = cell.size - 1, histogram.shape[1]
    for sample in range(begin, end if cell.size else begin):
        for pair in range(values.shape[1]):
            of_pair = values[numbers, pair, sample * places : (sample + 1) * places]
            for place in range(places):
                histogram[sample, place, cell[np.uint64((np.int64(of_pair[place]) + most) >> 1)]] += np.uint32(1)


@kernel
def add_measurement(  # type: ignore[no-untyped-def]
    of_copies, of_pairs, energy, tables, pairs, sums, over_energy, walks, overlaps, links, scale, number, blocks, place,
    begin, end,
):  # fmt: skip
    """Add some samples, from ``begin`` to before ``end``, of measurement ``number``, a few of them at a time.

    Args:
        of_copies, of_pairs: Values of all sources, where they are of the one or the other kind, (sources, copies, n)
            and (sources, pairs, n), n being the places of all samples.
        energy: Of copies, (copies, n).
        walks: Sums and squares of ``add_walks``, the sums of all blocks.
        overlaps, links: Source, cells and histogram of ``add_overlaps``.
        scale: 1 / unit of sums over energy.
        place: Of each replica, (samples, replicas).
    """
    copies, places, has_energies = of_copies.shape[1], tables.constant.shape[1], over_energy.of_copies.size > 0
    together = min(max(1, _TOGETHER // places), end - begin)
    rooms, work = np.empty((6, together * places)), np.empty((copies + 3, together * places))
    levels, values, pair_values = room_over_energy(over_energy, copies, pairs.shape[0], together * places)
    for first in range(begin, end, together):
        several = min(together, end - first)
        if several < together:  # the last ones
            rooms, values = rooms[:, : several * places].copy(), values[:, :, : several * places].copy()
            pair_values = pair_values[:, :, : several * places].copy()
        if has_energies:
            find_levels(energy, over_energy, number, first, several, levels)
        here = slice(first * places, (first + several) * places)
        for term in range(tables.first.size):
            add_term(
                rooms, work, term, of_copies, of_pairs, tables, pairs, sums, number, blocks, here, first,
                over_energy.column[term], over_energy.pair_column[term], scale, values, pair_values,
            )  # fmt: skip
        if has_energies:
            add_over_energy(over_energy, blocks.energy_block, first, several, pairs, levels, values, pair_values)
    add_walks(place, places, walks[0][0, blocks.walk_block], walks[1], begin, end)
    add_overlaps(of_pairs, overlaps[0], overlaps[1], overlaps[2], begin, end)
    add_overlaps(of_pairs, links[0], links[1], links[2], begin, end)


_BY_KERNEL: Final = (
    "energy", "magnetization", "staggered_magnetization", "magnetization_mode", "overlap", "link_overlap",
    "overlap_mode",
)  # fmt: skip
"""Sources that a kernel takes from a measurement of an engine of the CPU."""


@kernel
def fill_values(  # type: ignore[no-untyped-def]
    which, elements, copies, pairs, energies, energy, magnetization, staggered, overlap, links, modes, begin, end
):
    """Fill in values of sources of some samples, (sources, copies or pairs, samples, places).

    Args:
        which: Of each source its number among ``_BY_KERNEL``, -1 for others.
        elements: Axes of each source that are added up, in turn, -1 for none, (sources, axes).
        copies, pairs: Written.
        energies: Of copies, written.
        energy, magnetization, staggered, overlap, links, modes: Of ``LadderMeasurement`` and ``Compared``.
    """
    for k in range(which.size):
        for sample in range(begin, end):
            if which[k] == 0:
                fill_one(energy[sample], energies[:, sample])
            elif which[k] == 1:
                fill_one(magnetization[sample], copies[k, :, sample])
            elif which[k] == 2:
                fill_one(staggered[sample], copies[k, :, sample])
            elif which[k] == 3:
                add_axes(modes[:, sample, overlap.shape[1] :], elements[k], copies[k, :, sample])
            elif which[k] == 4:
                fill_one(overlap[sample], pairs[k, :, sample])
            elif which[k] == 5:
                fill_one(links[sample], pairs[k, :, sample])
            elif which[k] == 6:
                add_axes(modes[:, sample, : overlap.shape[1]], elements[k], pairs[k, :, sample])


@step
def fill_one(values, floats):  # type: ignore[no-untyped-def]
    """Put ``values`` into ``floats``, both (copies or pairs, places), as floats."""
    for chain in range(floats.shape[0]):
        for place in range(floats.shape[1]):
            floats[chain, place] = np.float64(values[chain, place])


@step
def add_axes(values, axes, sums):  # type: ignore[no-untyped-def]
    """Put sums over some axes of ``values`` (axes, copies or pairs, places) into ``sums``."""
    for chain in range(sums.shape[0]):
        for place in range(sums.shape[1]):
            total = values[axes[0], chain, place]
            for each in axes[1:]:
                if each >= 0:
                    total += values[each, chain, place]
            sums[chain, place] = total


@kernel
def find_lower(quantum, lowest, better, energy, begin, end):  # type: ignore[no-untyped-def]
    """Keep lower energies of some samples' replicas, and find the samples that have lower ones than all before.

    Args:
        lowest: Lowest energies of all samples so far, (samples, replicas).
        better: Set to the first replica that has the lowest energy of its sample, if that is new, else to -1.
        energy: Of these samples, (samples, replicas).
    """
    for sample in range(begin, end):
        before, least, which, row = np.inf, np.inf, -1, lowest[sample]
        for r in range(row.size):
            now = np.float64(energy[sample - begin, r]) * quantum
            before = min(before, row[r])
            if now < least:
                least, which = now, r
            row[r] = min(row[r], now)
        better[sample] = which if least < before else -1


def fill(room: Floats, measurement: LadderMeasurement, source: Source, samples: slice) -> None:
    """Put the values of a source and some samples into ``room``, (copies or pairs, samples, places)."""
    whole = getattr(measurement, source.name, None)
    if whole is None:
        whole = getattr(measurement.correlations, source.name)
    room, whole = room[:, samples], whole[samples].swapaxes(0, 1)
    if not source.elements:
        room[...] = whole
        return
    first, *others = source.elements
    room[...] = whole[..., first]
    for element in others:
        room += whole[..., element]


class HostReduction:
    """Adds measurements up in the memory of the host, and keeps the lowest states that they met.

    Args:
        threads: Samples are added up side by side; by default one after the other.
    """

    def __init__(self, reduced: Reduced, threads: Threads | None = None) -> None:
        self.reduced, self.measurements, self._threads = reduced, 0, threads or Threads(1)
        samples, places, sources = reduced.model.samples, reduced.places, reduced.sources
        self._tables, self._bins = tables_of(reduced), empty_bins(reduced)
        shapes = reduced.arrays()
        sums = Sums(*(np.zeros(_side_by_side(name, shapes[name][0])) for name in Sums._fields))
        there: dict[str, npt.NDArray[Any]] = {
            name: _by_sample(name, array, samples, places) for name, array in sums._asdict().items()
        }
        if reduced.energies is not None:
            there |= self._bins.arrays(reduced.copies, reduced.energies.pair_rows)
        self._arrays = {name: there[name] if name in there else np.zeros(*shape) for name, shape in shapes.items()}
        pairs = {source for term in reduced.terms for source in term.sources if term.of_pairs}
        self._of_copies = np.zeros((len(sources), reduced.copies, samples, places))
        self._of_pairs = np.zeros((len(sources), reduced.pairs, samples, places))
        rooms = [self._of_pairs if source in pairs else self._of_copies for source in sources]
        self._rooms = [(source, room[k]) for k, (source, room) in enumerate(zip(sources, rooms, strict=True))]
        energy = dict(self._rooms).get(_ENERGY)
        if energy is None:
            energy = np.zeros((reduced.copies, samples, places))
            self._rooms.append((_ENERGY, energy))
        rows = (room.reshape(*room.shape[:-2], samples * places) for room in (self._of_copies, self._of_pairs, energy))
        which = [_BY_KERNEL.index(source.name) if source.name in _BY_KERNEL else -1 for source, _ in self._rooms]
        self._others = [room for room, is_other in zip(self._rooms, np.array(which) < 0, strict=True) if is_other]
        axes = max(1, *(len(source.elements) for source, _ in self._rooms))
        elements = [(*source.elements, *(-1,) * axes)[:axes] for source, _ in self._rooms]
        self._fill = fill_values.given(np.array(which), np.array(elements), self._of_copies, self._of_pairs, energy)
        walks = self._arrays["walk_sums"], self._arrays["walk_squares"]
        self._add = add_measurement.given(
            *rows, self._tables, np.array(copy_pairs(reduced.copies), np.int64).reshape(-1, 2), sums,
            self._bins, walks, self._histogram("overlap"), self._histogram("link_overlap"),
        )  # fmt: skip
        values = sum(reduced.pairs if term.of_pairs else reduced.copies for term in reduced.terms)
        self._words = samples * places * values // VALUES_A_WORD
        self._best, self._changed = Best(reduced.model, reduced.copies * places), np.zeros(samples, np.bool_)
        self._better = np.empty(samples, np.int64)
        self._find_lower = find_lower.given(np.float64(reduced.model.quantum), self._best.energy, self._better)

    def add(self, measurement: LadderMeasurement) -> None:
        """Add a measurement, the next one of the run, and keep the states that are lower than all before."""
        self.add_numbers(measurement)
        self._changed[self._best.update(measurement.replica_energy, measurement.spins)] = True

    def add_numbers(self, measurement: LadderMeasurement) -> None:
        """Add the numbers of a measurement alone, such as one that series hold."""

        def add(begin: int, end: int) -> None:
            self.add_samples(measurement, self.measurements, slice(begin, end))

        self._threads.share_out(add, self.reduced.model.samples, self._words)
        self.end(1)

    def keep_lowest(self, energy: Integers, spins: Spins, samples: slice) -> None:
        """Keep the states of some samples that are lower than all before, of energies (samples, replicas) in quanta."""
        better = self._better[samples]
        self._find_lower(energy, samples.start, samples.stop)
        for k in np.flatnonzero(better >= 0).tolist() if (better >= 0).any() else ():
            self._best.record(samples.start + k, int(better[k]), spins)
            self._changed[samples.start + k] = True

    def end(self, measurements: int) -> None:
        self.measurements += measurements
        self._arrays["measurements"][:] = self.measurements

    def add_samples(
        self, measurement: LadderMeasurement, number: int, mine: slice, compared: Compared | None = None
    ) -> None:
        """Add the numbers of some samples of measurement ``number``; ``compared`` has what engines of the CPU made."""
        arrays, reduced, scale = self._arrays, self.reduced, 1.0
        blocks, merged = blocks_of(reduced, number)
        for name in merged:
            merge_blocks(_of_samples(name, arrays[name], mine), 1)
        if reduced.energies is not None:
            scale = ldexp(1.0, reduced.energies.exponent(number))
            if is_halved(number):
                for name in SUMS:
                    if name in arrays:
                        halved = _of_samples(name, arrays[name], mine)
                        halved >>= 1
        if compared is not None:
            self._fill(*measurement[:3], *compared, mine.start, mine.stop)
        for source, room in self._rooms if compared is None else self._others:
            fill(room, measurement, source, mine)
        self._add(scale, number, blocks, measurement.exchange.place, mine.start, mine.stop)

    def _histogram(self, name: str) -> tuple[int, npt.NDArray[np.uint32], npt.NDArray[Any]]:
        """Source, cells of its values and histogram of an overlap, without cells where there is none."""
        for one in self.reduced.histograms:
            if one.source == name:
                cell = (np.arange(one.values) * one.cells // one.values).astype(np.uint32)
                return self.reduced.sources.index(Source(name)), cell, self._arrays[f"{name}_histogram"]
        return 0, np.empty(0, np.uint32), np.empty((0, 0, 0), np.uint32)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {name: array.copy() for name, array in self._arrays.items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, array in self._arrays.items():
            array[...] = arrays[name]
        self.measurements = int(self._arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        changed = np.flatnonzero(self._changed)
        self._changed[:] = False
        return LowestStates(self._best.energy.copy(), lambda sample: self._best.spins[sample], changed)

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        self._best.energy[...] = energy
        if isinstance(self._best.spins, States):
            self._best.spins.bits[...] = spins.bits if isinstance(spins, States) else packed_spins(spins)
        else:
            self._best.spins[...] = spins
        self._changed[:] = False


def _side_by_side(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of an array of ``Sums``, from that of the arrays of ``Reduced``."""
    if name == "coldest_sums":
        return shape
    *before, samples, places = shape if name not in _OF_CHAINS else (*shape[:-3], shape[-2], shape[-3], shape[-1])
    return *before, samples * places


def _by_sample(name: str, array: Floats, samples: int, places: int) -> Floats:
    """View an array of ``Sums`` as an array of ``Reduced``."""
    if name == "coldest_sums":
        return array
    apart = array.reshape(*array.shape[:-1], samples, places)
    return np.moveaxis(apart, -3, -2) if name in _OF_CHAINS else apart


def _of_samples(name: str, array: npt.NDArray[Any], samples: slice) -> npt.NDArray[Any]:
    return array[(slice(None),) * SAMPLE_AXIS.get(name, 0) + (samples,)]


class Best:
    """Keeps the lowest energy of every replica and the configuration of the lowest of every sample.

    Args:
        samples: How many there are, if not those of the model.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
    """

    def __init__(self, model: Ising, replicas: int, samples: int | None = None) -> None:
        rows = samples or model.samples
        self.energy = np.full((rows, replicas), np.inf)
        self._spins: npt.NDArray[np.int8] | States
        if model.graph.is_listed:
            self._spins = np.zeros((rows, model.sites), np.int8)
        else:
            self._spins = States(np.zeros((rows, -(-model.sites // 8)), np.uint8), model.sites)
        self._on_device: dict[
            int, Callable[[], Bits]
        ] = {}  # what reads states that have not left their device, by sample

    @property
    def spins(self) -> npt.NDArray[np.int8] | States:
        """Configurations of lowest energy, ``int8`` (samples, sites); the first met among equals.

        ``States`` of a lattice whose bonds are not listed, as in the files of its runs.
        """
        if isinstance(self._spins, States):
            for sample, read in self._on_device.items():
                self._spins.bits[sample] = read()
            self._on_device.clear()
        return self._spins

    @spins.setter
    def spins(self, states: npt.NDArray[np.int8] | States) -> None:
        self._spins = states
        self._on_device.clear()

    def update(self, energy: npt.NDArray[np.float64], spins: Spins) -> npt.NDArray[np.int64]:
        """Take in energies (samples, replicas) and their configurations; return the samples with lower ones."""
        better = np.flatnonzero(energy.min(axis=1) < self.energy.min(axis=1))
        np.minimum(self.energy, energy, out=self.energy)
        for sample in better.tolist():
            self.record(sample, int(energy[sample].argmin()), spins)
        return better

    def record(self, sample: int, replica: int, spins: Spins) -> None:
        """Take the configuration of a replica as the one of lowest energy of its sample."""
        if not isinstance(self._spins, States):
            self._spins[sample] = spins(sample, replica)
        elif isinstance(spins, KeptSpins) and spins.copied is not None:
            self._on_device[sample] = spins.copied(sample, replica)
        else:
            self._spins.bits[sample] = bits_of_one(spins, sample, replica)
