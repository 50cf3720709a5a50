"""Replica-packed words on a GPU, ``state[sample, block, place, half]``, in the order of the kernels."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.bits import Bits, of_replica_packed
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.resample.cuda import copy_lanes
from spinsim.model.ising import Ising


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


class PlacedPlan(Protocol):
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


class PlacedWords:
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

    def __init__(self, plan: PlacedPlan, queue: Queue, lanes: Any) -> None:
        import cupy

        self._order, self._place, self._replicas = plan.batches.order, places(plan.batches), plan.replicas
        self.present = cupy.empty(plan.shape, cupy.uint64)
        self.copy = partial(copy_lanes, queue, self.present)
        if plan.dynamics.start == "up":
            self.present[:] = lanes[None, :, None, :]
        else:
            queue.start_at_random(self.present, lanes, cupy.asarray(self._order))

    def words(self) -> npt.NDArray[np.uint64]:
        """The words of a snapshot: in the order of the sites."""
        return np.ascontiguousarray(self.present.get()[:, :, self._place])

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        self.present.set(np.ascontiguousarray(words[:, :, self._order]))

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""
        block, lane = divmod(replica, packing.LANES)
        words = state[sample, block, :, lane // 64].get()
        return packing.unpack_lane(words, lane % 64)[self._place]

    def read_all(self, state: Any, sample: int) -> Bits:
        """All configurations of a sample of a state as bits, (replicas, bytes)."""
        return of_replica_packed(state[sample].get()[:, self._place], self._replicas)
