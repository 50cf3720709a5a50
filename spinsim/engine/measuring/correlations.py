"""Correlations of copies at equal temperatures: overlaps, link overlaps and modes of the smallest wave vectors.

All follow from the number of *items* at which two replicas differ. Items are sites for the overlap, and bonds (products
of their ends) for the link overlap. A magnetisation is the overlap with an all-0 reference. Items are counted in
segments of equal size. The segments of an axis are its layers; the modes of the axis follow from their sums.

Models of space and time (``model/trotter.py``) also have correlations in time, and sums of squares and fourth powers of
the overlap and magnetisation within each slice.
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

CHUNK: Final = 1024  # items of a segment if segments have no meaning


class Correlations(NamedTuple):
    """Correlations of copies at equal temperatures; pairs of copies are ordered as in ``copy_pairs``."""

    overlap: Integers  # sum over sites of s_a s_b, int64 (samples, pairs, temperatures)
    link_overlap: Integers  # sum over bonds of (s_i s_j)_a (s_i s_j)_b, same type and shape
    # |sum over sites of (s_a s_b) exp(i k x)|^2 along each axis, k = 2 pi / side, float64 (samples, pairs,
    # temperatures, axes); without a lattice there are no axes
    overlap_mode: Floats
    magnetization_mode: Floats  # modes of the spins, (samples, copies, temperatures, axes); no axes if not requested
    # sums over slices of the square and the fourth power of the overlap within a slice, int64 (samples, pairs,
    # temperatures, 2); without time there are no powers
    overlap_powers: Integers
    magnetization_powers: Integers  # the same sums for the magnetisation, (samples, copies, temperatures, 2)
    # sum over sites and slices of s_x,tau s_x,tau+t for each requested time t, int64 (samples, copies, temperatures,
    # times)
    in_time: Integers
    # sum over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), same type and shape; no times if not
    # requested
    even_in_time: Integers
    # link overlap over bonds in space only, (samples, pairs, temperatures); no pairs if products of neighbours were not
    # requested
    link_overlap_in_space: Integers


class Quantities(NamedTuple):
    """Choice of measurements of copies at equal temperatures, besides their overlaps."""

    full: bool = True  # include link overlaps, modes and, with time, correlations of slices
    times: tuple[int, ...] = ()  # times of the spin autocorrelation, in slices
    even: bool = False  # True for correlations in time and overlaps of products of neighbours in space
    overlaps: bool = True  # False: a CPU may skip overlaps if not ``full``; then there are no pairs
    magnetization_modes: bool = True  # True if a ``full`` measurement has modes of the spins besides modes of overlaps


WITHOUT_TIMES: Final = Quantities()  # everything but correlations in time, whose times a caller must choose
OVERLAPS_ONLY: Final = Quantities(full=False)


def overlaps_only(overlap: Integers, ladder: Ladder) -> Correlations:
    """Build correlations with overlaps (samples, pairs, temperatures) only."""
    samples, pairs, temperatures = overlap.shape
    no_links = np.empty((samples, 0, temperatures), np.int64)
    of_pairs, of_copies = ((samples, each, temperatures, 0) for each in (pairs, ladder.copies))
    no_sums, no_powers = np.empty(of_copies, np.int64), np.empty(of_pairs, np.int64)
    modes = np.empty(of_pairs), np.empty(of_copies)
    return Correlations(overlap, no_links, *modes, no_powers, no_sums, no_sums, no_sums, no_links)


class Items(NamedTuple):
    """Sites or bonds in the order of counting."""

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
    """Return the sites of a lattice layer by layer along an axis; each layer is a segment."""
    sites = lattice.layers(axis)
    return in_segments(sites.reshape(-1, 1), sites.shape[1])


def slices(graph: Graph) -> Items:
    """Return the sites of a graph of space and time slice by slice; each slice is a segment."""
    sites = graph.world_lines().T
    return in_segments(np.ascontiguousarray(sites).reshape(-1, 1), sites.shape[1])


def pairs_in_time(lines: npt.NDArray[np.integer], times: Sequence[int]) -> Items:
    """Pair each item of ``lines`` (lines, slices) with its line's item at each later time; one segment per time."""
    ends = [np.stack([lines, np.roll(lines, -time, axis=1)], axis=-1).reshape(-1, 2) for time in times]
    return in_segments(np.concatenate(ends).astype(np.int32), lines.size)


def lines_of_bonds(graph: Graph) -> npt.NDArray[np.int32]:
    """Return the items that represent bonds in space at each slice, (bonds, slices)."""
    slices = graph.slices
    return np.arange(len(graph.bonds_in_space()) * slices, dtype=np.int32).reshape(-1, slices)


def all_bonds_in_space(graph: Graph) -> Items:
    """Return the items of all bonds in space, in segments without a meaning."""
    return in_segments(lines_of_bonds(graph).reshape(-1, 1), CHUNK)


def ends_of_bonds(graph: Graph) -> npt.NDArray[np.int32]:
    """Return both ends of each bond in space at each slice, (items, 2)."""
    lines = graph.world_lines()
    return np.stack([lines[end] for end in graph.bonds_in_space().T], axis=-1).reshape(-1, 2).astype(np.int32)


def waves(lattice: Lattice | None) -> list[Floats]:
    """Smallest wave of each axis: cosine and sine at each of its layers, (2, layers); empty without a lattice."""
    phases = lattice.phases() if lattice else ()
    return [np.ascontiguousarray(wave(length)[:, where]) for where, length in phases]


def compared(
    holder: npt.NDArray[np.integer], copies: int, reference: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Replicas of a sample to compare: pairs of copies, then each replica of ``holder`` with the all-0 reference."""
    pairs = copy_pairs(copies)
    holders = holder.reshape(-1).astype(np.int64)
    one = np.concatenate([holder[pairs[:, 0]].reshape(-1), holders])
    other = np.concatenate([holder[pairs[:, 1]].reshape(-1), np.full_like(holders, reference)])
    return one.astype(np.int64), other.astype(np.int64)


def by_kind(values: Any, shape: tuple[int, int, int]) -> tuple[Any, Any]:
    """Split numbers (..., compared, n) into (..., pairs, temperatures, n) of pairs and (..., copies, temperatures, n).

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
    """Split modes (..., compared, axes) into modes of overlaps and of spins; no axes of spins if not requested."""
    of_overlaps, of_copies = by_kind(modes, shape)
    return of_overlaps, of_copies if of_spins else np.empty((*modes.shape[:-2], copies, shape[2], 0))
