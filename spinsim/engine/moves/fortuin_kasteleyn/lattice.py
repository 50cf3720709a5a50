"""Fortuin-Kasteleyn moves of single large lattices, whose words hold 64 sites of one row and colour, on the CPU.

Clusters are those of move.py; random numbers are addressed by groups of 128 sites, as the site-packed layout has them.
Every bond has one end of colour 0, whose slot (layouts/site_packed.py) names it: the bond of slot k of the sites of
group g of colour 0 has group k G + g in the counter, G the groups of a colour, a bond to the ghost of colour c
k = 2 d + c. The stream is ``FORTUIN_KASTELEYN``, the block the replica, and bit b of word w belongs to site 32 w + b of
the group:

    plane p, p < 64     bit 63 - p of the uniform that closes a bond where it is below the threshold of exp(-2 beta |J|)
    COIN                bit that flips the cluster of a site which is its smallest one, group = c G + g
    OWN                 number of a replica's site and its k, group 0
    SEEDS + p           seeds: sites whose first k planes are all set, group as of coins

The leader of a cluster is the site of the smallest number x + Lx (y + Ly z).

Open bonds are laid as words in the order of x. A word of 64 sites falls into runs that open bonds along x join. Only
the first site of a run has a parent, of a smaller number. Of the open bonds between two runs of neighbouring rows only
the first counts.
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
from spinsim.engine.layouts.site_packed import build_signs, load, suits
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
from spinsim.engine.moves.metropolis.site_packed import SiteSweeper
from spinsim.engine.moves.metropolis.steps import FLIP, UNDECIDED, WIDE_WORDS, prefixes, random_words, unlike
from spinsim.engine.moves.move import Batch, FastPath, Moment
from spinsim.engine.update import ModelSizes
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import leading_zeros, trailing_zeros
from spinsim.model.ising import Ising

BITS: Final = 64  # of a uniform
FEWEST: Final = 8  # planes that all groups of a batch draw together
COIN: Final = 64
OWN: Final = 65
SEEDS: Final = 128
MOST_SITES: Final = 2**32
PASSES: Final = 512  # of all words, in the time of which a move takes place, about
LAST: Final = np.uint64(63)
EVEN: Final = np.uint64(0x5555555555555555)
PAIRS: Final = np.uint64(0x3333333333333333)
NIBBLES: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
OCTETS: Final = np.uint64(0x00FF00FF00FF00FF)
HALVES: Final = np.uint64(0x0000FFFF0000FFFF)
TWO, FOUR, EIGHT, SIXTEEN = np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16)


def is_site_packed(model: Ising) -> bool:
    return suits(ModelSizes(model))


def chances(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Thresholds of closed bonds, uint64 (temperatures, 2, 2): of couplings and of fields, and 1 for no open bonds."""
    magnitude, field = model.magnitude, model.uniform_field
    assert magnitude is not None and field is not None  # noqa: PT018, S101  (``suits`` has looked)
    costs = 2 * np.abs(np.array([magnitude, field]))
    always, thresholds = acceptance(costs, beta.reshape(-1, 1) * model.quantum, 1.0)
    return np.stack([thresholds, always.astype(np.uint64)], axis=-1)


def check_sites(model: Ising) -> None:
    """Refuse lattices whose sites have no 32-bit number."""
    if model.sites > MOST_SITES:
        raise InputError(f"{model.sites} sites are too many for cluster moves: take a lattice of at most 2^32 sites")


@part
def spread(x):  # type: ignore[no-untyped-def]
    """Move the low 32 bits of a word to its even places."""
    x &= rng.MASK32
    x = (x | x << SIXTEEN) & HALVES
    x = (x | x << EIGHT) & OCTETS
    x = (x | x << FOUR) & NIBBLES
    x = (x | x << TWO) & PAIRS
    return (x | x << ONE) & EVEN


@part
def gather(x):  # type: ignore[no-untyped-def]
    """Move the even places of a word to its low 32 bits."""
    x &= EVEN
    x = (x | x >> ONE) & PAIRS
    x = (x | x >> TWO) & NIBBLES
    x = (x | x >> FOUR) & OCTETS
    x = (x | x >> EIGHT) & HALVES
    return (x | x >> SIXTEEN) & rng.MASK32


@part
def lay(even, odd, row):  # type: ignore[no-untyped-def]
    """Set a ``row`` in the order of x from the words of its even and of its odd sites."""
    for w in range(even.size):
        row[2 * w] = spread(even[w]) | spread(odd[w]) << ONE
        row[2 * w + 1] = spread(even[w] >> SHIFT) | spread(odd[w] >> SHIFT) << ONE


@part
def close_plane(q, word3, bit, k0, k1, w):  # type: ignore[no-untyped-def]
    """Compare one more bit of the uniforms of the q-th group with that of the threshold, all bits of ``bit``."""
    one, other = random_words(q, word3, k0, k1, rng.ROUNDS, w)
    w[FLIP + q] &= ~(w[UNDECIDED + q] & ~one & bit)
    w[UNDECIDED + q] &= ~(one ^ bit)
    w[FLIP + BATCH + q] &= ~(w[UNDECIDED + BATCH + q] & ~other & bit)
    w[UNDECIDED + BATCH + q] &= ~(other ^ bit)


@part
def close(first, n, chance, source, when, w):  # type: ignore[no-untyped-def]
    """Take bonds that stay closed out of FLIP, the satisfied ones of groups of numbers from ``first`` on."""
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
def keep(n, w, words):  # type: ignore[no-untyped-def]
    """Copy FLIP to words (n, 2)."""
    for q in range(n):
        words[q, 0], words[q, 1] = w[FLIP + q], w[FLIP + BATCH + q]


@part
def open_lattice(state, sides, signs, chance, field, source, when, opened, ghosts):  # type: ignore[no-untyped-def]
    """Set ``opened`` (slots, groups, 2) of colour 0 and, in a field, ``ghosts`` (colours, groups, 2)."""
    w = np.zeros(WIDE_WORDS, np.uint64)
    groups, edge = state.shape[1], sides[0] * (sides[1] if sides[2] > 1 else 1)
    before, after = state[1, groups - edge :], state[1, :edge]
    of_bonds, of_fields = (chance[0, 0], chance[0, 1]), (chance[1, 0], chance[1, 1])
    up = ZERO - np.uint64(field > 0)
    for first in range(0, groups, BATCH):
        n = min(BATCH, groups - first)
        slots = load(0, first, n, state[0], state[1], before, after, sides, signs, w)
        for k in range(slots):
            for half in range(2):
                for q in range(n):
                    w[FLIP + half * BATCH + q] = ~unlike(k, half * BATCH + q, w)
            close(k * groups + first, n, of_bonds, source, when, w)
            keep(n, w, opened[k, first : first + n])
        if field != 0:
            for colour in range(2):
                for half in range(2):
                    for q in range(n):
                        w[FLIP + half * BATCH + q] = ~(state[colour, first + q, half] ^ up)
                close((slots + colour) * groups + first, n, of_fields, source, when, w)
                keep(n, w, ghosts[colour, first : first + n])


@part
def lay_bonds(opened, sides, bonds):  # type: ignore[no-untyped-def]
    """Set ``bonds`` (axes, rows, words), bit by bit in the order of x, from ``opened`` (slots, rows, words)."""
    height, rows, words = sides[1], opened.shape[1], opened.shape[2]
    shifted = np.empty(words, np.uint64)
    for row in range(rows):
        y = row % height
        odd = (y + row // height) % 2
        for w in range(words):
            after = opened[3, row, w + 1 if w + 1 < words else 0]
            shifted[w] = opened[3, row, w] if odd else opened[3, row, w] >> ONE | after << LAST
        lay(opened[2, row], shifted, bonds[0, row])
        above = row + 1 if y + 1 < height else row + 1 - height
        lay(opened[0, above] if odd else opened[1, row], opened[1, row] if odd else opened[0, above], bonds[1, row])
        if sides[2] > 1:
            above = row + height if row + height < rows else row + height - rows
            lay(opened[4, above] if odd else opened[5, row], opened[5, row] if odd else opened[4, above], bonds[2, row])


@part
def lay_sites(words, sides, laid):  # type: ignore[no-untyped-def]
    """Set ``laid`` (rows, words) in the order of x from words of sites (colours, rows, words)."""
    for row in range(laid.shape[0]):
        odd = (row % sides[1] + row // sides[1]) % 2
        lay(words[odd, row], words[1 - odd, row], laid[row])


@part
def starts_of(word):  # type: ignore[no-untyped-def]
    """First sites of the runs of a word of bonds."""
    return ~(word << ONE) | ONE


@part
def start_of(word, bit):  # type: ignore[no-untyped-def]
    """Place of the first site of the run of a bit."""
    return LAST - leading_zeros(starts_of(word) & ALL >> (LAST - bit))


@part
def first_meetings(bonds, both):  # type: ignore[no-untyped-def]
    """Bonds between two rows that are the first between their runs; ``both`` are bonds along x of both rows."""
    open_to, reached = both << ONE, bonds
    through = open_to
    for k in range(6):
        by = ONE << np.uint64(k)
        reached |= through & reached << by
        through &= through << by
    return bonds & ~(open_to & reached << ONE)


@part
def unite(parent, one, other):  # type: ignore[no-untyped-def]
    """Let the larger root of two sites follow the smaller one."""
    one, other = find(parent, np.uint32(one)), find(parent, np.uint32(other))
    if one < other:
        parent[other] = one
    else:
        parent[one] = other


@part
def unite_rows(bonds, along, row, other, parent):  # type: ignore[no-untyped-def]
    """Unite the runs of two rows, which ``bonds`` (words,) join; ``along`` (rows, words) are the bonds along x."""
    words = bonds.size
    for w in range(words):
        mine, theirs = along[row, w], along[other, w]
        left = first_meetings(bonds[w], mine & theirs)
        base, there = np.uint64(64 * (row * words + w)), np.uint64(64 * (other * words + w))
        while left:
            bit = trailing_zeros(left)
            left &= left - ONE
            unite(parent, base + start_of(mine, bit), there + start_of(theirs, bit))


@part
def find_clusters(bonds, sides, parent):  # type: ignore[no-untyped-def]
    """Set ``parent`` of the first site of each run to the smallest site of its cluster."""
    axes, rows, words = bonds.shape
    height = sides[1]
    along = bonds[0]
    for i in range(parent.size):
        parent[i] = i
    for row in range(rows):
        for w in range(words):
            if along[row, w] >> LAST:
                after = w + 1 if w + 1 < words else 0
                start = np.uint64(64 * (row * words + w)) + start_of(along[row, w], LAST)
                unite(parent, start, np.uint64(64 * (row * words + after)))
        if axes > 2:
            behind = row - height if row >= height else row - height + rows
            unite_rows(bonds[2, behind], along, behind, row, parent)
        below = row - 1 if row % height else row - 1 + height
        unite_rows(bonds[1, below], along, below, row, parent)
    for row in range(rows):
        for w in range(words):
            left = starts_of(along[row, w])
            while left:
                site = np.uint32(np.uint64(64 * (row * words + w)) + trailing_zeros(left))
                left &= left - ONE
                parent[site] = parent[parent[site]]


@part
def mark(sites, along, parent, chosen, value):  # type: ignore[no-untyped-def]
    """Give a value to the roots of all sites that are set in words (rows, words)."""
    rows, words = sites.shape
    for row in range(rows):
        for w in range(words):
            left = sites[row, w]
            while left:
                start = start_of(along[row, w], trailing_zeros(left))
                left &= left - ONE
                chosen[parent[np.uint32(np.uint64(64 * (row * words + w)) + start)]] = value


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
    """Set ``words`` (groups, 2) to the sites that have the bits of so many planes from ``plane`` on set."""
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
def choose(kind, source, when, sides, along, parent, chosen):  # type: ignore[no-untyped-def]
    """Set ``chosen`` of the roots whose clusters flip, if the ghost is not in them."""
    rows, words = along.shape
    chosen[:] = 0
    site, halvings = draw_own(source, when, parent.size)
    if kind in (SWENDSEN_WANG, SEEDED):
        drawn, laid = np.empty((rows * words // 2, 2), np.uint64), np.empty_like(along)
        draw_sites(
            COIN if kind == SWENDSEN_WANG else SEEDS, 1 if kind == SWENDSEN_WANG else halvings, source, when, drawn
        )
        lay_sites(drawn.reshape((2, rows, words // 2)), sides, laid)
        if kind == SWENDSEN_WANG:
            for row in range(rows):
                for w in range(words):
                    left = laid[row, w] & starts_of(along[row, w])
                    while left:
                        start = np.uint32(np.uint64(64 * (row * words + w)) + trailing_zeros(left))
                        left &= left - ONE
                        chosen[start] = parent[start] == start
        else:
            mark(laid, along, parent, chosen, 1)
    else:
        word = site >> np.uint64(6)
        start = start_of(along[np.int64(word) // words, np.int64(word) % words], site & LAST)
        chosen[parent[np.uint32(start + (word << np.uint64(6)))]] = 1


@part
def flip_chosen(state, sides, along, parent, chosen):  # type: ignore[no-untyped-def]
    """Flip the sites of chosen clusters in ``state`` (colours, rows, words)."""
    rows, words = along.shape
    flips = np.empty(2, np.uint64)
    for row in range(rows):
        odd = (row % sides[1] + row // sides[1]) % 2
        for w in range(0, words, 2):
            for k in range(2):
                starts, base = starts_of(along[row, w + k]), np.uint64(64 * (row * words + w + k))
                left, word = starts, ZERO
                while left:
                    bit = trailing_zeros(left)
                    left &= left - ONE
                    if chosen[parent[np.uint32(base + bit)]]:
                        end = left & (ZERO - left)  # the next start, 0 after the last
                        word |= end - (ONE << bit)
                flips[k] = word
            state[odd, row, w // 2] ^= gather(flips[0]) | gather(flips[1]) << SHIFT
            state[1 - odd, row, w // 2] ^= gather(flips[0] >> ONE) | gather(flips[1] >> ONE) << SHIFT


@kernel
def flip_lattice(state, sides, signs, chance, field, source, when, kind):  # type: ignore[no-untyped-def]
    """Flip clusters of one replica, whose ``state``, ``sides`` and ``signs`` are as ``sweep_site`` takes them.

    Args:
        chance: Of its temperature, as ``chances`` has it.
        field: Above 0, below it or 0.
        source: Counter word 1 and the two key words; ``when`` goes into the field of half-sweeps.
    """
    width, height, depth = sides
    groups, rows = state.shape[1], height * depth
    opened = np.empty((6 if depth > 1 else 4, groups, 2), np.uint64)
    ghosts = np.empty((2, groups if field != 0 else 0, 2), np.uint64)
    open_lattice(state, sides, signs, chance, field, source, when, opened, ghosts)
    bonds = np.empty((3 if depth > 1 else 2, rows, 4 * width), np.uint64)
    lay_bonds(opened.reshape((opened.shape[0], rows, 2 * width)), sides, bonds)
    parent = np.empty(256 * groups, np.uint32)
    find_clusters(bonds, sides, parent)
    chosen = np.empty(parent.size, np.uint8)
    along = bonds[0]
    choose(kind, source, when, sides, along, parent, chosen)
    if field != 0:
        laid = np.empty_like(along)
        lay_sites(ghosts.reshape((2, rows, 2 * width)), sides, laid)
        mark(laid, along, parent, chosen, 0)
    flip_chosen(state.reshape((2, rows, 2 * width)), sides, along, parent, chosen)


def flip_batch(batch: Batch, kind: int) -> None:
    """Flip clusters of a kind of the replicas of a site-packed model, the plain path of its moves."""
    model = batch.model
    assert model.lattice is not None  # noqa: S101  (no other model is site-packed)
    shape, key = model.lattice.shape, rng.split_seed(batch.seed)
    check_sites(model)
    signs, when = model.once(signs_of), np.uint64(KINDS * batch.time + kind)
    sides, field = sides_of(model), field_of(model)
    for k, replicas in enumerate(batch.spins):
        chance, own = chances(model, batch.beta[k]), signs[k % len(signs)]
        for r, spins in enumerate(replicas):
            words = packing.pack_sites(spins, shape)
            source = rng.counter_block(np.uint64(batch.first_sample + k), np.uint64(r)), key
            flip_lattice(words.reshape(2, -1, 2), sides, own, chance[r], field, source, when, kind)
            spins[:] = packing.unpack_sites(words, shape)


def sides_of(model: Ising) -> tuple[int, int, int]:
    """Groups in a row, rows in a plane and planes of a lattice."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    x, y, *z = model.lattice.shape
    return x // (2 * packing.LANES), y, z[0] if z else 1


def field_of(model: Ising) -> int:
    return model.uniform_field or 0


def signs_of(model: Ising) -> npt.NDArray[np.uint64]:
    """Signs of couplings (1 or samples, colour, slot, group, half), without slots where no coupling is negative."""
    assert model.lattice is not None  # noqa: S101  (likewise)
    groups = model.sites // (2 * packing.LANES)
    signs = build_signs(model, range(prod(model.lattice.shape[1:])))
    return signs.reshape(*signs.shape[:3], groups, 2)


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath:
    blocks, sweeper, field = parts.state, parts.sweeper, field_of(model)
    assert isinstance(blocks, Blocks) and isinstance(sweeper, SiteSweeper)  # noqa: PT018, S101  (this layout's have them)
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
            flip_lattice(words, lattices.sides, signs, chance[place[sample, replica]], field, source, when, kind)

        blocks.each(task, times=PASSES)

    return move


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
