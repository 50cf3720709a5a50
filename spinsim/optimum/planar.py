"""Exact ground states of planar graphs, by matching of frustrated faces.

Without fields, a bond set is the unsatisfied bonds of some spins exactly if it crosses the border of each frustrated
face an odd number of times and that of each other face an even number of times. The lowest energy is therefore a
minimum-weight T-join of the dual graph, whose nodes are the faces, whose T are the frustrated ones and whose weights
are |J| (Bieche, Maynard, Rammal and Uhry, J. Phys. A 13, 2553 (1980)). Fields are bonds to one more spin, a ghost.

PyMatching finds T-joins by sparse blossom (Higgott and Gidney, Quantum 9, 1600 (2025)). Its weights are 32-bit
integers: whole numbers below 2^24 are exact, others are rounded. Larger weights are therefore scaled down here, and the
T-join T' found is proven for the exact ones by a second search, with weights rounded up on T' and down elsewhere. If
T' is still a minimum, w(T) - w(T') = w(T outside T') - w(T' outside T) >= 0 holds for every T-join T as well.
Otherwise the difference of the two scaled minima bounds how much better another one can be.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csc_matrix
from scipy.sparse.csgraph import connected_components

from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.optimum.pairs import Integers, Pairs, attainable_from, with_ghost

WEIGHT_BITS: Final = 24  # of whole numbers that PyMatching holds exactly as weights
_MOST_SEARCHES: Final = 8
_LONG: Final = 8  # bonds of a face; where all are shorter, blossoms take longer if one is the boundary
_SECONDS_A_BOND: Final = 3e-4  # of drawing by NetworkX
Flags = npt.NDArray[np.bool_]


_MOST_BONDS: Final = 6  # a site, twice as many as planar graphs have: parallel bonds may count twice


class PlanarState(NamedTuple):
    """The lowest state of a planar model, and the proven lower bound of all energies."""

    spins: npt.NDArray[np.int8]  # (sites,)
    energy: float
    bound: float  # equal to the energy, unless weights beyond 24 bits left a few quanta undecided

    @property
    def is_proven(self) -> bool:
        """True if no state has a lower energy."""
        return self.energy == self.bound


def planar_ground_state(model: Ising, seconds: float = inf) -> PlanarState | None:
    """Find the lowest state of a model of one sample, or None where its graph is not planar.

    With fields the graph has one more node, to which each site with a field is joined. Graphs that are no lattices are
    not tried if NetworkX is expected to take more than ``seconds`` to draw them: 3 s for 10,000 bonds.

    Raises:
        InputError: where PyMatching or NetworkX is not installed.
    """
    if model.bonds > _MOST_BONDS * model.sites:
        return None
    pairs = with_ghost(model)
    sides = _sides_of_bonds(pairs, model, seconds)
    if sides is None:
        return None
    faces, negative = int(sides.max(initial=-1)) + 1, pairs.couplings < 0
    unsatisfied, missing = smallest_join(sides, np.abs(pairs.couplings), with_odd_number(sides[negative], faces))
    spins = spins_of(pairs, negative ^ unsatisfied)
    spins = (spins * spins[-1])[: model.sites]
    energy = float(model.energy(spins[None])[0])
    expected = pairs.energy(unsatisfied)
    if energy != expected * model.quantum:
        raise AssertionError(f"the matching of {model.name} has energy {expected * model.quantum}, its spins {energy}")
    return PlanarState(spins, energy, attainable_from(pairs, expected - 2 * missing) * model.quantum)


def _sides_of_bonds(pairs: Pairs, model: Ising, seconds: float) -> Integers | None:
    """Return the faces on both sides of each bond, (bonds, 2), or None where the graph is not planar."""
    if not len(pairs.ends):
        return pairs.ends
    if len(pairs.ends) > max(3 * pairs.nodes - 6, 1):  # by Euler's formula
        return None
    matrix = _matrix(pairs.nodes, pairs.ends).astype(np.int64)
    both = (matrix + matrix.T).tocsr()
    triangles = (both @ both).multiply(both).sum() // 6
    if pairs.nodes > 3 and len(pairs.ends) > 2 * pairs.nodes - 4 + triangles:  # as other faces have four bonds or more
        return None
    angles = np.zeros(2 * len(pairs.ends))
    lattice = model.lattice
    if lattice is not None and lattice.dimension == 2 and pairs.nodes == model.sites:
        positions = lattice.site_positions()
        x, y = (positions[pairs.ends[:, 1]] - positions[pairs.ends[:, 0]]).T
        angles = np.stack([np.arctan2(y, x), np.arctan2(-y, -x)], axis=1).reshape(-1)
    sides = _faces(pairs, angles)  # of a drawing with straight bonds; forests and cycles can be drawn in any order
    if sides is None and len(pairs.ends) * _SECONDS_A_BOND <= seconds:
        ranks = _ranks_by_networkx(pairs)
        sides = None if ranks is None else _faces(pairs, ranks)
    return sides


def _faces(pairs: Pairs, order: npt.NDArray[Any]) -> Integers | None:
    """Return the faces of a drawing with this order of bonds around each node, or None where it is not planar.

    Half 2 b of bond b leaves its first end and half 2 b + 1 the second. The next half along a face is the one that
    follows the opposite half around its node.
    """
    halves = pairs.ends.reshape(-1)
    around = np.lexsort((order, halves))
    first = np.flatnonzero(np.diff(halves[around], prepend=-1))
    last = np.flatnonzero(np.diff(halves[around], append=-1))
    following = np.empty_like(around)
    following[around[:-1]] = around[1:]
    following[around[last]] = around[first]
    along = following[np.arange(len(halves)) ^ 1]
    ones = np.ones(len(halves), np.int8)
    count, face = connected_components(coo_array((ones, (np.arange(len(halves)), along)), shape=(len(halves),) * 2))
    parts, _ = connected_components(_matrix(pairs.nodes, pairs.ends))
    idle = pairs.nodes - len(np.unique(halves))
    if pairs.nodes - idle - len(pairs.ends) + count != 2 * (parts - idle):  # Euler's formula of each part
        return None
    return face.astype(np.int64).reshape(-1, 2)


def _matrix(nodes: int, ends: Integers) -> Any:
    return coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))


def _ranks_by_networkx(pairs: Pairs) -> Integers | None:
    """Return the rank of each half of a bond around its node in a planar drawing, or None where there is none."""
    try:
        import networkx as nx
    except ImportError as error:
        raise InputError("networkx is missing: install spinsim-ising[solve] for optima of planar graphs") from error
    graph = nx.Graph(pairs.ends.tolist())
    is_planar, drawing = nx.check_planarity(graph)
    if not is_planar:
        return None
    ranked = [(node, other) for node in drawing for other in drawing.neighbors_cw_order(node)]
    node, other = np.array(ranked, np.int64).T
    ranks = np.empty(len(ranked), np.int64)
    ranks[2 * pairs.between(node, other) + (node > other)] = np.arange(len(ranked))
    return ranks


def with_odd_number(sides: Integers, faces: int) -> Flags:
    """Return True for faces with an odd number of the bonds that have these sides."""
    return np.asarray(np.bincount(sides.reshape(-1), minlength=faces) % 2 == 1)


def smallest_join(sides: Integers, weights: Integers, odd: Flags) -> tuple[Flags, int]:
    """Return the bonds of a minimum T-join, and by how much at most another one could be smaller."""
    unit = max(int(np.gcd.reduce(weights)), 1) if _excess_bits(weights) else 1
    weights = weights // unit
    shift = _excess_bits(weights)
    join = _join(sides, weights >> shift, odd)
    missing = int(weights.sum()) if shift else 0
    for _ in range(_MOST_SEARCHES if shift else 0):
        shift = _excess_bits(weights[join])
        rounded = np.minimum(weights >> shift, 2**WEIGHT_BITS - 1)  # smaller weights elsewhere keep the proof
        rounded[join] = -(-weights[join] >> shift)
        other = _join(sides, rounded, odd)
        missing = min(missing, int(rounded[join].sum() - rounded[other].sum()) << shift)
        better = weights[other].sum() < weights[join].sum()
        if missing == 0 or not better:
            break
        missing -= min(missing, int(weights[join].sum() - weights[other].sum()))
        join = other
    return join, missing * unit


def _excess_bits(weights: Integers) -> int:
    return max(int(weights.max(initial=0)).bit_length() + 1 - WEIGHT_BITS, 0)  # rounding up may add one


def _join(sides: Integers, weights: Integers, odd: Flags) -> Flags:
    """Return the bonds of a minimum T-join for weights below 2^24."""
    try:
        from pymatching import Matching
    except ImportError as error:
        raise InputError("pymatching is missing: install spinsim-ising[solve] for optima of planar graphs") from error
    join = np.zeros(len(sides), bool)
    between = np.flatnonzero(sides[:, 0] != sides[:, 1])  # a bond with one face on both sides is satisfied
    if not odd.any():
        return join
    lengths = np.bincount(sides.reshape(-1), minlength=len(odd))
    # PyMatching looks for parallels among the bonds of the face with the lower number, so long faces come last
    name = np.empty(len(odd), np.int64)
    name[np.argsort(lengths, kind="stable")] = np.arange(len(odd))
    # a long face becomes PyMatching's boundary, whose parity follows from all others, as blossoms that grow over it
    # take long: bonds to it have one end
    ends, inner = np.sort(name[sides[between]], axis=1), len(odd) - int(lengths.max() > _LONG)
    has_two = ends[:, 1] < inner
    starts = np.concatenate([[0], np.cumsum(1 + has_two)])
    ends = ends.reshape(-1)[np.stack([np.ones_like(has_two), has_two], axis=1).reshape(-1)]
    matrix = csc_matrix((np.ones(ends.size, np.uint8), ends, starts), shape=(inner, len(between)))
    syndrome = np.zeros(len(odd), np.uint8)
    syndrome[name] = odd
    matching = Matching.from_check_matrix(matrix, weights=weights[between], merge_strategy="smallest-weight")
    join[between] = matching.decode(syndrome[:inner])
    return join


def spins_of(pairs: Pairs, opposite: Flags) -> npt.NDArray[np.int8]:
    """Return spins (nodes,) that differ exactly between the ends of the bonds that are ``opposite``.

    Each node is doubled, as +1 and -1, and joined to the fitting copies of its neighbours. The two copies of each part
    of the graph are then connected components.
    """
    n, (i, j) = pairs.nodes, pairs.ends.T
    ends = np.stack([np.tile(i, 2) + n * np.repeat([0, 1], len(i)), np.tile(j, 2)], axis=1)
    ends[:, 1] += n * np.concatenate([opposite, ~opposite])
    _, copy = connected_components(_matrix(2 * n, ends), directed=False)
    return np.where(copy[:n] < copy[n:], 1, -1).astype(np.int8)
