"""What a slab of a site-packed lattice sees beyond its first and its last layer, on the CPU."""

from __future__ import annotations

import numpy as np

from spinsim.engine.cpu import Words
from spinsim.mesh.group import Group


def periodic(lattice: Words, edge: int) -> tuple[Words, Words]:
    """The layers before and after a whole lattice (2, groups, 2), which are its last and its first."""
    return lattice[:, -edge:], lattice[:, :edge]


class Halo:
    """The layers beside a whole lattice, which are its own.

    Args:
        words: The state as (samples, replicas, colours, groups, 2).
        edge: Groups of a layer.

    Attributes:
        always_there: Whether there is never anything to fetch.
    """

    always_there = True

    def __init__(self, words: Words, edge: int) -> None:
        self._words, self._edge = words, edge

    def fetch(self, colour: int) -> None:
        """Get the present layers of a colour."""

    def of(self, sample: int, replica: int) -> tuple[Words, Words]:
        """The layers before and after a lattice, each (2, groups, 2)."""
        return periodic(self._words[sample, replica], self._edge)


class SwappedHalo(Halo):
    """The layers beside a slab, which are those of other slabs.

    Args:
        words: The slab's state.
        edge: Groups of a layer.
        group: Who has the slabs, in their order.
    """

    always_there = False

    def __init__(self, words: Words, edge: int, group: Group) -> None:
        super().__init__(words, edge)
        self._group = group
        samples, replicas, colours = words.shape[:3]
        self._beside = np.empty((colours, 2, samples, replicas, edge, 2), np.uint64)

    def fetch(self, colour: int) -> None:
        """Get the present layers of a colour; all slabs do so at once."""
        mine = self._words[:, :, colour]
        first, last = (np.ascontiguousarray(mine[:, :, at]) for at in (slice(self._edge), slice(-self._edge, None)))
        self._group.ring(first, last, *self._beside[colour])

    def of(self, sample: int, replica: int) -> tuple[Words, Words]:
        """The layers before and after a slab, each (2, groups, 2)."""
        before, after = (self._beside[:, side, sample, replica] for side in range(2))
        return before, after
