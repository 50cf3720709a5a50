"""Adding up the measurements of a ladder on the host, for every engine that does not do it on its own device."""

from __future__ import annotations

from collections.abc import Mapping
from math import ldexp
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.bits import States, packed_spins
from spinsim.engine.measuring.cpu_energies import add_energies, power_of
from spinsim.engine.measuring.energies import RANGE, SUMS, Energies, is_halved
from spinsim.engine.measuring.lowest import Best
from spinsim.engine.measuring.reduction import (
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

_CONNECTED, _LEVELS = CONNECTED, LEVELS
_NOTHING: Final = np.zeros((0, 1, 1, 1), np.int64)
"""Sums over the energies of pairs, where there are none."""


@part
def connected_square(overlap, pairs, copies, scale):  # type: ignore[no-untyped-def]
    """The connected square of the overlaps (pairs,) of one sample and place, as ``connected_squares`` has it.

    Sums are of integers, exact in float64: sums over the pairs of each copy, over all pairs, and of squares.
    """
    squares, rows, whole = 0.0, 0.0, 0.0
    for copy in range(copies):
        row = 0.0
        for p in range(pairs.shape[0]):
            if pairs[p, 0] == copy or pairs[p, 1] == copy:
                row += overlap[p]
        rows += row * row
        whole += row
    for p in range(pairs.shape[0]):
        squares += overlap[p] * overlap[p]
    squares *= 2.0
    sharing = rows - squares
    apart = whole * whole - 2.0 * squares - 4.0 * sharing
    choices = copies * (copies - 1.0) * (copies - 2.0) * (copies - 3.0)
    total = (copies - 2.0) * (copies - 3.0) * squares - 2.0 * (copies - 3.0) * sharing + apart
    return total / choices * scale


@part
def follow(c, number, sums, squares, waiting):  # type: ignore[no-untyped-def]
    """Add a value to the levels of its series: sums of 2^l consecutive values, l = 0, 1, ...

    A sum whose other half is yet to come waits; ``number`` counts the values before this one.
    """
    for level in range(_LEVELS):
        sums[level] += c
        squares[level] += c * c
        if (number >> level) & 1 == 0:
            waiting[level] = c
            return
        c = waiting[level] + c


@kernel
def add_terms(  # type: ignore[no-untyped-def]
    of_copies, of_pairs, first, second, scales, constant, power, is_of_pairs, followed, by_copy, judged, pairs,
    number, block, level_block, coldest_block, block_sums, copy_sums, coldest_sums, level_sums, level_squares,
    level_open, first_value, begin, end,
):  # fmt: skip
    """Add the terms of some samples, from ``begin`` to before ``end``, of measurement ``number``.

    ``of_copies`` (sources, samples, copies, places) and ``of_pairs`` (sources, samples, pairs, places) hold the values
    of all sources, where they are of the one or the other kind; the others are arrays of ``Reduced.arrays`` and
    ``Tables``.
    """
    copies, places, apart = of_copies.shape[2], of_copies.shape[3], level_open.shape[3] > 1
    overlap = np.empty(pairs.shape[0])
    for term in range(first.size):
        values = of_pairs if is_of_pairs[term] else of_copies
        a, b, kind, track, own = first[term], second[term], power[term], followed[term], by_copy[term]
        cold = judged[term]
        chains = 1 if kind == _CONNECTED else values.shape[2]
        for sample in range(begin, end):
            for place in range(places):
                total, added = block_sums[term, block, sample, place], 0.0
                for chain in range(chains):
                    if kind == _CONNECTED:
                        for p in range(pairs.shape[0]):
                            overlap[p] = values[a, sample, p, place]
                        y = connected_square(overlap, pairs, copies, scales[term, 0, place])
                    else:
                        x = scales[term, 0, place] * values[a, sample, chain, place]
                        if b >= 0:
                            x = x + scales[term, 1, place] * values[b, sample, chain, place]
                        y = power_of(x + constant[term, place], kind)
                    total = total + y
                    added = added + y
                    if own >= 0:
                        copy_sums[own, sample, chain, place] += y
                    if cold >= 0 and place == 0:
                        coldest_sums[cold, coldest_block, sample, chain] += y
                    if track >= 0 and (apart or chain == chains - 1):
                        z = y if apart else added
                        if number == 0 and (chain == 0 or not apart):
                            first_value[track, sample, place] = z
                        follow(
                            z - first_value[track, sample, place],
                            number,
                            level_sums[track, level_block, :, sample, place],
                            level_squares[track, level_block, :, sample, place],
                            level_open[track, :, sample, chain if apart else 0, place],
                        )
                block_sums[term, block, sample, place] = total


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
def add_overlaps(overlap, values, histogram, begin, end):  # type: ignore[no-untyped-def]
    """Count overlaps (samples, pairs, places) of some samples in a ``histogram`` (samples, places, cells)."""
    cells = histogram.shape[2]
    for sample in range(begin, end):
        for pair in range(overlap.shape[1]):
            for place in range(overlap.shape[2]):
                value = (overlap[sample, pair, place] + values - 1) // 2
                histogram[sample, place, value * cells // values] += np.uint32(1)


def values_of(measurement: LadderMeasurement, source: Source) -> npt.NDArray[np.float64]:
    """Return the values of a source, (samples, copies or pairs, places)."""
    whole = getattr(measurement, source.name, None)
    if whole is None:
        whole = getattr(measurement.correlations, source.name)
    if not source.elements:
        return np.asarray(whole, np.float64)
    first, *others = source.elements
    found = whole[..., first].astype(np.float64)
    for element in others:
        found += whole[..., element]
    return np.asarray(found)


class HostReduction:
    """Adds measurements up in the memory of the host, and keeps the lowest states that they met.

    Args:
        reduced: What is added up.

    Attributes:
        reduced: As given.
        measurements: How many have been added.
    """

    def __init__(self, reduced: Reduced) -> None:
        self.reduced, self.measurements = reduced, 0
        self._tables, self._arrays = tables_of(reduced), empty_arrays(reduced)
        samples, places, sources = reduced.model.samples, reduced.places, reduced.sources
        pairs = {source for term in reduced.terms for source in term.sources if term.of_pairs}
        self._of_copies = np.zeros((len(sources), samples, reduced.copies, places))
        self._of_pairs = np.zeros((len(sources), samples, reduced.pairs, places))
        rooms = [self._of_pairs if source in pairs else self._of_copies for source in sources]
        self._rooms = [(source, room[k]) for k, (source, room) in enumerate(zip(sources, rooms, strict=True))]
        self._pairs = np.asarray(copy_pairs(reduced.copies), np.int64).reshape(-1, 2)
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
            room[...] = values_of(measurement, source)
        samples = reduced.model.samples
        add_terms(
            self._of_copies, self._of_pairs, *self._tables, self._pairs, number, blocks.block,
            blocks.level_block, blocks.coldest_block, arrays["block_sums"], arrays["copy_sums"],
            arrays["coldest_sums"], arrays["level_sums"], arrays["level_squares"], arrays["level_open"],
            arrays["first_value"], 0, samples,
        )  # fmt: skip
        place = np.ascontiguousarray(measurement.exchange.place, np.int64)
        add_walks(place, reduced.places, arrays["walk_sums"][0, blocks.walk_block], arrays["walk_squares"], 0, samples)
        for one in reduced.histograms:
            overlap = getattr(measurement.correlations, one.source)
            add_overlaps(overlap, one.values, arrays[f"{one.source}_histogram"], 0, samples)
        if reduced.energies is not None:
            self._add_energies(reduced.energies, measurement, blocks.energy_block)
        self.measurements += 1
        arrays["measurements"][:] = self.measurements

    def _add_energies(self, energies: Energies, measurement: LadderMeasurement, block: int) -> None:
        """Add a measurement, whose values of sources are there, to the sums over energy."""
        arrays, number, tables = self._arrays, self.measurements, self._tables
        if is_halved(number):
            for name in SUMS:
                if name in arrays:
                    arrays[name] >>= 1
        of_copies, of_pairs = (
            [arrays.get(f"{name}_{part}", _NOTHING) for part in ("counts", "sums")]
            for name in ("energy", "energy_pair")
        )
        add_energies(
            np.asarray(measurement.energy, np.float64), self._of_copies, self._of_pairs, tables.first, tables.scales,
            tables.constant, tables.power, energies.row, energies.pair_row, tables.by_copy, self._pairs,
            1 / energies.unit, ldexp(1.0, energies.exponent(number)), number, block, arrays[RANGE], *of_copies,
            *of_pairs, 0, self.reduced.model.samples,
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
