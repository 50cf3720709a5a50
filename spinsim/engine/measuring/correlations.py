"""Correlations of copies at equal temperatures: overlaps, link overlaps and the modes of the smallest wave vectors.

All are numbers of *items* at which two replicas differ: of sites for the overlap, of bonds, as the product of their
ends, for the link overlap. A magnetisation is the overlap with a reference whose bits are all 0. Items are counted in
segments of equal size; the segments of an axis are its layers, whose sums are all that a mode of that axis needs.

Models of space and time (``model/trotter.py``) have more: overlaps and magnetisations within each slice, whose squares
and fourth powers are added up, and correlations in time (``in_time/``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.exchange import Ladder, copy_pairs
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, wave

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CHUNK: Final = 1024  # items of a segment where segments mean nothing


class Correlations(NamedTuple):
    """Correlations of copies at equal temperatures; pairs of copies are those of ``copy_pairs``."""

    overlap: Integers  # sum over sites of s_a s_b, int64 (samples, pairs, temperatures)
    link_overlap: Integers  # sum over bonds of (s_i s_j)_a (s_i s_j)_b, likewise
    # |sum over sites of (s_a s_b) exp(i k x)|^2 along each axis, k = 2 pi / side, float64 (samples, pairs,
    # temperatures, axes); no axes without a lattice
    overlap_mode: Floats
    magnetization_mode: Floats  # of the spins, (samples, copies, temperatures, axes); no axes if not asked for
    # sums over slices of the second and the fourth power of the overlap within a slice, int64 (samples, pairs,
    # temperatures, 2); no powers where there is no time
    overlap_powers: Integers
    magnetization_powers: Integers  # the same of the magnetisation, (samples, copies, temperatures, 2)
    # sum over sites and slices of s_x,tau s_x,tau+t for each time t asked for, int64 (samples, copies, temperatures,
    # times)
    in_time: Integers
    # sum over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), likewise; no times where they were not
    # asked for
    even_in_time: Integers
    # the link overlap over bonds in space alone, (samples, pairs, temperatures); no pairs where products of neighbours
    # were not asked for
    link_overlap_in_space: Integers


class Quantities(NamedTuple):
    """Choice of what is measured of copies at equal temperatures beside their overlaps."""

    full: bool = True  # True if link overlaps and modes are, and in models of space and time what slices have in common
    times: tuple[int, ...] = ()  # at which times spins are correlated with themselves, in slices
    even: bool = False  # True if products of neighbours in space are too, and compared between copies
    overlaps: bool = True  # False where a CPU is to leave overlaps out, of what is not ``full``: then no pairs
    magnetization_modes: bool = True  # True if modes of the spins are among what is ``full``, beside those of overlaps


WITHOUT_TIMES: Final = Quantities()  # all but correlations in time, whose times a caller must choose
OVERLAPS_ONLY: Final = Quantities(full=False)


def overlaps_only(overlap: Integers, ladder: Ladder) -> Correlations:
    """Overlaps (samples, pairs, temperatures) with nothing else beside them."""
    samples, pairs, temperatures = overlap.shape
    no_links = np.empty((samples, 0, temperatures), np.int64)
    of_pairs, of_copies = ((samples, each, temperatures, 0) for each in (pairs, ladder.copies))
    no_sums, no_powers = np.empty(of_copies, np.int64), np.empty(of_pairs, np.int64)
    modes = np.empty(of_pairs), np.empty(of_copies)
    return Correlations(overlap, no_links, *modes, no_powers, no_sums, no_sums, no_sums, no_links)


class Items(NamedTuple):
    """Sites or bonds in the order in which they are counted."""

    ends: npt.NDArray[np.int32]  # sites (items, 1), or both ends of bonds (items, 2), int32
    size: int  # items of a segment; the last may have fewer
    segments: int


def in_segments(ends: npt.NDArray[np.int32], size: int) -> Items:
    return Items(ends, size, -(-len(ends) // size))


def all_sites(model: Ising) -> Items:
    return in_segments(np.arange(model.sites, dtype=np.int32)[:, None], CHUNK)


def all_bonds(model: Ising) -> Items:
    return in_segments(model.graph.edges, CHUNK)


def layers(lattice: Lattice, axis: int) -> Items:
    """The sites of a lattice layer by layer along an axis; each layer is a segment."""
    sites = lattice.layers(axis)
    return in_segments(sites.reshape(-1, 1), sites.shape[1])


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


def waves(lattice: Lattice | None) -> list[Floats]:
    """The smallest wave of each axis: cosines and sines at each of its layers, (2, layers); none without a lattice."""
    by_axis = []
    for where, length in lattice.phases() if lattice else ():
        by_axis.append(np.ascontiguousarray(wave(length)[:, where]))
    return by_axis


def compared(
    holder: npt.NDArray[np.integer], copies: int, reference: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Replicas of one sample that are compared: pairs of copies, then each of ``holder`` with the all-0 reference."""
    pairs = copy_pairs(copies)
    holders = holder.reshape(-1).astype(np.int64)
    one = np.concatenate([holder[pairs[:, 0]].reshape(-1), holders])
    other = np.concatenate([holder[pairs[:, 1]].reshape(-1), np.full_like(holders, reference)])
    return one.astype(np.int64), other.astype(np.int64)


def by_kind(values: Any, shape: tuple[int, int, int]) -> tuple[Any, Any]:
    """Numbers (..., compared, n) of pairs of copies, (..., pairs, temperatures, n), and of copies likewise.

    ``shape`` is (samples, pairs, temperatures).
    """
    _, pairs, temperatures = shape
    *before, all_compared, each = values.shape
    first = pairs * temperatures
    of_pairs, of_copies = values[..., :first, :], values[..., first:, :]
    copies = all_compared // temperatures - pairs
    return (
        of_pairs.reshape(*before, pairs, temperatures, each),
        of_copies.reshape(*before, copies, temperatures, each),
    )


def modes_by_kind(modes: Floats, shape: tuple[int, int, int], copies: int, of_spins: bool) -> tuple[Floats, Floats]:
    """Modes (..., compared, axes) of overlaps and of spins; these have no axes where they were not asked for."""
    of_overlaps, of_copies = by_kind(modes, shape)
    return of_overlaps, of_copies if of_spins else np.empty((*modes.shape[:-2], copies, shape[2], 0))
