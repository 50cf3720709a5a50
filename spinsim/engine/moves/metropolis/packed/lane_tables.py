"""Acceptance tables of words of replicas: a threshold for every lane, as replicas differ in temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.metropolis.packed.classes import PLANES
from spinsim.engine.moves.metropolis.packed.kinds import Limits
from spinsim.packing import LANES, block_count, pack_lanes


@dataclass(frozen=True)
class Tables:
    """Thresholds of every lane, of each sample and block or, of length 1, of all.

    Attributes:
        always: ``always[sample, block, parity, class, half]``: a set bit is a lane whose flip needs no random number.
        planes: ``planes[sample, block, parity, plane, class, half]``: bit ``63 - plane`` of each lane's threshold.
        thresholds: ``thresholds[sample, block, parity, class, lane]``: the thresholds of acceptance.py.
    """

    always: npt.NDArray[np.uint64]
    planes: npt.NDArray[np.uint64]
    thresholds: npt.NDArray[np.uint64]


def distinct_of(
    beta: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp] | None]:
    """The different inverse temperatures of replicas, and which of them each lane has; None where there is one alone.

    Args:
        beta: Of every replica, (replicas,), as ``check_beta`` returns it; lanes past the last replica have its own.
    """
    if not beta.strides[0] or np.all(beta == beta[0]):  # one number was given for all, or annealing gave it
        return beta[:1], None
    lanes = np.full(block_count(len(beta)) * LANES, beta[-1])
    lanes[: len(beta)] = beta
    return np.unique(lanes, return_inverse=True)


def build_tables(limits: Limits, place: npt.NDArray[np.intp] | None) -> Tables:
    """The tables of lanes at temperatures ``place`` of ``limits``; of one block where there is one alone."""
    return tables_of_one(limits) if place is None else tables_of_lanes(limits, place)


def tables_of_one(limits: Limits) -> Tables:
    """The tables of one block at the one temperature that ``limits`` are of."""
    certain, threshold = limits.certain[..., 0], limits.thresholds[..., 0]
    bits = threshold[:, None] >> np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None] & np.uint64(1)
    always, planes = (
        np.repeat((np.uint64(0) - of_lane)[..., None], 2, axis=-1) for of_lane in (certain.astype(np.uint64), bits)
    )
    return Tables(always[None, None], planes[None, None], np.repeat(threshold[..., None], LANES, axis=-1)[None, None])


def tables_of_lanes(limits: Limits, place: npt.NDArray[np.int64]) -> Tables:
    """The tables of lanes at temperatures ``place`` (lanes of all blocks,) of those that ``limits`` are of."""
    shape = (*limits.certain.shape[:2], -1, LANES)
    always, threshold = (np.moveaxis(np.take(rows, place, axis=-1).reshape(shape), 2, 0) for rows in limits)
    planes = [
        pack_lanes((threshold >> np.uint64(63 - plane) & np.uint64(1)).astype(np.bool_)) for plane in range(PLANES)
    ]
    return Tables(
        always=pack_lanes(always)[None],
        planes=np.ascontiguousarray(np.stack(planes, axis=2))[None],
        thresholds=np.ascontiguousarray(threshold)[None],
    )


class SomeClasses(Protocol):
    """Flip classes of one term or of two."""

    @property
    def bits(self) -> int:
        """Bits of a class."""

    @property
    def tables(self) -> int:
        """Tables of their own that sites have, by the parity of their degree or otherwise."""


def empty_tables(classes: SomeClasses, samples: int, replicas: int) -> Tables:
    """Room for tables of each sample."""
    blocks = block_count(replicas)
    kinds = (samples, blocks, classes.tables), 2**classes.bits
    return Tables(
        always=np.empty((*kinds[0], kinds[1], 2), np.uint64),
        planes=np.empty((*kinds[0], PLANES, kinds[1], 2), np.uint64),
        thresholds=np.zeros((*kinds[0], kinds[1], LANES), np.uint64),
    )
