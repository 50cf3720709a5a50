"""The steps of a packed update with any number of classes: degrees up to 31, a uniform field, a deeper mux tree."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.layouts.replica_packed.adders import BATCH, ONE, ROW, ZERO
from spinsim.engine.moves.metropolis.packed.classes import COLUMN_PLANES, OWN_PLANES
from spinsim.engine.moves.metropolis.packed.steps import (
    ACCEPT,
    CLASS,
    DRAWN,
    FLIP,
    SCRATCH_WORDS,
    UNDECIDED,
    UPDATE,
    collect_flips,
    compare,
    compare_column,
    finish_lanes,
    mux,
    occupy_columns,
    prefixes,
    random_words,
    settle_columns,
)
from spinsim.machine.compiled import step

RANDOM = SCRATCH_WORDS  # one row of random words, then one of what was selected
TREE = SCRATCH_WORDS + ROW
UPPER = TREE + ROW  # lanes of one of the groups of 16 classes
ALL = ~np.uint64(0)
WIDE_WORDS = UPPER + ROW


@step
def mux8(low, middle, high, words, first, half):  # type: ignore[no-untyped-def]
    """The word of the class, among ``words[first]`` to ``words[first + 7]``, that three bit planes name."""
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
    """``select`` for the 16 classes of degrees up to 7 with a field, without levels in memory."""
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            low, middle, high = w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
            zero, one = mux8(low, middle, high, words, 0, half), mux8(low, middle, high, words, 8, half)
            w[TREE + e] = mux(w[CLASS + 3 * ROW + e], zero, one)


@step
def select32(n, words, w):  # type: ignore[no-untyped-def]
    """``select`` for 32 classes."""
    select16(n, words, w)
    for half in range(2):
        for q in range(n):
            e = half * BATCH + q
            low, middle, high = w[CLASS + e], w[CLASS + ROW + e], w[CLASS + 2 * ROW + e]
            zero, one = mux8(low, middle, high, words, 16, half), mux8(low, middle, high, words, 24, half)
            w[TREE + e] = mux(w[CLASS + 4 * ROW + e], w[TREE + e], mux(w[CLASS + 3 * ROW + e], zero, one))


@step
def select(n, class_bits, words, w):  # type: ignore[no-untyped-def]
    """``words[class, half]`` of every lane's class into the first row of TREE."""
    if class_bits == 4:
        select16(n, words, w)
    elif class_bits == 5:
        select32(n, words, w)
    else:
        select_any(n, class_bits, words, w)


@step
def select_any(n, class_bits, words, w):  # type: ignore[no-untyped-def]
    """``select`` for any number of classes, 16 at a time."""
    for half in range(2):
        for q in range(n):
            w[TREE + half * BATCH + q] = ZERO
        for group in range(1 << (class_bits - 4)):
            for q in range(n):
                w[UPPER + q] = ALL
            for b in range(4, class_bits):
                other = np.uint64(group >> (b - 4) & 1) - ONE  # all ones where the bit is to be 0
                for q in range(n):
                    w[UPPER + q] &= w[np.uint64(CLASS + b * ROW + half * BATCH + q)] ^ other
            add16(n, words[16 * group :], half, w)


@step
def add16(n, words, half, w):  # type: ignore[no-untyped-def]
    """The words of lanes in UPPER, of 16 classes, into the first row of TREE."""
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
    """``decide`` for any number of classes, those that gain energy among them."""
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
    """``compare_planes`` and ``compare_columns`` for any number of classes."""
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
    """``find_flips`` for any number of classes."""
    decide_wide(n, class_bits, always, lanes, w)
    prefixes(sites, block, rng.low32(half_sweep), k0, k1, w)
    compare_wide(n, class_bits, planes, half_sweep, k0, k1, rounds, w)
    words = collect_flips(n, lanes, w, tail)
    finish_lanes(words, class_bits, thresholds, sites, block, half_sweep, k0, k1, rounds, w, tail, site, lane)
