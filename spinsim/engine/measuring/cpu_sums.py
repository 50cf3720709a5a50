"""Kernels of the CPU that add measurements of a ladder to the sums of reduction.py.

Sums over energy are stored with all numbers of a bin contiguous, a *column* each, so that a value adds to all of them
at once:

    of_copies[block, sample, bin]    measurements of each copy, the sum of levels, sums
    of_pairs[block, sample, bin]     pairs and measurements, the sum of levels, sums, room up to a multiple of LANES
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.reduction import ABSOLUTE, CONNECTED, COUNTS, LEVELS, RANGE, SUMS, Blocks, Reduced
from spinsim.machine.compiled import kernel, part, step

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_TOGETHER: Final = 64  # values added up together
LANES: Final = 8  # columns added together
_COUNTED: Final = 2  # columns of pairs before the columns of terms


class EnergyBins(NamedTuple):
    """Sums over energy as kernels take them; without bins if there are none."""

    column: Integers  # number of each term among the copy terms that are added up, else -1, (terms,)
    pair_column: Integers  # column of each pair term, in the same form
    rows: Integers  # first column of each of these terms, and the distance to the next copy's, (copy terms, 2)
    places: int  # places of one sample
    inverse: float  # 1 / unit of levels
    ranges: Integers  # lowest and highest level, (samples, 2)
    of_copies: Integers  # (blocks, samples, bins, columns)
    of_pairs: Integers  # (blocks, samples, bins, columns); no columns without pairs

    def arrays(self, copies: int, pair_rows: int) -> dict[str, Integers]:
        """Views of all arrays by name, as in ``Energies.arrays``."""
        counts, sums = (np.moveaxis(part, -1, 0) for part in np.split(self.of_copies, [copies + 1], axis=-1))
        arrays = {RANGE: self.ranges, COUNTS[0]: counts, SUMS[0]: sums}
        if pair_rows:
            columns = np.moveaxis(self.of_pairs, -1, 0)
            arrays |= {COUNTS[1]: columns[:_COUNTED], SUMS[1]: columns[_COUNTED : _COUNTED + pair_rows]}
        return arrays


def empty_bins(reduced: Reduced) -> EnergyBins:
    """Return empty sums over energy, before the first measurement."""
    terms, samples, copies, energies = reduced.terms, reduced.model.samples, reduced.copies, reduced.energies
    column, pair_column = np.full(len(terms), -1), np.full(len(terms), -1)
    if energies is None:
        rows, ranges, none = np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), np.empty((1, 0, 0, 0), np.int64)
        return EnergyBins(column, pair_column, rows, reduced.places, 1.0, ranges, none, none)
    of_terms: list[tuple[int, int]] = []
    for k, term in enumerate(terms):
        if energies.row[k] >= 0:
            column[k] = len(of_terms)
            of_terms.append((copies + 1 + energies.row[k], int(term.by_copy)))
        if energies.pair_row[k] >= 0:
            pair_column[k] = _COUNTED + energies.pair_row[k]
    width = -(-(_COUNTED + energies.pair_rows) // LANES) * LANES if energies.pair_rows else 0
    shape = energies.blocks, samples
    return EnergyBins(
        column, pair_column, np.array(of_terms, np.int64).reshape(-1, 2), reduced.places, 1 / energies.unit,
        np.zeros((samples, 2), np.int64), np.zeros((*shape, energies.bins, copies + 1 + energies.rows), np.int64),
        np.zeros((*shape, 2 * energies.bins, width), np.int64),
    )  # fmt: skip


@step
def shift_over(low, high, bins):  # type: ignore[no-untyped-def]
    """Return ``shift_of``, compiled."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


@part
def widen(sums, low, high, shift, wider):  # type: ignore[no-untyped-def]
    """Add bins of ``sums`` (bins, columns) that share a bin of a larger shift; levels go from ``low`` to ``high``."""
    bins = sums.shape[0]
    room = np.zeros(sums.shape, np.int64)
    for number in range(low >> shift, (high >> shift) + 1):
        room[(number >> (wider - shift)) & (bins - 1)] += sums[number & (bins - 1)]
    sums[:] = room


@part
def room_over_energy(bins, copies, pairs, n):  # type: ignore[no-untyped-def]
    """Allocate levels (copies, n), copy terms (copies, terms, n) and pair terms (pairs, columns, n)."""
    if not bins.of_copies.size:
        n = 0
    width = bins.of_pairs.shape[3]
    levels, of_copies = np.empty((copies, n), np.int64), np.empty((copies, bins.rows.shape[0], n), np.int64)
    of_pairs = np.zeros((pairs if width else 0, width, n), np.int64)
    of_pairs[:, :1] = 1
    return levels, of_copies, of_pairs


@part
def find_levels(energy, bins, number, first, samples, levels):  # type: ignore[no-untyped-def]
    """Find the ``levels`` (copies, places) of energies of some samples; widen bins that cannot hold them.

    ``energy`` (copies, places of all samples) belongs to measurement ``number``. ``first`` is the number of the first
    sample.
    """
    copies, places, number_of_bins = energy.shape[0], bins.places, bins.of_copies.shape[2]
    n = samples * places
    for chain in range(copies):
        of_chain, row = energy[chain, first * places : first * places + n], levels[chain, :n]
        for e in range(n):
            row[e] = np.int64(np.rint(of_chain[e] * bins.inverse))
    for k in range(samples):
        sample = first + k
        old_low, old_high = bins.ranges[sample, 0], bins.ranges[sample, 1]
        low, high = old_low, old_high
        if number == 0:
            low = high = levels[0, k * places]
        for chain in range(copies):
            for e in range(k * places, (k + 1) * places):
                low, high = min(low, levels[chain, e]), max(high, levels[chain, e])
        shift, old = shift_over(low, high, number_of_bins), shift_over(old_low, old_high, number_of_bins)
        if number > 0 and shift > old:
            for one in range(bins.of_copies.shape[0]):
                widen(bins.of_copies[one, sample], old_low, old_high, old, shift)
                if bins.of_pairs.size:
                    widen(bins.of_pairs[one, sample], 2 * old_low, 2 * old_high, old, shift)
        bins.ranges[sample, 0], bins.ranges[sample, 1] = low, high


@step
def in_units(y, scale, values):  # type: ignore[no-untyped-def]
    """Convert numbers ``y`` (n,) to units of sums, into ``values``."""
    for e in range(y.size):
        values[e] = np.int64(np.rint(y[e] * scale))


@step
def add_over_energy(bins, block, first, samples, pairs, levels, values, pair_values):  # type: ignore[no-untyped-def]
    """Add copy terms and pair terms to the bins of a block.

    Arguments are as in ``find_levels``, and the arrays of ``room_over_energy``.
    """
    copies, places, width = levels.shape[0], bins.places, pair_values.shape[1]
    for k in range(samples):
        table, pair_table = bins.of_copies[block, first + k], bins.of_pairs[block, first + k]
        last, pair_last = np.int64(table.shape[0] - 1), np.int64(pair_table.shape[0] - 1)
        shift = shift_over(bins.ranges[first + k, 0], bins.ranges[first + k, 1], table.shape[0])
        for chain in range(copies):
            terms = values[chain]
            for e in range(k * places, (k + 1) * places):
                level = levels[chain, e]
                to = table[np.uint64((level >> shift) & last)]
                to[chain] += 1
                to[copies] += level
                for j in range(terms.shape[0]):
                    to[bins.rows[j, 0] + bins.rows[j, 1] * chain] += terms[j, e]
        for p in range(pair_values.shape[0]):
            one, other = levels[pairs[p, 0]], levels[pairs[p, 1]]
            for column in range(0, width, LANES):
                terms = pair_values[p, column : column + LANES]
                for e in range(k * places, (k + 1) * places):
                    level = one[e] + other[e]
                    if column == 0:
                        terms[1, e] = level
                    to = pair_table[np.uint64((level >> shift) & pair_last), column : column + LANES]
                    for j in range(LANES):
                        to[j] += terms[j, e]


class Sums(NamedTuple):
    """Sums as kernels take them; ``n`` counts the places of all samples, sample by sample."""

    block_sums: Floats  # (terms, blocks, n)
    copy_sums: Floats  # (terms with ``by_copy``, copies, n)
    coldest_sums: Floats  # (judged terms, coldest blocks, samples, copies or pairs)
    level_sums: Floats  # (followed terms, level blocks, levels, n)
    level_squares: Floats
    level_open: Floats  # (followed, levels, n)
    first_value: Floats  # (followed, n)


@step
def raise_to(y, power):  # type: ignore[no-untyped-def]
    """Replace each x of ``y`` by |x|, x^2 or x^4, or leave it."""
    if power == ABSOLUTE:
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

    They average to the sum over i and j of (<s_i s_j> - <s_i><s_j>)^2: Q_ab^2 - 2 Q_ab Q_ac + Q_ab Q_cd, averaged over
    all different copies a, b, c and d. Q_ab is the sum over sites of s_a s_b.

    Sums are of integers, exact in float64: sums over the pairs of each copy, over all pairs, and of squares. ``work``
    is scratch, (copies + 3, n).
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
    """Add values ``c`` to the levels of their series, which are sums of 2^l consecutive values, l = 0, 1, ...

    A sum waits until its other half is complete. ``number`` counts the earlier values. ``c`` is overwritten. ``here``
    are the places of ``c`` among all; ``sums``, ``squares`` and ``waiting`` are (levels, n).
    """
    for level in range(LEVELS):
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


class Scratch(NamedTuple):
    """Scratch memory of kernels for n places of some samples."""

    rooms: Floats  # values, and two sums of values, (3, n)
    factors: Floats  # both scales and the constant of each term, at each place, (terms, 3, n)
    work: Floats  # scratch of ``connected_squares``, (copies + 3, n)
    levels: Integers  # from ``room_over_energy``, like the last two
    values: Integers
    pair_values: Integers


@part
def scratch_for(tables, over_energy, copies, pairs, samples):  # type: ignore[no-untyped-def]
    """Allocate scratch for ``samples`` samples at a time."""
    terms, places = tables.constant.shape
    factors = np.empty((terms, 3, samples * places))
    for term in range(terms):
        for first in range(0, samples * places, places):
            for place in range(places):
                factors[term, 0, first + place] = tables.scales[term, 0, place]
                factors[term, 1, first + place] = tables.scales[term, 1, place]
                factors[term, 2, first + place] = tables.constant[term, place]
    rooms, work = np.empty((3, samples * places)), np.empty((copies + 3, samples * places))
    levels, values, pair_values = room_over_energy(over_energy, copies, pairs, samples * places)
    return Scratch(rooms, factors, work, levels, values, pair_values)


@part
def scratches_for(tables, over_energy, copies, pairs, samples):  # type: ignore[no-untyped-def]
    """Allocate scratch for the samples added up together, and for the last ones if they are fewer."""
    together = max(1, min(_TOGETHER // tables.constant.shape[1], samples))
    scratch = last = scratch_for(tables, over_energy, copies, pairs, together)
    if samples % together:
        last = scratch_for(tables, over_energy, copies, pairs, samples % together)
    return scratch, last


@step
def find_values(y, factors, term, chain, of_copies, of_pairs, tables, pairs, here, work):  # type: ignore[no-untyped-def]
    """Write the values of a term and a copy or pair into ``y``; other arguments are as in ``add_term``."""
    scale, of_other, shift = factors[0], factors[1], factors[2]
    chosen, kind = of_pairs if tables.of_pairs[term] else of_copies, tables.power[term]
    a, b = tables.first[term], tables.second[term]
    if kind == CONNECTED:
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
    scratch, term, of_copies, of_pairs, tables, pairs, sums, number, blocks, here, first, column, pair_column,
    scale_of_sums,
):  # fmt: skip
    """Add a term of some samples; their contiguous places ``here`` are independent of each other in the inner loops.

    ``column`` and ``pair_column`` are the columns of the term in sums over energy, or -1.
    """
    places, kind = tables.constant.shape[1], tables.power[term]
    track, own, cold = tables.followed[term], tables.by_copy[term], tables.judged[term]
    y, z, added, factors = scratch.rooms[0], scratch.rooms[1], scratch.rooms[2], scratch.factors[term]
    n, total = y.size, sums.block_sums[term, blocks.block, here]
    for e in range(n):
        added[e] = 0.0
    chains = of_pairs.shape[1] if tables.of_pairs[term] else of_copies.shape[1]
    for chain in range(1 if kind == CONNECTED else chains):
        find_values(y, factors, term, chain, of_copies, of_pairs, tables, pairs, here, scratch.work)
        for e in range(n):
            total[e] += y[e]
            added[e] += y[e]
        if own >= 0:
            of_chain = sums.copy_sums[own, chain, here]
            for e in range(n):
                of_chain[e] += y[e]
        if column >= 0:
            in_units(y, scale_of_sums, scratch.values[chain, column])
        if pair_column >= 0:
            in_units(y, scale_of_sums, scratch.pair_values[chain, pair_column])
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

    ``sums`` (samples, replicas) belong to the present block, ``squares`` (samples,) to the whole run.
    """
    for sample in range(begin, end):
        for replica in range(place.shape[1]):
            c = 2 * np.int64(place[sample, replica]) - places + 1
            sums[sample, replica] += c
            squares[sample] += c * c


@step
def add_overlaps(values, numbers, cell, histogram, begin, end):  # type: ignore[no-untyped-def]
    """Count overlaps of some samples in a ``histogram`` (samples, places, cells); no cells: count nothing.

    ``cell`` (values,) is the cell of each value -n, -n + 2, ..., n of source ``numbers`` of ``values``.
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
    """Add samples from ``begin`` to before ``end`` of measurement ``number``, a few of them at a time.

    Args:
        of_copies, of_pairs: Values of all copy sources and pair sources, (sources, copies or pairs, places of all
            samples).
        energy: Energies of copies, (copies, n).
        walks: Sums and squares of ``add_walks``; ``overlaps`` and ``links``: source, cells and histogram of
            ``add_overlaps``.
        place: Place of each replica, (samples, replicas).
    """
    scratch, last = scratches_for(tables, over_energy, of_copies.shape[1], pairs.shape[0], end - begin)
    add_samples(
        of_copies, of_pairs, energy, tables, pairs, sums, over_energy, walks, overlaps, links, scale, number, blocks,
        place, begin, end, scratch, last,
    )  # fmt: skip


@part
def add_samples(  # type: ignore[no-untyped-def]
    of_copies, of_pairs, energy, tables, pairs, sums, over_energy, walks, overlaps, links, scale, number, blocks, place,
    begin, end, scratch, last,
):  # fmt: skip
    """Do ``add_measurement``; if the ``last`` samples are fewer, they have their own scratch."""
    places, has_energies = tables.constant.shape[1], over_energy.of_copies.size > 0
    together = scratch.rooms.shape[1] // places
    for first in range(begin, end, together):
        several = min(together, end - first)
        room = scratch if several == together else last
        if has_energies:
            find_levels(energy, over_energy, number, first, several, room.levels)
        here = slice(first * places, (first + several) * places)
        for term in range(tables.first.size):
            add_term(
                room, term, of_copies, of_pairs, tables, pairs, sums, number, blocks, here, first,
                over_energy.column[term], over_energy.pair_column[term], scale,
            )  # fmt: skip
        if has_energies:
            add_over_energy(
                over_energy, blocks.energy_block, first, several, pairs, room.levels, room.values, room.pair_values
            )
    add_walks(place, places, walks[0][0, blocks.walk_block], walks[1], begin, end)
    add_overlaps(of_pairs, overlaps[0], overlaps[1], overlaps[2], begin, end)
    add_overlaps(of_pairs, links[0], links[1], links[2], begin, end)


@kernel
def fill_values(  # type: ignore[no-untyped-def]
    which, elements, copies, pairs, energies, energy, magnetization, staggered, overlap, links, modes, begin, end
):
    """Fill in the values of sources for some samples, (sources, copies or pairs, samples, places).

    ``which`` is the number of each source in ``BY_KERNEL``, or -1. ``elements`` (sources, axes) are the axes that are
    added up, -1 for none. The six arrays of values are fields of ``LadderMeasurement`` and ``Compared``.
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


@kernel
def add_succession(  # type: ignore[no-untyped-def]
    filling, adding, scale, number, blocks, energy, magnetization, staggered, overlap, links, modes, place
):
    """Fill in and add consecutive measurements of all samples; measurement k has rows from k * samples on.

    Args:
        filling, adding: First arguments of ``fill_values`` and of ``add_measurement``, the same for all.
        number: Number of the first measurement. ``blocks`` (measurements, 5) are the ``Blocks`` of each one.
    """
    which, elements, copies, pairs, energies = filling
    of_copies, of_pairs, of_energy, tables, couples, sums, over_energy, walks, overlaps, links_counted = adding
    samples = place.shape[0] // blocks.shape[0]
    scratch, last = scratches_for(tables, over_energy, of_copies.shape[1], couples.shape[0], samples)
    for k in range(blocks.shape[0]):
        mine, b = slice(k * samples, (k + 1) * samples), blocks[k]
        fill_values(
            which, elements, copies, pairs, energies, energy[mine], magnetization[mine], staggered[mine],
            overlap[mine], links[mine], modes[:, mine], 0, samples,
        )  # fmt: skip
        add_samples(
            of_copies, of_pairs, of_energy, tables, couples, sums, over_energy, walks, overlaps, links_counted, scale,
            number + k, Blocks(b[0], b[1], b[2], b[3], b[4]), place[mine], 0, samples, scratch, last,
        )  # fmt: skip


@step
def fill_one(values, floats):  # type: ignore[no-untyped-def]
    """Convert ``values`` to ``floats``, both (copies or pairs, places)."""
    for chain in range(floats.shape[0]):
        for place in range(floats.shape[1]):
            floats[chain, place] = np.float64(values[chain, place])


@step
def add_axes(values, axes, sums):  # type: ignore[no-untyped-def]
    """Write sums over some axes of ``values`` (axes, copies or pairs, places) into ``sums``."""
    for chain in range(sums.shape[0]):
        for place in range(sums.shape[1]):
            total = values[axes[0], chain, place]
            for each in axes[1:]:
                if each >= 0:
                    total += values[each, chain, place]
            sums[chain, place] = total


@kernel
def find_lower(quantum, lowest, better, moment, energy, begin, end):  # type: ignore[no-untyped-def]
    """Keep lower energies of some samples' replicas from consecutive measurements, (measurements, samples, replicas).

    ``better`` is the replica with a sample's new lowest energy and ``moment`` its measurement, or -1.
    """
    for sample in range(begin, end):
        before, least, which, when, row = np.inf, np.inf, -1, -1, lowest[sample]
        for r in range(row.size):
            before = min(before, row[r])
        for k in range(energy.shape[0]):
            for r in range(row.size):
                now = np.float64(energy[k, sample - begin, r]) * quantum
                if now < least:
                    least, which, when = now, r, k
                row[r] = min(row[r], now)
        better[sample] = which if least < before else -1
        moment[sample] = when
