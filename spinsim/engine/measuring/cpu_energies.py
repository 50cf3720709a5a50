"""Sums over energy (``engine/measuring/energies.py``) in the memory of the host.

What belongs to a bin stands side by side, a *column* each, so that a value adds to all of them at once:

    of_copies[block, sample, bin]    measurements of each copy, the sum of levels, sums
    of_pairs[block, sample, bin]     pairs and measurements, the sum of levels, sums, room up to a multiple of LANES
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.energies import COUNTS, RANGE, SUMS
from spinsim.engine.measuring.reduction import Reduced
from spinsim.machine.compiled import part, step

Integers = npt.NDArray[np.int64]
LANES: Final = 8  # columns that are added together
_COUNTED: Final = 2  # columns before those of terms, of pairs


class EnergyBins(NamedTuple):
    """Sums over energy as kernels take them; without bins where there are none."""

    column: Integers  # place of each term among those of copies that are added up, -1 where it is none, (terms,)
    pair_column: Integers  # column of each term of pairs, likewise
    rows: Integers  # first column of each of these terms, and how far that of the next copy is, (of copies, 2)
    places: int  # of one sample
    inverse: float  # 1 / unit of levels
    ranges: Integers  # lowest and highest level, (samples, 2)
    of_copies: Integers  # (blocks, samples, bins, columns)
    of_pairs: Integers  # (blocks, samples, bins, columns); no columns without pairs

    def arrays(self, copies: int, pair_rows: int) -> dict[str, Integers]:
        """Views of all arrays by name, as ``Energies.arrays`` has them."""
        counts, sums = (np.moveaxis(part, -1, 0) for part in np.split(self.of_copies, [copies + 1], axis=-1))
        arrays = {RANGE: self.ranges, COUNTS[0]: counts, SUMS[0]: sums}
        if pair_rows:
            columns = np.moveaxis(self.of_pairs, -1, 0)
            arrays |= {COUNTS[1]: columns[:_COUNTED], SUMS[1]: columns[_COUNTED : _COUNTED + pair_rows]}
        return arrays


def empty_bins(reduced: Reduced) -> EnergyBins:
    """Return the sums over energy of a run that has not measured yet."""
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
    """``shift_of``."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


@part
def widen(sums, low, high, shift, wider):  # type: ignore[no-untyped-def]
    """Add bins of ``sums`` (bins, columns) that share one of a larger shift; levels go from ``low`` to ``high``."""
    bins = sums.shape[0]
    room = np.zeros(sums.shape, np.int64)
    for number in range(low >> shift, (high >> shift) + 1):
        room[(number >> (wider - shift)) & (bins - 1)] += sums[number & (bins - 1)]
    sums[:] = room


@part
def room_over_energy(bins, copies, pairs, n):  # type: ignore[no-untyped-def]
    """Room for levels (copies, n) and for terms of copies (copies, terms, n) and pairs (pairs, columns, n)."""
    if not bins.of_copies.size:
        n = 0
    width = bins.of_pairs.shape[3]
    levels, of_copies = np.empty((copies, n), np.int64), np.empty((copies, bins.rows.shape[0], n), np.int64)
    of_pairs = np.zeros((pairs if width else 0, width, n), np.int64)
    of_pairs[:, :1] = 1
    return levels, of_copies, of_pairs


@part
def find_levels(energy, bins, number, first, samples, levels):  # type: ignore[no-untyped-def]
    """Find the levels of energies, and widen bins that do not hold them.

    Args:
        energy: (copies, places of all samples).
        number: Of the measurement.
        first: Sample that comes first.
        levels: (copies, places of these samples), written.
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
    """Put numbers ``y`` (n,) into ``values``, in units of sums."""
    for e in range(y.size):
        values[e] = np.int64(np.rint(y[e] * scale))


@step
def add_over_energy(bins, block, first, samples, pairs, levels, values, pair_values):  # type: ignore[no-untyped-def]
    """Add terms of copies and of pairs to the bins of a block.

    Arguments are those of ``find_levels`` and what ``room_over_energy`` made.
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
