"""Adding up the measurements of a ladder on the host, for every engine that does not do it on its own device."""

from __future__ import annotations

from collections.abc import Mapping
from math import ldexp
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.bits import States, packed_spins
from spinsim.engine.measuring.cpu_energies import add_energies
from spinsim.engine.measuring.energies import RANGE, SUMS, Energies, is_halved
from spinsim.engine.measuring.lowest import Best
from spinsim.engine.measuring.reduction import (
    ABSOLUTE,
    CONNECTED,
    LEVELS,
    Reduced,
    Source,
    blocks_of,
    empty_arrays,
    merge_blocks,
    tables_of,
)
from spinsim.engine.moves.exchange.ladder import copy_pairs
from spinsim.engine.protocols import Configurations, LadderMeasurement, LowestStates
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads

VALUES_A_WORD: Final = 8
"""Values that are added up in the time in which a kernel updates a word."""
_ABSOLUTE, _CONNECTED, _LEVELS = ABSOLUTE, CONNECTED, LEVELS
_NOTHING: Final = np.zeros((0, 1, 1, 1), np.int64)
"""Sums over the energies of pairs, where there are none."""


@part
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


@part
def connected_squares(overlap, pairs, copies, scale, work, found):  # type: ignore[no-untyped-def]
    """The connected squares of the overlaps (pairs, places) of one sample, as ``observables.moments`` has them.

    Sums are of integers, exact in float64: sums over the pairs of each copy, over all pairs, and of squares. ``work``
    is room, (copies + 3, places).
    """
    work[:] = 0.0
    squares, rows, whole = work[copies], work[copies + 1], work[copies + 2]
    for p in range(pairs.shape[0]):
        one, other, of_pair = work[pairs[p, 0]], work[pairs[p, 1]], overlap[p]
        for place in range(found.size):
            x = of_pair[place]
            one[place] += x
            other[place] += x
            squares[place] += x * x
    for copy in range(copies):
        row = work[copy]
        for place in range(found.size):
            rows[place] += row[place] * row[place]
            whole[place] += row[place]
    choices = copies * (copies - 1.0) * (copies - 2.0) * (copies - 3.0)
    for place in range(found.size):
        twice = squares[place] * 2.0
        sharing = rows[place] - twice
        apart = whole[place] * whole[place] - 2.0 * twice - 4.0 * sharing
        total = (copies - 2.0) * (copies - 3.0) * twice - 2.0 * (copies - 3.0) * sharing + apart
        found[place] = total / choices * scale[place]


@part
def follow(c, number, sums, squares, waiting):  # type: ignore[no-untyped-def]
    """Add values ``c`` (places,) to the levels of their series: sums of 2^l consecutive values, l = 0, 1, ...

    A sum whose other half is yet to come waits; ``number`` counts the values before this one. ``c`` is changed.
    """
    for level in range(_LEVELS):
        of_level, of_squares, waits = sums[level], squares[level], waiting[level]
        for place in range(c.size):
            of_level[place] += c[place]
            of_squares[place] += c[place] * c[place]
        if (number >> level) & 1 == 0:
            waits[:] = c
            return
        for place in range(c.size):
            c[place] = waits[place] + c[place]


@kernel
def add_terms(  # type: ignore[no-untyped-def]
    of_copies, of_pairs, first, second, scales, constant, power, is_of_pairs, followed, by_copy, judged, pairs,
    number, block, level_block, coldest_block, block_sums, copy_sums, coldest_sums, level_sums, level_squares,
    level_open, first_value, begin, end,
):  # fmt: skip
    """Add the terms of some samples, from ``begin`` to before ``end``, of measurement ``number``.

    ``of_copies`` (sources, samples, copies, places) and ``of_pairs`` (sources, samples, pairs, places) hold the values
    of all sources, where they are of the one or the other kind; the others are arrays of ``Reduced.arrays`` and
    ``Tables``. Places stand in the innermost loops, where none waits for another.
    """
    copies, places, apart = of_copies.shape[2], of_copies.shape[3], level_open.shape[3] > 1
    y, added, z, work = np.empty(places), np.empty(places), np.empty(places), np.empty((copies + 3, places))
    for sample in range(begin, end):
        for term in range(first.size):
            values = of_pairs if is_of_pairs[term] else of_copies
            a, b, kind, track, own = first[term], second[term], power[term], followed[term], by_copy[term]
            cold, total = judged[term], block_sums[term, block, sample]
            chains = 1 if kind == _CONNECTED else values.shape[2]
            added[:] = 0.0
            for chain in range(chains):
                if kind == _CONNECTED:
                    connected_squares(values[a, sample], pairs, copies, scales[term, 0], work, y)
                else:
                    one, shift, scale = values[a, sample, chain], constant[term], scales[term, 0]
                    if b >= 0:
                        other, of_other = values[b, sample, chain], scales[term, 1]
                        for place in range(places):
                            y[place] = scale[place] * one[place] + of_other[place] * other[place] + shift[place]
                    else:
                        for place in range(places):
                            y[place] = scale[place] * one[place] + shift[place]
                    raise_to(y, kind)
                for place in range(places):
                    total[place] += y[place]
                    added[place] += y[place]
                if own >= 0:
                    of_chain = copy_sums[own, sample, chain]
                    for place in range(places):
                        of_chain[place] += y[place]
                if cold >= 0:
                    coldest_sums[cold, coldest_block, sample, chain] += y[0]
                if track >= 0 and (apart or chain == chains - 1):
                    z[:] = y if apart else added
                    start = first_value[track, sample]
                    if number == 0 and (chain == 0 or not apart):
                        start[:] = z
                    for place in range(places):
                        z[place] -= start[place]
                    follow(
                        z,
                        number,
                        level_sums[track, level_block, :, sample],
                        level_squares[track, level_block, :, sample],
                        level_open[track, :, sample, chain if apart else 0],
                    )


@kernel
def add_walks(place, places, sums, squares, begin, end):  # type: ignore[no-untyped-def]
    """Add 2 place - places + 1 of some samples' replicas, and its squares, from ``place`` (samples, replicas).

    ``sums`` (samples, replicas) are those of the present block, ``squares`` (samples,) of the whole run.
    """
    for sample in range(begin, end):
        for replica in range(place.shape[1]):
            c = np.int64(2 * place[sample, replica] - places + 1)
            sums[sample, replica] += c
            squares[sample] += c * c


@kernel
def add_overlaps(overlap, cell, histogram, begin, end):  # type: ignore[no-untyped-def]
    """Count overlaps (samples, pairs, places) of some samples in a ``histogram`` (samples, places, cells).

    ``cell`` (values,) is the cell of each value -n, -n + 2, ..., n.
    """
    most = cell.size - 1
    for sample in range(begin, end):
        for pair in range(overlap.shape[1]):
            of_pair = overlap[sample, pair]
            for place in range(of_pair.size):
                histogram[sample, place, cell[np.uint64((of_pair[place] + most) >> 1)]] += np.uint32(1)


def fill(room: npt.NDArray[np.float64], measurement: LadderMeasurement, source: Source) -> None:
    """Put the values of a source into ``room``, (samples, copies or pairs, places)."""
    whole = getattr(measurement, source.name, None)
    if whole is None:
        whole = getattr(measurement.correlations, source.name)
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
        reduced: What is added up.
        threads: Samples are added up side by side; by default one after the other.

    Attributes:
        reduced: As given.
        measurements: How many have been added.
    """

    def __init__(self, reduced: Reduced, threads: Threads | None = None) -> None:
        self.reduced, self.measurements, self._threads = reduced, 0, threads or Threads(1)
        self._tables, self._arrays = tables_of(reduced), empty_arrays(reduced)
        samples, places, sources = reduced.model.samples, reduced.places, reduced.sources
        pairs = {source for term in reduced.terms for source in term.sources if term.of_pairs}
        self._of_copies = np.zeros((len(sources), samples, reduced.copies, places))
        self._of_pairs = np.zeros((len(sources), samples, reduced.pairs, places))
        rooms = [self._of_pairs if source in pairs else self._of_copies for source in sources]
        self._rooms = [(source, room[k]) for k, (source, room) in enumerate(zip(sources, rooms, strict=True))]
        self._cells = {
            one.source: (np.arange(one.values) * one.cells // one.values).astype(np.uint32)
            for one in reduced.histograms
        }
        values = sum(reduced.pairs if term.of_pairs else reduced.copies for term in reduced.terms)
        self._words = samples * places * values // VALUES_A_WORD
        self._pairs = np.array(copy_pairs(reduced.copies), np.int64).reshape(-1, 2)
        self._best, self._changed = Best(reduced.model, reduced.copies * places), np.zeros(samples, np.bool_)

    def add(self, measurement: LadderMeasurement) -> None:
        """Add a measurement, the next one of the run, and keep the states that are lower than all before."""
        self.add_numbers(measurement)
        self._changed[self._best.update(measurement.replica_energy, measurement.spins)] = True

    def add_numbers(self, measurement: LadderMeasurement) -> None:
        """Add the numbers of a measurement alone, such as one that series hold."""
        arrays, number, reduced = self._arrays, self.measurements, self.reduced
        blocks, merged = blocks_of(reduced, number)
        for name in merged:
            merge_blocks(arrays[name], 1)
        for source, room in self._rooms:
            fill(room, measurement, source)
        place = np.ascontiguousarray(measurement.exchange.place, np.int64)
        energies, energy = reduced.energies, np.asarray(measurement.energy, np.float64)
        if energies is not None and is_halved(number):
            for name in SUMS:
                if name in arrays:
                    arrays[name] >>= 1
        walk_sums = arrays["walk_sums"][0, blocks.walk_block]
        overlaps = [getattr(measurement.correlations, one.source) for one in reduced.histograms]

        def add(begin: int, end: int) -> None:
            add_terms(
                self._of_copies, self._of_pairs, *self._tables, self._pairs, number, blocks.block,
                blocks.level_block, blocks.coldest_block, arrays["block_sums"], arrays["copy_sums"],
                arrays["coldest_sums"], arrays["level_sums"], arrays["level_squares"], arrays["level_open"],
                arrays["first_value"], begin, end,
            )  # fmt: skip
            add_walks(place, reduced.places, walk_sums, arrays["walk_squares"], begin, end)
            for one, overlap in zip(reduced.histograms, overlaps, strict=True):
                add_overlaps(overlap, self._cells[one.source], arrays[f"{one.source}_histogram"], begin, end)
            if energies is not None:
                self._add_energies(energies, energy, blocks.energy_block, begin, end)

        self._threads.share_out(add, reduced.model.samples, self._words)
        self.measurements += 1
        arrays["measurements"][:] = self.measurements

    def _add_energies(
        self, energies: Energies, energy: npt.NDArray[np.float64], block: int, begin: int, end: int
    ) -> None:
        """Add some samples of a measurement, whose values of sources are there, to the sums over energy."""
        arrays, number, tables = self._arrays, self.measurements, self._tables
        of_copies, of_pairs = (
            [arrays.get(f"{name}_{part}", _NOTHING) for part in ("counts", "sums")]
            for name in ("energy", "energy_pair")
        )
        add_energies(
            energy, self._of_copies, self._of_pairs, tables.first, tables.scales,
            tables.constant, tables.power, energies.row, energies.pair_row, tables.by_copy, self._pairs,
            1 / energies.unit, ldexp(1.0, energies.exponent(number)), number, block, arrays[RANGE], *of_copies,
            *of_pairs, begin, end,
        )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name."""
        return {name: array.copy() for name, array in self._arrays.items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to arrays that ``state`` returned."""
        for name, array in self._arrays.items():
            array[...] = arrays[name]
        self.measurements = int(self._arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        """Return the lowest states met so far."""
        changed = np.flatnonzero(self._changed)
        self._changed[:] = False
        return LowestStates(self._best.energy.copy(), lambda sample: self._best.spins[sample], changed)

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        """Go back to lowest energies (samples, replicas) and the configuration of each sample."""
        self._best.energy[...] = energy
        if isinstance(self._best.spins, States):
            self._best.spins.bits[...] = spins.bits if isinstance(spins, States) else packed_spins(spins)
        else:
            self._best.spins[...] = spins
        self._changed[:] = False
