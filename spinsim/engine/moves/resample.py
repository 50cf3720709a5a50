"""Resampling of a population: the choice of parents, and copies of packed configurations on the CPU."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import exp_reduced
from spinsim.machine.compiled import kernel
from spinsim.machine.threads import Threads
from spinsim.packing import LANES


class Moves(NamedTuple):
    """Copies of configurations, in the order of samples and, within each sample, of targets.

    No source is a target, so that copies can be made in any order and in place.
    """

    sample: npt.NDArray[np.int64]  # sample of each copy, int64
    source: npt.NDArray[np.int64]  # replica whose configuration is copied
    target: npt.NDArray[np.int64]  # replica that receives it


def moves_of(parent: npt.NDArray[np.integer]) -> Moves:
    """Return the copies that give each replica the configuration of its parent, (samples, replicas).

    A replica that is a parent must be its own parent.
    """
    sample, target = np.nonzero(parent != np.arange(parent.shape[1]))
    return Moves(sample, parent[sample, target].astype(np.int64), target)


def first_moves(moves: Moves, samples: int, blocks: int) -> npt.NDArray[np.int64]:
    """Number of the first move to each block of 128 replicas of each sample, then the number of moves: (parts + 1,)."""
    first = np.searchsorted(moves.sample * blocks + moves.target // LANES, np.arange(samples * blocks + 1))
    return np.asarray(first, np.int64)


LEAST: Final = -700.0  # exponent of a weight that is negligible beside 1
_POWERS: Final = 0.5 ** np.arange(1024.0)


@kernel
def choose_parents(exponent, family, uniform, populations, parent, total, copied):  # type: ignore[no-untyped-def]
    """Choose the parent of each replica, for consecutive populations, ``populations`` of each sample.

    Let x_i be the cumulative expected numbers of copies. The number of copies of replica i is the number of integers n
    with x_{i-1} <= n + uniform < x_i. The cumulative sum runs family by family, so that a family's copies are rounded
    together. A replica with copies keeps its place; its further copies fill the places of replicas without copies in
    turn.

    Args:
        exponent: Exponents of the weights, at most 0, (all populations, size).
        family: Family of each replica, named by a replica of its population (its number in the sample), same shape.
        uniform: Numbers between 0 and 1, (all populations,).
        parent: Output, the parent of each replica (its number in the sample), (all populations, size).
        total: Output, sums of weights, (all populations,).
        copied: Output, numbers of replicas with copies, same shape.
    """
    size = exponent.shape[1]
    weight, start = np.empty(size), np.empty(size + 1, np.int64)
    order, copies = np.empty(size, np.int64), np.empty(size, np.int64)
    for part in range(uniform.size):
        first = part % populations * size
        for i in range(size):
            mantissa, power = exp_reduced(max(exponent[part, i], LEAST))
            weight[i] = mantissa * _POWERS[np.int64(-power)]
        start[:] = 0
        for i in range(size):
            start[family[part, i] - first + 1] += 1
        for i in range(size):
            start[i + 1] += start[i]
        for i in range(size):
            own = family[part, i] - first
            order[start[own]] = i
            start[own] += 1
        running = 0.0
        for i in range(size):
            running += weight[order[i]]
        total[part] = running
        scale, running, below = size / running, 0.0, 0
        for i in range(size):
            running += weight[order[i]]
            upto = min(max(np.int64(np.ceil(running * scale - uniform[part])), 0), size) if i < size - 1 else size
            copies[order[i]] = upto - below
            below = upto
        spare, left, survivors = -1, 0, 0
        for i in range(size):
            parent[part, i] = first + i
            survivors += copies[i] > 0
            if copies[i] == 0:
                while left == 0:
                    spare += 1
                    left = max(copies[spare] - 1, 0)
                parent[part, i] = first + spare
                left -= 1
        copied[part] = survivors


LANES_WORTH_THREADS: Final = 2**17
"""Spins copied in about 100 microseconds, the time in which threads take over their tasks."""

REPLICA_PACKED: Final = 4
"""Axes of replica-packed words. Site-packed words have six axes, with a row of words for each replica."""
_ONE = np.uint64(1)


@kernel
def copy_lanes(words, sample, source, target):  # type: ignore[no-untyped-def]
    """Copy the bits of replicas ``source`` to replicas ``target`` in words (samples, blocks, groups, 2)."""
    for i in range(source.size):
        origin, goal = words[sample[i], source[i] // 128], words[sample[i], target[i] // 128]
        from_half, to_half = source[i] // 64 % 2, target[i] // 64 % 2
        from_bit, to_bit = np.uint64(source[i] % 64), np.uint64(target[i] % 64)
        kept = ~(_ONE << to_bit)
        for group in range(origin.shape[0]):
            bit = (origin[group, from_half] >> from_bit) & _ONE
            goal[group, to_half] = (goal[group, to_half] & kept) | (bit << to_bit)


def copy_replicas(words: npt.NDArray[np.uint64], moves: Moves, threads: Threads) -> None:
    """Copy configurations in the words of a snapshot, replica-packed or site-packed, with the shapes of packing.py."""
    samples, blocks = words.shape[:2]
    if words.ndim > REPLICA_PACKED:
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            words[sample, target] = words[sample, source]
    elif moves.target.size * words.shape[2] < LANES_WORTH_THREADS:
        copy_lanes(words, *moves)
    else:
        first = first_moves(moves, samples, blocks)

        def copy_to(part: int, stop: int) -> None:  # some of the blocks, which no other thread writes
            copy_lanes(words, *(each[first[part] : first[stop]] for each in moves))

        threads.share_out(copy_to, samples * blocks)
