"""Replica-packed words on a GPU, in the order of the kernels: place i has site ``order[i]``."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.bits import Bits, of_replica_packed
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.resample.moves import Moves, first_moves
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising

COUNT_THREADS: Final = 256  # of a block that counts
COPY_THREADS: Final = 128  # of a block of 128 replicas, a site each
ITEMS_A_THREAD: Final = 24  # sites or bonds that a thread counts, at most 31


class Ordered(Protocol):
    """What has an order of the sites."""

    @property
    def order(self) -> npt.NDArray[np.uint32]:
        """The sites, in the order in which kernels visit them."""


def places(batches: Ordered) -> npt.NDArray[np.uint32]:
    """The place of every site in ``batches.order``, in which the device holds a lattice."""
    place = np.empty_like(batches.order)
    place[batches.order] = np.arange(place.size, dtype=place.dtype)
    return place


class OrderedPlan(Protocol):
    """A run whose words a GPU holds in an order of its own.

    Attributes:
        model: What is simulated.
        replicas: Of each sample.
        shape: Of the state, (samples, blocks, sites, 2).
        dynamics: How replicas start.
    """

    model: Ising
    replicas: int
    shape: tuple[int, int, int, int]
    dynamics: Dynamics

    @property
    def batches(self) -> Ordered:
        """The order of the sites."""


class OrderedWords:
    """A ``CudaState``.

    Args:
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.
        lanes: Lanes in use, on the device.

    Attributes:
        present: The spins.
        copy: Queues copies of configurations.
    """

    replica_axis = 1

    def __init__(self, plan: OrderedPlan, queue: Queue, lanes: Any) -> None:
        import cupy

        self._order, self._place, self._replicas = plan.batches.order, places(plan.batches), plan.replicas
        self.present = cupy.empty(plan.shape, cupy.uint64)
        self.copy = partial(copy_lanes, queue, self.present)
        if plan.dynamics.start == "up":
            self.present[:] = lanes[None, :, None, :]
        else:
            queue.start_at_random(self.present, lanes, cupy.asarray(self._order))

    def words(self) -> npt.NDArray[np.uint64]:
        return np.ascontiguousarray(self.present.get()[:, :, self._place])

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.present.set(np.ascontiguousarray(words[:, :, self._order]))

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""
        block, lane = divmod(replica, packing.LANES)
        words = state[sample, block, :, lane // 64].get()
        return packing.unpack_lane(words, lane % 64)[self._place]

    def read_all(self, state: Any, sample: int) -> Bits:
        """All configurations of a sample of a state as bits, (replicas, bytes)."""
        return of_replica_packed(state[sample].get()[:, self._place], self._replicas)


def copy_lanes(queue: Queue, state: Any, moves: Moves) -> None:
    """Queue copies of lanes of a state (samples, blocks, sites, 2); the present device and stream are the queue's."""
    import cupy

    samples, blocks, sites, _ = state.shape
    Launch(queue.device, "packing/copy_lanes.cu", "copy_lanes", {
        "state": state, "sites": np.uint32(sites), "first": cupy.asarray(first_moves(moves, samples, blocks)),
        "source": cupy.asarray(moves.source.astype(np.uint32)), "target": cupy.asarray(moves.target.astype(np.uint32)),
    })(queue.stream, (-(-sites // COPY_THREADS), blocks, samples), COPY_THREADS)  # fmt: skip


class CountedPlan(OrderedPlan, Protocol):
    """A run whose bonds all have one magnitude.

    Attributes:
        graph: The bonds.
        lanes: Lanes in use, (blocks, 2).
        negative: Bonds with J < 0, (1 or samples, bonds).
        first: Sites of the first sublattice.
    """

    graph: Graph
    lanes: npt.NDArray[np.uint64]
    negative: npt.NDArray[np.bool_]
    first: int


class CountedWords(OrderedWords):
    """Words whose spins +1 and unsatisfied bonds can be counted.

    Args:
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        plan: As given.
        edges: Places of each bond's ends.
        lanes: Lanes in use.
    """

    def __init__(self, plan: CountedPlan, queue: Queue) -> None:
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
