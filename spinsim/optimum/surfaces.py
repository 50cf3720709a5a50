"""Low states of graphs that tile a torus, by exact optima of all spins but those on paths around it.

Unsatisfied bonds form a T-join of the frustrated faces (``planar.py``). On a torus a minimum T-join gives a lower bound
of all energies, and a lowest state if spins fit it. They may not fit, because walls can wind around the torus: the two
sides of such a wall then meet at the other end. With the spins of closed paths fixed, walls can no longer cross them.
The best T-join fits where the paths leave no way around, and often where they leave one. It is the exact optimum of all
other spins (as subgraphs of small width are optimised by F. Hamze and N. de Freitas, UAI 2004).

A search begins at random spins and fixes other paths each time, so that its energy never rises. The paths are those of
D. Eppstein, SODA 2003: a tree of shortest paths from a random root leaves, besides the bonds that a tree of the faces
crosses, two bonds, each of which closes a path around the torus. Lengths of bonds are random, hence all paths too.

Large surfaces are divided into cells of sites that are nearest to the same of several random sites, and the spins at
the borders of cells are fixed: matchings of cells take a time that grows as their number.

Where couplings are small whole numbers many T-joins are equal. Weights |J| 2^k plus small random numbers then choose
one at random.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from itertools import combinations
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

from spinsim import rng
from spinsim.model.ising import Ising
from spinsim.optimum.pairs import Integers, Pairs, attainable_from, with_ghost
from spinsim.optimum.planar import WEIGHT_BITS, Flags, PlanarState, smallest_join, spins_of, with_odd_number

Spins = npt.NDArray[np.int8]
Words = npt.NDArray[np.uint32]

MOST_SITES: Final = 300_000
AT_ONCE: Final = 25_000  # sites up to which a matching of all takes less than a second, mostly a fifth of one
_CELL: Final = 5_000  # sites of a cell, on average
_FREE: Final = 50_000  # sites of the cells that a matching optimises
_MOST_NEIGHBOURS: Final = 8
_STARTS: Final = 2  # of which one mostly meets the bound, if a state has that energy
_PATIENCE: Final = 16  # matchings without a lower energy, after which a search begins again
_SECONDS_A_SITE: Final = 4e-5  # of some matchings
_TIES: Final = 8  # random numbers below this one decide between equal T-joins
_LENGTHS, _CHOICES, _START = range(3)  # planes of random numbers


class Surface(NamedTuple):
    """A connected graph whose bonds are each between two faces of a closed surface, such as a torus."""

    pairs: Pairs
    sides: Integers  # faces on both sides of each bond, (bonds, 2)
    odd: Flags  # True for frustrated faces, (faces,)


def surface_of(model: Ising) -> Surface | None:
    """Return the faces of a graph each of whose bonds is in exactly two of its shortest cycles, of 3 or 4 bonds.

    None for other graphs, in fields, and beyond ``MOST_SITES``. That the faces form a surface is not checked: whatever
    they are, T-joins give bounds, and spins are checked.
    """
    if model.sites > MOST_SITES or model.bonds > _MOST_NEIGHBOURS / 2 * model.sites or np.any(model.fields):
        return None
    pairs = with_ghost(model)
    bonds = len(pairs.ends)
    degrees = np.bincount(pairs.ends.reshape(-1), minlength=pairs.nodes)
    if not 1 < degrees.min() <= degrees.max() <= _MOST_NEIGHBOURS:
        return None
    faces = _shortest_cycles(pairs, degrees)
    if faces is None or (np.bincount(faces.reshape(-1), minlength=bonds) != 2).any():
        return None
    parts, _ = connected_components(_matrix(pairs, np.ones(bonds)), directed=False)
    if parts > 1 or pairs.nodes - bonds + len(faces) > 0:  # a sphere is planar
        return None
    sides = np.argsort(faces.reshape(-1), kind="stable").reshape(bonds, 2) // faces.shape[1]
    return Surface(pairs, sides, with_odd_number(sides[pairs.couplings < 0], len(faces)))


def _shortest_cycles(pairs: Pairs, degrees: Integers) -> Integers | None:
    """Return the bonds of all cycles of three bonds, (cycles, 3), or else of four; None where there are neither."""
    halves = pairs.ends.reshape(-1)
    around = np.argsort(halves, kind="stable")  # the halves of bonds at one node follow each other
    start = np.cumsum(degrees) - degrees
    corners = []
    for a, b in combinations(range(int(degrees.max())), 2):
        at = start[degrees > b]
        corners.append(np.stack([around[at + a], around[at + b]], axis=1))
    corner = np.concatenate(corners)  # two bonds with a common node, by their halves there
    tips = np.sort(halves[corner ^ 1], axis=1)
    bonds, keys = corner // 2, tips[:, 0] * pairs.nodes + tips[:, 1]
    of_bonds = pairs.keys
    third = np.minimum(np.searchsorted(of_bonds, keys), len(of_bonds) - 1)
    closed = of_bonds[third] == keys
    if closed.any():
        return _distinct([np.column_stack([bonds, third])[closed]])
    order = np.argsort(keys, kind="stable")
    bonds, keys = bonds[order], keys[order]
    squares = []
    for step in range(1, len(keys)):
        same = np.flatnonzero(keys[step:] == keys[:-step])  # two corners with the same tips
        if not same.size:
            break
        squares.append(np.concatenate([bonds[same], bonds[same + step]], axis=1))
    return _distinct(squares) if squares else None


def _distinct(cycles: list[Integers]) -> Integers:
    return np.unique(np.sort(np.concatenate(cycles), axis=1), axis=0)


def _matrix(pairs: Pairs, lengths: npt.NDArray[np.float64]) -> Any:
    return coo_array((lengths, pairs.ends.T), shape=(pairs.nodes, pairs.nodes)).tocsr()


def closed_paths(surface: Surface, root: int, lengths: npt.NDArray[np.float64]) -> list[Integers]:
    """Return the sites of closed paths around a surface, two for a torus, which cut it open to a disc.

    They consist of shortest paths from the root, by lengths of the bonds.
    """
    pairs, sides, _ = surface
    lengths_of_paths, predecessors = dijkstra(
        _matrix(pairs, lengths), directed=False, indices=np.array([root]), return_predecessors=True
    )
    distance, before = lengths_of_paths[0], predecessors[0]
    in_tree = np.zeros(len(pairs.ends), bool)
    reached = np.flatnonzero(before >= 0)
    in_tree[pairs.between(reached, before[reached])] = True
    others = np.flatnonzero(~in_tree)
    around = distance[pairs.ends[others]].sum(axis=1) + lengths[others]
    others = others[np.argsort(-around, kind="stable")]  # the tree of the faces crosses bonds that close long paths
    faces = np.sort(sides[others], axis=1)
    _, first = np.unique(faces[:, 0] * len(surface.odd) + faces[:, 1], return_index=True)
    dual = coo_array((first + 1.0, faces[first].T), shape=(len(surface.odd),) * 2)
    crossed = minimum_spanning_tree(dual.tocsr()).data.astype(np.int64) - 1
    left = np.delete(others, crossed)
    return [_path(before, distance, *pairs.ends[bond].tolist()) for bond in left]


def cells(surface: Surface, roots: Integers, lengths: npt.NDArray[np.float64]) -> Integers:
    """Return which root is nearest to each site, by lengths of the bonds, (sites,)."""
    nearest = dijkstra(
        _matrix(surface.pairs, lengths), directed=False, indices=roots, return_predecessors=True, min_only=True
    )[2]
    return np.searchsorted(roots, nearest)


def _path(before: npt.NDArray[np.int32], distance: npt.NDArray[np.float64], one: int, other: int) -> Integers:
    """Return the sites of the shortest paths from two sites up to where they meet."""
    sites = [one, other]
    while one != other:
        if distance[one] < distance[other]:
            one, other = other, one
        one = int(before[one])
        sites.append(one)
    return np.unique(sites)


def surface_bound(surface: Surface) -> tuple[int, Flags]:
    """Return a proven lower bound of all energies in quanta, and the T-join that gives it."""
    pairs = surface.pairs
    join, missing = smallest_join(surface.sides, np.abs(pairs.couplings), surface.odd)
    return attainable_from(pairs, pairs.energy(join) - 2 * missing), join


def _unsatisfied(pairs: Pairs, spins: Spins) -> Flags:
    return np.asarray((spins[pairs.ends[:, 0]] != spins[pairs.ends[:, 1]]) != (pairs.couplings < 0))


def _fitting(surface: Surface, join: Flags) -> Spins | None:
    """Return spins whose unsatisfied bonds are these, or None where there are none."""
    pairs = surface.pairs
    spins = spins_of(pairs, (pairs.couplings < 0) ^ join)
    return spins if np.array_equal(_unsatisfied(pairs, spins), join) else None


def tiles_surface(model: Ising) -> bool:
    """True if a model can be searched by matching on a surface."""
    return not why_not_matched(model)


def why_not_matched(model: Ising) -> str:
    """Reason why a model cannot be searched by matching on a surface; empty if it can."""
    if find_spec("pymatching") is None:
        return "PyMatching is missing: install spinsim-ising[solve]"
    return "it tiles no surface" if model.once(surface_of) is None else ""


def surface_state(model: Ising, seconds: float = inf, seed: int = 1, time_limit: float = inf) -> PlanarState | None:
    """Find a low state of a model of one sample on a surface, with a proven bound of all energies.

    Where couplings are small whole numbers it is mostly proven to be the lowest. Otherwise T-joins are unique, and only
    a bound is found if the first one fits no spins. None for other graphs, beyond ``AT_ONCE``, and where matching is
    expected to take more than ``seconds``. No further matching begins after ``time_limit`` seconds.

    Raises:
        InputError: where PyMatching is not installed.
    """
    is_small = model.sites <= AT_ONCE and model.sites * _SECONDS_A_SITE <= seconds
    surface = model.once(surface_of) if is_small else None
    if surface is None:
        return None
    began = time.perf_counter()
    bound, join = surface_bound(surface)
    spins, energy = _fitting(surface, join), float(surface.pairs.energy(join))
    if spins is None:
        search = SurfaceSearch(surface, seed)
        search.advance()
        while search.has_ties and search.starts <= _STARTS and search.lowest > bound:
            if time.perf_counter() - began > time_limit:
                break
            search.advance()
        spins, energy = search.lowest_spins, search.lowest
    return PlanarState(spins, energy * model.quantum, bound * model.quantum)


class SurfaceSearch:
    """A search on a surface, one matching after the other.

    Attributes:
        has_ties: True where couplings are small whole numbers, so that many T-joins are equal.
        turns: Matchings after which all cells of a large surface were free; 1 for others.
        starts: Random states from which it has begun, without those that it left for a given one.
        hits: Starts that met the lowest energy.
        lowest: Lowest energy in quanta, infinite before the first matching.
        lowest_spins: Its state, +1 and -1, shape (sites,).
    """

    def __init__(self, surface: Surface, seed: int) -> None:
        self._surface, self._seed = surface, rng.check_seed(seed)
        pairs = surface.pairs
        weights = np.abs(pairs.couplings)
        self._weights = weights // max(int(np.gcd.reduce(weights)), 1)
        shift = (_TIES * len(weights)).bit_length()
        self.has_ties = int(self._weights.max()).bit_length() + shift < WEIGHT_BITS
        self._shift = shift if self.has_ties else 0
        self.turns = -(-pairs.nodes // _FREE) if pairs.nodes > AT_ONCE else 1  # after which all cells were free
        self._cells = -1, np.empty(0, np.int64)  # number of the division of a large surface, and cells of sites
        self._done = self._step = self._failures = 0  # matchings of all, of this start, since the energy fell
        self.starts = self.hits = 0
        self.lowest: float = inf
        self.lowest_spins = self._spins = np.ones(pairs.nodes, np.int8)
        self._energy, self._has_hit, self._is_helped = 0, False, False
        self._begin()

    def _draw(self, plane: int, count: int, done: int | None = None) -> Words:
        groups, number = np.arange(-(-count // 4)), self._done if done is None else done
        words = rng.draw(self._seed, rng.Stream.MATCHING, group=groups, half_sweep=number, plane=plane)
        return np.asarray(words.T.reshape(-1)[:count].astype(np.uint32))

    def _begin(self) -> None:
        pairs = self._surface.pairs
        self._spins = np.where(self._draw(_START, pairs.nodes) >> 31, 1, -1).astype(np.int8)
        self._energy = pairs.energy(_unsatisfied(pairs, self._spins))
        self._step = self._failures = 0
        self._has_hit, self._is_helped, self.starts = False, False, self.starts + 1

    def advance(self) -> None:
        """Do one matching."""
        if self._failures >= _PATIENCE * self.turns:
            self._begin()
        pairs, sides, odd = self._surface
        free = ~self._fixed()[pairs.ends].all(axis=1)
        join = _unsatisfied(pairs, self._spins) & ~free
        weights = self._weights[free]
        if self.has_ties:
            weights = (weights << self._shift) + self._draw(_CHOICES, len(weights)) % _TIES
        join[free], _ = smallest_join(sides[free], weights, odd ^ with_odd_number(sides[join], len(odd)))
        self._done, self._step, self._failures = self._done + 1, self._step + 1, self._failures + 1
        if (energy := pairs.energy(join)) <= self._energy and (spins := _fitting(self._surface, join)) is not None:
            self._failures = 0 if energy < self._energy else self._failures
            self._spins, self._energy = spins, energy
        if self._energy < self.lowest:
            self.lowest, self.lowest_spins, self.hits, self._has_hit = self._energy, self._spins, 0, False
        if self._energy == self.lowest and not (self._has_hit or self._is_helped):
            self.hits, self._has_hit = self.hits + 1, True

    def offer(self, spins: Spins) -> None:
        """Go on from this state of another method, +1 and -1, shape (sites,), if it is lower."""
        pairs = self._surface.pairs
        energy = pairs.energy(_unsatisfied(pairs, spins))
        if energy < self._energy:
            self.starts -= not (self._has_hit or self._is_helped)
            self._spins, self._energy, self._failures, self._is_helped = spins.copy(), energy, 0, True

    def _fixed(self) -> Flags:
        """Return True for sites whose spins are fixed: on paths, or outside of some cells and at their borders."""
        nodes = self._surface.pairs.nodes
        fixed = np.zeros(nodes, bool)
        if nodes <= AT_ONCE:
            for path in self._paths():
                fixed[path] = True
            return fixed
        number, turn = divmod(self._done, self.turns)
        if self._cells[0] != number:
            self._cells = number, self._divided(number * self.turns)
        cell, ends = self._cells[1], self._surface.pairs.ends
        fixed[ends[cell[ends[:, 0]] != cell[ends[:, 1]]]] = True  # both sites, else walls pass between them
        fixed[cell % self.turns != turn] = True
        return fixed

    def _divided(self, done: int) -> Integers:
        """Return the cell of each site, after a number of matchings."""
        nodes, bonds = self._surface.pairs.nodes, len(self._surface.sides)
        words = self._draw(_LENGTHS, nodes // _CELL + bonds, done)
        return cells(self._surface, np.unique(words[bonds:] % np.uint32(nodes)), 1 + words[:bonds] / 2**32)

    def _paths(self) -> list[Integers]:
        """Return the paths whose spins are fixed: in turns none where there are ties, all, one, another one."""
        turn = self._step % 4 if self.has_ties else 1 + self._step % 3
        if turn == 0:
            return []
        words = self._draw(_LENGTHS, 2 + len(self._surface.sides))
        root, lengths = int(words[0]) % self._surface.pairs.nodes, 1 + words[2:] / 2**32
        paths = closed_paths(self._surface, root, lengths)
        first = (int(words[1]) + turn) % len(paths)
        return paths if turn == 1 else paths[first : first + 1]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that changes, as arrays, for ``restore``."""
        numbers = [self._done, self._step, self._failures, self.starts, self.hits, self._energy, self._has_hit]
        numbers.append(self._is_helped)
        lowest = np.array([self.lowest])
        return {"numbers": np.array(numbers, np.int64), "lowest_energy": lowest, "spins": self._spins.copy(),
                "lowest_spins": self.lowest_spins.copy()}  # fmt: skip

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a ``state`` of a search on the same surface with the same seed."""
        numbers = state["numbers"].tolist()
        self._done, self._step, self._failures, self.starts, self.hits, self._energy = numbers[:6]
        self._has_hit, self._is_helped = map(bool, numbers[6:])
        self.lowest = float(state["lowest_energy"][0])
        self._spins, self.lowest_spins = state["spins"].copy(), state["lowest_spins"].copy()
