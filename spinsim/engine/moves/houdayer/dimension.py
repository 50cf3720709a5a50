"""Dimension of a graph, from how its neighbourhoods grow.

Houdayer moves exchange clusters of the sites at which two copies differ. In two dimensions such clusters do not
percolate and have all sizes; in three they do not at low temperatures. On random graphs, of whatever degree, they are
either a giant cluster, whose exchange is as good as that of the copies, or trees that a few single flips turn as well.
What tells both kinds apart is the number of sites at distance r from a site: r^(d - 1) in d dimensions, but exponential
in r on a random graph, where the estimate below is large.

Source: Z. Zhu, A. Ochoa, H. Katzgraber, Phys. Rev. Lett. 115, 077201 (2015), for the moves beyond two dimensions.
"""

from __future__ import annotations

from math import inf, log2
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.machine.compiled import kernel

_SOURCES: Final = 8
_SEED: Final = 0  # the dimension belongs to the graph, not to a run
_SHARE: Final = 4  # neighbourhoods have at most a quarter of the sites, so that they do not meet themselves


def dimension(start: npt.NDArray[np.int64], neighbour: npt.NDArray[np.int32]) -> float:
    """Return 1 + log2 of how many times more sites lie at distance 2 r than at r, for the largest such neighbourhood.

    ``start``, (sites + 1,), and ``neighbour`` are the adjacency in compressed rows. Components of at most a quarter of
    all sites do not count, and the result is 0 where there are no others. It is infinite on dense graphs, where more
    than a quarter of the sites lie within distance 2.
    """
    sites = start.size - 1
    draws = rng.draw(_SEED, rng.Stream.PRE_RUN, group=np.arange(_SOURCES), half_sweep=2)
    shells = np.zeros(sites, np.int64)
    sources = 0
    for source in (draws[0] * np.uint64(sites)) >> np.uint64(32):
        distances = _distances(start, neighbour, int(source))
        if _SHARE * distances.size > sites:
            shells += np.bincount(distances, minlength=sites)
            sources += 1
    if not sources:
        return 0.0
    largest = int(np.searchsorted(np.cumsum(shells), sources * sites // _SHARE, "right")) - 1
    if largest < 2:
        return inf
    radius = largest // 2
    return 1 + log2(shells[2 * radius] / shells[radius])


@kernel
def _distances(start, neighbour, source):  # type: ignore[no-untyped-def]
    """Distances of all sites of the source's component, from the nearest to the farthest."""
    distance = np.full(start.size - 1, -1, np.int32)
    queue = np.empty(start.size - 1, np.int32)
    distance[source] = 0
    queue[0] = source
    first, size = 0, 1
    while first < size:
        site = queue[first]
        first += 1
        for e in range(start[site], start[site + 1]):
            other = neighbour[e]
            if distance[other] < 0:
                distance[other] = distance[site] + 1
                queue[size] = other
                size += 1
    return distance[queue[:size]]
