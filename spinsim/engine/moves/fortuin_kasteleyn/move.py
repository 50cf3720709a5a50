"""Swendsen-Wang, Wolff and seeded cluster moves of any model: definition, plain path and CPU path.

Sites that open bonds join (clusters.py) form clusters. A cluster with the ghost, which stands for fields, never flips.
The other clusters flip as follows:

    Swendsen-Wang   each with probability 1/2, by the coin of its leader
    Wolff           the one with a random site
    seeded          all that hold one of the sites drawn with probability 2^-k, k a random number of the replica from 1
                    to the bits of a site's number

Each move preserves the Boltzmann distribution: open bonds depend on the spins as in Edwards and Sokal, and flips depend
only on open bonds and on random numbers independent of the spins. The leader of a cluster is its first site, in an
order in which neighbours are far apart, so that parts of clusters find it in few steps. Leaves (``leaves_of``) come
last; on a bipartite lattice they are one sublattice. Clusters of several sites are found without them.

Random numbers use the stream ``FORTUIN_KASTELEYN``; the half-sweep field is 4 times the number of earlier applications
plus the number of the kind. The coin of a site is plane ``COIN``, group = site, bit b of word w for replica 32 w + b of
the block of 128. A replica draws its site and k from plane ``OWN``, group = replica. A site is a seed if its bit is set
in all planes ``SEEDS`` to ``SEEDS`` + k - 1, with group and bits as for coins.

Source: C. M. Fortuin, P. W. Kasteleyn, Physica 57, 536 (1972); R. H. Swendsen, J.-S. Wang, Phys. Rev. Lett. 58, 86
(1987); U. Wolff, Phys. Rev. Lett. 62, 361 (1989); R. G. Edwards, A. D. Sokal, Phys. Rev. D 38, 2009 (1988).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.choosing import choose_packing
from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed import Blocks
from spinsim.engine.layouts.unpacked import Chunks
from spinsim.engine.moves.fortuin_kasteleyn.clusters import (
    ALL,
    CLUSTERS,
    KINDS,
    ONE,
    SEEDED,
    SHIFT,
    SWENDSEN_WANG,
    WIDE,
    WOLFF,
    ZERO,
    Bonds,
    Rows,
    axes_of,
    bonds_of,
    flip_flooded,
    flip_labelled,
    open_bonds,
)
from spinsim.engine.moves.fortuin_kasteleyn.lattice import flip_batch
from spinsim.engine.moves.move import Batch, FastPath, Moment, most_halvings
from spinsim.machine.compiled import kernel, part
from spinsim.machine.memory import require
from spinsim.model.graph import colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count, lane_masks, pack, unpack

COIN: Final = 8
OWN: Final = 9
SEEDS: Final = 16
TOGETHER: Final = WIDE // 2  # blocks of 128 replicas whose clusters are found together
LEAST_LANES: Final = (2, 2, 20)  # least replicas per site of the longest side to flood in 1, 2, 3 dimensions
BOND_BYTES: Final = 200  # bytes per bond of lists and of words of open bonds
MOST_LEAF_BONDS: Final = 32  # most bonds of a leaf, including its bond to the ghost
SCATTER: Final = 2654435769  # 2^32 over the golden ratio, odd

Words = npt.NDArray[np.uint64]


class Clusters(NamedTuple):
    """Bonds, order of sites and labels, from which a model's clusters are found."""

    bonds: Bonds
    order: npt.NDArray[np.uint32]  # site of each rank, (sites,)
    leaves: int  # number of sites at its end that share no bonds; each leads alone or not at all
    rows: Rows | None  # rows of its lattice, if clusters can be flooded
    labels: npt.NDArray[np.int32]  # labels that each bond joins, (bonds, 2): 0 is the ghost, 1 + r the site of rank r


def leaves_of(model: Ising, bonds: Bonds) -> npt.NDArray[np.bool_]:
    """Sites without bonds to each other and with few bonds: from the most frequent colour, (sites,)."""
    colour = colouring(model.graph)
    few = np.bincount(bonds.ends.ravel(), minlength=model.sites)[: model.sites] <= MOST_LEAF_BONDS
    leaves: npt.NDArray[np.bool_] = few & (colour == np.argmax(np.bincount(colour)))
    return leaves


def clusters_of(model: Ising) -> Clusters:
    """Prepare the search for clusters; sites lead in the order of their number times an odd one, modulo 2^32."""
    require(BOND_BYTES * (model.bonds + model.sites), f"the clusters of {model.name}")
    bonds, lattice = bonds_of(model), model.lattice
    leaves = leaves_of(model, bonds)
    scattered = np.arange(leaves.size, dtype=np.uint32) * np.uint32(SCATTER)
    order = np.lexsort((scattered, leaves)).astype(np.uint32)
    rows = Rows.of(lattice, order) if lattice and axes_of(model) else None
    label = np.zeros(model.sites + 1, np.int32)
    label[order] = np.arange(1, model.sites + 1)
    return Clusters(bonds, order, int(np.count_nonzero(leaves)), rows, label[bonds.ends])


def is_flood_faster(rows: Rows, side: int, lanes: int, by_leader: bool) -> bool:
    """Return True if flooding ``lanes`` replicas is faster than labelling them one by one, as measured on a CPU.

    A flood takes as long for one replica as for 512, and longer on a larger lattice. Finding leaders takes a flood for
    each bit of a site's number.
    """
    return side * LEAST_LANES[min(rows.near.shape[1], 2)] <= lanes * (1 if by_leader else 8)


@part
def draw_bits(site, plane, word1, when, key):  # type: ignore[no-untyped-def]
    """Return one bit of a site for each of 128 replicas, in two words."""
    word3 = rng.counter_plane(when, CLUSTERS, np.uint64(plane))
    x0, x1, x2, x3 = rng.philox(np.uint64(site), word1, rng.low32(when), word3, key[0], key[1], rng.ROUNDS)
    return rng.low32(x0) | (x1 << SHIFT), rng.low32(x2) | (x3 << SHIFT)


@kernel
def choose_sites(kind, first, used, most, sample, when, key, chosen):  # type: ignore[no-untyped-def]
    """Set ``chosen`` (sites, 2) to the sites whose clusters flip; in Swendsen-Wang moves only leaders count.

    ``first`` is the number of the first of the 128 replicas, ``used`` (2,) marks existing replicas, ``most`` is the
    largest k of seeds, ``sample`` is a number in the whole run. ``when`` goes into the half-sweep field.
    """
    sites = np.uint64(chosen.shape[0])
    word1 = rng.counter_block(np.uint64(sample), np.uint64(first // LANES))
    if kind == SWENDSEN_WANG:
        for i in range(chosen.shape[0]):
            chosen[i, 0], chosen[i, 1] = draw_bits(i, COIN, word1, when, key)
        return
    chosen[:] = ZERO
    wants = np.zeros((most + 1, 2), np.uint64)  # replicas that need a plane of seeds
    own = rng.counter_plane(when, CLUSTERS, np.uint64(OWN))
    of_sample = rng.counter_block(np.uint64(sample), ZERO)
    for lane in range(LANES):
        half, bit = lane // 64, ONE << np.uint64(lane % 64)
        x0, x1, _, _ = rng.philox(np.uint64(first + lane), of_sample, rng.low32(when), own, key[0], key[1], rng.ROUNDS)
        if kind == WOLFF:
            chosen[np.int64((rng.low32(x0) * sites) >> SHIFT), half] |= bit & used[half]
        for plane in range(1 + np.int64((rng.low32(x1) * np.uint64(most)) >> SHIFT)):
            wants[plane, half] |= bit
    if kind == WOLFF:
        return
    for i in range(chosen.shape[0]):
        low, high, plane = used[0], used[1], 0
        while (low & wants[plane, 0]) | (high & wants[plane, 1]):
            drawn = draw_bits(i, SEEDS + plane, word1, when, key)
            low &= drawn[0] | ~wants[plane, 0]
            high &= drawn[1] | ~wants[plane, 1]
            plane += 1
        chosen[i, 0], chosen[i, 1] = low, high


class Flips:
    """Flips clusters of replica-packed words at a moment; ``first_sample`` is a number in the whole run."""

    def __init__(self, kind: int, model: Ising, replicas: int, first_sample: int) -> None:
        self._kind, self._clusters, self._quantum = kind, model.once(clusters_of), model.quantum
        self._used, self._first_sample, self._lattice = lane_masks(replicas), first_sample, model.lattice

    def at(
        self, moment: Moment, words: Words, beta: npt.NDArray[np.float64], first: int = 0
    ) -> Callable[[int, int], None]:
        """Return a function that flips clusters in a range of blocks, which are numbered through all samples.

        Args:
            words: Words of samples from ``first`` on, uint64 (samples, blocks, sites, 2), changed in place.
            beta: Inverse temperatures, (samples, blocks, 128, 1 or 2 terms).
        """
        blocks, sites = words.shape[1:3]
        (bonds, order, _, rows, labels), kind = self._clusters, self._kind
        when, key = np.uint64(KINDS * moment.time + kind), rng.split_seed(moment.seed)
        side = max(self._lattice.shape) if self._lattice else 0
        by_leader, most, scaled = kind == SWENDSEN_WANG, most_halvings(sites), beta * self._quantum

        def flip_together(begin: int, stop: int) -> None:
            up, chosen = np.zeros((sites + 1, WIDE), np.uint64), np.zeros((sites, WIDE), np.uint64)
            opened, used = np.zeros((len(bonds.number), WIDE), np.uint64), np.zeros(WIDE, np.uint64)
            up[sites] = ALL
            members = [divmod(k, blocks) for k in range(begin, stop)]
            for j, (k, block) in enumerate(members):
                mine, sample = slice(2 * j, 2 * j + 2), self._first_sample + first + k
                up[:sites, mine], used[mine] = words[k, block], self._used[block]
                word1 = rng.counter_block(np.uint64(sample), np.uint64(block))
                of_lanes = np.ascontiguousarray(scaled[k, block].T)
                open_bonds(up[:, mine], bonds, first + k, of_lanes, word1, when, key, opened[:, mine])
                choose_sites(kind, LANES * block, self._used[block], most, sample, when, key, chosen[:, mine])
            lanes = sum(int(word).bit_count() for word in used)
            if rows is not None and is_flood_faster(rows, side, lanes, by_leader):
                flip_flooded(up, opened, chosen, rows, by_leader)
            else:
                flip_labelled(up, used, opened, chosen, labels, order, by_leader)
            for j, (k, block) in enumerate(members):
                words[k, block] = up[:sites, 2 * j : 2 * j + 2] & self._used[block]

        def flip(begin: int, stop: int) -> None:
            for k in range(begin, stop, TOGETHER):
                flip_together(k, min(k + TOGETHER, stop))

        return flip


class FortuinKasteleyn:
    """Base of the moves that flip Fortuin-Kasteleyn clusters; ``kind`` says which clusters."""

    name = ""
    kind = SWENDSEN_WANG
    fast_paths: ClassVar[Mapping[tuple[Packing, str], str]] = {}

    def __init_subclass__(cls) -> None:
        function = ("swendsen_wang", "wolff", "seeded")[cls.kind]
        cls.fast_paths = {
            (layout, device): f"{__package__}.{module}:{function}"
            for layout in (Packing.REPLICA, Packing.ANISOTROPIC, Packing.UNPACKED)
            for device, module in (("cpu", "move"), ("cuda", "cuda"))
        } | {
            (Packing.SITE, device): f"{__package__}.{module}:{function}"
            for device, module in (("cpu", "lattice"), ("cuda", "lattice_cuda"))
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def apply(self, batch: Batch) -> None:
        """Flip clusters of all replicas."""
        samples, replicas, _ = batch.spins.shape
        if choose_packing(batch.model, replicas) is Packing.SITE:
            flip_batch(batch, self.kind)
            return
        words = pack(batch.spins.transpose(0, 2, 1))
        beta = np.zeros((samples, block_count(replicas) * LANES, *(batch.beta.shape[2:] or (1,))))
        beta[:, :replicas] = batch.beta.reshape(samples, replicas, -1)
        flips = Flips(self.kind, batch.model, replicas, batch.first_sample)
        moment = Moment(0.0, batch.time, batch.seed)
        flip = flips.at(moment, words, beta.reshape(samples, -1, LANES, beta.shape[-1]))
        flip(0, samples * words.shape[1])
        batch.spins[:] = unpack(words, replicas).transpose(0, 2, 1)


class SwendsenWang(FortuinKasteleyn):
    """Swendsen-Wang moves: every Fortuin-Kasteleyn cluster flips with probability 1/2."""

    name = "swendsen-wang"


class Wolff(FortuinKasteleyn):
    """Wolff moves: in each replica, the Fortuin-Kasteleyn cluster of a random site flips."""

    name = "wolff"
    kind = WOLFF


class SeededClusters(FortuinKasteleyn):
    """Moves that flip all Fortuin-Kasteleyn clusters that contain one of a random set of sites.

    The sites of a replica are drawn with probability 2^-k, where its random k is from 1 to the number of bits of a
    site's number, so that few large clusters flip or many small ones.
    """

    name = "seeded-clusters"
    kind = SEEDED


PASSES: Final = 64  # approximate cost of a move, in passes over all words


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath | None:
    """Make the move of a kind for an engine's spins in place; None for dense spins."""
    spins, blocks = parts.state, block_count(replicas)
    if not isinstance(spins, Blocks | Chunks):
        return None
    flips, work = Flips(kind, model, replicas, first_sample), PASSES * model.samples * model.sites * blocks

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        beta = of_lanes(moment.beta, holder, blocks)
        if isinstance(spins, Blocks):
            parts.threads.share_out(flips.at(moment, spins.state, beta), spins.count, work)
            return

        def task(begin: int, stop: int) -> None:
            these = slice(begin, stop)
            words = spins.words_of(these)
            before = words.copy()
            flips.at(moment, words, beta[these], begin)(0, (stop - begin) * blocks)
            spins.flip(words ^ before, these)

        parts.threads.share_out(task, model.samples, work)

    return move


def of_lanes(beta: npt.ArrayLike, holder: npt.NDArray[np.int64], blocks: int) -> npt.NDArray[np.float64]:
    """Inverse temperatures of the lanes of each block, (samples, blocks, 128, terms); 0 past the last replica.

    ``beta`` is as in ``Moment``, ``holder`` as in ``Batch``.
    """
    values = np.asarray(beta, np.float64).reshape(-1, *np.shape(beta)[1:2] or (1,))
    samples, terms = len(holder), values.shape[1]
    rows = np.broadcast_to(values, (*holder.shape, terms)).reshape(samples, -1, terms)
    by_replica = np.zeros((samples, blocks * LANES, terms))
    np.put_along_axis(by_replica, holder.reshape(samples, -1, 1), rows, axis=1)
    return by_replica.reshape(samples, blocks, LANES, terms)


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
