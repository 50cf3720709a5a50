"""The site-packed Metropolis update: 128 sites of one row and colour at once, by the steps of packed/steps.py.

A batch is up to 64 groups that follow one another in the rows of a colour. Its neighbours' words need no list: those
along y and z are the same groups of other rows, those along x the same group of the row's other colour, as it is and
shifted by one lane.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.engine.layouts.replica_packed.cpu_counting import BATCH, ONE, ROW, ZERO, add_four, add_six
from spinsim.engine.layouts.site_packed.cpu_words import load, unlike
from spinsim.engine.moves.metropolis.packed.steps import (
    CLASS,
    FLIP,
    SPIN,
    WIDE_WORDS,
    find_flips,
    find_flips_wide,
    scratch_of,
)
from spinsim.machine.compiled import kernel, part

ALL: Final = ~ZERO
COUNT_BITS: Final = 3


@part
def count_near(n, slots, w):  # type: ignore[no-untyped-def]
    """The class's bit planes: unsatisfied bonds among 6, or one more than those among 4."""
    for half in range(2):
        if slots == 4:
            for q in range(n):
                e = half * BATCH + q
                w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e] = add_four(
                    unlike(0, e, w), unlike(1, e, w), unlike(2, e, w), unlike(3, e, w)
                )
        else:
            for q in range(n):
                e = half * BATCH + q
                w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e] = add_six(
                    unlike(0, e, w), unlike(1, e, w), unlike(2, e, w), unlike(3, e, w), unlike(4, e, w), unlike(5, e, w)
                )


@part
def spread(rows):  # type: ignore[no-untyped-def]
    """Masks uint32 (rows, class) as uint64 words of both halves (rows, class, 2)."""
    words = np.empty((rows.shape[0], rows.shape[1], 2), np.uint64)
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            words[i, c, 0] = words[i, c, 1] = ALL if rows[i, c] else ZERO
    return words


@part
def flip(first, n, own, w):  # type: ignore[no-untyped-def]
    for q in range(n):
        own[first + q, 0] = w[SPIN + q] ^ w[FLIP + q]
        own[first + q, 1] = w[SPIN + BATCH + q] ^ w[FLIP + BATCH + q]


@kernel
def sweep_site(  # type: ignore[no-untyped-def]
    state, halo, sides, signs, tables, number, source, half_sweep, sweeps, share, has_field
):
    """Update one replica of one sample.

    Args:
        state: uint64 (2, groups, 2): colour, group, half; changed in place.
        halo: The layer before the first and the one after the last, each uint64 (2, groups, 2).
        sides: Groups in a row, rows in a plane, planes (1 for a square lattice).
        signs: uint64 (colour, slot, group, half), or of size 0 where no coupling is negative.
        tables: ``always``, ``planes`` and ``thresholds`` of this replica, as ``SiteTables`` has them.
        number: Counter word 0 of the first group.
        source: Counter word 1, the two key words, and the Philox rounds, 7 or 10.
        share: What to do of a sweep: the colours ``share[0]`` to ``share[1] - 1``, and of their groups part
            ``share[2]`` of ``share[3]``. Parts of one colour may run side by side.
        has_field: True if the spin is the class's top bit.
    """
    w, tail, site, lane = scratch_of(WIDE_WORDS)
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    lanes = np.full(2, ALL)
    certain, bits = spread(always.reshape((1, -1)))[0], spread(planes)
    own = np.empty((thresholds.size, 128), np.uint64)
    for c in range(thresholds.size):
        own[c] = thresholds[c]
    numbers = np.empty(BATCH, np.int64)
    groups = state.shape[1]
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            mine, other = state[colour], state[1 - colour]
            before, after = halo[0][1 - colour], halo[1][1 - colour]
            stop = groups * (share[2] + 1) // share[3]
            for first in range(groups * share[2] // share[3], stop, BATCH):
                n = min(BATCH, stop - first)
                sites = numbers[:n]
                for q in range(n):
                    sites[q] = number + first + q
                count_near(n, load(colour, first, n, mine, other, before, after, sides, signs, w), w)
                if has_field:
                    for e in range(ROW):
                        w[CLASS + COUNT_BITS * ROW + e] = w[SPIN + e]
                    find_flips_wide(
                        n, COUNT_BITS + 1, certain, bits, own, lanes, sites, block, half_sweep, k0, k1, rounds, w, tail,
                        site, lane,
                    )  # fmt: skip
                else:
                    find_flips(
                        n, certain, bits, own, lanes, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
                    )
                flip(first, n, mine, w)
            half_sweep += ONE
