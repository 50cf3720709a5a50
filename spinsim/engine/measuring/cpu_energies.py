"""Adding a measurement to the sums over energy on the host (``engine/measuring/energies.py``)."""

from __future__ import annotations

import numpy as np

from spinsim.engine.measuring.reduction import ABSOLUTE
from spinsim.machine.compiled import kernel, part

_ABSOLUTE = ABSOLUTE


@part
def power_of(x, power):  # type: ignore[no-untyped-def]
    """x, |x|, x^2 or x^4."""
    if power == 1:
        return x
    if power == _ABSOLUTE:
        return abs(x)
    square = x * x
    return square if power == 2 else square * square


@part
def shift_over(low, high, bins):  # type: ignore[no-untyped-def]
    """``shift_of``."""
    shift = 0
    while (high >> shift) - (low >> shift) >= bins:
        shift += 1
    return shift


@part
def widen(sums, sample, low, high, shift, wider, room):  # type: ignore[no-untyped-def]
    """Add bins of ``sums`` (rows, blocks, samples, bins) that share one of a larger shift.

    Levels go from ``low`` to ``high``; ``room`` (bins,) is overwritten.
    """
    bins = sums.shape[3]
    for row in range(sums.shape[0]):
        for block in range(sums.shape[1]):
            own = sums[row, block, sample]
            room[:] = 0
            for number in range(low >> shift, (high >> shift) + 1):
                room[(number >> (wider - shift)) & (bins - 1)] += own[number & (bins - 1)]
            own[:] = room


@kernel
def add_energies(  # type: ignore[no-untyped-def]
    energy, of_copies, of_pairs, first, scales, constant, power, row, pair_row, by_copy, pairs, inverse, scale, number,
    block, ranges, counts, sums, pair_counts, pair_sums, begin, end,
):  # fmt: skip
    """Add measurement ``number`` of some samples, from ``begin`` to before ``end``, to the sums over energy.

    ``energy`` (samples, copies, places) is that of copies; other values and tables are as ``add_terms`` takes them,
    ``inverse`` is 1 / unit of levels, ``scale`` 1 / unit of sums, the others are arrays of ``Energies.arrays``.
    """
    copies, places, bins = energy.shape[1], energy.shape[2], counts.shape[3]
    has_pairs = pair_sums.shape[0] > 0
    level, bin_of = np.empty((copies, places), np.int64), np.empty((copies, places), np.int64)
    bin_of_pair = np.empty((pairs.shape[0], places), np.int64)
    room, pair_room = np.empty(bins, np.int64), np.empty(pair_sums.shape[3], np.int64)
    for sample in range(begin, end):
        low, high = ranges[sample, 0], ranges[sample, 1]
        old_low, old_high = low, high
        for chain in range(copies):
            for place in range(places):
                here = np.int64(np.rint(energy[sample, chain, place] * inverse))
                level[chain, place] = here
                if number == 0 and chain == 0 and place == 0:
                    low, high = here, here
                low, high = min(low, here), max(high, here)
        shift = shift_over(low, high, bins)
        if number > 0 and shift > shift_over(old_low, old_high, bins):
            old = shift_over(old_low, old_high, bins)
            widen(counts, sample, old_low, old_high, old, shift, room)
            widen(sums, sample, old_low, old_high, old, shift, room)
            if has_pairs:
                widen(pair_counts, sample, 2 * old_low, 2 * old_high, old, shift, pair_room)
                widen(pair_sums, sample, 2 * old_low, 2 * old_high, old, shift, pair_room)
        ranges[sample, 0], ranges[sample, 1] = low, high
        for chain in range(copies):
            for place in range(places):
                here = (level[chain, place] >> shift) & (bins - 1)
                bin_of[chain, place] = here
                counts[chain, block, sample, here] += 1
                counts[copies, block, sample, here] += level[chain, place]
        if has_pairs:
            for p in range(pairs.shape[0]):
                for place in range(places):
                    both = level[pairs[p, 0], place] + level[pairs[p, 1], place]
                    here = (both >> shift) & (2 * bins - 1)
                    bin_of_pair[p, place] = here
                    pair_counts[0, block, sample, here] += 1
                    pair_counts[1, block, sample, here] += both
        for term in range(first.size):
            if row[term] < 0 and pair_row[term] < 0:
                continue
            of_copy, kind = row[term] >= 0, power[term]
            for chain in range(copies if of_copy else pairs.shape[0]):
                if of_copy:
                    values, at = of_copies[first[term], sample, chain], bin_of[chain]
                    to = sums[row[term] + (chain if by_copy[term] >= 0 else 0), block, sample]
                else:
                    values, at = of_pairs[first[term], sample, chain], bin_of_pair[chain]
                    to = pair_sums[pair_row[term], block, sample]
                for place in range(places):
                    y = power_of(scales[term, 0, place] * values[place] + constant[term, place], kind)
                    to[at[place]] += np.int64(np.rint(y * scale))
