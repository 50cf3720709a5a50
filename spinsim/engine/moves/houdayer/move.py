"""Houdayer moves of any model, as definition and plain path: isoenergetic clusters of two copies at one temperature.

At each temperature the copies are paired at random. Where the two of a pair have spins s and s', the overlap s s' is +1
or -1 at every site, and neighbours of equal overlap form clusters. Seeds are drawn at every site with probability 2^-k,
k one random number of the pair from 1 to the bits of a site's number. All clusters that a seed hits are moved: both
replicas flip there, which where the overlap is -1 exchanges the cluster. Bonds that leave a cluster join overlaps of
opposite sign, so that their two energies add up to 0 before and after: each term of the energy keeps its sum over both
replicas. The energy in a field keeps it where the overlap is -1, and with a field no other clusters move. The overlap
does not change, so that the same seeds move the replicas back: every proposal is accepted.

The move is in pieces: pairs, seeds, growth. Growth is a closure, whatever the order in which sites are visited:
from a seed on, a site joins a neighbour of equal overlap over any bond whose coupling is not 0. Pairs are the lanes of
words, those of the coldest temperature first: bit b of word w is pair 64 w + b.

Random numbers are of the stream ``HOUDAYER``, the half-sweep field counts applications: a replica draws a key and k
from plane ``ORDER``, group = replica; copies of a temperature are paired in the order of their keys, and k is the first
one's. Seeds are bits that all of k planes have set, group = site, block = pair // 32, where plane p is bit pair % 32 of
word p % 4 of the call with plane p // 4.

Source: J. Houdayer, Eur. Phys. J. B 22, 479 (2001); Z. Zhu, A. J. Ochoa, H. G. Katzgraber, Phys. Rev. Lett. 115, 077201
(2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.moves.houdayer.dimension import dimension
from spinsim.engine.moves.move import Batch, most_halvings
from spinsim.machine.compiled import kernel, part
from spinsim.model.couplings import distinct
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising
from spinsim.packing import Packing

HOUDAYER: Final = np.uint64(rng.Stream.HOUDAYER)
ORDER: Final = 2**rng.PLANE_BITS - 1  # plane of the numbers that pair copies
PLANES_A_CALL: Final = 4
ALL: Final = np.uint64(2**64 - 1)
ONE: Final = np.uint64(1)
SHIFT: Final = np.uint64(32)
HALF: Final = 64
FEW: Final = 4  # a share of 1 / 4 of the sites
EVERY: Final = 10
EVERY_OF_SEARCH: Final = 5
MOST_DIMENSIONS: Final = 3.5  # of lattices and other graphs for which moves pay


class Bonds(NamedTuple):
    """Neighbours over which clusters grow, of all samples or of each."""

    start: npt.NDArray[np.int64]  # site i: ``start[row, i]:start[row, i + 1]``, (1 or samples, sites + 1)
    neighbour: npt.NDArray[np.int32]


def bonds_of(model: Ising) -> Bonds:
    """Neighbours to which a site has a coupling that is not 0."""
    rows, couplings = adjacency(model.graph), model.sizes_of_couplings
    if distinct(couplings).all():
        return Bonds(rows.start[None], rows.neighbour)
    start, near, before = [], [], 0
    for row in couplings:
        there = row[rows.bond] != 0
        ends = np.concatenate([[0], np.cumsum(there)])[rows.start]
        start.append(before + ends)
        near.append(rows.neighbour[there])
        before += int(ends[-1])
    return Bonds(np.stack(start), np.concatenate(near))


def usual_every(model: Ising, searches: bool) -> int | None:
    """Sweeps between moves where they pay; None on graphs of more than three dimensions, such as random ones."""
    if model.once(dimension_of) > MOST_DIMENSIONS:
        return None
    return EVERY_OF_SEARCH if searches else EVERY


def dimension_of(model: Ising) -> float:
    """Dimension of a lattice, with time where it has slices, or of the graph of the first sample's bonds."""
    if model.lattice is not None:
        return model.lattice.dimension
    start, neighbour = model.once(bonds_of)
    return dimension(start[0], neighbour)


@part
def pair_up(holder, sample, time, key, most, first, second, halvings):  # type: ignore[no-untyped-def]
    """Fill replicas (pairs,) and k of each pair, from ``holder`` (copies, temperatures) of a sample."""
    copies, temperatures = holder.shape
    k0, k1 = key
    word1, word2 = rng.counter_block(np.uint64(sample), np.uint64(0)), rng.low32(np.uint64(time))
    word3 = rng.counter_plane(np.uint64(time), HOUDAYER, np.uint64(ORDER))
    own, depth = np.empty(copies, np.uint64), np.empty(copies, np.int64)
    for t in range(temperatures):
        for c in range(copies):
            x0, x1, x2, _ = rng.philox(np.uint64(holder[c, t]), word1, word2, word3, k0, k1, rng.ROUNDS)
            own[c] = (rng.low32(x0) << SHIFT) | rng.low32(x1)
            depth[c] = np.int64(1) + np.int64((rng.low32(x2) * np.uint64(most)) >> SHIFT)
        order = np.argsort(own, kind="mergesort")  # which leaves equal keys in the order of copies
        for i in range(copies // 2):
            pair = t * (copies // 2) + i
            first[pair], second[pair] = holder[order[2 * i], t], holder[order[2 * i + 1], t]
            halvings[pair] = depth[order[2 * i]]


@part
def sow(work, word, halvings, in_field, sample, time, key):  # type: ignore[no-untyped-def]
    """Set ``work[site, 1]`` to the seeds of a word of pairs, whose overlaps are -1 where ``work[site, 0]`` is set.

    Planes are drawn until no pair wants more or none has a seed left at the site, as is so after some six of them.
    """
    k0, k1 = key
    word2 = rng.low32(np.uint64(time))
    pairs = min(HALF, halvings.size - HALF * word)
    deepest = 0
    for p in range(pairs):
        deepest = max(deepest, halvings[HALF * word + p])
    wants = np.zeros(deepest + 1, np.uint64)  # pairs that want plane p
    for p in range(pairs):
        for plane in range(halvings[HALF * word + p]):
            wants[plane] |= ONE << np.uint64(p)
    lanes = ALL if pairs == HALF else (ONE << np.uint64(pairs)) - ONE
    low = rng.counter_block(np.uint64(sample), np.uint64(2 * word))
    random = np.zeros(PLANES_A_CALL, np.uint64)
    for i in range(work.shape[0]):
        seeds, plane = lanes, 0
        while seeds & wants[plane]:
            if plane % PLANES_A_CALL == 0:
                word3 = rng.counter_plane(np.uint64(time), HOUDAYER, np.uint64(plane // PLANES_A_CALL))
                x = rng.philox(np.uint64(i), low, word2, word3, k0, k1, rng.ROUNDS)
                for q in range(PLANES_A_CALL):
                    random[q] = rng.low32(x[q])
                if pairs > HALF // 2:
                    x = rng.philox(np.uint64(i), low + ONE, word2, word3, k0, k1, rng.ROUNDS)
                    for q in range(PLANES_A_CALL):
                        random[q] |= rng.low32(x[q]) << SHIFT
            seeds &= random[plane % PLANES_A_CALL] | ~wants[plane]
            plane += 1
        work[i, 1] = seeds & work[i, 0] if in_field else seeds


@part
def grow(work, start, neighbour):  # type: ignore[no-untyped-def]
    """Let ``work[site, 1]`` grow over bonds of equal ``work[site, 0]`` until nothing changes.

    All sites are visited, forward and backward in turn, while a quarter of them changes; from then on those alone whose
    neighbours may change, in a queue, which takes half the time.
    """
    sites, forward = work.shape[0], True
    queue, waits = np.empty(sites, np.int64), np.empty(sites, np.bool_)
    size = sites
    while FEW * size > sites:
        size = 0
        for n in range(sites):
            i = n if forward else sites - 1 - n
            overlap, before = work[i, 0], work[i, 1]
            joined = before
            for e in range(start[i], start[i + 1]):
                j = np.uint32(neighbour[e])
                joined |= work[j, 1] & ~(work[j, 0] ^ overlap)
            work[i, 1] = joined
            waits[i] = joined != before
            queue[size] = i
            size += waits[i]
        forward = not forward
    first = 0
    while size:
        i = queue[first]
        first = first + 1 if first + 1 < sites else 0
        size -= 1
        waits[i] = False
        overlap, reached = work[i, 0], work[i, 1]
        for e in range(start[i], start[i + 1]):
            j = np.uint32(neighbour[e])
            joining = reached & ~(work[j, 0] ^ overlap | work[j, 1])
            if joining:
                work[j, 1] |= joining
                if not waits[j]:
                    waits[j] = True
                    last = first + size
                    queue[last if last < sites else last - sites] = j
                    size += 1


@kernel
def move_unpacked(spins, holder, start, neighbour, in_field, sample, time, key, most):  # type: ignore[no-untyped-def]
    """Move the replicas of one sample, ``spins`` int8 (replicas, sites)."""
    pairs, sites = holder.shape[0] // 2 * holder.shape[1], spins.shape[1]
    first, second, halvings = np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    pair_up(holder, sample, time, key, most, first, second, halvings)
    work = np.empty((sites, 2), np.uint64)
    for word in range((pairs + HALF - 1) // HALF):
        these = range(HALF * word, min(pairs, HALF * word + HALF))
        work[:, 0] = np.uint64(0)
        for pair in these:
            bit = np.uint64(pair - HALF * word)
            one, other = spins[first[pair]], spins[second[pair]]
            for i in range(sites):
                work[i, 0] |= np.uint64(one[i] != other[i]) << bit
        sow(work, word, halvings, in_field, sample, time, key)
        grow(work, start, neighbour)
        for pair in these:
            bit = np.uint64(pair - HALF * word)
            one, other = spins[first[pair]], spins[second[pair]]
            for i in range(sites):
                sign = np.int8(1) - np.int8(2) * np.int8((work[i, 1] >> bit) & ONE)
                one[i] *= sign
                other[i] *= sign


class Houdayer:
    """Houdayer moves: two copies of one temperature exchange clusters on which they differ.

    The sum of both energies stays the same. A move takes at least two copies at a temperature and does nothing to a
    single one. It helps where clusters do not span the lattice: in two dimensions, on graphs of low degree, and at low
    temperatures. J. Houdayer, Eur. Phys. J. B 22, 479 (2001).
    """

    name = "houdayer"
    fast_paths: ClassVar[Mapping[tuple[Packing, str], str]] = {
        (layout, device): f"{__package__}.{device}"
        for layout in (Packing.REPLICA, Packing.ANISOTROPIC, Packing.UNPACKED)
        for device in ("cpu", "cuda")
    }

    def apply(self, batch: Batch) -> None:
        """Move the clusters of all pairs."""
        model = batch.model
        if batch.holder.shape[1] < 2:
            return
        start, neighbour = model.once(bonds_of)
        in_field, most = bool(np.any(distinct(model.fields))), most_halvings(model.sites)
        key = rng.split_seed(batch.seed)
        for k, spins in enumerate(batch.spins):
            rows = start[k % len(start)], neighbour
            move_unpacked(spins, batch.holder[k], *rows, in_field, batch.first_sample + k, batch.time, key, most)
