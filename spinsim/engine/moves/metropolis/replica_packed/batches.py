"""Batches of sites of one colour and equal shape, the order in which replica-packed kernels visit sites.

Sites of one colour share no bond, so their order is free. This order groups sites by the parity of their degree, so
that one batch needs one table. It pads the neighbours of a batch to equal number with phantom bonds from a site to
itself. If degrees differ much, sites of similar degree are grouped in batches of least cost (``Costs``). If the energy
has two terms, the parities of a site's numbers of bonds of both terms are its kind, and each kind has a table.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.metropolis.classes import Classes
from spinsim.machine.compiled import kernel
from spinsim.model.graph import MOST_TERMS, Graph, adjacency, adjacency_by_term


class Costs(NamedTuple):
    """Cost of a batch of n sites of up to z bonds, in any unit: ``batch`` + ceil(n / width) (``site`` + ``bond`` z)."""

    width: int  # sites updated in the time of one
    batch: int  # cost of every batch
    site: int  # cost of ``width`` sites, without their bonds
    bond: int  # cost of one bond of each of these sites
    doubling: bool = False  # True if n is rounded up to a power of two, as for threads of a warp that share bonds


class Batches(NamedTuple):
    """Batch b holds n sites ``order[first[b]:first[b + 1]]``, each with ``slots[b]`` bonds.

    The neighbour in slot k of its q-th site is ``neighbour[offset[b] + k * n + q]``. ``signs[sample]``, in the same
    order, is 1 if equal spins leave the bond unsatisfied: for negative couplings and unsatisfied phantom bonds. The
    first ``of_term_0[b]`` slots have bonds of term 0, the others bonds of term 1. Colour c has batches
    ``colour_start[c]:colour_start[c + 1]``. ``parity[b]`` selects the table: the parity of the degree or, with two
    terms, the kind of sites. ``base[b]`` counts unsatisfied phantom bonds without slots. ``most[b]`` is the largest
    number of bonds and units of field of a site.
    """

    colour_start: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    of_term_0: npt.NDArray[np.int64]
    parity: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    most: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint32]
    neighbour: npt.NDArray[np.uint32]
    signs: npt.NDArray[np.uint8]


@kernel
def _fill_lattice(first, offset, order, shape, neighbour, bond):  # type: ignore[no-untyped-def]
    """Do ``_fill`` for a lattice with all its bonds, whose neighbours need no list."""
    dimension = shape.size
    for b in range(offset.size):
        n = first[b + 1] - first[b]
        for q in range(n):
            i = np.int64(order[first[b] + q])
            rest, stride = i, 1
            for axis in range(dimension):
                side = shape[axis]
                x = rest % side
                rest //= side
                after = i + stride if x + 1 < side else i - stride * (side - 1)
                before = i - stride if x > 0 else i + stride * (side - 1)
                at = offset[b] + 2 * axis * n + q
                neighbour[at] = after
                neighbour[at + n] = before
                bond[at] = dimension * i + axis
                bond[at + n] = dimension * before + axis
                stride *= side


@kernel
def _sort_sites(degree, parity, colour, width, place, order):  # type: ignore[no-untyped-def]
    """Sort sites by (colour, parity, degree below ``width``) by counting; then ``place[key]`` is the end of a key."""
    place[:] = 0
    for i in range(colour.size):
        place[(2 * np.int64(colour[i]) + parity[i]) * width + degree[i]] += 1
    before = 0
    for key in range(place.size):
        before, place[key] = before + place[key], before
    for i in range(colour.size):
        key = (2 * np.int64(colour[i]) + parity[i]) * width + degree[i]
        order[place[key]] = i
        place[key] += 1


@kernel
def _fill(first, slots, offset, order, start, stop, near, near_bond, turned, neighbour, bond):  # type: ignore[no-untyped-def]
    """Fill slots from ``offset`` on with neighbours ``near[start[i]:stop[i]]`` of every site i and their bond numbers.

    A phantom bond has the number -1, or -2 if it is unsatisfied. If ``turned``, every second one is unsatisfied, else
    none.
    """
    for b in range(slots.size):
        n = first[b + 1] - first[b]
        for q in range(n):
            i = order[first[b] + q]
            degree = stop[i] - start[i]
            for k in range(slots[b]):
                at = offset[b] + k * n + q
                if k < degree:
                    neighbour[at] = near[start[i] + k]
                    bond[at] = near_bond[start[i] + k]
                else:
                    neighbour[at] = i
                    bond[at] = -1 - (k - degree) % 2 * turned


def _signs(negative: npt.NDArray[np.bool_], bond: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    """Return the signs of slots, (samples, slots), from their bond numbers."""
    phantom = np.flatnonzero(bond < 0)
    if negative.shape[1]:
        signs = negative.take(bond, axis=1, mode="wrap").view(np.uint8)
    else:
        signs = np.empty((len(negative), bond.size), np.uint8)
    signs[:, phantom] = bond[phantom] == -2
    return signs


@kernel
def _cut(degree, largest, costs):  # type: ignore[no-untyped-def]
    """Find where batches of least total cost begin, for sites of ascending degree and at most ``largest`` per batch."""
    least, before = np.zeros(degree.size + 1, np.int64), np.zeros(degree.size + 1, np.int64)
    units = np.empty(min(degree.size, largest), np.int64)  # units of batches of 1, 2, ... sites
    counted = 1
    for k in range(units.size):
        if costs.doubling and counted <= k:
            counted *= 2
        units[k] = (max(k + 1, counted) + costs.width - 1) // costs.width
    for stop in range(1, degree.size + 1):
        begin = max(0, stop - largest)
        cost = least[begin:stop][::-1] + units[: stop - begin] * (costs.site + costs.bond * degree[stop - 1])
        best = np.argmin(cost)
        least[stop], before[stop] = cost[best] + costs.batch, stop - 1 - best
    begins = np.zeros(degree.size, np.bool_)
    stop = degree.size
    while stop > 0:
        stop = before[stop]
        begins[stop] = True
    return np.flatnonzero(begins)


def build_batches(
    graph: Graph, colour: npt.NDArray[np.int32], classes: Classes, negative: npt.NDArray[np.bool_], largest: int,
    costs: Costs | None = None, mixed: bool = False, units: npt.NDArray[np.int64] | None = None,
) -> Batches:  # fmt: skip
    """Build batches of every colour, with at most ``largest`` sites each.

    Args:
        negative: True where a coupling is below 0, (samples, bonds).
        costs: Costs of batches, to group sites of similar degree; else None.
        mixed: True to mix sites of even and odd degree, with parity 0, as their kernel finds the parity itself.
        units: Bonds of each site plus units of its field, (sites,), if fields count as bonds. Phantom bonds are then
            satisfied, and ``base`` is unused.
    """
    degree = graph.degrees()
    counted = degree if units is None else units
    width = int(degree.max()) + 1
    order = np.empty(colour.size, np.uint32)
    ends = np.empty(2 * (int(colour.max()) + 1) * width, np.int64)
    of_sites = np.zeros(colour.size, np.uint8) if mixed else (counted & 1).astype(np.uint8)
    _sort_sites.with_steps(2 * graph.sites, degree, of_sites, colour, width, ends, order)
    bounds = np.concatenate([[0], ends[width - 1 :: width]])  # bounds of the sites of one colour and parity
    if costs is None:
        begins = _cut_evenly(bounds, largest)
    else:
        in_order = degree[order].astype(np.int64)
        runs = [in_order[a:b] for a, b in itertools.pairwise(bounds)]
        begins = [a + _cut.with_steps(8 * run.size, run, largest, costs) for a, run in zip(bounds, runs, strict=False)]
    segment, first = _joined(begins, colour.size)
    parity = segment & 1
    slots = degree[order[first[1:] - 1]].astype(np.int64)
    if classes.count_bits == 3:  # the counters of cpu_sweep.py have three sizes
        slots = np.where(parity == 1, 7, np.where(slots <= 4, 4, 6))
    base = (2**classes.count_bits - 2 + parity - slots) // 2
    length = slots * np.diff(first)
    offset = np.cumsum(length) - length
    neighbour = np.empty(int(length.sum()), np.uint32)
    bond = np.empty(neighbour.size, np.intp)
    lattice = graph.regular_lattice
    if lattice and lattice.joins_layers and lattice.dimension > 1:  # a chain has phantom bonds
        _fill_lattice(first, offset, order, np.array(lattice.shape), neighbour, bond)
    else:
        start, *near = adjacency(graph)
        turned = units is None
        _fill.with_steps(bond.size, first, slots, offset, order, start[:-1], start[1:], *near, turned, neighbour, bond)
    colour_start = np.searchsorted(segment, np.arange(0, len(begins) + 1, 2))
    most = np.maximum.reduceat(counted[order], first[:-1]).astype(np.int64)
    signs = _signs(negative, bond)
    return Batches(colour_start, first, slots, slots, parity, base, most, offset, order, neighbour, signs)


def _cut_evenly(bounds: npt.NDArray[np.int64], largest: int) -> list[npt.NDArray[np.int64]]:
    """Return where batches of ``largest`` sites begin in each run of sites between ``bounds``."""
    return [np.arange(a, b, largest) for a, b in itertools.pairwise(bounds)]


def _joined(begins: list[npt.NDArray[np.int64]], sites: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the run of sites of each batch, and ``Batches.first``."""
    run = np.repeat(np.arange(len(begins)), [len(each) for each in begins])
    return run, np.append(np.concatenate(begins), sites)


def kinds_of(degrees: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the kinds of sites as bonds of each term, (kinds, 2), and the kind of each site, from degrees (sites, 2).

    Sites of one kind have equal parities of both degrees. The kind has the largest degrees among its sites.
    """
    _, kind = np.unique(degrees % 2 @ [1, 2], return_inverse=True)
    kinds = np.zeros((int(kind.max()) + 1, MOST_TERMS), np.int64)
    np.maximum.at(kinds, kind, degrees)
    return kinds, kind


def build_batches_of_terms(
    graph: Graph, terms: npt.NDArray[np.uint8], colour: npt.NDArray[np.int32], negative: npt.NDArray[np.bool_],
    largest: int,
) -> tuple[Batches, npt.NDArray[np.int64]]:  # fmt: skip
    """Build batches of every colour, with at most ``largest`` sites each, and the kinds of sites, (kinds, 2)."""
    near, middle = adjacency_by_term(graph, terms)
    start, stop = near.start[:-1], near.start[1:]
    kinds, kind = kinds_of(np.stack([middle - start, stop - middle], axis=-1))
    key = colour.astype(np.int64) * len(kinds) + kind
    order = np.argsort(key, kind="stable").astype(np.uint32)
    begins = _cut_evenly(np.searchsorted(key[order], np.arange((int(colour.max()) + 1) * len(kinds) + 1)), largest)
    run, first = _joined(begins, graph.sites)
    size, of_batch = np.diff(first), run % len(kinds)
    slots, of_term_0 = kinds[of_batch].sum(axis=1), kinds[of_batch, 0]
    offset = np.cumsum(slots * size) - slots * size
    neighbour = np.empty(int((slots * size).sum()), np.uint32)
    bond = np.empty(neighbour.size, np.intp)
    filled = near.neighbour, near.bond, True, neighbour, bond
    _fill.with_steps(bond.size, first, of_term_0, offset, order, start, middle, *filled)
    behind = offset + of_term_0 * size
    _fill.with_steps(bond.size, first, slots - of_term_0, behind, order, middle, stop, *filled)
    colour_start = np.searchsorted(run, np.arange(0, len(begins) + 1, len(kinds)))
    base, signs = np.zeros_like(slots), _signs(negative, bond)
    batches = Batches(colour_start, first, slots, of_term_0, of_batch, base, slots, offset, order, neighbour, signs)
    return batches, kinds
