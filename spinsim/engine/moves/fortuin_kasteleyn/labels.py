"""Clusters of any graph by labels, a replica at a time: union-find over the open bonds, the smallest label as root."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.engine.measuring.cpu_comparison import transpose
from spinsim.engine.moves.fortuin_kasteleyn.bonds import ONE, ZERO
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import trailing_zeros

HALF: Final = 64


@part
def find(parent, label):  # type: ignore[no-untyped-def]
    """The root of a label; labels on the way come nearer to it."""
    while parent[label] != label:
        parent[label] = parent[parent[label]]
        label = parent[label]
    return label


@kernel
def transpose_column(words, column, by_lane):  # type: ignore[no-untyped-def]
    """Set ``by_lane`` (64, parts): bit b of part p is bit ``lane`` of ``words[64 p + b, column]``."""
    square = np.empty(HALF, np.uint64)
    for p in range(by_lane.shape[1]):
        width = min(HALF, words.shape[0] - HALF * p)
        for b in range(width):
            square[b] = words[HALF * p + b, column]
        square[width:] = ZERO
        transpose(square)
        for lane in range(HALF):
            by_lane[lane, p] = square[lane]


@part
def join(opened, labels, parent):  # type: ignore[no-untyped-def]
    """Make ``parent`` the root of each label, the smallest that open bonds (words,) join to it."""
    for label in range(parent.size):
        parent[label] = label
    for p in range(opened.size):
        word = opened[p]
        while word:
            e = HALF * p + np.int64(trailing_zeros(word))
            word &= word - ONE
            one, other = find(parent, np.uint32(labels[e, 0])), find(parent, np.uint32(labels[e, 1]))
            if one < other:
                parent[other] = one
            else:
                parent[one] = other
    for label in range(parent.size):
        parent[label] = parent[parent[label]]


@kernel
def flip_labelled(up, used, opened, chosen, labels, order, by_leader):  # type: ignore[no-untyped-def]
    """Flip clusters with chosen sites, or only those whose leader is chosen, but none with the ghost.

    Args:
        up: Words of spins, uint64 (sites + 1, words), changed in place.
        used: Replicas in use, (words,).
        opened: Open bonds, (bonds, words).
        chosen: Sites, (sites, words).
        labels: That each bond joins, (bonds, 2).
        order: Site of each label above 0.
    """
    sites = order.size
    parts = (sites + HALF - 1) // HALF
    parent, is_chosen = np.empty(sites + 1, np.int32), np.empty(sites + 1, np.uint8)
    by_lane = np.empty((HALF, (labels.shape[0] + HALF - 1) // HALF), np.uint64)
    of_site, flips = np.empty((HALF, parts), np.uint64), np.empty((HALF * parts, 1), np.uint64)
    for column in range(used.size):
        if used[column] == ZERO:
            continue
        transpose_column(opened, column, by_lane)
        transpose_column(chosen, column, of_site)
        for lane in range(HALF):
            mine = of_site[lane]
            join(by_lane[lane], labels, parent)
            is_chosen[:] = 0
            for r in range(sites):
                if (mine[order[r] // HALF] >> np.uint64(order[r] % HALF)) & ONE:
                    is_chosen[1 + r if by_leader else parent[1 + r]] = 1
            is_chosen[0] = 0
            mine[:] = ZERO
            for r in range(sites):
                mine[order[r] // HALF] |= np.uint64(is_chosen[parent[1 + r]]) << np.uint64(order[r] % HALF)
        for p in range(parts):
            for lane in range(HALF):
                flips[HALF * p + lane, 0] = of_site[lane, p]
            transpose(flips[HALF * p : HALF * p + HALF, 0])
        for i in range(sites):
            up[i, column] ^= flips[i, 0] & used[column]
