"""Steps of a packed Metropolis update: 128 lanes at once, in Boolean arithmetic on 64-bit words.

A lane is a replica of one site (replica-packed) or a site of one row (site-packed). A kernel takes a batch of up to 64
x 128 lanes of one colour through these steps. Each step is a loop that vectorises over the batch:

    gather      neighbours' words to scratch rows, flipped if the coupling is below 0
    count       unsatisfied bonds of every lane, in three bit planes
    decide      lanes that flip for certain; the others are undecided
    compare     OWN_PLANES random planes with the lanes' thresholds, least significant plane first
    columns     one more call for lanes still equal: the first lane of each column of four takes its next bits there
    finish      the few lanes still equal, each with its own 64 bits
    scatter     flips to the state

Each update has its own gather step; all other steps are in this module.

Row r of the scratch array holds 2 * BATCH words: half 0 of every site of the batch, then half 1. All rows are in one
array at constant distances, so that the compiler can prove that they do not overlap.

The comparison starts with the least significant plane, because "uniform < threshold" is then one ternary operation per
plane.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO, add_four, add_seven, add_six
from spinsim.engine.moves.metropolis.classes import COLUMN_PLANES, OWN_PLANES, TAIL_PLANE
from spinsim.machine.compiled import kernel, step
from spinsim.machine.intrinsics import trailing_zeros

SPIN, FLIP, ACCEPT, UNDECIDED = 0 * ROW, 1 * ROW, 2 * ROW, 3 * ROW
PREFIX: Final = 4 * ROW  # philox_prefix's five words of every site: three rows
NEAR: Final = 7 * ROW  # neighbours' words; after counting, the columns' rows use this memory
OCCUPANT: Final = NEAR  # lanes that occupy their column
DEEP: Final = NEAR + ROW  # lanes undecided after the column planes
COLUMN: Final = NEAR + 2 * ROW  # results of occupants: accepted in the first half of the row, undecided in the second
DRAWN: Final = NEAR + 3 * ROW  # the columns' call: word j in half row j
CLASS: Final = 14 * ROW  # bit planes of the class, at most seven, and one more
SCRATCH_WORDS: Final = 22 * ROW

LOW6: Final = np.uint64(63)
SIX: Final = np.uint64(6)
UPDATE: Final = np.uint64(rng.Stream.UPDATE)
SHIFT: Final = np.uint64(32)
AFTER_OWN: Final = np.uint64(OWN_PLANES)
MORE: Final = np.uint64(COLUMN_PLANES)
FEW: Final = np.uint64(4)
"""Most lanes for which only undecided sites draw random planes: with more lanes, sites need most planes anyway."""


@step
def mux(bit, zero, one):  # type: ignore[no-untyped-def]
    """Return ``one`` where the bit is set, else ``zero``."""
    return (bit & one) | (~bit & zero)


@step
def unlike(k, e, w):  # type: ignore[no-untyped-def]
    """Return lanes that differ from their neighbour in slot k; their bond is unsatisfied."""
    return w[SPIN + e] ^ w[NEAR + k * ROW + e]


@step
def count_half(first, n, slots, w):  # type: ignore[no-untyped-def]
    """Do ``count_unlike`` for the half with words from ``first`` on."""
    # Lane l is bit l of word e in each of three rows, the bit planes of its count:
    #
    #     w[CLASS + e]    ones        w[CLASS + ROW + e]    twos        w[CLASS + 2 ROW + e]    fours
    #
    # The Boolean adders treat all 64 lanes of a word at once. One loop for each number of slots, without branches.
    if slots == 4:
        for q in range(n):
            e = first + q
            w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e] = add_four(
                unlike(0, e, w), unlike(1, e, w), unlike(2, e, w), unlike(3, e, w)
            )
    elif slots == 6:
        for q in range(n):
            e = first + q
            w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e] = add_six(
                unlike(0, e, w), unlike(1, e, w), unlike(2, e, w), unlike(3, e, w), unlike(4, e, w), unlike(5, e, w)
            )
    else:
        for q in range(n):
            e = first + q
            w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e] = add_seven(
                unlike(0, e, w), unlike(1, e, w), unlike(2, e, w), unlike(3, e, w), unlike(4, e, w), unlike(5, e, w),
                unlike(6, e, w),
            )  # fmt: skip


@step
def count_unlike(n, slots, w):  # type: ignore[no-untyped-def]
    """Set the class's bit planes: unsatisfied bonds among 6 or 7 slots, or one more than those among 4."""
    count_half(0, n, slots, w)
    count_half(BATCH, n, slots, w)


@step
def decide(n, always, lanes, w):  # type: ignore[no-untyped-def]
    """Find lanes that flip for certain, and undecided lanes."""
    # always[class, half] has a bit for each lane, as temperatures may differ. A count is high, middle, low:
    #
    #     high = 0    class 2 middle + low, from 0 to 3: two levels of mux choose among a0, a1, a2, a3
    #     high = 1    more than half of the bonds are unsatisfied, the flip gains energy, and it is certain
    for half in range(2):
        a0, a1, a2, a3 = always[0, half], always[1, half], always[2, half], always[3, half]
        used = lanes[half]
        for q in range(n):
            e = half * BATCH + q
            low = w[CLASS + e]
            certain = mux(w[CLASS + ROW + e], mux(low, a0, a1), mux(low, a2, a3)) | w[CLASS + 2 * ROW + e]
            w[FLIP + e] = certain & used
            # Lanes in use that are not certain compare random bits. ACCEPT is 0: equal numbers are not below.
            w[UNDECIDED + e] = ~certain & used
            w[ACCEPT + e] = ZERO


@step
def prefixes(sites, block, half_sweep, k0, k1, w):  # type: ignore[no-untyped-def]
    """Compute the part of a Philox call that all planes of a site share."""
    for q in range(sites.size):
        p0, p1, p2, p3, p4 = rng.philox_prefix(np.uint64(sites[q]), block, half_sweep, k0, k1)
        w[PREFIX + q] = p0
        w[PREFIX + BATCH + q] = p1
        w[PREFIX + ROW + q] = p2
        w[PREFIX + ROW + BATCH + q] = p3
        w[PREFIX + 2 * ROW + q] = p4


@step
def random_words(q, word3, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Draw one random plane of the q-th site: the words of half 0 and half 1."""
    x0, x1, x2, x3 = rng.philox_finish(
        w[PREFIX + q], w[PREFIX + BATCH + q], w[PREFIX + ROW + q], w[PREFIX + ROW + BATCH + q],
        w[PREFIX + 2 * ROW + q], word3, k0, k1, rounds,
    )  # fmt: skip
    return rng.low32(x0) | (x1 << SHIFT), rng.low32(x2) | (x3 << SHIFT)


@step
def compare(e, threshold, random, w):  # type: ignore[no-untyped-def]
    """Compare one more significant bit of uniform < threshold."""
    differ = threshold ^ random
    # A more significant bit overrules the result so far; if it is equal, the result stays.
    w[ACCEPT + e] = (threshold & ~random) | (~differ & w[ACCEPT + e])
    w[UNDECIDED + e] &= ~differ


@step
def compare_planes(n, planes, half_sweep, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Compare the planes that every lane draws, least significant first."""
    # planes[plane, class, half] has one bit of each lane's threshold, at its temperature; plane 0 is the highest.
    # One Philox call of a site draws one plane, 128 bits:
    #
    #     x0: lanes 0 to 31    x1: lanes 32 to 63    x2: lanes 64 to 95    x3: lanes 96 to 127
    #     |------------ half 0 ----------------|    |------------ half 1 ----------------|
    for back in range(OWN_PLANES):
        plane = OWN_PLANES - 1 - back
        word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(plane))
        # Bits of the four classes: a for half 0, b for half 1.
        a0, a1, a2, a3 = planes[plane, 0, 0], planes[plane, 1, 0], planes[plane, 2, 0], planes[plane, 3, 0]
        b0, b1, b2, b3 = planes[plane, 0, 1], planes[plane, 1, 1], planes[plane, 2, 1], planes[plane, 3, 1]
        for q in range(n):
            first, second = random_words(q, word3, k0, k1, rounds, w)
            # The class of each lane chooses its threshold bit by mux; then half 0 compares, and half 1.
            low, high = w[CLASS + q], w[CLASS + ROW + q]
            compare(q, mux(high, mux(low, a0, a1), mux(low, a2, a3)), first, w)
            low, high = w[CLASS + BATCH + q], w[CLASS + ROW + BATCH + q]
            compare(q + BATCH, mux(high, mux(low, b0, b1), mux(low, b2, b3)), second, w)


@step
def occupy_columns(n, half_sweep, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Assign undecided lanes to columns, the lowest lane of each column first, and draw the columns' call."""
    # Column c, one of 32, is bit c of the four 32-bit parts of a site's 128 lanes:
    #
    #     UNDECIDED     half 0: [ u0 | u1 ]    half 1: [ u2 | u3 ]      lanes c, c + 32, c + 64, c + 96
    #     OCCUPANT      at most one of the four bits of each column stays
    #     COLUMN        half row 0: accepted, half row 1: undecided; the low 32 bits are the columns
    #     DRAWN         half row j: word j of the site's next call, which is bit j of all columns
    word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(OWN_PLANES))
    for q in range(n):
        first, second = w[UNDECIDED + q], w[UNDECIDED + BATCH + q]
        u0, u1, u2, u3 = rng.low32(first), first >> SHIFT, rng.low32(second), second >> SHIFT
        # A lane occupies its column if no lower lane does.
        two = u0 | u1
        three = two | u2
        w[OCCUPANT + q] = u0 | ((u1 & ~u0) << SHIFT)
        w[OCCUPANT + BATCH + q] = (u2 & ~two) | ((u3 & ~three) << SHIFT)
        # A column without an undecided lane has nothing to compare.
        w[COLUMN + q] = ZERO
        w[COLUMN + BATCH + q] = three | u3
    for q in range(n):
        first, second = random_words(q, word3, k0, k1, rounds, w)
        w[DRAWN + q], w[DRAWN + BATCH + q] = rng.low32(first), first >> SHIFT
        w[DRAWN + ROW + q], w[DRAWN + ROW + BATCH + q] = rng.low32(second), second >> SHIFT


@step
def compare_column(q, drawn, first, second, w):  # type: ignore[no-untyped-def]
    """Compare one column plane of the occupants; ``first`` and ``second`` have the threshold bits of halves 0 and 1."""
    # One lane occupies a column, so OR folds the four parts into the threshold bits of 32 columns.
    both = (first & w[OCCUPANT + q]) | (second & w[OCCUPANT + BATCH + q])
    threshold, random = rng.low32(both | both >> SHIFT), w[drawn + q]
    differ = threshold ^ random
    w[COLUMN + q] = (threshold & ~random) | (~differ & w[COLUMN + q])
    w[COLUMN + BATCH + q] &= ~differ


@step
def settle_columns(n, w):  # type: ignore[no-untyped-def]
    """Copy decisions of columns to their occupants."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            occupant, accepted, undecided = w[OCCUPANT + e], w[COLUMN + q], w[COLUMN + BATCH + q]
            # A column's bit goes to the low and the high part; OCCUPANT keeps it at the lane that used it.
            deep = occupant & (undecided | undecided << SHIFT)
            w[ACCEPT + e] |= occupant & (accepted | accepted << SHIFT)
            w[DEEP + e] = deep
            # Undecided: occupants still equal, and lanes that found their column occupied.
            w[UNDECIDED + e] = deep | (w[UNDECIDED + e] & ~occupant)


@step
def compare_column_plane(n, drawn, row, w):  # type: ignore[no-untyped-def]
    """Compare one column plane; its threshold bits are in ``row``, its random words in the half row ``drawn``."""
    a0, a1, a2, a3 = row[0, 0], row[1, 0], row[2, 0], row[3, 0]
    b0, b1, b2, b3 = row[0, 1], row[1, 1], row[2, 1], row[3, 1]
    for q in range(n):
        low, high = w[CLASS + q], w[CLASS + ROW + q]
        first = mux(high, mux(low, a0, a1), mux(low, a2, a3))
        low, high = w[CLASS + BATCH + q], w[CLASS + ROW + BATCH + q]
        compare_column(q, drawn, first, mux(high, mux(low, b0, b1), mux(low, b2, b3)), w)


@step
def compare_columns(n, planes, half_sweep, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Compare the column planes, least significant first; written out, because rows need constant distances."""
    occupy_columns(n, half_sweep, k0, k1, rounds, w)
    compare_column_plane(n, DRAWN + 3 * BATCH, planes[OWN_PLANES + 3], w)
    compare_column_plane(n, DRAWN + 2 * BATCH, planes[OWN_PLANES + 2], w)
    compare_column_plane(n, DRAWN + BATCH, planes[OWN_PLANES + 1], w)
    compare_column_plane(n, DRAWN, planes[OWN_PLANES], w)
    settle_columns(n, w)


@step
def collect_flips(n, lanes, w, tail):  # type: ignore[no-untyped-def]
    """Add accepted lanes to the flips; put places of words with undecided lanes in ``tail``; return their number."""
    for half in range(2):
        used = lanes[half]
        for q in range(n):
            e = half * BATCH + q
            w[FLIP + e] |= w[ACCEPT + e] & used
    words = np.int64(0)
    for half in range(2):
        for q in range(n):
            tail[words] = half * BATCH + q
            words += np.int64(w[UNDECIDED + half * BATCH + q] != ZERO)
    return words


@step
def finish_lanes(  # type: ignore[no-untyped-def]
    words, class_bits, thresholds, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
):
    """Decide the undecided lanes: each compares the rest of its threshold with its own Philox call."""
    # lane[t]:   | e, place of the word in a row | bit in the word, 6 bits |
    # site[t]:   the site's number in the counter, later the 64 random bits of the lane
    count = 0
    for t in range(words):
        e = tail[t]
        half = e // BATCH
        left = w[UNDECIDED + e]
        # List the set bits of the word, lowest first; left & (left - 1) clears the lowest.
        while left != ZERO:
            site[count] = np.uint64(sites[e - half * BATCH])
            lane[count] = np.uint64(e) << SIX | trailing_zeros(left)
            left &= left - ONE
            count += 1
    # One call for each listed lane; its plane is TAIL_PLANE plus the lane's number from 0 to 127.
    first_plane = rng.counter_plane(half_sweep, UPDATE, np.uint64(TAIL_PLANE))
    low_sweep = rng.low32(half_sweep)
    for t in range(count):
        number = ((lane[t] >> SIX) // np.uint64(BATCH) << SIX) | (lane[t] & LOW6)
        x0, x1, _, _ = rng.philox(site[t], block, low_sweep, first_plane + number, k0, k1, rounds)
        site[t] = (x0 << SHIFT) | rng.low32(x1)
    for t in range(count):
        e = np.int64(lane[t] >> SIX)
        bit = lane[t] & LOW6
        # Collect the bits of the lane's class, one from each plane.
        index = ZERO
        for b in range(class_bits):
            index |= (w[CLASS + b * ROW + e] >> bit & ONE) << np.uint64(b)
        number = e // BATCH * 64 + np.int64(bit)
        # Shift out the threshold bits already found equal: OWN_PLANES, and COLUMN_PLANES more for an occupant.
        depth = AFTER_OWN + (w[DEEP + e] >> bit & ONE) * MORE
        w[FLIP + e] |= np.uint64(site[t] < thresholds[np.int64(index), number] << depth) << bit


@kernel
def scratch_of(words):  # type: ignore[no-untyped-def]
    """Allocate the rows of a batch, its words with undecided lanes, and the sites and places of these lanes."""
    return (
        np.empty(words, np.uint64),
        np.empty(ROW + 1, np.int64),
        np.empty(64 * ROW, np.uint64),
        np.empty(64 * ROW, np.uint64),
    )


@step
def find_flips(  # type: ignore[no-untyped-def]
    n, always, planes, thresholds, lanes, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
):
    """Do all steps from ``decide`` to ``finish_lanes`` for the four classes of sites of even or of odd degree.

    Arguments are passed one by one, because a tuple of arrays would cost reference counting in every batch. ``sites``
    are numbers in the random counter.
    """
    decide(n, always, lanes, w)
    prefixes(sites, block, rng.low32(half_sweep), k0, k1, w)
    compare_planes(n, planes, half_sweep, k0, k1, rounds, w)
    compare_columns(n, planes, half_sweep, k0, k1, rounds, w)
    words = collect_flips(n, lanes, w, tail)
    finish_lanes(words, 2, thresholds, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)


@step
def decide_few(n, always, lanes, w):  # type: ignore[no-untyped-def]
    """Do ``decide`` for lanes of half 0."""
    a0, a1, a2, a3, used = always[0, 0], always[1, 0], always[2, 0], always[3, 0], lanes[0]
    for q in range(n):
        low = w[CLASS + q]
        certain = mux(w[CLASS + ROW + q], mux(low, a0, a1), mux(low, a2, a3)) | w[CLASS + 2 * ROW + q]
        w[FLIP + q] = certain & used
        w[UNDECIDED + q] = ~certain & used


@step
def compare_few(q, row, random, w):  # type: ignore[no-untyped-def]
    """Compare one less significant bit for undecided lanes of a site's half 0; ``row`` has a plane's threshold bits."""
    low, undecided = w[CLASS + q], w[UNDECIDED + q]
    threshold = mux(w[CLASS + ROW + q], mux(low, row[0, 0], row[1, 0]), mux(low, row[2, 0], row[3, 0]))
    differ = threshold ^ random
    # From the top: at the first bit that differs, a threshold bit of 1 means uniform < threshold.
    w[FLIP + q] |= threshold & differ & undecided
    w[UNDECIDED + q] = undecided & ~differ


@step
def find_few_flips(  # type: ignore[no-untyped-def]
    n, always, planes, thresholds, lanes, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
):
    """Do ``find_flips`` for lanes below ``FEW``: most significant plane first, later planes for undecided sites only.

    A site of one lane needs two calls on average, against six in ``find_flips``. These lanes share no column.
    """
    # Only half 0 is in use. A list of undecided sites shrinks from plane to plane:
    #
    #     tail[0 .. count)    place q of the site in the batch
    #     site[0 .. count)    its number in the counter
    #     lane[0 .. count)    its random word of the present plane
    #
    # The list is shortened without branches: every site is written, and the length grows only if the site stays.
    low_sweep, first_plane = rng.low32(half_sweep), rng.counter_plane(half_sweep, UPDATE, ZERO)
    decide_few(n, always, lanes, w)
    for q in range(n):  # all sites, as few are decided so far
        x0, x1, _, _ = rng.philox(np.uint64(sites[q]), block, low_sweep, first_plane, k0, k1, rounds)
        compare_few(q, planes[0], rng.low32(x0) | (x1 << SHIFT), w)
    count = np.int64(0)
    for q in range(n):
        tail[count], site[count] = q, np.uint64(sites[q])
        count += np.int64(w[UNDECIDED + q] != ZERO)
    # All calls of a plane first, as this loop vectorises; then compare and shorten the list.
    for plane in range(1, OWN_PLANES):
        word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(plane))
        for t in range(count):
            x0, x1, _, _ = rng.philox(site[t], block, low_sweep, word3, k0, k1, rounds)
            lane[t] = rng.low32(x0) | (x1 << SHIFT)
        left = np.int64(0)
        for t in range(count):
            q, number = tail[t], site[t]
            compare_few(q, planes[plane], lane[t], w)
            tail[left], site[left] = q, number
            left += np.int64(w[UNDECIDED + q] != ZERO)
        count = left
    # One more call has the four column planes in its four words. Lane l below FEW has column l to itself.
    word3, left = rng.counter_plane(half_sweep, UPDATE, np.uint64(OWN_PLANES)), np.int64(0)
    for t in range(count):
        q = tail[t]
        x0, x1, x2, x3 = rng.philox(site[t], block, low_sweep, word3, k0, k1, rounds)
        compare_few(q, planes[OWN_PLANES], rng.low32(x0), w)
        compare_few(q, planes[OWN_PLANES + 1], rng.low32(x1), w)
        compare_few(q, planes[OWN_PLANES + 2], rng.low32(x2), w)
        compare_few(q, planes[OWN_PLANES + 3], rng.low32(x3), w)
        # Lanes still equal have compared all planes, so DEEP has all of them.
        w[DEEP + q] = w[UNDECIDED + q]
        tail[left] = q
        left += np.int64(w[UNDECIDED + q] != ZERO)
    finish_lanes(left, 2, thresholds, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)


@step
def scatter(state, sites, w):  # type: ignore[no-untyped-def]
    """Copy flips to the state."""
    for q in range(sites.size):
        i = sites[q]
        state[i, 0] = w[SPIN + q] ^ w[FLIP + q]
        state[i, 1] = w[SPIN + BATCH + q] ^ w[FLIP + BATCH + q]


@step
def scatter_few(state, sites, w):  # type: ignore[no-untyped-def]
    """Do ``scatter`` for half 0."""
    for q in range(sites.size):
        state[sites[q], 0] = w[SPIN + q] ^ w[FLIP + q]


RANDOM = SCRATCH_WORDS  # one row of random words, then one of selected words
TREE = SCRATCH_WORDS + ROW
UPPER = TREE + ROW  # lanes of one of the groups of 16 classes
ALL = ~np.uint64(0)
WIDE_WORDS = UPPER + ROW


@step
def mux8(low, middle, high, words, first, half):  # type: ignore[no-untyped-def]
    """Select the word of the class that three bit planes give, among ``words[first]`` to ``words[first + 7]``."""
    zero = mux(
        middle,
        mux(low, words[first, half], words[first + 1, half]),
        mux(low, words[first + 2, half], words[first + 3, half]),
    )
    one = mux(
        middle,
        mux(low, words[first + 4, half], words[first + 5, half]),
        mux(low, words[first + 6, half], words[first + 7, half]),
    )
    return mux(high, zero, one)


@step
def select16(n, words, w):  # type: ignore[no-untyped-def]
    """Do ``select`` for the 16 classes of degrees up to 7 with a field, without intermediate levels in memory."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            low, middle, high = w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
            zero, one = mux8(low, middle, high, words, 0, half), mux8(low, middle, high, words, 8, half)
            w[TREE + e] = mux(w[CLASS + 3 * ROW + e], zero, one)


@step
def select32(n, words, w):  # type: ignore[no-untyped-def]
    """Do ``select`` for 32 classes."""
    select16(n, words, w)
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            low, middle, high = w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
            zero, one = mux8(low, middle, high, words, 16, half), mux8(low, middle, high, words, 24, half)
            w[TREE + e] = mux(w[CLASS + 4 * ROW + e], w[TREE + e], mux(w[CLASS + 3 * ROW + e], zero, one))


@step
def select(n, class_bits, words, w):  # type: ignore[no-untyped-def]
    """Set the first row of TREE to ``words[class, half]`` of every lane's class."""
    if class_bits == 4:
        select16(n, words, w)
    elif class_bits == 5:
        select32(n, words, w)
    else:
        select_any(n, class_bits, words, w)


@step
def select_any(n, class_bits, words, w):  # type: ignore[no-untyped-def]
    """Do ``select`` for any number of classes, 16 at a time."""
    for half in range(2):
        for q in range(n):
            w[TREE + half * BATCH + q] = ZERO
        for group in range(1 << (class_bits - 4)):
            for q in range(n):
                w[UPPER + q] = ALL
            for b in range(4, class_bits):
                other = np.uint64(group >> (b - 4) & 1) - ONE  # all ones if the bit must be 0
                for q in range(n):
                    w[UPPER + q] &= w[np.uint64(CLASS + b * ROW + half * BATCH + q)] ^ other
            add16(n, words[16 * group :], half, w)


@step
def add16(n, words, half, w):  # type: ignore[no-untyped-def]
    """Add to the first row of TREE the words of lanes in UPPER, for 16 classes."""
    a0, a1, a2, a3 = words[0, half], words[1, half], words[2, half], words[3, half]
    b0, b1, b2, b3 = words[4, half], words[5, half], words[6, half], words[7, half]
    c0, c1, c2, c3 = words[8, half], words[9, half], words[10, half], words[11, half]
    d0, d1, d2, d3 = words[12, half], words[13, half], words[14, half], words[15, half]
    for q in range(n):
        e = half * BATCH + q
        low, next_, upper = w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
        a, b = mux(next_, mux(low, a0, a1), mux(low, a2, a3)), mux(next_, mux(low, b0, b1), mux(low, b2, b3))
        c, d = mux(next_, mux(low, c0, c1), mux(low, c2, c3)), mux(next_, mux(low, d0, d1), mux(low, d2, d3))
        w[TREE + e] |= mux(w[CLASS + 3 * ROW + e], mux(upper, a, b), mux(upper, c, d)) & w[UPPER + q]


@step
def decide_wide(n, class_bits, always, lanes, w):  # type: ignore[no-untyped-def]
    """Do ``decide`` for any number of classes, including those that gain energy."""
    select(n, class_bits, always, w)
    for half in range(2):
        used = lanes[half]
        for q in range(n):
            e = half * BATCH + q
            certain = w[TREE + e]
            w[FLIP + e] = certain & used
            w[UNDECIDED + e] = ~certain & used
            w[ACCEPT + e] = ZERO


@step
def compare_wide(n, class_bits, planes, half_sweep, k0, k1, rounds, w):  # type: ignore[no-untyped-def]
    """Do ``compare_planes`` and ``compare_columns`` for any number of classes."""
    for back in range(OWN_PLANES):
        plane = OWN_PLANES - 1 - back
        word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(plane))
        for q in range(n):
            w[RANDOM + q], w[RANDOM + BATCH + q] = random_words(q, word3, k0, k1, rounds, w)
        select(n, class_bits, planes[plane], w)
        for half in range(2):
            for q in range(n):
                e = half * BATCH + q
                compare(e, w[TREE + e], w[RANDOM + e], w)
    occupy_columns(n, half_sweep, k0, k1, rounds, w)
    for back in range(COLUMN_PLANES):
        j = COLUMN_PLANES - 1 - back
        select(n, class_bits, planes[OWN_PLANES + j], w)
        for q in range(n):
            compare_column(q, DRAWN + j * BATCH, w[TREE + q], w[TREE + BATCH + q], w)
    settle_columns(n, w)


@step
def find_flips_wide(  # type: ignore[no-untyped-def]
    n, class_bits, always, planes, thresholds, lanes, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane
):
    """Do ``find_flips`` for any number of classes."""
    decide_wide(n, class_bits, always, lanes, w)
    prefixes(sites, block, rng.low32(half_sweep), k0, k1, w)
    compare_wide(n, class_bits, planes, half_sweep, k0, k1, rounds, w)
    words = collect_flips(n, lanes, w, tail)
    finish_lanes(words, class_bits, thresholds, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)
