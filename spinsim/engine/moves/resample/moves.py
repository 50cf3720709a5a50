"""Which configurations take the place of which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.packing import LANES


class Moves(NamedTuple):
    """Copies of configurations, in the order of samples and, within each, of targets.

    No source is a target, so that copies can be made in any order and in place.

    Attributes:
        sample: Of each, int64.
        source: Replica whose configuration is copied.
        target: Replica that it becomes.
    """

    sample: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]


def moves_of(parent: npt.NDArray[np.integer]) -> Moves:
    """The copies after which each replica has the configuration of its parent.

    Args:
        parent: A replica for each, (samples, replicas); who is anybody's parent is its own.
    """
    sample, target = np.nonzero(parent != np.arange(parent.shape[1]))
    return Moves(sample, parent[sample, target].astype(np.int64), target)


def first_moves(moves: Moves, samples: int, blocks: int) -> npt.NDArray[np.int64]:
    """The first of the moves to each block of 128 replicas of each sample, and how many there are: (parts + 1,)."""
    found = np.searchsorted(moves.sample * blocks + moves.target // LANES, np.arange(samples * blocks + 1))
    return np.asarray(found, np.int64)
