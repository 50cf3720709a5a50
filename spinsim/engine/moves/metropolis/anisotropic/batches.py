"""Sites of one colour and kind in batches, with the neighbours of term 0 in front of those of term 1."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.graph import Graph, adjacency
from spinsim.model.terms import MOST_TERMS


class TermBatches(NamedTuple):
    """Batch b holds sites ``order[first[b]:first[b + 1]]``, n of them, of kind ``kind[b]``.

    They have ``slots[b, t]`` bonds of term t. Neighbours stand at ``neighbour[offset[b] + k * n + q]`` for slot k of
    the q-th site, the slots of term 0 first; ``signs[sample]`` holds likewise 1 where equal spins leave that bond
    unsatisfied: negative couplings and unsatisfied phantoms. Colour c has batches
    ``colour_start[c]:colour_start[c + 1]``.
    """

    colour_start: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint32]
    neighbour: npt.NDArray[np.uint32]
    signs: npt.NDArray[np.uint8]


def kinds_of(degrees: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Kinds of sites: bonds of each term, (kinds, 2), and the kind of each site.

    Args:
        degrees: Bonds of each site and term, (sites, 2). Sites are of one kind where their parities are equal; the
            largest degrees among them are the kind's.
    """
    parities = degrees % 2
    _, kind = np.unique(parities @ [1, 2], return_inverse=True)
    kinds = np.zeros((int(kind.max()) + 1, MOST_TERMS), np.int64)
    np.maximum.at(kinds, kind, degrees)
    return kinds, kind


def degrees_by_term(graph: Graph, terms: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Bonds of each site and term, (sites, 2)."""
    counts = [np.bincount(graph.edges[terms == term].reshape(-1), minlength=graph.sites) for term in range(MOST_TERMS)]
    return np.stack(counts, axis=-1)


def build_batches(
    graph: Graph,
    terms: npt.NDArray[np.uint8],
    colour: npt.NDArray[np.int32],
    negative: npt.NDArray[np.bool_],
    largest: int,
) -> tuple[TermBatches, npt.NDArray[np.int64]]:
    """Batches of every colour, of ``largest`` sites at most, and the kinds of sites, (kinds, 2).

    Args:
        graph: The bonds.
        terms: The term of each bond.
        colour: The colour of each site.
        negative: Which couplings are below 0, (1 or samples, bonds).
        largest: Sites of a batch.
    """
    kinds, kind = kinds_of(degrees_by_term(graph, terms))
    key = colour.astype(np.int64) * len(kinds) + kind
    order = np.argsort(key, kind="stable")
    bounds = np.searchsorted(key[order], np.arange((int(colour.max()) + 1) * len(kinds) + 1))
    chunks = [np.arange(a, b, largest) for a, b in itertools.pairwise(bounds)]
    segment = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
    first = np.append(np.concatenate(chunks), graph.sites)
    size, of_batch = np.diff(first), segment % len(kinds)
    slots = kinds[of_batch]
    length = slots.sum(axis=1) * size
    offset = np.cumsum(length) - length
    neighbour, signs = _neighbours(graph, terms, kinds[kind], negative, order, first, offset)
    colour_start = np.searchsorted(segment, np.arange(0, len(chunks) + 1, len(kinds)))
    batches = TermBatches(colour_start, first, slots, of_batch, offset, order.astype(np.uint32), neighbour, signs)
    return batches, kinds


def _neighbours(
    graph: Graph,
    terms: npt.NDArray[np.uint8],
    wanted: npt.NDArray[np.int64],
    negative: npt.NDArray[np.bool_],
    order: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    offset: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """``TermBatches.neighbour`` and ``signs``; ``wanted`` (sites, 2) are bonds of each site with its phantom ones."""
    near, sites = adjacency(graph), np.arange(graph.sites)
    batch, place = np.empty(graph.sites, np.int64), np.empty(graph.sites, np.int64)
    place[order] = sites
    batch[order] = np.repeat(np.arange(len(offset)), np.diff(first))
    base, stride = offset[batch] + place - first[batch], np.diff(first)[batch]  # of slot 0, and from slot to slot
    neighbour = np.empty(int((wanted.sum(axis=1)).sum()), np.uint32)
    signs = np.empty((len(negative), neighbour.size), np.uint8)
    site, term = np.repeat(sites, np.diff(near.start)), terms[near.bond]
    slot = np.zeros(graph.sites, np.int64)  # the next of each site
    for t in range(MOST_TERMS):
        ours = np.flatnonzero(term == t)  # site by site
        degree = np.bincount(site[ours], minlength=graph.sites)
        number = np.arange(ours.size) - np.repeat(np.cumsum(degree) - degree, degree)
        at = base[site[ours]] + (slot[site[ours]] + number) * stride[site[ours]]
        neighbour[at] = near.neighbour[ours]
        signs[:, at] = negative[:, near.bond[ours]]
        missing = wanted[:, t] - degree
        short = np.repeat(sites, missing)
        number = np.arange(short.size) - np.repeat(np.cumsum(missing) - missing, missing)
        at = base[short] + (slot[short] + degree[short] + number) * stride[short]
        neighbour[at] = short
        signs[:, at] = number % 2
        slot += wanted[:, t]
    return neighbour, signs
