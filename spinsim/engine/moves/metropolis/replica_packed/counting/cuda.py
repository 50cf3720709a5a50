"""Spins +1 and unsatisfied bonds of replica-packed words on a GPU."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.packed.cuda_state import PlacedWords, places
from spinsim.engine.moves.metropolis.replica_packed.plan import ReplicaPlan

COUNT_THREADS: Final = 256  # of a block that counts
ITEMS_A_THREAD: Final = 24  # sites or bonds that a thread counts, at most 31


class CountedWords(PlacedWords):
    """Words whose spins +1 and unsatisfied bonds can be counted.

    Args:
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        plan: As given.
        edges: Places of each bond's ends.
        lanes: Lanes in use.
    """

    def __init__(self, plan: ReplicaPlan, queue: Queue) -> None:
        import cupy

        self.plan, self._queue = plan, queue
        edges = places(plan.batches)[plan.graph.edges].view(np.int32)
        given = plan.lanes, plan.negative.astype(np.uint8), edges
        self.lanes, self._negative, self.edges = (cupy.asarray(array) for array in given)
        super().__init__(plan, queue, self.lanes)

    @cached_property
    def _count(self) -> Launch:
        """The counting kernel."""
        bonds = self.plan.graph.bonds
        return Launch(self._queue.device, "measuring/count_replica_packed.cu", "count_replica", {
            "state": self.present, "sites": np.uint32(self.plan.model.sites), "edges": self.edges,
            "negative": self._negative, "sign_stride": np.uint64(bonds if len(self._negative) > 1 else 0),
            "bonds": np.uint32(bonds), "first_sites": np.uint32(self.plan.first),
            "up": np.uint64(0), "unsatisfied": np.uint64(0), "up_first": np.uint64(0),
        })  # fmt: skip

    @cached_property
    def _count_grid(self) -> tuple[int, int, int]:
        """Its thread blocks."""
        samples, blocks, sites, _ = self.plan.shape
        return -(-max(self.plan.graph.bonds, sites) // (COUNT_THREADS * ITEMS_A_THREAD)), blocks, samples

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding spins +1, unsatisfied bonds and, where a third address is given, the first sublattice's."""
        up, unsatisfied, up_first = (*to, 0)[:3]
        self._count(
            self._queue.stream, self._count_grid, COUNT_THREADS, up=up, unsatisfied=unsatisfied, up_first=up_first
        )
