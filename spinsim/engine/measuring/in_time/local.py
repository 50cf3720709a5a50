"""Squares of the sums of spins along world lines, from which local susceptibilities follow, on the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, spins_up
from spinsim.engine.measuring.kept_spins import bits_of
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.protocols import Spins
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising

Integers = npt.NDArray[np.int64]


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
    """``LocalSquares`` that fetches configurations and adds them up on the host.

    Args:
        model: Of space and time.
        ladder: Where its replicas stand.
    """

    def __init__(self, model: Ising, ladder: Ladder) -> None:
        self._graph, self._replicas = model.graph, ladder.replicas
        self._sums = np.zeros(shape_of_sums(model, ladder), np.int64)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Add the configurations of a measurement."""
        for k, sums in enumerate(self._sums):
            found = world_line_sums(self._graph, bits_of(spins, k, self._replicas)) ** 2
            sums += found[holder[k]]

    def sums(self) -> Integers:
        """The sums so far."""
        return self._sums

    def set_sums(self, sums: Integers) -> None:
        """Go back to such sums."""
        self._sums[...] = sums
