"""Site percolation of a graph: the share of occupied sites at which their clusters begin to span it.

Houdayer moves exchange clusters of the sites at which two copies differ. While these do not percolate, clusters are
many and small and a move makes new states; beyond, one cluster holds nearly all of them, and exchanging it is as good
as exchanging the copies. The threshold, not the number of bonds, tells graphs apart: it is 0.59 on a square lattice and
0.31 on a cubic one, but 1 / c on a random graph of c bonds a site.

Source: M. Newman, R. Ziff, Phys. Rev. Lett. 85, 4104 (2000); Z. Zhu, A. Ochoa, H. Katzgraber, Phys. Rev. Lett. 115,
077201 (2015).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.machine.compiled import kernel

_ORDERS: Final = 8  # random orders of the sites, of which the mean is taken
_SEED: Final = 0  # the threshold belongs to the graph, not to a run


def threshold(start: npt.NDArray[np.int64], neighbour: npt.NDArray[np.int32]) -> float:
    """Return the share of occupied sites at which clusters but the largest have the greatest sum of squared sizes.

    Sites are occupied one after the other in random orders. ``start``, (sites + 1,), and ``neighbour`` are the
    adjacency in compressed rows.
    """
    sites = start.size - 1
    high, low, _, _ = rng.draw(
        _SEED, rng.Stream.PRE_RUN, group=np.arange(sites), sample=np.arange(_ORDERS)[:, None], half_sweep=2
    )
    orders = np.argsort((high << np.uint64(32)) | low, axis=1, kind="stable")
    return float(np.mean([_peak(start, neighbour, order) for order in orders])) / sites


@kernel
def _peak(start, neighbour, order):  # type: ignore[no-untyped-def]
    """Return how many sites are occupied where the sum of squared sizes but for the largest is at its peak.

    A site points to another of its cluster, its root holds minus the cluster's size; 0 is a site that is not occupied,
    so that sites are counted from 1.
    """
    parent = np.zeros(order.size + 1, np.int64)
    squares, largest, most, peak = 0, 0, 0, 0
    for occupied in range(order.size):
        site = order[occupied]
        root = site + 1
        parent[root] = -1
        squares += 1
        for e in range(start[site], start[site + 1]):
            other = neighbour[e] + 1
            if parent[other] == 0:
                continue
            while parent[other] > 0:
                if parent[parent[other]] > 0:
                    parent[other] = parent[parent[other]]
                other = parent[other]
            if other == root:
                continue
            squares += 2 * parent[other] * parent[root]
            if parent[other] < parent[root]:
                root, other = other, root
            parent[root] += parent[other]
            parent[other] = root
        largest = max(largest, -parent[root])
        if squares - largest * largest > most:
            most, peak = squares - largest * largest, occupied + 1
    return peak
