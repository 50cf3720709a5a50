"""Open bonds of Fortuin-Kasteleyn clusters, for 128 replicas at a time, and their clusters, on the CPU.

A satisfied bond of coupling J (J s s' > 0) is open with probability 1 - exp(-2 beta |J|); an unsatisfied bond is
closed. A field h is a bond of coupling h to one more site, the ghost, whose spin is always +1. Bonds of the second of
two terms use that term's inverse temperature. A bond stays closed if a uniform 64-bit number is below the threshold of
a Metropolis flip of cost 2 |J| (acceptance.py).

The uniforms of 32 replicas are compared a bit plane at a time: their 8 most significant bits are the words of two
Philox calls. Plane p is word p % 4 of call p // 4, and bit b belongs to replica 32 w + b of the block of 128. Call c of
word w has plane 4 c + w in the counter. If these 8 bits equal the first bits of the threshold, the replica takes 64
more bits from its own call, plane ``TAIL`` plus its number in the block. The group of all calls is the number of the
bond; for a field it is the number of bonds plus the number of the site.

On periodic lattices, clusters are found by flooding, for 512 replicas at a time, without labels:

    opened[axis, 8 * site + w]   bonds from a site to the next one along an axis, open or not; words w of replicas
    reached[8 * site + w]        sites that the flood has reached from its start

A flood grows words over open bonds with AND and OR until nothing changes, row by row along the first axis. A row takes
the reached sites of its neighbours along the other axes and spreads them within itself, forward and backward. Rows are
visited in turn, up and down, as long as a neighbour has changed.

The leader of each cluster is found one bit of its rank at a time, from the highest. A flood from all candidates with
bit 0 reaches the candidates with bit 1 in the same clusters, which are removed. One candidate per cluster remains.

On any graph, clusters are found by labels, a replica at a time: union-find over the open bonds, with the smallest label
as root.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.measuring.cpu_comparison import transpose
from spinsim.machine.compiled import kernel, part, step
from spinsim.machine.intrinsics import scan_ring, trailing_zeros
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.packing import LANES

CLUSTERS: Final = np.uint64(rng.Stream.FORTUIN_KASTELEYN)
SWENDSEN_WANG: Final = 0
WOLFF: Final = 1
SEEDED: Final = 2
KINDS: Final = 4  # factor of the number of applications, so that kinds share no random number
PLANES: Final = 8
CALLS: Final = 2  # calls of 4 planes of 32 replicas
TAIL: Final = 128
BATCH: Final = 64  # bonds whose random numbers are drawn together
ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)
ALL: Final = np.uint64(2**64 - 1)
SHIFT: Final = np.uint64(32)
AFTER: Final = np.uint64(PLANES)
MOST_LEVELS: Final = 64
"""Most bond sizes whose thresholds are made in advance; if there are more, each bond makes its own."""


class Bonds(NamedTuple):
    """Bonds of a model, bonds to the ghost last. On a periodic lattice with right angles, others come axis by axis."""

    ends: npt.NDArray[np.int32]  # sites that each bond joins, (bonds, 2); the ghost has the number of sites
    number: npt.NDArray[np.uint32]  # number in the random counter, (bonds,)
    negative: npt.NDArray[np.uint8]  # 1 where the coupling is below 0, (1 or samples, bonds)
    level: npt.NDArray[np.int32]  # index of its size in ``costs``, (1 or samples, bonds); -1 if the coupling is 0
    costs: npt.NDArray[np.float64]  # 2 |J| in quanta, (levels,)
    terms: npt.NDArray[np.uint8]  # term of each level, (levels,)


def axes_of(model: Ising) -> int:
    """Axes of a periodic lattice with right angles, whose site i has bonds i * axes + a along axes a; else 0."""
    lattice = model.graph.regular_lattice
    return lattice.dimension if lattice and lattice.joins_layers else 0


def bonds_of(model: Ising) -> Bonds:
    """Return the bonds of a model and, if there are fields, the bonds of all sites to the ghost."""
    rows = max(len(model.couplings), len(model.fields))
    values = np.stack([model.integer_couplings(k) for k in range(len(model.couplings))])
    fields = np.stack([model.integer_fields(k) for k in range(len(model.fields))])
    term = np.zeros(model.bonds, np.uint8) if model.terms is None else model.terms
    ends, number = model.graph.edges, np.arange(model.bonds, dtype=np.uint32)
    axes = axes_of(model)
    if axes:
        number = np.ascontiguousarray(number.reshape(-1, axes).T).reshape(-1)
        ends, term, values = ends[number], term[number], values[:, number]
    if fields.any():
        sites = np.arange(model.sites, dtype=np.int32)
        ends = np.concatenate([ends, np.stack([sites, np.full_like(sites, model.sites)], axis=-1)])
        number = np.append(number, (model.bonds + sites).astype(np.uint32))
        term = np.append(term, np.zeros(model.sites, np.uint8))
        pair = (np.broadcast_to(each, (rows, each.shape[1])) for each in (values, fields))
        values = np.concatenate(list(pair), axis=1)
    sizes = np.abs(values)
    if (sizes == sizes[0]).all():
        sizes = sizes[:1]
    of_level, level = np.unique(2 * sizes + term, return_inverse=True)  # couplings are below 2^53 quanta
    level = level.reshape(sizes.shape).astype(np.int32)
    none = int(np.count_nonzero(of_level < MOST_TERMS))
    return Bonds(
        np.ascontiguousarray(ends), number, np.ascontiguousarray(values < 0, np.uint8), np.maximum(level - none, -1),
        (of_level[none:] // 2 * 2).astype(np.float64), (of_level[none:] % 2).astype(np.uint8),
    )  # fmt: skip


@part
def lay_level(cost, beta, planes, thresholds, always):  # type: ignore[no-untyped-def]
    """Set the ``thresholds`` (128,) of bonds of a cost, their first bits ``planes`` (8, 2), and the mask ``always``.

    ``beta`` (128,) are inverse temperatures times the quantum; ``always`` (2,) marks replicas that never open such
    bonds.
    """
    planes[:] = ZERO
    always[:] = ZERO
    threshold, closed, before = ZERO, False, -1.0
    for lane in range(LANES):
        if beta[lane] != before:
            before = beta[lane]
            mantissa, power = exp_reduced(-min(before * cost, LARGEST_EXPONENT))
            probability = math.ldexp(mantissa, int(power))
            closed = probability >= 1.0
            threshold = ZERO if closed else np.uint64(math.ldexp(probability, 64))
        bit, half = np.uint64(lane % 64), lane // 64
        thresholds[lane] = threshold
        always[half] |= np.uint64(closed) << bit
        for plane in range(PLANES):
            planes[plane, half] |= (threshold >> np.uint64(63 - plane) & ONE) << bit


@part
def draw_planes(number, word1, when, key, random):  # type: ignore[no-untyped-def]
    """Draw ``random`` (8 planes, 2, bonds) for the bonds of the given numbers."""
    k0, k1 = key
    word2 = rng.low32(when)
    for call in range(CALLS):
        for half in range(2):
            low = rng.counter_plane(when, CLUSTERS, np.uint64(4 * call + 2 * half))
            high = low + ONE
            r0, r1 = random[4 * call, half], random[4 * call + 1, half]
            r2, r3 = random[4 * call + 2, half], random[4 * call + 3, half]
            for q in range(number.size):
                p0, p1, p2, p3, p4 = rng.philox_prefix(np.uint64(number[q]), word1, word2, k0, k1)
                x0, x1, x2, x3 = rng.philox_finish(p0, p1, p2, p3, p4, low, k0, k1, rng.ROUNDS)
                y0, y1, y2, y3 = rng.philox_finish(p0, p1, p2, p3, p4, high, k0, k1, rng.ROUNDS)
                r0[q] = rng.low32(x0) | (y0 << SHIFT)
                r1[q] = rng.low32(x1) | (y1 << SHIFT)
                r2[q] = rng.low32(x2) | (y2 << SHIFT)
                r3[q] = rng.low32(x3) | (y3 << SHIFT)


@part
def finish_bond(opened, undecided, half, thresholds, number, word1, when, key):  # type: ignore[no-untyped-def]
    """Return ``opened`` without undecided replicas whose next 64 bits are below the rest of the threshold."""
    k0, k1 = key
    while undecided:
        bit = trailing_zeros(undecided)
        undecided &= undecided - ONE
        lane = np.uint64(64 * half) + bit
        word3 = rng.counter_plane(when, CLUSTERS, np.uint64(TAIL) + lane)
        x0, x1, _, _ = rng.philox(np.uint64(number), word1, rng.low32(when), word3, k0, k1, rng.ROUNDS)
        uniform = (rng.low32(x0) << SHIFT) | rng.low32(x1)
        opened &= ~(np.uint64(uniform < thresholds[np.int64(lane)] << AFTER) << bit)
    return opened


@kernel
def open_bonds(up, bonds, sample, beta, word1, when, key, opened):  # type: ignore[no-untyped-def]
    """Set ``opened`` (bonds, 2): the replicas for which each bond of a sample is open.

    ``up`` are words of spins, uint64 (sites + 1, 2), the ghost last. ``beta`` (terms, 128) is the inverse temperature
    times the quantum; it is 0 for unused lanes, which have no open bonds. ``when`` goes into the half-sweep field.
    """
    # up[site, half], opened[bond, half]    a bit per replica, 64 in each half
    # planes[level, p, half]                bit p of each replica's threshold for a bond strength, highest bit first
    # random[p, half, q]                    bit p of each replica's uniform, for the q-th bond of a batch
    ends, numbers, negative, level, costs, terms = bonds
    minus, sizes = negative[sample % negative.shape[0]], level[sample % level.shape[0]]
    ahead = costs.size <= MOST_LEVELS
    rows = costs.size if ahead else 1
    planes, thresholds = np.empty((rows, PLANES, 2), np.uint64), np.empty((rows, LANES), np.uint64)
    always = np.empty((rows, 2), np.uint64)
    if ahead:
        for k in range(rows):
            lay_level(costs[k], beta[terms[k] % beta.shape[0]], planes[k], thresholds[k], always[k])
    random = np.empty((PLANES, 2, BATCH), np.uint64)
    for base in range(0, numbers.size, BATCH):
        some = numbers[base : base + BATCH]
        draw_planes(some, word1, when, key, random)
        for q in range(some.size):
            e = base + q
            k = sizes[e]
            # A coupling of 0 has no level.
            if k < 0:
                opened[e, 0] = opened[e, 1] = ZERO
                continue
            if not ahead:
                lay_level(costs[k], beta[terms[k] % beta.shape[0]], planes[0], thresholds[0], always[0])
                k = 0
            i, j, sign = np.uint32(ends[e, 0]), np.uint32(ends[e, 1]), ZERO - np.uint64(minus[e])
            for half in range(2):
                # Satisfied bonds, in replicas that may open them.
                there = ~(up[i, half] ^ up[j, half] ^ sign) & ~always[k, half]
                closed, undecided = ZERO, there
                # uniform < threshold, from the least significant of 8 bits; the bond then stays closed.
                for back in range(PLANES):
                    threshold, drawn = planes[k, PLANES - 1 - back, half], random[PLANES - 1 - back, half, q]
                    differ = threshold ^ drawn
                    closed = (threshold & ~drawn) | (~differ & closed)
                    undecided &= ~differ
                open_lanes = there & ~closed
                # Replicas with 8 equal bits, 1 in 256, compare 64 more.
                if undecided:
                    open_lanes = finish_bond(open_lanes, undecided, half, thresholds[k], some[q], word1, when, key)
                opened[e, half] = open_lanes


WIDE: Final = 8  # words of a site


class Rows(NamedTuple):
    """Rows of a lattice along its first axis."""

    near: npt.NDArray[np.int32]  # rows before and after each row along the other axes, (rows, axes, 2)
    rank: npt.NDArray[np.uint32]  # rank of each site, (sites,)

    @classmethod
    def of(cls, lattice: Lattice, order: npt.NDArray[np.uint32]) -> Rows:
        """Return the rows of a lattice of one site per cell; ``order`` has the site of each rank."""
        sides = lattice.shape[1:]
        number, rank = np.arange(np.prod(sides, dtype=np.int64)).reshape(sides[::-1]), np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=np.uint32)
        near = np.empty((number.size, len(sides), 2), np.int32)
        for k in range(len(sides)):
            near[:, k] = np.stack([np.roll(number, by, -1 - k).reshape(-1) for by in (1, -1)], axis=-1)
        return cls(near, rank)


@step
def pull(row, other, opened):  # type: ignore[no-untyped-def]
    """Add to a row the reached sites of another row, over the open bonds between them; return the changed bits."""
    changed = ZERO
    for q in range(row.size):
        joined = row[q] | (other[q] & opened[q])
        changed |= joined ^ row[q]
        row[q] = joined
    return changed


@step
def spread(row, opened):  # type: ignore[no-untyped-def]
    """Spread reached sites within a row, which is a ring, until nothing changes."""
    last = row.size - WIDE
    left = ONE
    while left:
        scan_ring(row, opened)
        left = ZERO
        for w in range(WIDE):
            left |= (row[w] ^ row[last + w]) & opened[last + w]


@kernel
def flood(opened, reached, near, dirty):  # type: ignore[no-untyped-def]
    """Grow ``reached`` over ``opened``; ``near`` is as in ``Rows``, ``dirty`` is scratch, uint8 (rows,)."""
    # A row is a ring of sites along the first axis, with WIDE words to a site: reached[r width : (r + 1) width].
    #
    #     | row 0: site 0, site 1, ... | row 1 | ...        bit b of word w of a site: replica 64 w + b
    #
    # opened[a + 1, site] is the bond to the next site along axis a + 1: a row owns the bonds to the rows after it.
    rows, axes = near.shape[:2]
    width = reached.size // rows
    for r in range(rows):
        spread(reached[r * width : (r + 1) * width], opened[0, r * width : (r + 1) * width])
    # Rows are visited up and down in turn. A row is dirty if a neighbour has changed since its last visit.
    dirty[:] = 1
    left, forward = 1, True
    while left > 0:
        left = 0
        for n in range(rows):
            r = n if forward else rows - 1 - n
            if dirty[r] == 0:
                continue
            dirty[r] = 0
            begin, changed = r * width, ZERO
            row = reached[begin : begin + width]
            for a in range(axes):
                before, after = near[r, a, 0] * width, near[r, a, 1] * width
                # Bonds to the row before belong to that row, bonds to the row after to this one.
                changed |= pull(row, reached[before : before + width], opened[a + 1, before : before + width])
                changed |= pull(row, reached[after : after + width], opened[a + 1, begin : begin + width])
            if changed:
                spread(row, opened[0, begin : begin + width])
                for a in range(axes):
                    dirty[near[r, a, 0]] = dirty[near[r, a, 1]] = 1
                left = 1
        forward = not forward


@kernel
def lead(opened, rows, candidates, reached, dirty):  # type: ignore[no-untyped-def]
    """Set ``candidates`` (words,) to the leaders of clusters; ``reached`` and ``dirty`` are scratch for floods."""
    near, rank = rows
    bit = 1
    while (1 << bit) < rank.size:
        bit += 1
    candidates[:] = ALL
    while bit > 0:
        bit -= 1
        shift = np.uint64(bit)
        for i in range(rank.size):
            is_zero = ((np.uint64(rank[i]) >> shift) & ONE) - ONE
            for w in range(WIDE * i, WIDE * i + WIDE):
                reached[w] = candidates[w] & is_zero
        flood(opened, reached, near, dirty)
        for i in range(rank.size):
            is_zero = ((np.uint64(rank[i]) >> shift) & ONE) - ONE
            for w in range(WIDE * i, WIDE * i + WIDE):
                candidates[w] &= ~reached[w] | is_zero


@kernel
def flip_flooded(up, opened, chosen, rows, by_leader):  # type: ignore[no-untyped-def]
    """Flip clusters with chosen sites, or only clusters with a chosen leader, but no cluster with the ghost.

    Arrays have 8 words of replicas: ``up`` (sites + 1, 8), changed in place; ``opened`` (bonds, 8), axis by axis, bonds
    to the ghost last; ``chosen`` (sites, 8).
    """
    near, rank = rows
    sites, axes = rank.size, near.shape[1] + 1
    inside = opened[: axes * sites].reshape(axes, sites * WIDE)
    reached, dirty = np.empty(sites * WIDE, np.uint64), np.empty(near.shape[0], np.uint8)
    seeds = chosen.reshape(sites * WIDE)
    if by_leader:
        leaders = np.empty(sites * WIDE, np.uint64)
        lead(inside, rows, leaders, reached, dirty)
        seeds &= leaders
    flood(inside, seeds, near, dirty)
    if opened.shape[0] > axes * sites:
        reached[:] = opened[axes * sites :].reshape(sites * WIDE)
        flood(inside, reached, near, dirty)
        seeds &= ~reached
    spins = up[:sites].reshape(sites * WIDE)
    spins ^= seeds


HALF: Final = 64


@part
def find(parent, label):  # type: ignore[no-untyped-def]
    """Return the root of a label, and shorten the path to it."""
    while parent[label] != label:
        parent[label] = parent[parent[label]]
        label = parent[label]
    return label


@kernel
def transpose_column(words, column, by_lane):  # type: ignore[no-untyped-def]
    """Set ``by_lane`` (64, parts): bit b of ``by_lane[lane, p]`` is bit ``lane`` of ``words[64 p + b, column]``."""
    square = np.empty(HALF, np.uint64)
    for p in range(by_lane.shape[1]):
        width = min(HALF, words.shape[0] - HALF * p)
        for b in range(width):
            square[b] = words[HALF * p + b, column]
        square[width:] = ZERO
        transpose(square)
        for lane in range(HALF):
            by_lane[lane, p] = square[lane]


@part
def join(opened, labels, parent):  # type: ignore[no-untyped-def]
    """Set ``parent`` to the root of each label: the smallest label that open bonds (words,) join to it."""
    for label in range(parent.size):
        parent[label] = label
    for p in range(opened.size):
        word = opened[p]
        while word:
            e = HALF * p + np.int64(trailing_zeros(word))
            word &= word - ONE
            one, other = find(parent, np.uint32(labels[e, 0])), find(parent, np.uint32(labels[e, 1]))
            if one < other:
                parent[other] = one
            else:
                parent[one] = other
    for label in range(parent.size):
        parent[label] = parent[parent[label]]


@kernel
def flip_labelled(up, used, opened, chosen, labels, order, by_leader):  # type: ignore[no-untyped-def]
    """Do ``flip_flooded`` on any graph, with ``labels`` of bonds' ends; ``order`` has the site of each label from 1."""
    sites = order.size
    parts = (sites + HALF - 1) // HALF
    parent, is_chosen = np.empty(sites + 1, np.int32), np.empty(sites + 1, np.uint8)
    by_lane = np.empty((HALF, (labels.shape[0] + HALF - 1) // HALF), np.uint64)
    of_site, flips = np.empty((HALF, parts), np.uint64), np.empty((HALF * parts, 1), np.uint64)
    for column in range(used.size):
        if used[column] == ZERO:
            continue
        transpose_column(opened, column, by_lane)
        transpose_column(chosen, column, of_site)
        for lane in range(HALF):
            mine = of_site[lane]
            join(by_lane[lane], labels, parent)
            is_chosen[:] = 0
            for r in range(sites):
                if (mine[order[r] // HALF] >> np.uint64(order[r] % HALF)) & ONE:
                    is_chosen[1 + r if by_leader else parent[1 + r]] = 1
            is_chosen[0] = 0
            mine[:] = ZERO
            for r in range(sites):
                mine[order[r] // HALF] |= np.uint64(is_chosen[parent[1 + r]]) << np.uint64(order[r] % HALF)
        for p in range(parts):
            for lane in range(HALF):
                flips[HALF * p + lane, 0] = of_site[lane, p]
            transpose(flips[HALF * p : HALF * p + HALF, 0])
        for i in range(sites):
            up[i, column] ^= flips[i, 0] & used[column]
