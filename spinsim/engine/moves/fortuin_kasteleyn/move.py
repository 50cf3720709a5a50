"""Swendsen-Wang, Wolff and seeded cluster moves of any model, as definition and plain path.

Sites that open bonds join (bonds.py) form clusters. A cluster with the ghost, which stands for fields, never flips. Of
the others flip

    Swendsen-Wang   each with probability 1/2, by the coin of its leader
    Wolff           the one with a random site
    seeded          all that hold one of the sites drawn with probability 2^-k, k a random number of the replica from 1
                    to the bits of a site's number

Each keeps Boltzmann's law: open bonds depend on the spins as R. G. Edwards and A. D. Sokal say, what flips depends on open
bonds and numbers drawn apart from spins. The leader of a cluster is its site that comes first in an order in which
neighbours are far from each other (``rank_of``): parts of clusters find it in few steps.

Random numbers are of the stream ``FORTUIN_KASTELEYN``; the half-sweep field is 4 times the applications before plus the
number of the kind. The coin of a site is plane ``COIN``, group = site, bit b of word w for replica 32 w + b of the block
of 128. A replica draws its site and k from plane ``OWN``, group = replica. Seeds are the bits that planes ``SEEDS`` to
``SEEDS`` + k - 1 have set, group = site, bits as those of coins.

Source: C. M. Fortuin, P. W. Kasteleyn, Physica 57, 536 (1972); R. H. Swendsen, J.-S. Wang, Phys. Rev. Lett. 58, 86
(1987); U. Wolff, Phys. Rev. Lett. 62, 361 (1989); R. G. Edwards, A. D. Sokal, Phys. Rev. D 38, 2009 (1988).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.measuring.cpu_comparison import transpose
from spinsim.engine.moves.fortuin_kasteleyn.bonds import (
    ALL,
    CLUSTERS,
    KINDS,
    ONE,
    SEEDED,
    SHIFT,
    SWENDSEN_WANG,
    WOLFF,
    ZERO,
    Bonds,
    bonds_of,
    open_bonds,
)
from spinsim.engine.moves.fortuin_kasteleyn.lattice.words import flip_batch, is_site_packed
from spinsim.engine.moves.move import Batch
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import trailing_zeros
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, lane_masks

COIN: Final = 8
OWN: Final = 9
SEEDS: Final = 16
HALF: Final = 64
SCATTER: Final = 2654435769  # 2^32 over the golden ratio, odd


class Clusters(NamedTuple):
    """What clusters of a model are found from.

    Attributes:
        bonds: Its bonds.
        labels: Labels that each bond joins, int32 (bonds, 2): 0 is the ghost, 1 + r the site of rank r.
        order: Site of each rank, uint32 (sites,).
    """

    bonds: Bonds
    labels: npt.NDArray[np.int32]
    order: npt.NDArray[np.uint32]


def order_of(sites: int) -> npt.NDArray[np.uint32]:
    """Return the sites in the order in which they lead: by their number times an odd one, modulo 2^32."""
    return np.argsort(np.arange(sites, dtype=np.uint32) * np.uint32(SCATTER), kind="stable").astype(np.uint32)


def clusters_of(model: Ising) -> Clusters:
    """Return what clusters of a model are found from."""
    bonds, order = bonds_of(model), order_of(model.sites)
    label = np.zeros(model.sites + 1, np.int32)
    label[order] = np.arange(1, model.sites + 1)
    return Clusters(bonds, label[bonds.ends], order)


def most_halvings(sites: int) -> int:
    """The largest k of seeds: so many sites have one of them on average."""
    return max(1, (sites - 1).bit_length())


@part
def draw_coins(numbers, plane, word1, when, key, found):  # type: ignore[no-untyped-def]
    """Set ``found`` (numbers, 2) to a bit of each of 128 replicas for each number."""
    k0, k1 = key
    word2, word3 = rng.low32(when), rng.counter_plane(when, CLUSTERS, np.uint64(plane))
    for q in range(numbers.size):
        x0, x1, x2, x3 = rng.philox(np.uint64(numbers[q]), word1, word2, word3, k0, k1, rng.ROUNDS)
        found[q, 0] = rng.low32(x0) | (x1 << SHIFT)
        found[q, 1] = rng.low32(x2) | (x3 << SHIFT)


@part
def draw_own(first, sites, sample, when, key, site, halvings):  # type: ignore[no-untyped-def]
    """Set the random ``site`` (128,) and k of the replicas from number ``first`` on."""
    k0, k1 = key
    most = 1
    while (1 << most) < sites:
        most += 1
    word1, word3 = rng.counter_block(np.uint64(sample), ZERO), rng.counter_plane(when, CLUSTERS, np.uint64(OWN))
    for lane in range(LANES):
        x0, x1, _, _ = rng.philox(np.uint64(first + lane), word1, rng.low32(when), word3, k0, k1, rng.ROUNDS)
        site[lane] = np.int64((rng.low32(x0) * np.uint64(sites)) >> SHIFT)
        halvings[lane] = 1 + np.int64((rng.low32(x1) * np.uint64(most)) >> SHIFT)


@part
def sow(order, halvings, used, word1, when, key, chosen):  # type: ignore[no-untyped-def]
    """Set ``chosen`` (sites, 2) to the replicas, of those ``used`` (2,), with a seed at each site of the order."""
    deepest = halvings.max()
    wants = np.zeros((deepest + 1, 2), np.uint64)  # replicas that want a plane
    for lane in range(LANES):
        for plane in range(halvings[lane]):
            wants[plane, lane // 64] |= ONE << np.uint64(lane % 64)
    drawn = np.empty((1, 2), np.uint64)
    for r in range(order.size):
        low, high, plane = used[0], used[1], 0
        while (low & wants[plane, 0]) | (high & wants[plane, 1]):
            draw_coins(order[r : r + 1], SEEDS + plane, word1, when, key, drawn)
            low &= drawn[0, 0] | ~wants[plane, 0]
            high &= drawn[0, 1] | ~wants[plane, 1]
            plane += 1
        chosen[r, 0], chosen[r, 1] = low, high


@part
def find(parent, label):  # type: ignore[no-untyped-def]
    """The root of a label; labels on the way come nearer to it."""
    while parent[label] != label:
        parent[label] = parent[parent[label]]
        label = parent[label]
    return label


@part
def turn(words, half, by_lane):  # type: ignore[no-untyped-def]
    """Set ``by_lane`` (64, parts): bit b of part p is bit ``lane`` of ``words[64 p + b, half]``."""
    square = np.empty(HALF, np.uint64)
    for p in range(by_lane.shape[1]):
        width = min(HALF, words.shape[0] - HALF * p)
        for b in range(width):
            square[b] = words[HALF * p + b, half]
        square[width:] = ZERO
        transpose(square)
        for lane in range(HALF):
            by_lane[lane, p] = square[lane]


@part
def join(opened, labels, parent):  # type: ignore[no-untyped-def]
    """Make ``parent`` the root of each label, the smallest that open bonds (words,) join to it."""
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


@part
def choose(kind, chosen, site, parent, is_chosen):  # type: ignore[no-untyped-def]
    """Set ``is_chosen`` (labels,) of the roots that flip: by coins or seeds ``chosen`` (words,), or with a site."""
    is_chosen[:] = 0
    if kind == WOLFF:
        is_chosen[parent[site]] = 1
    elif kind == SEEDED:
        for p in range(chosen.size):
            word = chosen[p]
            while word:
                is_chosen[parent[1 + HALF * p + np.int64(trailing_zeros(word))]] = 1
                word &= word - ONE
    else:
        for label in range(1, parent.size):
            is_chosen[label] = (chosen[(label - 1) // HALF] >> np.uint64((label - 1) % HALF)) & ONE
    is_chosen[0] = 0


@part
def flip_block(up, used, beta, clusters, sample, address, first, when, key, kind):  # type: ignore[no-untyped-def]
    """Flip clusters of a block of 128 replicas, of which those ``used`` (2,) are there, from number ``first`` on.

    ``up`` is uint64 (sites + 1, 2), the ghost last; ``address`` is the number of the sample in the whole run.
    """
    bonds, labels, order = clusters
    sites = order.size
    word1 = rng.counter_block(np.uint64(address), np.uint64(first // LANES))
    opened, chosen = np.empty((labels.shape[0], 2), np.uint64), np.empty((sites, 2), np.uint64)
    open_bonds(up, bonds, sample, beta, word1, when, key, opened)
    own, halvings = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    if kind != SWENDSEN_WANG:
        draw_own(first, sites, address, when, key, own, halvings)
    if kind == SWENDSEN_WANG:
        draw_coins(order, COIN, word1, when, key, chosen)
    elif kind == SEEDED:
        sow(order, halvings, used, word1, when, key, chosen)
    place = np.empty(sites, np.int64)
    for r in range(sites):
        place[order[r]] = r
    parent, is_chosen = np.empty(sites + 1, np.int32), np.empty(sites + 1, np.uint8)
    parts = (sites + HALF - 1) // HALF
    by_lane = np.empty((HALF, (labels.shape[0] + HALF - 1) // HALF), np.uint64)
    chosen_by_lane, flips = np.zeros((HALF, parts), np.uint64), np.empty(HALF, np.uint64)
    for half in range(2):
        turn(opened, half, by_lane)
        if kind != WOLFF:
            turn(chosen, half, chosen_by_lane)
        for lane in range(HALF):
            mine = chosen_by_lane[lane]
            if (used[half] >> np.uint64(lane)) & ONE:
                join(by_lane[lane], labels, parent)
                choose(kind, mine, 1 + place[own[HALF * half + lane]], parent, is_chosen)
                for p in range(parts):
                    word = ZERO
                    for b in range(min(HALF, sites - HALF * p)):
                        word |= np.uint64(is_chosen[parent[1 + HALF * p + b]]) << np.uint64(b)
                    mine[p] = word
            else:
                mine[:] = ZERO
        for p in range(parts):
            flips[:] = chosen_by_lane[:, p]
            transpose(flips)
            for b in range(min(HALF, sites - HALF * p)):
                up[order[HALF * p + b], half] ^= flips[b]


@kernel
def flip_unpacked(spins, used, beta, clusters, sample, address, when, key, kind):  # type: ignore[no-untyped-def]
    """Flip clusters of the replicas of a sample, ``spins`` int8 (replicas, sites), ``beta`` (terms, replicas)."""
    replicas, sites = spins.shape
    up = np.empty((sites + 1, 2), np.uint64)
    scaled = np.zeros((beta.shape[0], LANES))
    for block in range(used.shape[0]):
        first = LANES * block
        width = min(LANES, replicas - first)
        up[:] = ZERO
        up[sites] = ALL
        scaled[:] = 0
        scaled[:, :width] = beta[:, first : first + width]
        for lane in range(width):
            row, bit = spins[first + lane], np.uint64(lane % 64)
            for i in range(sites):
                up[i, lane // 64] |= np.uint64(row[i] > 0) << bit
        flip_block(up, used[block], scaled, clusters, sample, address, first, when, key, kind)
        for lane in range(width):
            row, bit = spins[first + lane], np.uint64(lane % 64)
            for i in range(sites):
                row[i] = np.int8(2) * np.int8((up[i, lane // 64] >> bit) & ONE) - np.int8(1)


class FortuinKasteleyn:
    """Base of the moves that flip Fortuin-Kasteleyn clusters; ``kind`` says which clusters."""

    name = ""
    kind = SWENDSEN_WANG
    fast_paths: ClassVar[Mapping[tuple[Packing, str], str]] = {}

    def __init_subclass__(cls) -> None:
        function = ("swendsen_wang", "wolff", "seeded")[cls.kind]
        cls.fast_paths = {
            (Packing.SITE, device): f"{__package__}.lattice.{device}:{function}" for device in ("cpu", "cuda")
        }

    def apply(self, batch: Batch) -> None:
        """Flip clusters of all replicas."""
        model, replicas = batch.model, batch.spins.shape[1]
        if is_site_packed(model):
            flip_batch(batch, self.kind)
            return
        clusters, key = model.once(clusters_of), rng.split_seed(batch.seed)
        used, when = lane_masks(replicas), np.uint64(KINDS * batch.time + self.kind)
        beta = batch.beta.reshape(*batch.beta.shape[:2], -1) * model.quantum
        for k, spins in enumerate(batch.spins):
            scaled = np.ascontiguousarray(beta[k].T)
            flip_unpacked(spins, used, scaled, clusters, k, batch.first_sample + k, when, key, self.kind)


class SwendsenWang(FortuinKasteleyn):
    """Swendsen-Wang moves: every Fortuin-Kasteleyn cluster flips with probability 1/2."""

    name = "swendsen-wang"


class Wolff(FortuinKasteleyn):
    """Wolff moves: of each replica the Fortuin-Kasteleyn cluster of a random site flips."""

    name = "wolff"
    kind = WOLFF


class SeededClusters(FortuinKasteleyn):
    """Moves that flip all Fortuin-Kasteleyn clusters that a random set of sites hits.

    The sites of a replica are drawn with probability 2^-k, with one random k of the replica from 1 to the bits of a
    site's number, so that few large clusters flip or many small ones.
    """

    name = "seeded-clusters"
    kind = SEEDED
