"""Houdayer moves: isoenergetic clusters of two copies at one temperature; definition, plain path and CPU path.

At each temperature the copies are paired at random. A pair with spins s and s' has the overlap s s' = +1 or -1 at every
site, and neighbours of equal overlap form clusters. Each site is a seed with probability 2^-k, where k is a random
number of the pair from 1 to the number of bits of a site's number. All clusters that contain a seed are moved: both
replicas flip there. Where the overlap is -1, this exchanges the cluster. A bond that leaves a cluster joins overlaps of
opposite sign, so that its energies in both replicas add up to 0 before and after the move. So each term of the energy
keeps its sum over both replicas. The field energy keeps its sum only where the overlap is -1; in a field no other
clusters move. The overlap does not change, so that the same seeds reverse the move: every proposal is accepted.

The move has three steps: pairs, seeds, growth. From a seed on, a site joins neighbours of equal overlap over bonds with
non-zero coupling; the result does not depend on the order of the sites. Pairs are the lanes of words, coldest
temperature first: bit b of word w is pair 64 w + b. On the CPU squares of 64 sites and 64 replicas are transposed, so
that a word holds 64 sites of one replica. Two such words give the overlap of a pair, and the squares of pairs are
transposed back. Flips of clusters take the same way; unpacked spins are packed first.

Random numbers use the stream ``HOUDAYER``; the half-sweep field counts applications. A replica draws a key and k from
plane ``ORDER``, group = replica. The copies of a temperature are paired in the order of their keys, with the k of the
first copy. A site is a seed if its bit is set in all of k planes, group = site, block = pair // 32. Plane p is bit pair
% 32 of word p % 4 of the call with plane p // 4.

Moves are useful if clusters do not percolate: in two dimensions clusters have all sizes; in three they percolate at low
temperatures. On random graphs of any degree, clusters are either giant, so that their exchange amounts to an exchange
of the copies, or trees, which a few single flips reverse equally well. ``dimension`` distinguishes both kinds of graphs
by the number of sites at distance r from a site: r^(d - 1) in d dimensions, but exponential in r on a random graph.

Source: J. Houdayer, Eur. Phys. J. B 22, 479 (2001); Z. Zhu, A. J. Ochoa, H. G. Katzgraber, Phys. Rev. Lett. 115, 077201
(2015), for the moves beyond two dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log2
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed import Blocks
from spinsim.engine.layouts.unpacked import Chunks
from spinsim.engine.measuring.cpu_comparison import transpose
from spinsim.engine.moves.move import Batch, FastPath, Moment, most_halvings
from spinsim.machine.compiled import kernel, part
from spinsim.model.couplings import distinct
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising
from spinsim.packing import Packing, block_count

HOUDAYER: Final = np.uint64(rng.Stream.HOUDAYER)
ORDER: Final = 2**rng.PLANE_BITS - 1  # plane of the numbers that pair copies
PLANES_A_CALL: Final = 4
ALL: Final = np.uint64(2**64 - 1)
ONE: Final = np.uint64(1)
SHIFT: Final = np.uint64(32)
HALF: Final = 64
FEW: Final = 4  # while over 1 / 4 of the sites change, all are visited
EVERY: Final = 10
EVERY_OF_SEARCH: Final = 5
MOST_DIMENSIONS: Final = 3.5  # most dimensions of lattices and other graphs for which moves are useful


class Bonds(NamedTuple):
    """Neighbours over which clusters grow, common to all samples or for each sample."""

    start: npt.NDArray[np.int64]  # site i has ``start[row, i]:start[row, i + 1]``, (1 or samples, sites + 1)
    neighbour: npt.NDArray[np.int32]


def bonds_of(model: Ising) -> Bonds:
    """Neighbours to which a site has a non-zero coupling."""
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
    """Sweeps between moves; None on graphs of more than three dimensions (such as random ones): moves do not pay."""
    if model.once(dimension_of) > MOST_DIMENSIONS:
        return None
    return EVERY_OF_SEARCH if searches else EVERY


def dimension_of(model: Ising) -> float:
    """Dimension of a lattice, including time if it has slices, or of the graph of the first sample's bonds."""
    if model.lattice is not None:
        return model.lattice.dimension
    start, neighbour = model.once(bonds_of)
    return dimension(start[0], neighbour)


@part
def pair_up(holder, sample, time, key, most, first, second, halvings):  # type: ignore[no-untyped-def]
    """Set the replicas (pairs,) and k of each pair, from a sample's ``holder`` (copies, temperatures)."""
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
        order = np.argsort(own, kind="mergesort")  # equal keys stay in the order of copies
        for i in range(copies // 2):
            pair = t * (copies // 2) + i
            first[pair], second[pair] = holder[order[2 * i], t], holder[order[2 * i + 1], t]
            halvings[pair] = depth[order[2 * i]]


@part
def sow(work, word, halvings, in_field, sample, time, key):  # type: ignore[no-untyped-def]
    """Set ``work[site, 1]`` to the seeds of a word of pairs; ``work[site, 0]`` is set where their overlaps are -1.

    Planes are drawn until no pair needs more or none has a seed left at the site, typically after about six planes.
    """
    k0, k1 = key
    word2 = rng.low32(np.uint64(time))
    pairs = min(HALF, halvings.size - HALF * word)
    deepest = 0
    for p in range(pairs):
        deepest = max(deepest, halvings[HALF * word + p])
    wants = np.zeros(deepest + 1, np.uint64)  # pairs that need plane p
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
    """Grow ``work[site, 1]`` over bonds of equal ``work[site, 0]`` until nothing changes.

    All sites are visited, forward and backward in turn, while more than a quarter of them change. Then a queue holds
    the sites whose neighbours may change, which takes half the time.
    """
    # work[site, 0]    overlaps of 64 pairs of replicas, a bit each
    # work[site, 1]    pairs in which a moved cluster has reached the site
    # queue            a ring of sites: | free | first ... first + size - 1 | free |
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
                # A site joins where a neighbour is reached and both overlaps are equal.
                joined |= work[j, 1] & ~(work[j, 0] ^ overlap)
            work[i, 1] = joined
            waits[i] = joined != before
            # A queue without branches: the site is written, and it stays only if it changed.
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
            # Pairs in which this site is reached, overlaps are equal and the neighbour is new.
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
    """Houdayer moves: two copies at one temperature exchange clusters on which they differ.

    The sum of both energies stays the same. A move needs at least two copies at a temperature; a single one stays
    unchanged. It helps where clusters do not span the lattice: in two dimensions, on graphs of low degree, and at low
    temperatures. J. Houdayer, Eur. Phys. J. B 22, 479 (2001).
    """

    name = "houdayer"
    fast_paths: ClassVar[Mapping[tuple[Packing, str], str]] = {
        (layout, device): f"{__name__}{module}"
        for layout in (Packing.REPLICA, Packing.ANISOTROPIC, Packing.UNPACKED)
        for device, module in (("cpu", ""), ("cuda", "_cuda"))
    }

    def __repr__(self) -> str:
        return "Houdayer()"

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


_SOURCES: Final = 8
_SEED: Final = 0  # the dimension belongs to the graph, not to a run
_SHARE: Final = 4  # neighbourhoods have at most a quarter of the sites, so that they do not overlap themselves


def dimension(start: npt.NDArray[np.int64], neighbour: npt.NDArray[np.int32]) -> float:
    """Return 1 + log2 of the number of sites at distance 2 r, divided by the number at r, for the largest usable r.

    ``start``, (sites + 1,), and ``neighbour`` are the adjacency in compressed rows. Neighbourhoods have at most a
    quarter of all sites. Components of at most a quarter of all sites are ignored; the result is 0 if there are no
    others. It is infinite on dense graphs, which have more than a quarter of the sites within distance 2.
    """
    sites = start.size - 1
    draws = rng.draw(_SEED, rng.Stream.PRE_RUN, group=np.arange(_SOURCES), half_sweep=2)
    shells = np.zeros(sites, np.int64)
    sources = 0
    for source in (draws[0] * np.uint64(sites)) >> np.uint64(32):
        distances = _distances(start, neighbour, int(source))
        if _SHARE * distances.size > sites:
            shells += np.bincount(distances, minlength=sites)
            sources += 1
    if not sources:
        return 0.0
    largest = int(np.searchsorted(np.cumsum(shells), sources * sites // _SHARE, "right")) - 1
    if largest < 2:
        return inf
    radius = largest // 2
    return 1 + log2(shells[2 * radius] / shells[radius])


@kernel
def _distances(start, neighbour, source):  # type: ignore[no-untyped-def]
    """Distances of all sites of the source's component, in ascending order."""
    distance = np.full(start.size - 1, -1, np.int32)
    queue = np.empty(start.size - 1, np.int32)
    distance[source] = 0
    queue[0] = source
    first, size = 0, 1
    while first < size < queue.size:  # where all sites are found, no more come
        site = queue[first]
        first += 1
        for e in range(start[site], start[site + 1]):
            other = neighbour[e]
            if distance[other] < 0:
                distance[other] = distance[site] + 1
                queue[size] = other
                size += 1
    return distance[queue[:size]]


PASSES = 16  # approximate cost of a move, in passes over all words


@part
def write_overlaps(state, first, second, work):  # type: ignore[no-untyped-def]
    """Set ``work[word, site, 0]`` to the bits of pairs that differ, from a sample's ``state`` (blocks, sites, 2)."""
    blocks, sites = state.shape[:2]
    of_replica, of_pair = np.empty(blocks * 2 * HALF, np.uint64), np.empty(HALF, np.uint64)
    for base in range(0, sites, HALF):
        width = min(HALF, sites - base)
        for word in range(2 * blocks):
            square = of_replica[word * HALF : (word + 1) * HALF]
            for i in range(width):
                square[i] = state[word // 2, base + i, word % 2]
            square[width:] = np.uint64(0)
            transpose(square)
        for word in range(work.shape[0]):
            for p in range(HALF):
                pair = HALF * word + p
                inside = pair < first.size
                of_pair[p] = of_replica[first[pair]] ^ of_replica[second[pair]] if inside else np.uint64(0)
            transpose(of_pair)
            for i in range(width):
                work[word, base + i, 0] = of_pair[i]


@part
def flip_both(state, first, second, work):  # type: ignore[no-untyped-def]
    """Flip both replicas of each pair at the sites of ``work[word, site, 1]``."""
    blocks, sites = state.shape[:2]
    of_replica, of_pair = np.empty(blocks * 2 * HALF, np.uint64), np.empty(HALF, np.uint64)
    for base in range(0, sites, HALF):
        width = min(HALF, sites - base)
        of_replica[:] = np.uint64(0)
        for word in range(work.shape[0]):
            for i in range(width):
                of_pair[i] = work[word, base + i, 1]
            of_pair[width:] = np.uint64(0)
            transpose(of_pair)
            for p in range(min(HALF, first.size - HALF * word)):
                of_replica[first[HALF * word + p]] = of_replica[second[HALF * word + p]] = of_pair[p]
        for word in range(2 * blocks):
            square = of_replica[word * HALF : (word + 1) * HALF]
            transpose(square)
            for i in range(width):
                state[word // 2, base + i, word % 2] ^= square[i]


@kernel
def move_packed(state, holder, start, neighbour, in_field, first_sample, time, key, most):  # type: ignore[no-untyped-def]
    """Move the replicas of some samples like ``move_unpacked``; ``state`` is uint64 (samples, blocks, sites, 2)."""
    samples, _, sites, _ = state.shape
    pairs = holder.shape[1] // 2 * holder.shape[2]
    first, second, halvings = np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    work = np.empty(((pairs + HALF - 1) // HALF, sites, 2), np.uint64)
    for k in range(samples):
        pair_up(holder[k], first_sample + k, time, key, most, first, second, halvings)
        write_overlaps(state[k], first, second, work)
        for word in range(work.shape[0]):
            sow(work[word], word, halvings, in_field, first_sample + k, time, key)
            grow(work[word], start[k % start.shape[0]], neighbour)
        flip_both(state[k], first, second, work)


def fast_path(model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath | None:
    """Make the move of an engine's spins in place, with samples in parallel; None for dense spins."""
    spins, (start, neighbour) = parts.state, bonds_of(model)
    if not isinstance(spins, Blocks | Chunks):
        return None
    in_field, most = bool(np.any(distinct(model.fields))), most_halvings(model.sites)

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        time, key = moment.time, rng.split_seed(moment.seed)

        def task(begin: int, stop: int) -> None:
            rows = start if len(start) == 1 else start[begin:stop]
            these = slice(begin, stop)
            arguments = holder[these], rows, neighbour, in_field, first_sample + begin, time, key, most
            if isinstance(spins, Blocks):
                move_packed(spins.state[these], *arguments)
            else:
                words = spins.words_of(these)
                before = words.copy()
                move_packed(words, *arguments)
                spins.flip(words ^ before, these)

        if holder.shape[1] > 1:
            parts.threads.share_out(task, model.samples, PASSES * model.samples * model.sites * block_count(replicas))

    return move
