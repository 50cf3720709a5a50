"""Graphs: any set of bonds between sites, their adjacency lists and the colouring that checkerboard updates need.

The energy may have two terms, such as bonds in space and bonds in time, or bonds along different axes. Each bond
belongs to term 0 or to term 1, all fields to term 0, and the weight of a configuration is
exp(- beta_0 E_0 - beta_1 E_1). With one inverse temperature for both terms it is that of an ordinary Ising model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import whole_array
from spinsim.inputs.texts import Described, count
from spinsim.machine.compiled import kernel
from spinsim.model.lattice import Lattice

Array = TypeVar("Array", bound=npt.NDArray[Any])
MOST_KEPT: Final = 2**20
"""Bonds and sites of all samples up to which a model keeps results that follow from it.

Runs of larger models take so long that computing results again costs nothing, and memory counts.
"""
MOST_LISTED: Final = 2**20
"""Bonds of a lattice up to which files list them, and hold lowest states with a byte a site.

For more bonds, files hold the lattice alone, and lowest states with a bit a site."""
HUGE: Final = 2**27  # bonds of a lattice above which results too hold lowest states with a bit a site
MOST_TERMS: Final = 2


@public
class Graph(Described):
    """Sites joined by bonds; two sites may share several.

    Args:
        sites: Number of sites.
        edges: End sites of each bond, integers (bonds, 2); by default the bonds of ``lattice``.
        lattice: The lattice on whose sites the graph lies, if any. If the graph has other bonds
            than the lattice, the lattice only gives positions and Fourier modes.
        slices: Slices of a graph of space and time, along axis 0 of its lattice; else 1.

    Attributes:
        edges: The bonds, ``int32``. A lattice lists them only when they are read; runs of large
            lattices do without.
        lattice: The lattice with exactly these bonds, in this order; None for any other bonds.
        embedding: The lattice on whose sites the graph lies, whatever its bonds are; else None.
        is_listed: True if files hold the list of bonds (lattices of at most ``MOST_LISTED`` bonds).
            Runs of other lattices hold lowest states with a bit a site.
        is_huge: True for lattices of more than ``HUGE`` bonds, whose results have lowest states as
            ``packing.States``.

    Raises:
        InputError: for bonds that are not integers, end at no site, or join a site to itself, and
            for a lattice of another number of sites.

    Examples:
        >>> ss.Ising(ss.Graph(3, [(0, 1), (1, 2), (2, 0)])).bonds
        3
    """

    def __init__(
        self, sites: int, edges: npt.ArrayLike | None = None, lattice: Lattice | None = None, slices: int = 1
    ) -> None:
        self.sites, self.lattice, self.embedding, self.slices = sites, lattice, lattice, slices
        if sites < 1:
            raise InputError(f"a graph of {sites} sites has nothing to simulate: give at least one site")
        if lattice is not None and lattice.sites != sites:
            raise InputError(f"lattice {lattice.label} has {lattice.sites} sites, not {sites}: give equal numbers")
        if slices < 1 or sites % slices or (lattice is not None and slices not in (1, lattice.shape[0])):
            raise InputError(f"{sites} sites do not fill {slices} slices: leave slices out, as ss.quantum makes them")
        if sites >= 2**31 and not (lattice and lattice.rows_can_be_packed):  # their update lists no bonds
            raise InputError(f"a graph of {sites} sites exceeds the limit of 2^31 - 1: split it in parts")
        if lattice is not None and edges is None:
            self.is_listed, self.is_huge = lattice.most_bonds <= MOST_LISTED, lattice.most_bonds > HUGE
        else:
            self.is_listed, self.is_huge = True, False
            self.edges = self._checked(np.asarray(() if edges is None else edges))

    @property
    def _summary(self) -> dict[str, str]:
        facts = {"size": f"{count(self.sites, 'site')}, {count(self.bonds, 'bond')}"}
        if self.embedding is not None:
            facts["lattice"] = f"{'' if self.lattice else 'on the sites of '}{self.embedding.label}"
        return facts | ({"slices": count(self.slices, "slice")} if self.slices > 1 else {})

    def _checked(self, edges: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        if edges.size == 0:
            edges = edges.reshape(0, 2)
        edges = whole_array(edges, "edge end")
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges have shape {edges.shape}: give an array of shape (bonds, 2)")
        if len(edges) >= 2**31:
            raise InputError(f"a graph of {len(edges)} bonds exceeds the limit of 2^31 - 1: split it in parts")
        if self.lattice is not None and not _are_bonds_of(self.lattice, edges):
            self.lattice = None
        if self.lattice is None and len(edges):
            low, high = int(edges.min()), int(edges.max())
            if low < 0 or high >= self.sites:
                bad = low if low < 0 else high
                raise InputError(f"edge end {bad} is not a site: use 0 to {self.sites - 1}")
            loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
            if len(loops):
                raise InputError(f"bond {loops[0]} joins site {edges[loops[0], 0]} to itself: leave it out")
        return private_copy(edges.astype(np.int32, copy=False))

    @classmethod
    def of_lattice(cls, lattice: Lattice, slices: int = 1) -> Graph:
        """The graph of a lattice's bonds, with a number of slices in time."""
        if not lattice.rows_can_be_packed:
            _check_bonds(lattice)
        return cls(lattice.sites, None, lattice, slices)

    def identity(self) -> Iterator[bytes | memoryview]:
        """Bytes that identify the graph, in pieces: its list of bonds, or else its lattice."""
        if self.lattice is not None and not self.is_listed:
            yield f"{self.lattice.label} {self.lattice.periodic} {self.slices}".encode()
            return
        pieces = iter([self.edges]) if self.lattice is None or "edges" in vars(self) else self.lattice.edges_in_pieces()
        yield from (np.ascontiguousarray(edges, "<i4").data for edges in pieces)
        if self.lattice is None and self.embedding is not None:
            yield f"on {self.embedding.label} {self.embedding.periodic}".encode()

    @cached_property
    def edges(self) -> npt.NDArray[np.int32]:
        """End sites of each bond, shape (bonds, 2)."""
        assert self.lattice is not None  # noqa: S101  (else set at once)
        _check_bonds(self.lattice)
        return self.lattice.edges()

    @property
    def bonds(self) -> int:
        """Number of bonds."""
        return self.lattice.bonds if self.lattice else len(self.edges)

    @property
    def label(self) -> str:
        """Short text for file names."""
        return self.lattice.label if self.lattice else f"graph-{self.sites}"

    @property
    def regular_lattice(self) -> Lattice | None:
        """The lattice, where every site has all its bonds."""
        return self.lattice if self.lattice and self.lattice.present_bonds() is None else None

    def world_lines(self) -> npt.NDArray[np.int32]:
        """Sites (x, tau) of each x in space, (sites of space, slices); one slice without time."""
        of_cell = self.lattice.cell.sites if self.lattice else 1
        cells = np.arange(self.sites, dtype=np.int32).reshape(-1, self.slices, of_cell)
        return np.ascontiguousarray(cells.swapaxes(1, 2)).reshape(-1, self.slices)

    def bonds_in_space(self) -> npt.NDArray[np.int32]:
        """Return the rows of ``world_lines`` that each bond in space joins, (bonds of a slice, 2)."""
        lines = self.world_lines()
        line, time = (np.empty(self.sites, np.int32) for _ in range(2))
        line[lines], time[lines] = np.indices(lines.shape)
        first, second = time[self.edges].T
        return np.ascontiguousarray(line[self.edges[(first == 0) & (second == 0)]])

    def degrees(self) -> npt.NDArray[np.int32]:
        """Bonds at each site, shape (sites,)."""
        lattice = self.regular_lattice
        return np.full(self.sites, lattice.cell.coordination, np.int32) if lattice else self._counted_degrees

    @cached_property
    def _counted_degrees(self) -> npt.NDArray[np.int32]:
        return frozen(np.bincount(self.edges.reshape(-1), minlength=self.sites).astype(np.int32))

    @cached_property
    def _colours(self) -> npt.NDArray[np.int32]:
        """Colours that follow from the bonds."""
        return _colours_along_bonds(self)

    @cached_property
    def largest_degree(self) -> int:
        """Bonds of the site that has most of them."""
        return int(self.degrees().max())


def _are_bonds_of(lattice: Lattice, edges: npt.NDArray[Any]) -> bool:
    """True if these are the bonds of a lattice, one by one."""
    if len(edges) != lattice.bonds:
        return False
    first = 0
    for piece in lattice.edges_in_pieces():
        if not np.array_equal(edges[first : first + len(piece)], piece):
            return False
        first += len(piece)
    return True


def private_copy(array: Array) -> Array:
    """Copy a small array, so that later changes by its giver do not affect results that are kept.

    A read-only array is copied as well, as it may be a view of a writable one. A row that repeats
    one number is not written out, as nothing would be gained.
    """
    if array.size > 2 * MOST_KEPT:  # a bond has two ends
        return array
    if array.ndim and array.strides[-1] == 0:
        return np.broadcast_to(array[..., :1].copy(), array.shape)  # type: ignore[return-value]
    return array.copy()


def frozen(array: Array) -> Array:
    """An array that nobody changes later; a small array becomes a read-only copy."""
    mine = private_copy(array)
    if mine is not array:
        mine.flags.writeable = False
    return mine


def _check_bonds(lattice: Lattice) -> None:
    if lattice.most_bonds > 2**31:
        raise InputError(f"{lattice.sites} sites with their bonds exceed the limit of 2^31: choose a smaller lattice")


class Adjacency(NamedTuple):
    """Neighbours in compressed rows: of site i at ``start[i]:start[i + 1]``, in the order of bonds."""

    start: npt.NDArray[np.int64]
    neighbour: npt.NDArray[np.int32]
    bond: npt.NDArray[np.int32]


@kernel
def _fill_rows(edges, cursor, neighbour, bond):  # type: ignore[no-untyped-def]
    for b in range(edges.shape[0]):
        i, j = edges[b, 0], edges[b, 1]
        neighbour[cursor[i]] = j
        bond[cursor[i]] = b
        cursor[i] += 1
        neighbour[cursor[j]] = i
        bond[cursor[j]] = b
        cursor[j] += 1


def adjacency(graph: Graph) -> Adjacency:
    start = np.zeros(graph.sites + 1, np.int64)
    np.cumsum(graph.degrees(), out=start[1:])
    neighbour = np.empty(2 * graph.bonds, np.int32)
    bond = np.empty(2 * graph.bonds, np.int32)
    _fill_rows.with_steps(graph.bonds, graph.edges, start[:-1].copy(), neighbour, bond)
    return Adjacency(start, neighbour, bond)


@kernel
def _fill_matrix(edges, place, values, matrix):  # type: ignore[no-untyped-def]
    for b in range(edges.shape[0]):
        i, j, value = place[edges[b, 0]], place[edges[b, 1]], values[b]
        matrix[i, j] += value
        matrix[j, i] += value


def add_to_matrix(graph: Graph, values: npt.NDArray[np.int64], place: npt.NDArray[np.int64], matrix: Array) -> None:
    """Add a value of each bond to both of its entries of a symmetric matrix, where site i has row ``place[i]``."""
    _fill_matrix.with_steps(graph.bonds, graph.edges, place, values, matrix)


@kernel
def _breadth_first_two_colours(start, neighbour, colour, queue):  # type: ignore[no-untyped-def]
    for root in range(colour.size):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                if colour[j] < 0:
                    colour[j] = 1 - colour[i]
                    queue[tail] = j
                    tail += 1
                elif colour[j] == colour[i]:
                    return False
    return True


@kernel
def _greedy(start, neighbour, order, colour, used):  # type: ignore[no-untyped-def]
    for i in order:
        for e in range(start[i], start[i + 1]):
            j = neighbour[e]
            if colour[j] >= 0:
                used[colour[j]] = i
        c = 0
        while used[c] == i:
            c += 1
        colour[i] = c


def colouring(graph: Graph) -> npt.NDArray[np.int32]:
    """Colours (sites,) from 0 up such that no bond joins two sites of one colour.

    The colours of its lattice where these continue across the boundary; else two colours where the
    graph is bipartite; else greedy colours, the sites of highest degree first (Welsh and Powell,
    Comput. J. 10, 85 (1967)).
    """
    regular = None if graph.lattice is None else graph.lattice.colours()
    return graph._colours if regular is None else regular


def _colours_along_bonds(graph: Graph) -> npt.NDArray[np.int32]:
    near = adjacency(graph)
    colour = np.full(graph.sites, -1, np.int32)
    steps, queue = graph.sites + 2 * graph.bonds, np.empty(graph.sites, np.int32)
    if not _breadth_first_two_colours.with_steps(steps, near.start, near.neighbour, colour, queue):
        colour[:] = -1
        degree = np.diff(near.start)
        order = np.argsort(-degree, kind="stable")
        used = np.full(int(degree.max()) + 2, -1, np.int64)
        _greedy.with_steps(steps, near.start, near.neighbour, order, colour, used)
    return colour


def check_terms(terms: npt.ArrayLike | None, bonds: int) -> npt.NDArray[np.uint8] | None:
    """The term of each bond, ``uint8`` (bonds,), or None where there is one term."""
    if terms is None:
        return None
    try:
        given: npt.NDArray[Any] = np.asarray(terms)
    except ValueError as error:  # lists of several lengths
        raise InputError("terms has the wrong type: give whole numbers, one for each bond") from error
    if given.shape != (bonds,) or given.dtype.kind not in "iub":
        raise InputError(
            f"terms have shape {given.shape} and type {given.dtype}: give a whole number for each of {bonds} bonds"
        )
    wrong = given[(given != 0) & (given != 1)]
    if wrong.size:
        raise InputError(f"terms hold {wrong[0]}: give 0 or 1 for each bond")
    return given.astype(np.uint8)


def adjacency_by_term(graph: Graph, terms: npt.NDArray[np.uint8]) -> tuple[Adjacency, npt.NDArray[np.int64]]:
    """Neighbours, those by bonds of term 0 first, and the index where each site's neighbours by term 1 begin."""
    near = adjacency(graph)
    site, others = np.repeat(np.arange(graph.sites), np.diff(near.start)), terms[near.bond]
    order = np.lexsort((others, site))
    first = np.bincount(site[others == 0], minlength=graph.sites)
    return Adjacency(near.start, near.neighbour[order], near.bond[order]), near.start[:-1] + first


def along_axes(lattice: Lattice, couplings: npt.ArrayLike, along: Sequence[float]) -> npt.NDArray[np.float64]:
    """Couplings, one or (samples, bonds), times the factor of each bond's axis; equal factors keep a single number."""
    if len(set(along)) == 1:
        return np.asarray(couplings) * np.float64(along[0])
    return np.asarray(np.asarray(couplings) * np.array(along, np.float64)[lattice.bond_numbers()])


def terms_along(lattice: Lattice, along: Sequence[float]) -> npt.NDArray[np.uint8] | None:
    """The term of each bond where axes have two strengths: 0 along axes as strong as the first one; else None."""
    sizes = np.abs(np.array(along, np.float64))
    if len(np.unique(sizes)) != 2:
        return None
    return np.asarray((sizes != sizes[0]).astype(np.uint8)[lattice.bond_numbers()])


def degrees_along(along: Sequence[float]) -> tuple[int, int] | None:
    """Bonds of each term at a site where axes have two strengths, else None."""
    sizes = [abs(factor) for factor in along]
    if len(set(sizes)) != 2:
        return None
    first = 2 * sizes.count(sizes[0])
    return first, 2 * len(sizes) - first
