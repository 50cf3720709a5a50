"""Number of replicas where none is given: as many as fill a GPU, and few where a search of few is faster."""

from __future__ import annotations

from math import ceil
from typing import Final

from spinsim.engine.choosing import choose
from spinsim.engine.update import Outline

USUAL: Final = 128
"""Replicas of each sample of a run on a CPU, and the least on a GPU: a word of the packed updates has as many lanes."""
FEW: Final = 16
"""Replicas of a search on a CPU that visits them one by one: the right length of an anneal is met sooner with few."""
MOST_COPIES: Final = 8
"""Most copies of a ladder of few temperatures in a search, as overlaps of all pairs of copies are measured."""
MULTIPROCESSORS: Final = 132
"""Multiprocessors of an H200. Other GPUs, and several, take as many replicas: a command has the same result on all."""
BYTES: Final = 2**28  # bytes that the replicas that fill a GPU may write
TOGETHER: Final = 2**23
"""Spins that a launch may update in a search whose groups have no multiprocessor each: more slow each other down."""
LOOK: Final = 64  # bytes of what a look of a search brings to the host of each replica
ROOM: Final = 2**32  # bytes that the groups of a search may take on a CPU
SEARCHING: Final = 2**13
"""The most of all samples in a search: more do not meet a target sooner, and the host looks at each of them."""


def replicas_that_fill(outline: Outline, device: str, bytes_a_replica: int, searches: bool = False) -> int:
    """Replicas of each sample that keep a GPU busy, at least ``USUAL``; on a CPU that, or ``FEW``.

    Where a multiprocessor has a lattice for itself it takes several groups of replicas, one after the other or side by
    side (``Update.busy``); of larger lattices, which multiprocessors share, each has up to twice ``Busy.spins``.
    Samples share the groups.

    Args:
        bytes_a_replica: That a run writes of each replica of a sample.
        searches: True if it anneals again and again until a target is met or its time is up.
    """
    if device == "cpu":
        return FEW if searches and choose(outline).one_by_one else USUAL
    busy = choose(outline).busy
    of_each = busy.spins / (busy.group * outline.sites)
    groups = busy.most * MULTIPROCESSORS if of_each >= 1 else ceil(min(1, 2 * of_each) * MULTIPROCESSORS)
    if searches:
        groups = min(groups, SEARCHING // busy.group)
    room = BYTES // (outline.samples * bytes_a_replica * busy.group)
    return max(USUAL, busy.group * min(ceil(groups / outline.samples), room))


def copies_of_search(outline: Outline, device: str, temperatures: int) -> int:
    """Copies in a group of a search: as many as fill a word, one on a CPU that visits replicas one by one."""
    if device == "cpu" and choose(outline).one_by_one:
        return 1
    return max(1, min(MOST_COPIES, USUAL // temperatures))


def groups_of_search(outline: Outline, device: str, replicas: int, threads: int) -> int:
    """Groups of copies that search side by side: as many as fill a GPU, on a CPU one for each thread.

    A multiprocessor holds one group, as more would keep the host waiting between looks. Groups of larger problems share
    multiprocessors, and many groups would each make few sweeps.

    Args:
        replicas: Of each sample in a group.
        threads: CPU threads, of all ranks together.
    """
    if device != "cpu":
        busy = choose(outline).busy
        fits_one = busy.spins >= busy.group * outline.sites
        of_a_launch = outline.sites * replicas / max(1, outline.largest_degree)  # about a colour
        together = MULTIPROCESSORS if fits_one else ceil(TOGETHER / of_a_launch)
        return max(1, min(MULTIPROCESSORS, together, replicas_that_fill(outline, device, LOOK) // replicas))
    need = choose(outline).needed_bytes(outline, replicas)
    return max(1, min(ceil(threads / outline.samples), ROOM // need))
