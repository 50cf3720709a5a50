"""Clusters of configurations, as functions for ``measure``: improved estimators, percolation, sizes.

``--measure spinsim.observables.clusters:wrapping`` makes a run measure the last of these, of Fortuin-Kasteleyn
clusters:

    improved_magnetization_squared    improved_correlation    largest_cluster    cluster_sizes    wrapping

Open bonds are drawn anew for each measurement, from the same stream as bonds of moves but with separate numbers
(engine/moves/fortuin_kasteleyn/clusters.py), so that measuring changes no trajectory. ``overlap_largest_cluster``,
``overlap_cluster_sizes`` and ``overlap_wrapping`` describe the clusters that Houdayer moves exchange: neighbours with
equal overlap of two copies. Each copy (or replica, axis 1) is paired with the next one and the last with the first.
Clusters of spins on a GPU are found there (clusters_cuda.py).
"""

from __future__ import annotations

from math import prod
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.moves.fortuin_kasteleyn.clusters import WIDE, bonds_of, open_bonds
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel, part
from spinsim.model.ising import Ising
from spinsim.observables.batch import Batch
from spinsim.observables.distances import by_distance, overlaps_of_copies
from spinsim.packing import LANES, pack

Array = npt.NDArray[Any]
MEASURED: Final = 3  # kind of open bonds for measurements, which no move uses
KINDS: Final = 4


def improved_magnetization_squared(batch: Batch) -> Array:
    """Mean of m^2 over all flips of the Fortuin-Kasteleyn clusters: (M_0^2 + sum over clusters of M_c^2) / N^2.

    M_c is the sum of the spins of a cluster, M_0 that of the cluster with the ghost of fields. The average equals that
    of m^2, with smaller errors at high temperatures. For a ferromagnet in zero field, N times the average is the
    susceptibility times the temperature (U. Wolff, Nucl. Phys. B 334, 581 (1990)).
    """
    return _of_fortuin_kasteleyn(batch)[0] / batch.model.sites**2


def improved_correlation(batch: Batch) -> Array:
    """Mean of ``distances.spin_correlation`` over all flips of the Fortuin-Kasteleyn clusters.

    Two sites of one cluster contribute the product of their spins, all other pairs 0. For a ferromagnet the result is
    the share of pairs within a cluster. At distances beyond the correlation length errors are far smaller (U. Wolff, as
    above). Shape and errors raised are those of ``spin_correlation``.
    """
    grid, xp = batch.grid, batch.xp
    labels = _of_fortuin_kasteleyn(batch, labels=True)[4]
    labelled = grid * (1 + xp.asarray(labels)).reshape(grid.shape)  # one array has the label and the spin

    def product(here: Any, other: Any) -> Any:
        return xp.sign(here) * xp.sign(other) * (abs(here) == abs(other))

    averages: Array = by_distance(batch, labelled, product)
    return averages


def largest_cluster(batch: Batch) -> Array:
    """Share of the sites in the largest Fortuin-Kasteleyn cluster."""
    return _of_fortuin_kasteleyn(batch)[1] / batch.model.sites


def cluster_sizes(batch: Batch) -> Array:
    """Numbers of Fortuin-Kasteleyn clusters of sizes 1, 2 to 3, 4 to 7, ..., int64 (..., bits of the largest size)."""
    return _of_fortuin_kasteleyn(batch)[2]


def wrapping(batch: Batch) -> Array:
    """1 where a Fortuin-Kasteleyn cluster wraps around the lattice along an axis, else 0, int64 (..., axes)."""
    return _of_fortuin_kasteleyn(batch, wraps=True)[3]


def overlap_largest_cluster(batch: Batch) -> Array:
    """Share of the sites in the largest cluster of equal overlap."""
    return _of_overlaps(batch)[1] / batch.model.sites


def overlap_cluster_sizes(batch: Batch) -> Array:
    """Numbers of clusters of equal overlap of sizes 1, 2 to 3, 4 to 7, ..., int64 (..., bits of the largest size)."""
    return _of_overlaps(batch)[2]


def overlap_wrapping(batch: Batch) -> Array:
    """1 where a cluster of equal overlap wraps around the lattice along an axis, else 0, int64 (..., axes)."""
    return _of_overlaps(batch, wraps=True)[3]


def _on_gpu(batch: Batch, steps: npt.NDArray[np.int8]) -> ModuleType | None:
    """The module that finds clusters on the GPU of the spins; None if the host finds them."""
    if batch.xp is np:
        return None
    from spinsim.observables import clusters_cuda

    count = prod(batch.spins.shape[1:-1])
    return clusters_cuda if clusters_cuda.serves(steps, batch.model.sites, count) else None


def _on_host(batch: Batch) -> npt.NDArray[np.int8]:
    spins = batch.spins
    return np.asarray(spins.get() if hasattr(spins, "get") else spins)


def _of_fortuin_kasteleyn(batch: Batch, wraps: bool = False, labels: bool = False) -> tuple[Array, ...]:
    """Values of ``describe`` for each configuration, with the axes of the batch without sites."""
    model, state = batch.model, batch.spins.shape[:-1]
    bonds, steps = model.once(bonds_of), _steps(model, wraps)
    counted = model.bonds if wraps else len(bonds.number)  # the ghost has no position
    steps, ends = steps[bonds.number[: len(steps)]], bonds.ends[:counted]
    beta = np.asarray(batch.beta, np.float64)
    by_term = beta[..., None] if beta.ndim < 2 else beta
    of_one = np.broadcast_to(by_term * model.quantum, (*state[1:], by_term.shape[-1]))
    of_one = of_one.reshape(-1, by_term.shape[-1])
    when = KINDS * batch.number + MEASURED
    if cuda := _on_gpu(batch, steps):
        found = cuda.of_fortuin_kasteleyn(batch, bonds, counted, of_one, steps, when, labels)
        return tuple(each.reshape(*state, *each.shape[2:]) for each in found)
    flat = _on_host(batch).reshape(state[0], -1, model.sites)
    words = pack(flat.transpose(0, 2, 1))
    words_of = (np.empty((rows, WIDE), np.uint64)[:, :2] for rows in (model.sites + 1, len(bonds.number)))
    up, opened = words_of  # same type as in moves, for which machine code exists
    described = _room(flat.shape[:2], model.sites, steps.shape[1], labels)
    key = rng.split_seed(batch.seed)
    up[model.sites] = ~np.uint64(0)
    for k, block in np.ndindex(words.shape[:2]):
        mine = slice(LANES * block, min(LANES * (block + 1), flat.shape[1]))
        scaled = np.zeros((of_one.shape[1], LANES))
        scaled[:, : mine.stop - mine.start] = of_one[mine].T
        up[:-1] = words[k, block]
        word1 = rng.counter_block(np.uint64(k), np.uint64(block))
        open_bonds(up, bonds, k, scaled, word1, np.uint64(when), key, opened)
        describe(opened[:counted], ends, steps, flat[k, mine], *(each[k, mine] for each in described))
    return tuple(each.reshape(*state, *each.shape[2:]) for each in described)


def _of_overlaps(batch: Batch, wraps: bool = False) -> tuple[Array, ...]:
    """Values of ``describe`` likewise for clusters of equal overlap, over bonds whose coupling is not 0."""
    model, state = batch.model, batch.spins.shape[:-1]
    ends, steps = model.graph.edges, _steps(model, wraps)
    if cuda := _on_gpu(batch, steps):
        q = overlaps_of_copies(batch.spins, batch.xp, "overlap clusters need").reshape(state[0], -1, model.sites)
        there = np.stack([model.integer_couplings(k) != 0 for k in range(len(model.couplings))])
        return tuple(each.reshape(*state, *each.shape[2:]) for each in cuda.of_overlaps(batch, q, there, steps))
    overlaps = overlaps_of_copies(_on_host(batch), np, "overlap clusters need").reshape(state[0], -1, model.sites)
    described = _room(overlaps.shape[:2], model.sites, steps.shape[1])
    for k, each in enumerate(overlaps):
        there = model.integer_couplings(k) != 0
        for first in range(0, len(each), LANES):
            some = each[first : first + LANES]
            joined = (some[:, ends[:, 0]] == some[:, ends[:, 1]]) & there
            opened = pack((2 * joined - 1).astype(np.int8).T[None])[0, 0]
            describe(opened, ends, steps, some, *(one[k, first : first + LANES] for one in described))
    return tuple(each.reshape(*state, *each.shape[2:]) for each in described)


def _room(shape: tuple[int, ...], sites: int, axes: int, labels: bool = False) -> tuple[Array, ...]:
    """Arrays that ``describe`` fills in: squares, largest, sizes, wrapped and, if wanted, labels."""
    sizes = np.zeros((*shape, sites.bit_length()), np.int64)
    of_sites = np.zeros((*shape, sites if labels else 0), np.int32)
    return np.zeros(shape), np.zeros(shape, np.int64), sizes, np.zeros((*shape, axes), np.int64), of_sites


def _steps(model: Ising, wraps: bool) -> npt.NDArray[np.int8]:
    """Cells from one end of each bond to the other, (bonds, axes); InputError where nothing can wrap."""
    lattice = model.lattice
    if not wraps:
        return np.zeros((model.bonds, 0), np.int8)
    if lattice is None or not lattice.periodic:
        raise InputError(f"clusters of {model.name} wrap around nothing: measure them on a periodic lattice")
    of_cell = np.array([bond.step for bond in lattice.cell.bonds], np.int8)
    return np.ascontiguousarray(of_cell[lattice.bond_numbers()])


@part
def settle(label, parent, moved, path):  # type: ignore[no-untyped-def]
    """Return the root of a label, and attach all labels on the way to it; ``path`` is scratch space."""
    count = 0
    while parent[label] != label:
        path[count] = label
        label = parent[label]
        count += 1
    for back in range(count - 1):  # the last one is attached to the root already
        below, above = path[count - 2 - back], path[count - 1 - back]
        for a in range(moved.shape[1]):
            moved[below, a] += moved[above, a]
        parent[below] = label
    return label


@kernel
def describe(opened, ends, steps, spins, squares, largest, sizes, wrapped, labels):  # type: ignore[no-untyped-def]
    """Add up the properties of the clusters of each configuration.

    Labels form trees; each label knows its displacement from its parent. A bond within a tree closes a loop around the
    lattice if its ends are not apart by its step (J. Machta et al., Phys. Rev. E 54, 1332 (1996)).

    Args:
        opened: Open bonds, a bit for each configuration, uint64 (bonds, 2).
        ends: Sites that each bond joins, (bonds, 2); the ghost has the number of sites.
        steps: Displacement along each bond, (bonds, axes), where there is no ghost; else without axes.
        spins: Spins of the configurations, int8 (configurations, sites).
        squares: Sums of squares of the sums of spins, (configurations,).
        largest: Sites of the largest cluster, likewise.
        sizes: Clusters by the bits of their size, (configurations, bits).
        wrapped: 1 for axes along which a cluster wraps, (configurations, axes).
        labels: Set to one site of each site's cluster, the same for all its sites, (configurations, sites), or empty.
    """
    sites, axes = spins.shape[1], steps.shape[1]
    parent, moved = np.empty(sites + 1, np.int64), np.empty((sites + 1, axes), np.int64)
    members, total = np.empty(sites + 1, np.int64), np.empty(sites + 1, np.int64)
    path = np.empty(sites + 1, np.int64)
    for c in range(spins.shape[0]):
        half, bit = c // 64, np.uint64(c % 64)
        for i in range(sites + 1):
            parent[i], members[i], total[i] = i, 0, 0
            for a in range(axes):
                moved[i, a] = 0
        for e in range(opened.shape[0]):
            if (opened[e, half] >> bit) & np.uint64(1):
                one, other = np.int64(ends[e, 0]), np.int64(ends[e, 1])
                root, further = settle(one, parent, moved, path), settle(other, parent, moved, path)
                for a in range(axes):
                    apart = moved[one, a] + np.int64(steps[e, a]) - moved[other, a]
                    if root != further:
                        moved[further, a] = apart
                    elif apart != 0:
                        wrapped[c, a] = 1
                parent[further] = root
        for i in range(sites + 1):
            settle(i, parent, moved, path)
        for i in range(labels.shape[1]):
            labels[c, i] = parent[i]
        for i in range(sites):
            members[parent[i]] += 1
            total[parent[i]] += spins[c, i]
        for i in range(sites + 1):
            if members[i] > 0:
                squares[c] += np.float64(total[i]) ** 2
                largest[c] = max(largest[c], members[i])
                bits = 0
                while members[i] >> (bits + 1):
                    bits += 1
                sizes[c, bits] += 1
