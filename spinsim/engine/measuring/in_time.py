"""Space and time on the host: lists of what is counted, products of neighbours, squares along world lines.

The product of the spins of a bond in space is an operator of even parity. It is counted as a spin is, in words with a
bit for each bond at each slice, bond by bond as world lines are: bond b at slice tau is item tau + slices b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import CHUNK, Items, Wanted, by_kind, compared, in_segments
from spinsim.engine.measuring.cpu_comparison import count_items, second_and_fourth_powers
from spinsim.engine.moves.exchange.ladder import Ladder, copy_pairs
from spinsim.engine.protocols import Spins, bits_of
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Bits, spins_up


def slices(graph: Graph) -> Items:
    """Returns the sites of a graph of space and time slice by slice; each slice is a segment."""
    sites = graph.world_lines().T
    return in_segments(np.ascontiguousarray(sites).reshape(-1, 1), sites.shape[1])


def pairs_in_time(lines: npt.NDArray[np.integer], times: Sequence[int]) -> Items:
    """Returns each item of ``lines`` (lines, slices) with that of its line at a later time, a segment for each time."""
    ends = [np.stack([lines, np.roll(lines, -time, axis=1)], axis=-1).reshape(-1, 2) for time in times]
    return in_segments(np.concatenate(ends).astype(np.int32), lines.size)


def lines_of_bonds(graph: Graph) -> npt.NDArray[np.int32]:
    """Returns the items that stand for bonds in space at each slice, (bonds, slices)."""
    slices = graph.slices
    return np.arange(len(graph.bonds_in_space()) * slices, dtype=np.int32).reshape(-1, slices)


def all_bonds_in_space(graph: Graph) -> Items:
    """Returns these items in segments without a meaning."""
    return in_segments(lines_of_bonds(graph).reshape(-1, 1), CHUNK)


def ends_of_bonds(graph: Graph) -> npt.NDArray[np.int32]:
    """Returns both ends of each of these items, (items, 2)."""
    lines = graph.world_lines()
    return np.stack([lines[end] for end in graph.bonds_in_space().T], axis=-1).reshape(-1, 2).astype(np.int32)


Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class CpuInTime:
    """Counts what models of space and time have more than others, from replica-packed words; of others nothing.

    Args:
        wanted: Times, and whether products of neighbours are correlated.
    """

    def __init__(self, graph: Graph, wanted: Wanted) -> None:
        self.slices = slices(graph) if graph.slices > 1 else None
        self.times, self.sites = wanted.times, graph.sites
        self.pairs = pairs_in_time(graph.world_lines(), wanted.times) if wanted.times else None
        self.even = wanted.even
        if wanted.even:
            self.ends, self.bonds = ends_of_bonds(graph), all_bonds_in_space(graph)
            self.pairs_of_bonds = pairs_in_time(lines_of_bonds(graph), wanted.times)


class InTimeCounts:
    """Counts of all samples."""

    def __init__(self, lists: CpuInTime, samples: int, ladder: Ladder) -> None:
        self._lists, self._copies = lists, ladder.copies
        self._shape = samples, len(copy_pairs(ladder.copies)), ladder.temperatures
        self._first, times = self._shape[1] * self._shape[2], len(lists.times)
        self._powers = np.zeros((samples, self._first + ladder.replicas, 2 if lists.slices else 0), np.int64)
        self._in_time = np.empty((samples, ladder.replicas, times), np.int64)
        self._even = np.empty((samples, ladder.replicas, times if lists.even else 0), np.int64)
        self._in_space = np.empty((samples, self._shape[1] if lists.even else 0, ladder.temperatures), np.int64)

    def count(self, k: int, words: Words, holder: Integers) -> None:
        """Count sample k, whose ``words`` (blocks, sites, 2) and replicas (copies, temperatures) are given."""
        lists, first = self._lists, self._first
        if not (lists.slices or lists.pairs):
            return
        one, other = compared(holder, self._copies, LANES * len(words))
        if lists.slices:
            differing = count_items(words, lists.slices, one, other)
            self._powers[k] = 0
            second_and_fourth_powers(differing, lists.slices.size, self._powers[k])
        if lists.pairs:
            self._in_time[k] = lists.sites - 2 * count_items(words, lists.pairs, one[first:], other[first:]).T
        if lists.even:
            products = np.ascontiguousarray(words[:, lists.ends[:, 0]] ^ words[:, lists.ends[:, 1]])
            differing = count_items(products, lists.bonds, one[:first], other[:first]).sum(axis=0)
            self._in_space[k] = len(lists.ends) - 2 * differing.reshape(self._shape[1:])
            in_time = count_items(products, lists.pairs_of_bonds, one[first:], other[first:])
            self._even[k] = len(lists.ends) - 2 * in_time.T

    def results(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """Return the last five fields of ``Correlations``, views of what is counted."""
        samples, _, temperatures = self._shape
        of_copies = samples, self._copies, temperatures, -1 if self._lists.times else 0
        in_time = self._in_time.reshape(of_copies)
        even = self._even.reshape(*of_copies[:3], -1 if self._lists.even else 0)
        return *by_kind(self._powers, self._shape), in_time, even, self._in_space


def shape_of_sums(model: Ising, ladder: Ladder) -> tuple[int, int, int, int]:
    """Returns (samples, copies, places, sites of space) of a model of space and time."""
    return model.samples, ladder.copies, ladder.temperatures, model.sites // model.graph.slices


def world_line_sums(graph: Graph, bits: Bits) -> Integers:
    """Returns the sum of spins over the slices of each site of space, (..., sites of space), of bits (..., bytes)."""
    slices, in_cell = graph.slices, graph.lattice.cell.sites if graph.lattice else 1
    outer = bits.shape[:-1]
    if in_cell == 1 and slices % 8 == 0:  # a site's slices are whole bytes
        up = spins_up(bits.reshape(*outer, -1, slices // 8))
    else:
        spins = np.unpackbits(bits, axis=-1, count=graph.sites, bitorder="little")
        up = spins.reshape(*outer, -1, slices, in_cell).sum(axis=-2, dtype=np.int64).reshape(*outer, -1)
    return np.asarray(2 * up - slices)


class HostSquares:
    """``LocalSquares`` that fetches configurations and adds them up on the host."""

    def __init__(self, model: Ising, ladder: Ladder) -> None:
        self._graph, self._replicas = model.graph, ladder.replicas
        self._sums = np.zeros(shape_of_sums(model, ladder), np.int64)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        for k, sums in enumerate(self._sums):
            squares = world_line_sums(self._graph, bits_of(spins, k, self._replicas)) ** 2
            sums += squares[holder[k]]

    def sums(self) -> Integers:
        return self._sums.copy()

    def set_sums(self, sums: Integers) -> None:
        self._sums[...] = sums
