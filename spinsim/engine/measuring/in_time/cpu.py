"""Products of neighbours in space on the CPU: their correlations in time, and what two copies have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.cpu_items import count_items
from spinsim.engine.measuring.in_time.items import all_bonds_in_space, ends_of_bonds, lines_of_bonds, pairs_in_time
from spinsim.model.graph import Graph

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class EvenCounts(NamedTuple):
    """Numbers of bonds in space at all slices.

    Attributes:
        differing: At which the products of two copies differ, (pairs,).
        turned: Of each time at which the product is another one that much later, (times, replicas).
        bonds: How many there are.
    """

    differing: Integers
    turned: Integers
    bonds: int


class CpuEven:
    """Counts products of neighbours in space, from replica-packed words.

    Args:
        graph: Space and time.
        times: Slices from one product to the other.
    """

    def __init__(self, graph: Graph, times: tuple[int, ...]) -> None:
        self._ends, self._all = ends_of_bonds(graph), all_bonds_in_space(graph)
        self._pairs = pairs_in_time(lines_of_bonds(graph), times)

    def count(self, words: Words, one: Integers, other: Integers, first: int) -> EvenCounts:
        """Returns the counts of ``words`` (blocks, sites, 2), of ``first`` pairs, then of replicas alone."""
        products = np.ascontiguousarray(words[:, self._ends[:, 0]] ^ words[:, self._ends[:, 1]])
        differing = count_items(products, self._all, one[:first], other[:first]).sum(axis=0)
        turned = count_items(products, self._pairs, one[first:], other[first:])
        return EvenCounts(differing, turned, len(self._ends))
