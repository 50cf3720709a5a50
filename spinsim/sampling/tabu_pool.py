"""Compiled tabu searches one after the other: where each begins, and what it leaves when it has ended.

With many threads these steps would wait for each other in Python, as a search of a small problem takes less than a
millisecond. What is known of all searches so far stands in arrays:

    numbers    int64 (NUMBERS,)      as listed below
    tries      int64 (ways,)         searches from random states by each way
    sums       float64 (ways,)       of their energies in units
    pool       int8 (POOL, sites)    states at the ends of searches, of which the first ``POOLED`` count
    energies   int64 (POOL,)         theirs
    lowest     int8 (sites,)         the lowest state of the searches that have ended
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.machine.compiled import kernel, step
from spinsim.sampling.one_flip import BEST, BEST_STEP, PENDING, STEP, UNSAVED, energy, prepare, recombine, search

POOL: Final = 8  # states
FAILURES: Final = 16  # searches in a row that lower no energy, after which a pool is given up
FIRST_WAYS: Final = (2, 4, 7)  # ways that are tried twice before any other: short, long, pairs
NO_ENERGY: Final = np.iinfo(np.int64).max

(SEARCHES, WAY, IS_RANDOM, BASE, FAILED, IS_HELPED, HAS_HIT, LOWEST, STARTS, HITS, POOLED, TAKEN, NUMBERS) = range(13)
"""Places of numbers: searches begun; way of the one that goes on, or -1; 1 if it began at a random state; energy where
it began; searches in a row that lowered no energy; 1 if the pool has descendants of states that were offered; 1 if it
has met the lowest energy; this energy; independent starts; those that met it; states of the pool; offered states of
the present call that were taken; how many numbers there are."""

_CHOICES, _BITS = np.uint64(0), np.uint64(1)  # planes of the random numbers of a search
_STREAM: Final = np.uint64(rng.Stream.TABU)


@step
def copy(given, into, sign):  # type: ignore[no-untyped-def]
    """Copy a state, multiplied by +1 or -1."""
    for i in range(given.size):
        into[i] = sign * given[i]


@step
def words(group, plane, number, keys):  # type: ignore[no-untyped-def]
    """Return four random words of search ``number``, each below 2^32."""
    time = np.uint64(number)
    x0, x1, x2, x3 = rng.philox(
        np.uint64(group), np.uint64(0), rng.low32(time), rng.counter_plane(time, _STREAM, plane), keys[0], keys[1],
        rng.ROUNDS,
    )  # fmt: skip
    return rng.low32(x0), rng.low32(x1), rng.low32(x2), rng.low32(x3)


@step
def next_way(choice, ways, tries, sums):  # type: ignore[no-untyped-def]
    """Return the way of a search: that of lowest average energy, or one next to it, once some have been tried."""
    least = FIRST_WAYS[0]
    for way in FIRST_WAYS[1:]:
        least = way if tries[way] < tries[least] else least
    if tries[least] < 2:
        return least
    best = -1
    for way in range(len(tries)):
        if tries[way] and (best < 0 or sums[way] / tries[way] < sums[best] / tries[best]):
            best = way
    other = best + (0, 0, -1, 1)[choice % 4]
    return other if 0 <= other < len(tries) and ways[other, 0] == ways[best, 0] else best


@step
def draw_bits(bits, number, keys):  # type: ignore[no-untyped-def]
    """Draw a bit for each site."""
    for group in range((bits.size + 127) // 128):
        four = words(group, _BITS, number, keys)
        for k in range(4):
            first = 128 * group + 32 * k
            for i in range(first, min(first + 32, bits.size)):
                bits[i] = four[k] >> np.uint64(i - first) & np.uint64(1)


@step
def join(one, other, spin, pool, room, problem, symmetric, random):  # type: ignore[no-untyped-def]
    """Begin at a child of two states of the pool."""
    bits, turned, child, seen, queue = room
    product = 0
    for i in range(spin.size):
        product += pool[one, i] * pool[other, i]
    copy(pool[other], turned, -1 if symmetric and product < 0 else 1)
    sets, taken = recombine(pool[one], turned, child, seen, queue, problem, random)
    is_new = 0 < taken < sets
    for i in range(spin.size):
        spin[i] = child[i] if is_new else pool[one, i] if bits[i] else turned[i]


@step
def begin(problem, state, known, room, waiting, ways, symmetric, keys, top):  # type: ignore[no-untyped-def]
    """Begin the next search: at a state that was offered, at a random one, or at a child of two of the pool."""
    numbers, tries, sums, pool, _, _ = known
    spin, _, _, _, _, first, _, at, random = state
    number, bits = numbers[SEARCHES], room[0]
    x0, x1, choice, one = words(0, _CHOICES, number, keys)
    step_to_other = words(1, _CHOICES, number, keys)[0]
    random[0] = x0 << np.uint64(32) | x1 | np.uint64(1)
    numbers[WAY] = way = next_way(np.int64(choice), ways, tries, sums)
    is_offered = numbers[TAKEN] < len(waiting)
    numbers[IS_RANDOM] = not is_offered and numbers[POOLED] < POOL
    if is_offered:
        copy(waiting[numbers[TAKEN]], spin, 1)
        numbers[TAKEN] += 1
        numbers[IS_HELPED] = 1
    else:
        draw_bits(bits, number, keys)
        if numbers[IS_RANDOM]:
            for i in range(spin.size):
                spin[i] = 1 if bits[i] else -1
        else:
            parent = np.int64(one) % POOL
            other = (parent + 1 + np.int64(step_to_other) % (POOL - 1)) % POOL
            join(parent, other, spin, pool, room, problem, symmetric, random)
    first[:] = -1
    prepare(problem, state, top, ways[way, 0] != 0)
    at[:] = 0
    at[UNSAVED] = 1
    at[PENDING] = -1
    numbers[BASE] = energy(problem, spin)
    numbers[SEARCHES] += 1


@kernel
def note(spins, value, counts, known):  # type: ignore[no-untyped-def]
    """Note the lowest energy, and starts that have met it; ``counts`` is False for states of other methods."""
    numbers, lowest = known[0], known[5]
    if value < numbers[LOWEST]:
        numbers[LOWEST] = value
        copy(spins, lowest, 1)
        numbers[HITS] = numbers[HAS_HIT] = 0
    if value == numbers[LOWEST] and counts and not numbers[HAS_HIT]:
        numbers[HITS] += 1
        numbers[HAS_HIT] = 1


@step
def is_in_pool(state, sign, pool, pooled):  # type: ignore[no-untyped-def]
    for k in range(pooled):
        i = 0
        while i < state.size and pool[k, i] == sign * state[i]:
            i += 1
        if i == state.size:
            return True
    return False


@step
def take_in(best, value, sign, numbers, pool, energies):  # type: ignore[no-untyped-def]
    """Put the best state of a search into the pool, if it is new and not too high."""
    place = pooled = numbers[POOLED]
    if is_in_pool(best, sign, pool, pooled):
        return
    if pooled == POOL:
        place = 0
        for k in range(1, POOL):
            place = k if energies[k] > energies[place] else place
        if value > energies[place]:
            return
    else:
        numbers[POOLED] += 1
    copy(best, pool[place], sign)
    energies[place] = value


@step
def end(state, known, symmetric):  # type: ignore[no-untyped-def]
    """Take the best state of a search into the pool, and give up a pool that no longer gains."""
    numbers, tries, sums, pool, energies, _ = known
    spin, best, at = state[0], state[1], state[7]
    value = numbers[BASE] + 2 * at[BEST]
    if at[UNSAVED]:
        copy(spin, best, 1)
    if numbers[IS_RANDOM]:
        sums[numbers[WAY]] += value
        tries[numbers[WAY]] += 1
    numbers[WAY] = -1
    note(best, value, numbers[IS_HELPED] == 0, known)
    gains = True
    for k in range(numbers[POOLED]):
        gains &= value < energies[k]
    take_in(best, value, best[0] if symmetric else 1, numbers, pool, energies)
    numbers[FAILED] = 0 if gains else numbers[FAILED] + 1
    if numbers[FAILED] >= FAILURES:
        numbers[POOLED] = numbers[FAILED] = 0
        numbers[STARTS] += numbers[IS_HELPED] == 0
        numbers[IS_HELPED] = numbers[HAS_HIT] = 0


@kernel
def advance(steps, patience, problem, state, known, room, waiting, ways, wide, symmetric, keys, top):  # type: ignore[no-untyped-def]
    """Take this number of steps. ``waiting`` (states, sites) are states where the next searches begin.

    ``ways`` (ways, 3) has for each way 1 for pairs or 0, and its ``tenure`` and ``spread``; ``room`` is for what each
    search writes when it begins: bits, two states, and what ``recombine`` needs.
    """
    numbers, at = known[0], state[7]
    while steps > 0:
        if numbers[WAY] < 0:
            begin(problem, state, known, room, waiting, ways, symmetric, keys, top)
        way = numbers[WAY]
        steps = search(steps, patience, problem, state, top, wide, ways[way, 0] != 0, ways[way, 1], ways[way, 2])
        if at[STEP] - at[BEST_STEP] >= patience:
            end(state, known, symmetric)
