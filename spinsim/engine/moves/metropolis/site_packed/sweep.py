"""The site-packed update on the CPU: 128 sites of one colour are updated at once, by the steps of steps.py.

Arguments that kernels share:

    state      uint64 (colour, word) of a replica, changed in place
    halo       the layers before and after it, from ``Halo.of``
    sides      sites of a colour in a row, rows in a plane, planes (1 for a square lattice)
    seams      masks of the lanes at sides, and the groups after which they repeat
    signs      uint64 (colour, slot, word), or of size 0 where no coupling is negative
    wide       True if the class has the spin, in a field; None leaves this out of the machine code
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO
from spinsim.engine.layouts.site_packed import ALL, WORD, count_lattice, fill_window, in_use, lanes_of, load, window_of
from spinsim.engine.moves.exchange import exchange, keep_exchange
from spinsim.engine.moves.metropolis.steps import (
    CLASS,
    FLIP,
    SPIN,
    WIDE_WORDS,
    count_unlike,
    find_flips,
    find_flips_wide,
    scratch_of,
)
from spinsim.machine.compiled import kernel, part

COUNT_BITS: Final = 3


@part
def spread(rows):  # type: ignore[no-untyped-def]
    """Convert bits (rows, classes), 0 or all ones, to words of both halves."""
    words = np.empty((rows.shape[0], rows.shape[1], 2), np.uint64)
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            words[i, c, 0] = words[i, c, 1] = ALL if rows[i, c] else ZERO
    return words


@part
def rules_of(always, planes, thresholds):  # type: ignore[no-untyped-def]
    """Convert ``SiteTables`` (replicas or temperatures, ...) to the form of the steps, equal in all lanes."""
    count, classes = thresholds.shape
    own = np.empty((count, classes, 2 * WORD), np.uint64)
    for k in range(count):
        for c in range(classes):
            for lane in range(2 * WORD):
                own[k, c, lane] = thresholds[k, c]
    bits = spread(planes.reshape((-1, classes))).reshape((count, -1, classes, 2))
    return spread(always), bits, own


@part
def flip(first, n, own, w):  # type: ignore[no-untyped-def]
    for half in range(2):
        for q in range(n):
            own[2 * (first + q) + half] = w[SPIN + half * BATCH + q] ^ w[FLIP + half * BATCH + q]


@part
def work_of(sides, groups):  # type: ignore[no-untyped-def]
    """Allocate scratch, numbers of a batch's groups, and a window."""
    return scratch_of(WIDE_WORDS), np.empty(BATCH, np.int64), window_of(sides, groups)


@part
def sweep_lattice(  # type: ignore[no-untyped-def]
    work, state, halo, sides, seams, signs, rule, number, source, half_sweep, sweeps, share, wide
):
    """Do ``sweep_site`` with scratch and a row of ``rules_of``."""
    # A colour is divided twice; groups have 128 lanes, two words:
    #
    #     colour   | chunk: ``served`` groups | chunk | ...          one window of the other colour each
    #     chunk    | batch: BATCH groups | batch | ...               one set of scratch rows each
    #     rows     word q of half 0: group first + q, lanes 0 to 63; word BATCH + q: lanes 64 to 127
    (w, tail, site, lane), numbers, (window, served) = work
    (certain, bits, own), (block, (k0, k1), rounds) = rule, source
    used = np.full(2, ALL)
    groups = state.shape[1] // 2
    _, _, lanes = lanes_of(sides)
    start, stop = groups * share[2] // share[3], groups * (share[2] + 1) // share[3]
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            mine, other = state[colour], state[1 - colour]
            for chunk in range(start, stop, served):
                of_chunk = min(served, stop - chunk)
                # The other colour does not change in this half-sweep, so a copy of it serves the chunk.
                at = fill_window(window, chunk, of_chunk, other, halo, 1 - colour, sides)
                for first in range(chunk, chunk + of_chunk, BATCH):
                    n = min(BATCH, chunk + of_chunk - first)
                    # A group draws like a site of 128 replicas: its number takes the place of the site's.
                    sites = numbers[:n]
                    for q in range(n):
                        sites[q] = number + first + q
                    # Bit of the window that lies opposite the batch's first lane.
                    place = at + 2 * WORD * (first - chunk)
                    count_unlike(n, load(colour, first, n, mine, window, place, sides, seams, signs, w), w)
                    # In a field the spin is one more bit of the class.
                    if wide is not None:
                        for e in range(ROW):
                            w[CLASS + COUNT_BITS * ROW + e] = w[SPIN + e]
                        find_flips_wide(
                            n, COUNT_BITS + 1, certain, bits, own, used, sites, block, half_sweep, k0, k1, rounds, w,
                            tail, site, lane,
                        )  # fmt: skip
                    else:
                        find_flips(
                            n, certain, bits, own, used, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
                        )
                    flip(first, n, mine, w)
            if stop == groups:  # lanes without sites draw after the others, and stay 0
                for half in range(2):
                    mine[2 * (groups - 1) + half] &= in_use(2 * (groups - 1) + half, lanes)
            half_sweep += ONE


@kernel
def sweep_site(  # type: ignore[no-untyped-def]
    state, halo, sides, seams, signs, tables, number, source, half_sweep, sweeps, share, wide
):
    """Update one replica of one sample.

    Args:
        tables: ``always``, ``planes`` and ``thresholds`` of this replica, each with one row of ``SiteTables``.
        number: Counter word 0 of the first group.
        source, share: As in ``sweep_and_tally``; ``share`` selects groups of a colour.
    """
    certain, bits, own = rules_of(*tables)
    work, rule = work_of(sides, state.shape[1] // 2), (certain[0], bits[0], own[0])
    sweep_lattice(work, state, halo, sides, seams, signs, rule, number, source, half_sweep, sweeps, share, wide)


@kernel
def temper_lattices(  # type: ignore[no-untyped-def]
    sides, seams, signs, weights, wide, ladder, source, tables, state, place, attempts, accepts, trips, last_end,
    first, first_in_run, half_sweep, before, rounds, sweeps, times, words, exchanges,
):  # fmt: skip
    """Repeatedly sweep all replicas of consecutive samples and exchange temperatures.

    Args:
        signs: Signs of all samples, or one sample's signs for all.
        weights: |J| and h, in quanta.
        ladder: ``Ladder.steps`` and copies.
        tables: ``SiteTables`` with a row for each temperature.
        state, place, ...: State (samples, replicas, colours, words) and ``Exchange`` of the samples, changed in place.
        first, first_in_run, times, words, exchanges: As in ``temper_samples`` of replica-packed words.
    """
    (steps, copies), (key, rng_rounds), (magnitude, field) = ladder, source, weights
    certain, bits, own = rules_of(*tables)
    replicas, share = state.shape[1], (np.int64(0), np.int64(2), np.int64(0), np.int64(1))
    work, energy = work_of(sides, state.shape[3] // 2), np.zeros((replicas, 1), np.int64)
    _, layer, lanes = lanes_of(sides)
    for k in range(state.shape[0]):
        now, number, negative = half_sweep, first_in_run + first + k, signs[(first + k) % signs.shape[0]]
        for done in range(times * rounds):
            for r in range(replicas):
                lattice, t = state[k, r], place[k, r]
                halo, rule = (lattice, lattice, lanes - layer), (certain[t], bits[t], own[t])
                block = rng.counter_block(np.uint64(number), np.uint64(r)), key, rng_rounds
                sweep_lattice(work, lattice, halo, sides, seams, negative, rule, 0, block, now, sweeps, share, wide)
                if steps.shape[0]:  # up to a constant, which cancels in exchanges
                    counted = count_lattice(work[0][0], work[2], lattice, halo, sides, seams, negative, 0, 1)
                    energy[r, 0] = 2 * (magnitude * counted[1] - field * counted[0])
            exchange(energy, steps, copies, before + done, number, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            now += np.uint64(2 * sweeps)
            if words.shape[0] and (done + 1) % rounds == 0:
                row = done // rounds * state.shape[0] + k
                words[row] = state[k]
                keep_exchange((place[k], attempts[k], accepts[k], trips[k], last_end[k]), row, exchanges)
