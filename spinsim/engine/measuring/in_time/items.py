"""Lists of what is counted of models of space and time: slices, and pairs of the same place at two times.

The product of the spins of a bond in space is an operator of even parity. It is counted as a spin is, in words with a
bit for each bond at each slice, bond by bond as world lines are: bond b at slice tau is item tau + slices b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import CHUNK, Items, in_segments
from spinsim.model.graph import Graph


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
