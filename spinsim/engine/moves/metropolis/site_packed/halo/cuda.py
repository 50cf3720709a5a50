"""What a slab of a site-packed lattice sees beyond its first and its last layer, on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.memory import Reached, offer, reach, shared
from spinsim.cuda.records import record
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.site_packed.cuda_records import HALO
from spinsim.engine.moves.metropolis.site_packed.plan import SitePlan
from spinsim.mesh.group import Group

COLOURS: Final = 2


class Halo:
    """The layers beside a whole lattice, which are its own last and first.

    Args:
        plan: What devices share.
        present: The spins.

    Attributes:
        record: As kernels take it.
        is_copied: Whether what is beside a slab has to be fetched before each half-sweep.
        flags: How slabs wait for each other within a kernel; None where they do not.
    """

    is_copied = False
    flags: Flags | None = None

    def __init__(self, plan: SitePlan, present: Any) -> None:
        whole = present.data.ptr, plan.groups
        self.record = _within(plan, whole, whole)

    def fetch(self, colour: int) -> None:
        """Queue getting the present layers of a colour."""


class CopiedHalo(Halo):
    """Copies of the layers beside a slab, which other slabs give.

    Args:
        plan: What devices share.
        present: The spins of the slab.
        group: Who has the slabs, in their order.
    """

    is_copied = True

    def __init__(self, plan: SitePlan, present: Any, group: Group) -> None:
        import cupy

        samples, replicas = plan.shape[:2]
        lattices, edge = present.reshape(samples, replicas, COLOURS, -1, 2), plan.edge
        self._group = group
        self._edges = [(lattices[:, :, c, :edge], lattices[:, :, c, -edge:]) for c in range(COLOURS)]
        self._beside = cupy.zeros((2, COLOURS, samples, replicas, plan.edge, 2), cupy.uint64)
        before, after = (tuple(of_colour.data.ptr for of_colour in side) for side in self._beside)
        self.record = record(HALO, before=before, after=after, stride=plan.edge)

    def fetch(self, colour: int) -> None:
        """Queue getting the present layers of a colour; all slabs do so at once."""
        import cupy

        first, last = (cupy.ascontiguousarray(layer) for layer in self._edges[colour])
        self._group.ring(first, last, self._beside[0, colour], self._beside[1, colour])


class Flags:
    """Half-sweeps for which the edges of slabs are done, each of which tells those beside it.

    Args:
        own: uint32 (3, lattices) in this GPU's memory, where the slabs before and after tell theirs, and where this one
            counts.
        before: Address of the like of the slab before.
        after: Address of that of the slab after.
    """

    def __init__(self, own: Any, before: int, after: int) -> None:
        self._own = own
        first, second, edges = (row.data.ptr for row in own)
        self._addresses = first, second, before + own[0].nbytes, after, edges
        self._done = 0

    def next(self, half_sweeps: int) -> tuple[int, ...]:
        """Members of a ``SLAB_BARRIER``, but its first and last, for a launch of so many half-sweeps."""
        done = self._done
        self._done = (done + half_sweeps) % 2**32
        return *self._addresses, done


class PeerHalo(Halo):
    """The layers beside a slab where they are, in the memory of other GPUs.

    Args:
        plan: What devices share.
        groups: Of each colour in the slabs before and after.
        spins: Those of the slabs before and after.
        flags: Those of the slabs before and after.
        own: As ``Flags`` takes it.
    """

    def __init__(
        self, plan: SitePlan, groups: Sequence[int], spins: Sequence[Reached], flags: Sequence[Reached], own: Any
    ) -> None:
        self._kept = spins, flags  # as long as kernels use them
        (before, after), (tells_before, tells_after) = ([side.address for side in sides] for sides in self._kept)
        self.record = _within(plan, (before, groups[0]), (after, groups[1]))
        self.flags = Flags(own, tells_before, tells_after)


def _within(plan: SitePlan, before: tuple[int, int], after: tuple[int, int]) -> npt.NDArray[np.void]:
    """The last layers of one slab and the first ones of another, each of which is an address and a number of groups."""
    (start, groups), (next_start, next_groups) = before, after
    last = tuple(start + 16 * (groups * (colour + 1) - plan.edge) for colour in range(COLOURS))
    first = tuple(next_start + 16 * next_groups * colour for colour in range(COLOURS))
    return record(HALO, before=last, after=first, stride=2 * groups)


def halo_of(plan: SitePlan, present: Any, queue: Queue, group: Group | None) -> Halo:
    """What stands beside spins: all slabs make theirs at once.

    Args:
        plan: What devices share.
        present: The spins; of a slab an array of ``shared``.
        queue: Where their work is queued, the present device and stream of CuPy.
        group: Who has the slabs of a lattice, in their order; None where it is whole.
    """
    if group is None:
        return Halo(plan, present)
    lattices = plan.shape[0] * plan.shape[1]
    own = shared((3, lattices), np.uint32)
    own[:] = 0
    mine = np.stack([offer(queue.device, array) for array in (present, own)])
    groups, sides = [np.empty(1, np.int64) for _ in range(2)], [np.empty_like(mine) for _ in range(2)]
    group.ring(*[np.array([plan.groups])] * 2, *groups)
    group.ring(mine, mine, *sides)
    spins, flags = ([reach(queue.device, mine[k], side[k]) for side in sides] for k in range(2))
    fits = lattices == 1 or all(side[0] == plan.groups for side in groups)  # one stride serves both sides
    near = [side for side in (*spins, *flags) if side is not None]
    if group.sum(np.array([fits and len(near) == 4], np.int64))[0] == group.size:
        return PeerHalo(plan, [int(side[0]) for side in groups], near[:2], near[2:], own)
    return CopiedHalo(plan, present, group)
