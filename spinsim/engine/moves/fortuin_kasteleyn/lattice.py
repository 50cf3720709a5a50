"""Fortuin-Kasteleyn moves of single lattices on the CPU; words hold 64 sites of one colour.

Clusters are defined in move.py; random numbers are addressed by the groups of 128 sites of the site-packed layout.
Every bond has one end of colour 0, and is named by a slot of that site (layouts/site_packed.py). Bonds of slot k of
group g of colour 0 have group k G + g in the counter, where G is the number of groups of a colour. Bonds of colour c to
the ghost have k = 2 d + c. The stream is ``FORTUIN_KASTELEYN``, the block is the replica, and bit b of word w belongs
to site 32 w + b of the group:

    plane p, p < 64     bit 63 - p of the uniform that closes a bond where it is below the threshold of exp(-2 beta |J|)
    COIN                bit that flips the cluster of a site which is its smallest one, group = c G + g
    OWN                 number of a replica's site and its k, group 0
    SEEDS + p           seeds: sites whose first k planes are all set, group as of coins

The leader of a cluster is its site with the smallest number x + Lx (y + Ly z).

Open bonds are stored as words in the order of sites. A word of 64 sites consists of runs joined by open bonds along x,
except bonds from the end of a row to its beginning. Only the first site of a run has a parent, with a smaller number.
Of the open bonds between two runs of neighbouring rows only the first is used.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import acceptance
from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed import BATCH, ONE, ROW, ZERO, Blocks
from spinsim.engine.layouts.site_packed import (
    WORD,
    bits_around,
    bits_at,
    build_signs,
    fill_window,
    in_use,
    lanes_of,
    load,
    seams_of,
    window_of,
)
from spinsim.engine.moves.fortuin_kasteleyn.clusters import (
    ALL,
    CLUSTERS,
    KINDS,
    SEEDED,
    SHIFT,
    SWENDSEN_WANG,
    WOLFF,
    find,
)
from spinsim.engine.moves.metropolis.site_packed.cpu import SiteSweeper
from spinsim.engine.moves.metropolis.site_packed.update import sides_of
from spinsim.engine.moves.metropolis.steps import FLIP, UNDECIDED, WIDE_WORDS, mux, prefixes, random_words, unlike
from spinsim.engine.moves.move import Batch, FastPath, Moment
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import leading_zeros, trailing_zeros
from spinsim.model.ising import Ising

BITS: Final = 64  # bits of a uniform
FEWEST: Final = 8  # planes that all groups of a batch draw together
COIN: Final = 64
OWN: Final = 65
SEEDS: Final = 128
MOST_SITES: Final = 2**32
PASSES: Final = 512  # approximate cost of a move, in passes over all words
LAST: Final = np.uint64(63)
SIX: Final = np.uint64(6)
EVEN: Final = np.uint64(0x5555555555555555)
PAIRS: Final = np.uint64(0x3333333333333333)
NIBBLES: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
OCTETS: Final = np.uint64(0x00FF00FF00FF00FF)
HALVES: Final = np.uint64(0x0000FFFF0000FFFF)
TWO, FOUR, EIGHT, SIXTEEN = np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16)


def chances(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Thresholds of closed bonds, uint64 (temperatures, coupling or field, 2); the last entry is 1 if no bond opens."""
    magnitude, field = model.magnitude, model.uniform_field
    assert magnitude is not None and field is not None  # noqa: PT018, S101  (checked by ``suits``)
    costs = 2 * np.abs(np.array([magnitude, field]))
    always, thresholds = acceptance(costs, beta.reshape(-1, 1) * model.quantum, 1.0)
    return np.stack([thresholds, always.astype(np.uint64)], axis=-1)


def check_sites(model: Ising) -> None:
    """Refuse lattices with more sites than 32-bit numbers."""
    if model.sites > MOST_SITES:
        raise InputError(f"{model.sites} sites are too many for cluster moves: take a lattice of at most 2^32 sites")


@part
def spread(x):  # type: ignore[no-untyped-def]
    """Move the low 32 bits of a word to its even bits."""
    x &= rng.MASK32
    x = (x | x << SIXTEEN) & HALVES
    x = (x | x << EIGHT) & OCTETS
    x = (x | x << FOUR) & NIBBLES
    x = (x | x << TWO) & PAIRS
    return (x | x << ONE) & EVEN


@part
def gather(x):  # type: ignore[no-untyped-def]
    """Move the even bits of a word to its low 32 bits."""
    x &= EVEN
    x = (x | x >> ONE) & PAIRS
    x = (x | x >> TWO) & NIBBLES
    x = (x | x >> FOUR) & OCTETS
    x = (x | x >> EIGHT) & HALVES
    return (x | x >> SIXTEEN) & rng.MASK32


@part
def lay(k, even, odd, laid):  # type: ignore[no-untyped-def]
    """Set two words of ``laid``, in the order of sites, from the k-th words of even x and of odd x."""
    laid[2 * k] = spread(even) | spread(odd) << ONE
    laid[2 * k + 1] = spread(even >> SHIFT) | spread(odd >> SHIFT) << ONE


@part
def close_plane(q, word3, bit, k0, k1, w):  # type: ignore[no-untyped-def]
    """Compare one more bit of the uniforms of the q-th group with the threshold's, which is repeated in ``bit``."""
    one, other = random_words(q, word3, k0, k1, rng.ROUNDS, w)
    w[FLIP + q] &= ~(w[UNDECIDED + q] & ~one & bit)
    w[UNDECIDED + q] &= ~(one ^ bit)
    w[FLIP + BATCH + q] &= ~(w[UNDECIDED + BATCH + q] & ~other & bit)
    w[UNDECIDED + BATCH + q] &= ~(other ^ bit)


@part
def close(first, n, chance, source, when, w):  # type: ignore[no-untyped-def]
    """Remove the bonds that stay closed from FLIP, which has satisfied bonds of the groups from ``first`` on."""
    word1, (k0, k1) = source
    threshold, always = chance
    numbers = np.empty(n, np.int64)
    for q in range(n):
        numbers[q] = first + q
    prefixes(numbers, word1, rng.low32(when), k0, k1, w)
    for e in range(ROW):
        if always:
            w[FLIP + e] = ZERO
        w[UNDECIDED + e] = w[FLIP + e]
    for plane in range(FEWEST):
        if threshold << np.uint64(plane):
            word3 = rng.counter_plane(when, CLUSTERS, np.uint64(plane))
            bit = ZERO - (threshold >> np.uint64(BITS - 1 - plane) & ONE)
            for q in range(n):
                close_plane(q, word3, bit, k0, k1, w)
    for q in range(n):
        plane = FEWEST
        while plane < BITS and threshold << np.uint64(plane) and w[UNDECIDED + q] | w[UNDECIDED + BATCH + q]:
            word3 = rng.counter_plane(when, CLUSTERS, np.uint64(plane))
            close_plane(q, word3, ZERO - (threshold >> np.uint64(BITS - 1 - plane) & ONE), k0, k1, w)
            plane += 1


@part
def keep(first, n, lanes, w, words):  # type: ignore[no-untyped-def]
    """Copy FLIP to ``words``, for groups from ``first`` on."""
    for half in range(2):
        for q in range(n):
            k = 2 * (first + q) + half
            words[k] = w[FLIP + half * BATCH + q] & in_use(k, lanes)


@part
def open_lattice(state, sides, seams, signs, chance, field, source, when, opened, ghosts):  # type: ignore[no-untyped-def]
    """Set ``opened`` (slots, words) of colour 0 and, in a field, ``ghosts`` (colours, words)."""
    w = np.zeros(WIDE_WORDS, np.uint64)
    groups = state.shape[1] // 2
    _, layer, lanes = lanes_of(sides)
    of_bonds, of_fields = (chance[0, 0], chance[0, 1]), (chance[1, 0], chance[1, 1])
    up = ZERO - np.uint64(field > 0)
    window, served = window_of(sides, groups)
    for first in range(0, groups, BATCH):
        n = min(BATCH, groups - first)
        place = first % served
        if place == 0:
            at = fill_window(
                window, first, min(served, groups - first), state[1], (state, state, lanes - layer), 1, sides
            )
        slots = load(0, first, n, state[0], window, at + 2 * WORD * place, sides, seams, signs, w)
        for k in range(slots):
            for half in range(2):
                for q in range(n):
                    w[FLIP + half * BATCH + q] = ~unlike(k, half * BATCH + q, w)
            close(k * groups + first, n, of_bonds, source, when, w)
            keep(first, n, lanes, w, opened[k])
        if field != 0:
            for colour in range(2):
                for half in range(2):
                    for q in range(n):
                        w[FLIP + half * BATCH + q] = ~(state[colour, 2 * (first + q) + half] ^ up)
                close((slots + colour) * groups + first, n, of_fields, source, when, w)
                keep(first, n, lanes, w, ghosts[colour])


@part
def lay_bonds(opened, sides, seams, bonds):  # type: ignore[no-untyped-def]
    """Set ``bonds`` (axes, words), in the order of sites, from ``opened`` (slots, words)."""
    width, height, depth = sides
    _, _, lanes = lanes_of(sides)
    masks = seams[0]
    for k in range(opened.shape[1]):
        at, m, h, used = WORD * k, k // 2 % seams[1], k % 2, in_use(k, lanes)
        odd, last, top = masks[0, h, m], masks[2, h, m], masks[4, h, m]
        after = mux(last, bits_around(opened[3], at + 1, lanes), bits_around(opened[3], at + 1 - width, lanes))
        lay(k, opened[2, k], mux(odd, after, opened[3, k]) & used, bonds[0])
        above = bits_around(opened[0], at + width, lanes)
        if depth > 1:
            above = mux(top, above, bits_around(opened[0], at + width - width * height, lanes))
        lay(k, mux(odd, opened[1, k], above) & used, mux(odd, above, opened[1, k]) & used, bonds[1])
        if depth > 1:
            above = bits_around(opened[4], at + width * height, lanes)
            lay(k, mux(odd, opened[5, k], above) & used, mux(odd, above, opened[5, k]) & used, bonds[2])


@part
def lay_sites(words, seams, laid):  # type: ignore[no-untyped-def]
    """Set ``laid``, in the order of sites, from ``words`` (colours, words)."""
    masks = seams[0]
    for k in range(words.shape[1]):
        odd = masks[0, k % 2, k // 2 % seams[1]]
        lay(k, mux(odd, words[0, k], words[1, k]), mux(odd, words[1, k], words[0, k]), laid)


@part
def starts_of(word):  # type: ignore[no-untyped-def]
    """Return the first sites of the runs of a word of bonds."""
    return ~(word << ONE) | ONE


@part
def start_of(word, bit):  # type: ignore[no-untyped-def]
    """Return the bit of the first site of a bit's run."""
    return LAST - leading_zeros(starts_of(word) & ALL >> (LAST - bit))


@part
def first_meetings(bonds, both):  # type: ignore[no-untyped-def]
    """Return bonds between two rows that are the first between their runs; ``both`` are bonds along x in both rows."""
    open_to, reached = both << ONE, bonds
    through = open_to
    for k in range(6):
        by = ONE << np.uint64(k)
        reached |= through & reached << by
        through &= through << by
    return bonds & ~(open_to & reached << ONE)


@part
def unite(parent, one, other):  # type: ignore[no-untyped-def]
    """Make the larger root of two sites follow the smaller one."""
    one, other = find(parent, np.uint32(one)), find(parent, np.uint32(other))
    if one < other:
        parent[other] = one
    else:
        parent[one] = other


@part
def run_of(along, site):  # type: ignore[no-untyped-def]
    """Return the first site of a site's run."""
    word = site >> SIX
    return (word << SIX) + start_of(along[np.int64(word)], site & LAST)


@part
def unite_layers(bonds, along, distance, period, parent):  # type: ignore[no-untyped-def]
    """Unite runs that ``bonds`` (words,) join across ``distance`` sites, in rings of ``period`` sites."""
    for k in range(bonds.size):
        left = bonds[k]
        if not left:
            continue
        base = WORD * k
        if base % period + WORD + distance <= period:  # none of these sites is in the last layer
            left = first_meetings(left, along[k] & bits_at(along, base + distance))
        while left:
            bit = trailing_zeros(left)
            left &= left - ONE
            there = base + np.int64(bit) + distance
            if (base + np.int64(bit)) % period + distance >= period:
                there -= period
            unite(parent, np.uint64(base) + start_of(along[k], bit), run_of(along, np.uint64(there)))


@part
def find_clusters(bonds, sides, parent):  # type: ignore[no-untyped-def]
    """Set ``parent`` of the first site of each run to the smallest site of its cluster.

    Bonds from the ends of rows to their beginnings belong to no run and are removed from ``bonds[0]``.
    """
    side, height, depth = 2 * sides[0], sides[1], sides[2]
    along = bonds[0]
    for i in range(parent.size):
        parent[i] = i
    closed = np.zeros(height * depth, np.uint8)
    for row in range(closed.size):
        site = np.uint64(side * row + side - 1)
        word, bit = np.int64(site >> SIX), ONE << (site & LAST)
        closed[row] = np.uint8(along[word] & bit != ZERO)
        along[word] &= ~bit
    for row in range(closed.size):
        if closed[row]:
            first = np.uint64(side * row)
            unite(parent, run_of(along, first), run_of(along, first + np.uint64(side - 1)))
    for k in range(along.size - 1):
        if along[k] >> LAST:
            unite(parent, np.uint64(WORD * k) + start_of(along[k], LAST), np.uint64(WORD * (k + 1)))
    unite_layers(bonds[1], along, side, side * height, parent)
    if depth > 1:
        unite_layers(bonds[2], along, side * height, side * height * depth, parent)
    for k in range(along.size):
        left = starts_of(along[k])
        while left:
            start = np.uint32(np.uint64(WORD * k) + trailing_zeros(left))
            left &= left - ONE
            parent[start] = parent[parent[start]]


@part
def mark(sites, along, parent, chosen, value):  # type: ignore[no-untyped-def]
    """Assign ``value`` to the roots of all sites that are set in words."""
    for k in range(sites.size):
        left = sites[k]
        while left:
            start = start_of(along[k], trailing_zeros(left))
            left &= left - ONE
            chosen[parent[np.uint32(np.uint64(WORD * k) + start)]] = value


@part
def draw_own(source, when, sites):  # type: ignore[no-untyped-def]
    """Return the random site of a replica and its k."""
    word1, (k0, k1) = source
    word3 = rng.counter_plane(when, CLUSTERS, np.uint64(OWN))
    x0, x1, _, _ = rng.philox(ZERO, word1, rng.low32(when), word3, k0, k1, rng.ROUNDS)
    most = 1
    while (1 << most) < sites:
        most += 1
    site = (rng.low32(x0) * np.uint64(sites)) >> SHIFT
    return site, 1 + np.int64((rng.low32(x1) * np.uint64(most)) >> SHIFT)


@part
def draw_sites(plane, planes, source, when, words):  # type: ignore[no-untyped-def]
    """Set ``words`` (groups, 2) to the sites whose bits are set in all of ``planes`` planes from ``plane`` on."""
    word1, (k0, k1) = source
    for g in range(words.shape[0]):
        words[g, 0] = words[g, 1] = ALL
        for p in range(planes):
            word3 = rng.counter_plane(when, CLUSTERS, np.uint64(plane + p))
            x0, x1, x2, x3 = rng.philox(np.uint64(g), word1, rng.low32(when), word3, k0, k1, rng.ROUNDS)
            words[g, 0] &= rng.low32(x0) | x1 << SHIFT
            words[g, 1] &= rng.low32(x2) | x3 << SHIFT
            if not words[g, 0] | words[g, 1]:
                break


@part
def choose(kind, source, when, sites, seams, along, parent, chosen):  # type: ignore[no-untyped-def]
    """Set ``chosen`` at the roots of clusters that flip unless they contain the ghost."""
    chosen[:] = 0
    site, halvings = draw_own(source, when, sites)
    if kind in (SWENDSEN_WANG, SEEDED):
        drawn, laid = np.empty((along.size // 2, 2), np.uint64), np.empty_like(along)
        draw_sites(
            COIN if kind == SWENDSEN_WANG else SEEDS, 1 if kind == SWENDSEN_WANG else halvings, source, when, drawn
        )
        lay_sites(drawn.reshape((2, -1)), seams, laid)
        if kind == SWENDSEN_WANG:
            for k in range(along.size):
                left = laid[k] & starts_of(along[k])
                while left:
                    start = np.uint32(np.uint64(WORD * k) + trailing_zeros(left))
                    left &= left - ONE
                    chosen[start] = parent[start] == start
        else:
            mark(laid, along, parent, chosen, 1)
    else:
        chosen[parent[np.uint32(run_of(along, site))]] = 1


@part
def flip_chosen(state, sides, seams, along, parent, chosen):  # type: ignore[no-untyped-def]
    """Flip the sites of chosen clusters in ``state`` (colours, words)."""
    masks = seams[0]
    _, _, lanes = lanes_of(sides)
    flips = np.empty(2, np.uint64)
    for k in range(state.shape[1]):
        for h in range(2):
            left, word, base = starts_of(along[2 * k + h]), ZERO, np.uint64(WORD * (2 * k + h))
            while left:
                bit = trailing_zeros(left)
                left &= left - ONE
                if chosen[parent[np.uint32(base + bit)]]:
                    end = left & (ZERO - left)  # the next start, 0 after the last
                    word |= end - (ONE << bit)
            flips[h] = word
        even_x = gather(flips[0]) | gather(flips[1]) << SHIFT
        odd_x = gather(flips[0] >> ONE) | gather(flips[1] >> ONE) << SHIFT
        odd, used = masks[0, k % 2, k // 2 % seams[1]], in_use(k, lanes)
        state[0, k] ^= mux(odd, even_x, odd_x) & used
        state[1, k] ^= mux(odd, odd_x, even_x) & used


@kernel
def flip_lattice(state, sides, seams, signs, chance, field, source, when, kind):  # type: ignore[no-untyped-def]
    """Flip clusters of one replica; the first four arguments are as in ``sweep_site``.

    Args:
        chance: Thresholds of its temperature, from ``chances``.
        field: Positive, negative or 0.
        source: Counter word 1 and the two key words; ``when`` goes into the half-sweep field.
    """
    _, _, lanes = lanes_of(sides)
    axes, words = 3 if sides[2] > 1 else 2, state.shape[1]
    opened = np.empty((2 * axes, words), np.uint64)
    ghosts = np.empty((2, words if field != 0 else 0), np.uint64)
    open_lattice(state, sides, seams, signs, chance, field, source, when, opened, ghosts)
    bonds = np.empty((axes, 2 * words), np.uint64)
    lay_bonds(opened, sides, seams, bonds)
    parent = np.empty(2 * WORD * words, np.uint32)
    find_clusters(bonds, sides, parent)
    chosen = np.empty(parent.size, np.uint8)
    along = bonds[0]
    choose(kind, source, when, 2 * lanes, seams, along, parent, chosen)
    if field != 0:
        laid = np.empty_like(along)
        lay_sites(ghosts, seams, laid)
        mark(laid, along, parent, chosen, 0)
    flip_chosen(state, sides, seams, along, parent, chosen)


def flip_batch(batch: Batch, kind: int) -> None:
    """Flip clusters of a kind in the replicas of a site-packed model, as the plain path of its moves."""
    model = batch.model
    assert model.lattice is not None  # noqa: S101  (site-packed models have one)
    shape, key = model.lattice.shape, rng.split_seed(batch.seed)
    check_sites(model)
    signs, when = model.once(signs_of), np.uint64(KINDS * batch.time + kind)
    sides, seams, field = sides_of(shape), seams_of(shape), field_of(model)
    for k, replicas in enumerate(batch.spins):
        chance, own = chances(model, batch.beta[k]), signs[k % len(signs)]
        for r, spins in enumerate(replicas):
            words = packing.pack_sites(spins, shape).reshape(2, -1)
            source = rng.counter_block(np.uint64(batch.first_sample + k), np.uint64(r)), key
            flip_lattice(words, sides, seams, own, chance[r], field, source, when, kind)
            spins[:] = packing.unpack_sites(words.reshape(packing.site_shape(shape)), shape)


def field_of(model: Ising) -> int:
    return model.uniform_field or 0


def signs_of(model: Ising) -> npt.NDArray[np.uint64]:
    """Signs of couplings (1 or samples, colour, slot, word); no slots if no coupling is negative."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    return build_signs(model, range(prod(model.lattice.shape[1:])))


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath:
    blocks, sweeper, field = parts.state, parts.sweeper, field_of(model)
    assert isinstance(blocks, Blocks) and isinstance(sweeper, SiteSweeper)  # noqa: PT018, S101  (always so here)
    check_sites(model)
    lattices = sweeper.lattices

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        when, key = np.uint64(KINDS * moment.time + kind), rng.split_seed(moment.seed)
        chance = chances(model, np.asarray(moment.beta))
        place = np.empty((model.samples, replicas), np.int64)
        np.put_along_axis(place, holder.reshape(model.samples, -1), np.arange(replicas)[None] % holder.shape[2], axis=1)

        def task(_: int, sample: int, replica: int) -> None:
            source = rng.counter_block(np.uint64(first_sample + sample), np.uint64(replica)), key
            words, signs = lattices.words[sample, replica], lattices.signs_of(sample)
            flip_lattice(
                words, lattices.sides, lattices.seams, signs, chance[place[sample, replica]], field, source, when, kind
            )

        blocks.each(task, times=PASSES)

    return move


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
