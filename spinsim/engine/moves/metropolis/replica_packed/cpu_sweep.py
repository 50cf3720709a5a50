"""Replica-packed Metropolis update: 128 replicas of a site at once, by the steps of steps.py.

A block is 128 replicas of all sites, in words; a bit is set if the spin of its replica is +1:

    state[site, 0]    replicas 0 to 63
    state[site, 1]    replicas 64 to 127

A batch of n sites becomes rows of scratch. Word q of a row is half 0 of the q-th site, word BATCH + q is half 1:

    SPIN              the sites themselves
    NEAR + k ROW      their neighbours in slot k, flipped if the coupling is below 0
    CLASS + b ROW     bit b of each lane's number of unsatisfied bonds
    FLIP              lanes that flip

``sweep_wide`` has more classes: in a uniform field, for degrees up to 31, or for an energy of two terms. The bit planes
of a site's class are, lowest first: unsatisfied bonds of term 0, unsatisfied bonds of term 1 if there are two terms,
and in a field 1 if the spin is +1.

``sweep_by_degree`` allows any degrees, and fields that count as bonds. Only flips of low cost are looked up in the
planes. For every degree, the classes of classes.py end with the flip of zero cost, preceded by the smallest cost, and
so on. So sites with any number of count bits use the ends of the same tables. At the temperatures of a run, only the
last 2^B classes, the *cheap* ones, have threshold bits in the planes; lanes of other classes differ only from random
bits of 0. A lane is cheap if the bits of its class from B on are all set. Because batches may have few sites,
references are not counted, and indices are unsigned, so that no sign is checked.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed import (
    BATCH,
    ONE,
    ROW,
    ZERO,
    add_count,
    add_seven,
    empty_into,
    finish_addition,
    full_add,
)
from spinsim.engine.moves.metropolis.classes import COLUMN_PLANES, OWN_PLANES
from spinsim.engine.moves.metropolis.replica_packed.update import OTHER_SHIFT, UP_SHIFT
from spinsim.engine.moves.metropolis.steps import (
    ACCEPT,
    CLASS,
    COLUMN,
    DRAWN,
    FEW,
    FLIP,
    NEAR,
    OCCUPANT,
    SCRATCH_WORDS,
    SHIFT,
    SPIN,
    TREE,
    UNDECIDED,
    UPDATE,
    WIDE_WORDS,
    collect_flips,
    compare,
    count_half,
    count_unlike,
    find_few_flips,
    find_flips,
    find_flips_wide,
    finish_lanes,
    mux,
    occupy_columns,
    prefixes,
    random_words,
    scatter,
    scatter_few,
    scratch_of,
    select,
    settle_columns,
)
from spinsim.machine.compiled import kernel, part, step
from spinsim.machine.intrinsics import borrowed


@step
def gather(row, state, sites, w):  # type: ignore[no-untyped-def]
    """Copy the words of some sites to one row."""
    for q in range(sites.size):
        j = sites[q]
        w[row + q] = state[j, 0]
        w[row + BATCH + q] = state[j, 1]


@step
def gather_signed(row, state, sites, signs, w):  # type: ignore[no-untyped-def]
    """Copy the words of neighbours to one row, flipped if the coupling to them is below 0."""
    for q in range(sites.size):
        j, sign = sites[q], ZERO - np.uint64(signs[q])
        w[row + q] = state[j, 0] ^ sign
        w[row + BATCH + q] = state[j, 1] ^ sign


@step
def gather_few(row, state, sites, w):  # type: ignore[no-untyped-def]
    """Do ``gather`` for half 0 only."""
    for q in range(sites.size):
        w[row + q] = state[sites[q], 0]


@step
def gather_few_signed(row, state, sites, signs, w):  # type: ignore[no-untyped-def]
    """Do ``gather_signed`` for half 0 only."""
    for q in range(sites.size):
        w[row + q] = state[sites[q], 0] ^ (ZERO - np.uint64(signs[q]))


@step
def slot(k, n):  # type: ignore[no-untyped-def]
    """Return the slice of slot k of n sites. Slices, unlike sums, need no check for negative indices."""
    return slice(k * n, (k + 1) * n)


@step
def share_of_batches(colour_start, colour, share):  # type: ignore[no-untyped-def]
    """Return the first and the last plus one of a colour's batches in part ``share[2]`` of ``share[3]``."""
    start, count = colour_start[colour], colour_start[colour + 1] - colour_start[colour]
    return start + count * share[2] // share[3], start + count * (share[2] + 1) // share[3]


@step
def tally_half(first, n, parity, w, counters):  # type: ignore[no-untyped-def]
    """Count the unsatisfied bonds of a half of a batch, with words from ``first`` on, after its update."""
    # A site with k unsatisfied bonds of z, phantom bonds included, has z - k after its flip:
    #     z = 7    7 - k inverts all three bits
    #     z = 6    6 - k keeps the low bit, inverts the middle one if low is 0, and the high one unless k is 3
    for q in range(n):
        e = first + q
        flip, low, middle, high = w[FLIP + e], w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
        if parity:
            add_count(counters, e, low ^ flip, middle ^ flip, high ^ flip)
        else:
            add_count(counters, e, low, middle ^ (flip & ~low), high ^ (flip & ~(low & middle)))


@step
def tally(n, are_few, parity, done, totals, w, counters):  # type: ignore[no-untyped-def]
    """Count the unsatisfied bonds of a batch after its update; return the number of additions in the counters.

    A site of class k had k unsatisfied bonds of six, including phantom bonds, or of seven if its degree is odd. A flip
    leaves the other bonds unsatisfied.
    """
    tally_half(0, n, parity, w, counters)
    if not are_few:
        tally_half(BATCH, n, parity, w, counters)
    return finish_addition(done, n, totals, counters)


@kernel
def sweep_packed(state, batches, signs, tables, lanes, source, half_sweep, sweeps, share):  # type: ignore[no-untyped-def]
    """Do ``sweep_and_tally`` with its own scratch, without counting."""
    nothing = np.empty(0, np.int64), np.empty(0, np.uint64)
    scratch = scratch_of(SCRATCH_WORDS)
    sweep_and_tally(scratch, nothing, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share)


@kernel
def sweep_and_tally(  # type: ignore[no-untyped-def]
    scratch, counted, state, batches, signs, tables, lanes, source, half_sweep, sweeps, share
):
    """Update one block of 128 replicas of one sample, for degrees up to 7 without a field.

    Args:
        scratch: ``scratch_of(SCRATCH_WORDS)``.
        counted: Totals (128,) and counters, both empty if nothing is counted. The unsatisfied bonds of the last colour,
            including phantom bonds, are added to the totals after its last update. Counters are 0 before and after.
        state: uint64 (sites, 2), changed in place; ``signs`` is a row of ``Batches.signs``.
        tables: ``always``, ``planes`` and ``thresholds`` of this block; ``lanes`` (2,) marks the lanes in use.
        source: Counter word 1, the two key words, and the Philox rounds, 7 or 10.
        share: Colours ``share[0]`` to ``share[1] - 1``, and of their batches part ``share[2]`` of ``share[3]``.
    """
    # Bonds of batch b of n sites, from offset[b] on; ``neighbour`` and ``sign`` have the same order:
    #
    #     | slot 0: n neighbours | slot 1: n neighbours | ... | slot (slots - 1) |
    #
    # Sites of a batch have one colour, so that none is a neighbour of another.
    (w, tail, site, lane), (totals, counters) = scratch, counted
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    are_few, added = lanes[1] == ZERO and lanes[0] >> FEW == ZERO, 0
    for sweep in range(sweeps):
        for colour in range(share[0], share[1]):
            # If bonds are counted, each has one end of the last colour, whose last update has them at hand.
            counts = totals.size > 0 and sweep + 1 == sweeps and colour + 1 == share[1]
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                slots, parity = batches.slots[b], batches.parity[b]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n = sites.size
                bonds = slice(batches.offset[b], batches.offset[b] + slots * n)
                neighbour, sign = batches.neighbour[bonds], signs[bonds]
                # At most FEW replicas: half 1 is empty, and later planes are drawn for undecided sites only.
                if are_few:
                    gather_few(SPIN, state, sites, w)
                    for k in range(slots):
                        gather_few_signed(NEAR + k * ROW, state, neighbour[slot(k, n)], sign[slot(k, n)], w)
                    count_half(0, n, slots, w)
                    find_few_flips(
                        n, always[parity], planes[parity], thresholds[parity], lanes, sites, block, half_sweep, k0, k1,
                        rounds, w, tail, site, lane,
                    )  # fmt: skip
                    scatter_few(state, sites, w)
                else:
                    # Spins, and neighbours flipped by the signs of couplings: where both differ, a bond is unsatisfied.
                    gather(SPIN, state, sites, w)
                    for k in range(slots):
                        gather_signed(NEAR + k * ROW, state, neighbour[slot(k, n)], sign[slot(k, n)], w)
                    count_unlike(n, slots, w)
                    find_flips(
                        n, always[parity], planes[parity], thresholds[parity], lanes, sites, block, half_sweep, k0, k1,
                        rounds, w, tail, site, lane,
                    )  # fmt: skip
                    scatter(state, sites, w)
                if counts:
                    added = tally(n, are_few, parity, added, totals, w, counters)
            half_sweep += np.uint64(1)
    if added:
        empty_into(totals, added, counters)


@step
def count_slots(n, slots, base, count_bits, state, neighbour, signs, w, row):  # type: ignore[no-untyped-def]
    """Count unsatisfied bonds of any number of slots, one by one, in ``count_bits`` bit planes from ``row`` on."""
    # A ripple counter: row NEAR is a stream of ones, and then of carries, through the planes
    #
    #     row (ones)  ->  row + ROW (twos)  ->  row + 2 ROW (fours)  ->  ...
    for b in range(count_bits):
        # Bit b of ``base``, the unsatisfied phantom bonds, in all lanes: 0 or all ones.
        start = ZERO - np.uint64((base >> b) & 1)
        for e in range(ROW):
            w[row + b * ROW + e] = start
    for k in range(slots):
        gather(NEAR, state, neighbour[slot(k, n)], w)
        sign = signs[slot(k, n)]
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                # 1 where the bond is unsatisfied.
                w[NEAR + e] = w[SPIN + e] ^ w[NEAR + e] ^ (ZERO - np.uint64(sign[q]))
        for b in range(count_bits):
            for half in range(2):
                for q in range(n):
                    e = half * BATCH + q
                    # A half adder: the plane takes the XOR, and the AND carries to the next plane.
                    low = w[row + b * ROW + e]
                    w[row + b * ROW + e] = low ^ w[NEAR + e]
                    w[NEAR + e] &= low


@kernel
def sweep_wide(  # type: ignore[no-untyped-def]
    state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, count_bits, has_field
):
    """Do ``sweep_packed`` with ``count_bits`` planes for the bonds of both terms and, in a field, one for the spin.

    With one term, ``count_bits[1]`` is 0. All flips that gain energy are in ``always``.
    """
    w, tail, site, lane = scratch_of(WIDE_WORDS)
    (always, planes, thresholds), (block, (k0, k1), rounds), (first_bits, second_bits) = tables, source, count_bits
    counted = first_bits + second_bits
    class_bits = counted + 1 if has_field else counted
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            first, stop = share_of_batches(batches.colour_start, colour, share)
            for b in range(first, stop):
                slots, ours, parity = batches.slots[b], batches.of_term_0[b], batches.parity[b]
                sites = batches.order[batches.first[b] : batches.first[b + 1]]
                n, start = sites.size, batches.offset[b]
                middle = start + ours * n
                bonds, others = slice(start, middle), slice(middle, start + slots * n)
                gather(SPIN, state, sites, w)
                count_slots(n, ours, batches.base[b], first_bits, state, batches.neighbour[bonds], signs[bonds], w,
                            CLASS)  # fmt: skip
                if second_bits:
                    count_slots(n, slots - ours, 0, second_bits, state, batches.neighbour[others], signs[others], w,
                                CLASS + first_bits * ROW)  # fmt: skip
                if has_field:
                    for e in range(ROW):
                        w[CLASS + counted * ROW + e] = w[SPIN + e]
                find_flips_wide(
                    n, class_bits, always[parity], planes[parity], thresholds[parity], lanes, sites, block, half_sweep,
                    k0, k1, rounds, w, tail, site, lane,
                )  # fmt: skip
                scatter(state, sites, w)
            half_sweep += np.uint64(1)


CHEAP: Final = SCRATCH_WORDS  # lanes of cheap classes; carries during counting
FOLDED: Final = WIDE_WORDS  # threshold bits of columns: plane j in half row j
CHEAP_WORDS: Final = FOLDED + COLUMN_PLANES * BATCH
ALL: Final = ~np.uint64(0)
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)
UP: Final = np.uint64(UP_SHIFT)


@part
def start_count(n, count_bits, base, w):  # type: ignore[no-untyped-def]
    """Set the count of every lane to ``base`` unsatisfied bonds."""
    for b in range(count_bits):
        start = ZERO - np.uint64((base >> b) & 1)
        for half in range(2):
            for q in range(n):
                w[np.uint64(CLASS + b * ROW + half * BATCH + q)] = start


@part
def start_in_fields(n, count_bits, first, starts, w):  # type: ignore[no-untyped-def]
    """Count unsatisfied phantom bonds of n sites from number ``first`` on, and units of fields against the spins."""
    for b in range(count_bits):
        low, other = np.uint64(b), np.uint64(OTHER_SHIFT + b)
        for half in range(2):
            for q in range(n):
                start, e = starts[np.uint64(first + q)], half * BATCH + q
                against = w[SPIN + e] ^ (ZERO - (start >> UP))
                w[np.uint64(CLASS + b * ROW + e)] = ZERO - (start >> low & ONE) ^ against & (
                    ZERO - (start >> other & ONE)
                )


@part
def add_carries(n, first, count_bits, w):  # type: ignore[no-untyped-def]
    """Add carries to the planes from ``first`` on."""
    for b in range(first, count_bits):
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                of_plane = np.uint64(CLASS + b * ROW + e)
                low = w[of_plane]
                w[of_plane] = low ^ w[CHEAP + e]
                w[CHEAP + e] &= low


@part
def add_three_bonds(n, count_bits, w):  # type: ignore[no-untyped-def]
    """Add the number of unsatisfied bonds among three rows; rows hold the spins that satisfy bonds."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            spin = w[SPIN + e]
            # A full adder counts three bonds in two bits; adding these to planes 0 and 1 leaves a carry for plane 2.
            low, middle = full_add(spin ^ w[NEAR + e], spin ^ w[NEAR + ROW + e], spin ^ w[NEAR + 2 * ROW + e])
            carry = w[CLASS + e] & low
            w[CLASS + e] ^= low
            w[CLASS + ROW + e], w[CHEAP + e] = full_add(w[CLASS + ROW + e], middle, carry)
    add_carries(n, 2, count_bits, w)


@part
def add_seven_bonds(n, count_bits, w):  # type: ignore[no-untyped-def]
    """Add the number of unsatisfied bonds among seven rows; rows hold the spins that satisfy bonds."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            spin = w[SPIN + e]
            # Seven bonds in three bits, added to planes 0 to 2 like two binary numbers; CHEAP has the carry.
            low, middle, high = add_seven(
                spin ^ w[NEAR + e], spin ^ w[NEAR + ROW + e], spin ^ w[NEAR + 2 * ROW + e],
                spin ^ w[NEAR + 3 * ROW + e], spin ^ w[NEAR + 4 * ROW + e], spin ^ w[NEAR + 5 * ROW + e],
                spin ^ w[NEAR + 6 * ROW + e],
            )  # fmt: skip
            carry = w[CLASS + e] & low
            w[CLASS + e] ^= low
            w[CLASS + ROW + e], carry = full_add(w[CLASS + ROW + e], middle, carry)
            w[CLASS + 2 * ROW + e], w[CHEAP + e] = full_add(w[CLASS + 2 * ROW + e], high, carry)
    add_carries(n, 3, count_bits, w)


@part
def find_cheap(n, bits, class_bits, w):  # type: ignore[no-untyped-def]
    """Find lanes whose class has all bits from ``bits`` on set."""
    for half in range(2):
        for q in range(n):
            w[CHEAP + half * BATCH + q] = ALL
    for b in range(bits, class_bits):
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                w[CHEAP + e] &= w[np.uint64(CLASS + b * ROW + e)]


@part
def pick(n, bits, words, table, plane, w):  # type: ignore[no-untyped-def]
    """Set the first row of TREE to ``words[table, plane, class, half]`` of every cheap lane, and to 0 elsewhere."""
    first = np.uint64(words.shape[2] - (1 << bits))
    if bits == 2:
        for half in range(2):
            a0, a1 = words[table, plane, first, half], words[table, plane, first + ONE, half]
            a2, a3 = words[table, plane, first + TWO, half], words[table, plane, first + THREE, half]
            for q in range(n):
                e = half * BATCH + q
                low = w[CLASS + e]
                w[TREE + e] = mux(w[CLASS + ROW + e], mux(low, a0, a1), mux(low, a2, a3)) & w[CHEAP + e]
        return
    if bits == 3:
        for half in range(2):
            a0, a1 = words[table, plane, first, half], words[table, plane, first + ONE, half]
            a2, a3 = words[table, plane, first + TWO, half], words[table, plane, first + THREE, half]
            later = first + FOUR
            a4, a5 = words[table, plane, later, half], words[table, plane, later + ONE, half]
            a6, a7 = words[table, plane, later + TWO, half], words[table, plane, later + THREE, half]
            for q in range(n):
                e = half * BATCH + q
                low, middle = w[CLASS + e], w[CLASS + ROW + e]
                zero = mux(middle, mux(low, a0, a1), mux(low, a2, a3))
                one = mux(middle, mux(low, a4, a5), mux(low, a6, a7))
                w[TREE + e] = mux(w[CLASS + 2 * ROW + e], zero, one) & w[CHEAP + e]
        return
    select(n, bits, words[table, plane, first:], w)
    for half in range(2):
        for q in range(n):
            w[TREE + half * BATCH + q] &= w[CHEAP + half * BATCH + q]


@part
def decide_cheap(n, bits, class_bits, always, table, lanes, w):  # type: ignore[no-untyped-def]
    """Find lanes that flip for certain, and undecided lanes; ``always`` has one plane."""
    find_cheap(n, bits, class_bits, w)
    pick(n, bits, always, table, 0, w)
    for half in range(2):
        used = lanes[half]
        for q in range(n):
            e = half * BATCH + q
            certain = w[TREE + e] | w[np.uint64(CLASS + class_bits * ROW + e)]
            w[FLIP + e] = certain & used
            w[UNDECIDED + e] = ~certain & used
            w[ACCEPT + e] = ZERO


@part
def compare_drawn(n, threshold, drawn, w):  # type: ignore[no-untyped-def]
    """Compare one column plane; folded threshold bits and random words are in half rows at constant places."""
    for q in range(n):
        differ = w[threshold + q] ^ w[drawn + q]
        w[COLUMN + q] = (w[threshold + q] & ~w[drawn + q]) | (~differ & w[COLUMN + q])
        w[COLUMN + BATCH + q] &= ~differ


@part
def compare_cheap(n, bits, planes, table, half_sweep, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Compare all planes; ``planes`` are ``Tables.planes`` of a block. ``pick`` is long, so it is called only twice."""
    for back in range(OWN_PLANES):
        plane = OWN_PLANES - 1 - back
        word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(plane))
        pick(n, bits, planes, table, plane, w)
        for q in range(n):
            first, second = random_words(q, word3, k0, k1, rounds, w)
            compare(q, w[TREE + q], first, w)
            compare(q + BATCH, w[TREE + BATCH + q], second, w)
    occupy_columns(n, half_sweep, k0, k1, rounds, w)
    for j in range(COLUMN_PLANES):
        pick(n, bits, planes, table, OWN_PLANES + j, w)
        for q in range(n):
            both = (w[TREE + q] & w[OCCUPANT + q]) | (w[TREE + BATCH + q] & w[OCCUPANT + BATCH + q])
            w[np.uint64(FOLDED + j * BATCH + q)] = rng.low32(both | both >> SHIFT)
    compare_drawn(n, FOLDED + 3 * BATCH, DRAWN + 3 * BATCH, w)
    compare_drawn(n, FOLDED + 2 * BATCH, DRAWN + 2 * BATCH, w)
    compare_drawn(n, FOLDED + BATCH, DRAWN + BATCH, w)
    compare_drawn(n, FOLDED, DRAWN, w)
    settle_columns(n, w)


HALF: Final = np.uint64(BATCH)


@part
def gather_wanted(row, first, n, state, neighbour, signs, w):  # type: ignore[no-untyped-def]
    """Copy spins that satisfy bonds, from bond ``first`` on: the words of n neighbours, flipped if the sign is 1."""
    for q in range(n):
        at, to = np.uint64(first + q), np.uint64(row + q)
        j, sign = neighbour[at], ZERO - np.uint64(signs[at])
        w[to] = state[j, 0] ^ sign
        w[to + HALF] = state[j, 1] ^ sign


@part
def satisfy(row, n, w):  # type: ignore[no-untyped-def]
    """Fill a row with satisfied bonds."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            w[np.uint64(row + e)] = w[SPIN + e]


@part
def count_by_sevens(n, columns, slots, first, count_bits, state, neighbour, signs, w):  # type: ignore[no-untyped-def]
    """Add unsatisfied bonds of n sites to bit planes, in ``columns`` columns; the last columns may have no site."""
    done = 0
    while done < slots:
        together = 3 if slots - done <= 3 else 7
        for k in range(together):
            if done < slots:
                gather_wanted(NEAR + k * ROW, first + done * n, n, state, neighbour, signs, w)
            else:
                satisfy(NEAR + k * ROW, columns, w)
            done += 1
        if together == 3:
            add_three_bonds(columns, count_bits, w)
        else:
            add_seven_bonds(columns, count_bits, w)


@part
def bits_of_count(most):  # type: ignore[no-untyped-def]
    """Return K of classes.py for sites with ``most`` bonds."""
    bits = 3
    while most >> bits:
        bits += 1
    return bits


@kernel
def sweep_by_degree(  # type: ignore[no-untyped-def]
    state, batches, signs, tables, lanes, source, half_sweep, sweeps, share, cheap_bits, starts
):
    """Do ``sweep_packed`` for sites of any degrees.

    ``cheap_bits`` is the result of ``cheap_bits``; ``starts`` are one sample's from update.py.
    """
    (always, planes, thresholds), (block, (k0, k1), rounds) = tables, source
    owned = np.zeros(CHEAP_WORDS, np.uint64), np.empty(ROW + 1, np.int64), np.empty((2, 64 * ROW), np.uint64)
    w, tail, site, lane = borrowed(owned[0]), borrowed(owned[1]), borrowed(owned[2][0]), borrowed(owned[2][1])
    state, signs, planes, thresholds, lanes, starts = (
        borrowed(state), borrowed(signs), borrowed(planes), borrowed(thresholds), borrowed(lanes), borrowed(starts)
    )  # fmt: skip
    certain = borrowed(always.reshape((always.shape[0], 1, always.shape[1], 2)))
    first_of, offset, order = borrowed(batches.first), borrowed(batches.offset), borrowed(batches.order)
    neighbour, slots_of, parities = borrowed(batches.neighbour), borrowed(batches.slots), borrowed(batches.parity)
    most_of = borrowed(batches.most)
    colour_start = borrowed(batches.colour_start)
    for _ in range(sweeps):
        for colour in range(share[0], share[1]):
            low_sweep = rng.low32(half_sweep)
            first, stop = share_of_batches(colour_start, colour, share)
            for b in range(first, stop):
                slots, parity = slots_of[b], parities[b]
                sites = order[first_of[b] : first_of[b + 1]]
                n = sites.size
                # Loops run over whole vectors; the results of columns past the last site are never stored.
                columns = (n + 7) & ~7  # whole vectors
                # The count has K bits; its top bit means a gain of energy, and the K - 1 others are the class.
                count_bits = bits_of_count(most_of[b])
                class_bits, bits = count_bits - 1, min(count_bits - 1, cheap_bits)
                gather(SPIN, state, sites, w)
                if starts.size:
                    start_in_fields(columns, count_bits, first_of[b], starts, w)
                else:
                    # Phantom bonds raise the degree to 2^K - 2 or 2^K - 1; half of them are unsatisfied.
                    start_count(columns, count_bits, ((1 << count_bits) - 2 + parity - slots) // 2, w)
                count_by_sevens(n, columns, slots, offset[b], count_bits, state, neighbour, signs, w)
                decide_cheap(columns, bits, class_bits, certain, parity, lanes, w)
                prefixes(sites, block, low_sweep, k0, k1, w)
                compare_cheap(columns, bits, planes, parity, half_sweep, k0, k1, rounds, w)
                words = collect_flips(n, lanes, w, tail)
                # Tables of all degrees end with the same classes, so this degree takes the last 2^(K - 1) rows.
                of_class = thresholds[parity, thresholds.shape[1] - (1 << class_bits) :]
                finish_lanes(words, class_bits, of_class, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)
                scatter(state, sites, w)
            half_sweep += ONE
    return owned[0].size + owned[1].size + owned[2].size  # keeps the arrays alive until here
