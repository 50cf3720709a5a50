"""Sites of one colour in batches of equal shape, the order in which the replica-packed kernel visits them.

Sites of one colour share no bond, so their order is free; this one groups sites of equal parity of degree, so that one
batch needs one table, and pads the neighbours of a batch to equal number with phantom bonds from a site to itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.cpu.compiled import kernel
from spinsim.engine.tables import Classes
from spinsim.model.colouring import Adjacency

BATCH: Final = 64

PHANTOM_SATISFIED: Final = -1
PHANTOM_UNSATISFIED: Final = -2


class Batches(NamedTuple):
    """Batch b holds sites ``order[first[b]:first[b + 1]]``, n of them, each with ``slots[b]`` bonds.

    Its neighbours stand at ``neighbour[offset[b] + k * n + q]`` for slot k of its q-th site, the numbers of their bonds
    likewise in ``bond`` (negative: phantom). Colour c has batches ``colour_start[c]:colour_start[c + 1]``.
    ``parity[b]`` picks the table; ``base[b]`` is the count of further unsatisfied phantom bonds.
    """

    colour_start: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    parity: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint32]
    neighbour: npt.NDArray[np.uint32]
    bond: npt.NDArray[np.int32]


@kernel
def _fill(first, slots, offset, order, start, near, near_bond, neighbour, bond):  # type: ignore[no-untyped-def]
    for b in range(slots.size):
        n = first[b + 1] - first[b]
        for q in range(n):
            i = order[first[b] + q]
            degree = start[i + 1] - start[i]
            for k in range(slots[b]):
                at = offset[b] + k * n + q
                if k < degree:
                    neighbour[at] = near[start[i] + k]
                    bond[at] = near_bond[start[i] + k]
                else:
                    neighbour[at] = i
                    bond[at] = PHANTOM_SATISFIED if (k - degree) % 2 == 0 else PHANTOM_UNSATISFIED


def build_batches(adjacent: Adjacency, colour: npt.NDArray[np.int32], classes: Classes) -> Batches:
    """Batches of every colour."""
    degree = np.diff(adjacent.start)
    parity = degree & 1
    segment = 2 * colour + parity
    key = segment * (int(degree.max()) + 1) + degree
    if key.max() < 2**16:
        key = key.astype(np.uint16)  # a radix sort
    order = np.argsort(key, kind="stable").astype(np.uint32)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(segment))])
    first = np.concatenate([np.arange(a, b, BATCH) for a, b in zip(bounds[:-1], bounds[1:], strict=True)])
    ends = np.append(first[1:], len(order))
    batch_parity = parity[order[first]]
    slots = degree[order[ends - 1]]
    if classes.count_bits == 3:  # the counters of packed.py come in three sizes
        slots = np.where(batch_parity == 1, 7, np.where(slots <= 4, 4, 6))
    base = (2**classes.count_bits - 2 + batch_parity - slots) // 2
    length = slots * (ends - first)
    offset = np.cumsum(length) - length
    neighbour = np.empty(int(length.sum()), np.uint32)
    bond = np.empty(neighbour.size, np.int32)
    bounds_of_batches = np.append(first, len(order))
    _fill(bounds_of_batches, slots, offset, order, *adjacent, neighbour, bond)
    colour_start = np.searchsorted(colour[order[first]], np.arange(int(colour.max()) + 2))
    return Batches(colour_start, bounds_of_batches, slots, batch_parity, base, offset, order, neighbour, bond)


def bond_signs(bond: npt.NDArray[np.int32], couplings: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """1 where a slot's bond is unsatisfied by equal spins: negative couplings and unsatisfied phantoms."""
    negative = np.concatenate([couplings < 0, [True, False]])  # indices -2 and -1 are the phantoms
    return negative[bond].astype(np.uint8)
