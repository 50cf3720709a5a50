"""Replica-packed words on a GPU, in the order of the kernels: place i holds site ``order[i]``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.device import cupy, multiprocessors, require_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.sums import Observables
from spinsim.engine.moves.metropolis.replica_packed.update import PackedRun
from spinsim.engine.moves.resample import Moves, first_moves
from spinsim.model.ising import Ising
from spinsim.packing import Bits, of_replica_packed

COUNT_THREADS: Final = 256  # threads of a counting block
COUNTING: Final = 4  # counting blocks resident on a multiprocessor
COPY_THREADS: Final = 128  # threads of a copying block, one site of 128 replicas each
ITEMS_A_THREAD: Final = 24  # sites or bonds that a thread counts, at most 31
FEWEST_ITEMS: Final = 16  # fewest, if more blocks have room


def place_of(order: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    place = np.empty_like(order)
    place[order] = np.arange(place.size, dtype=place.dtype)
    return place


class WordRun(Protocol):
    """Run whose state is words of replicas on a GPU."""

    model: Ising
    replicas: int
    shape: tuple[int, int, int, int]  # shape of the state, (samples, blocks, sites, 2)
    observables: Observables

    @property
    def batches(self) -> Any:
        """Batches, with the ``order`` of the sites in memory."""


class OrderedWords(ABC):
    """A ``CudaState`` of words.

    Attributes:
        site_at: Site at each place, colour by colour.
        lanes: Masks of the lanes in use, (blocks, 2).
    """

    replica_axis = 1

    def __init__(
        self, order: npt.NDArray[np.uint32], samples: int, replicas: int, dynamics: Dynamics, queue: Queue
    ) -> None:
        self.site_at, self._place, self._replicas, self._queue = order, place_of(order), replicas, queue
        self.lanes = cupy.asarray(packing.lane_masks(replicas))
        self.present = cupy.empty((samples, len(self.lanes), order.size, 2), cupy.uint64)
        self.copy = partial(copy_lanes, queue, self.present)
        if dynamics.start == "up":
            self.present[:] = self.lanes[None, :, None, :]
        else:
            queue.start_at_random(self.present, self.lanes, cupy.asarray(order))

    def words(self) -> npt.NDArray[np.uint64]:
        return np.take(self.present.get(), self._place, axis=2)

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.present.set(words.take(self.site_at, axis=2))

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        block, lane = divmod(replica, packing.LANES)
        words = state[sample, block, :, lane // 64].get()
        return packing.unpack_lane(words, lane % 64)[self._place]

    def read_all(self, state: Any, sample: int) -> Bits:
        """Return all configurations of a sample of a state as bits, (replicas, bytes)."""
        return of_replica_packed(state[sample].get().take(self._place, axis=1), self._replicas)

    @abstractmethod
    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding counted sums to sums at addresses; the last address, for the first sublattice, is optional."""


def copy_lanes(queue: Queue, state: Any, moves: Moves) -> None:
    """Queue copies of lanes of a state (samples, blocks, sites, 2); CuPy's device and stream must be the queue's."""
    samples, blocks, sites, _ = state.shape
    Launch(queue.device, "packing/copy_lanes.cu", "copy_lanes", {
        "state": state, "sites": np.uint32(sites), "first": cupy.asarray(first_moves(moves, samples, blocks)),
        "source": cupy.asarray(moves.source.astype(np.uint32)), "target": cupy.asarray(moves.target.astype(np.uint32)),
    })(queue.stream, (-(-sites // COPY_THREADS), blocks, samples), COPY_THREADS)  # fmt: skip


class CountedWords(OrderedWords):
    """Words with counting of spins +1 and unsatisfied bonds."""

    def __init__(self, plan: PackedRun, queue: Queue, lists: Sequence[npt.NDArray[Any]]) -> None:
        self.plan, bonds, place = plan, plan.counted, place_of(plan.batches.order)
        own = plan.lanes, plan.batches.order, *bonds[:-1]
        needed = sum(array.nbytes for array in (*lists, *own)) + 8 * int(np.prod(plan.shape))
        require_memory(queue.device, needed, f"the state of {plan.model.name}")
        self.lists = [cupy.asarray(array) for array in lists]
        ends = [place[edges].view(np.int32) for edges in (bonds.edges, bonds.further_edges)]
        self.edges, self._further_edges = (cupy.asarray(array) for array in ends)
        signs = [negative.astype(np.uint8) for negative in (bonds.negative, bonds.further_negative)]
        self._negative, self._further_negative = (cupy.asarray(array) for array in signs)
        self._lone = cupy.asarray(2 * place[bonds.lone] + bonds.positive)
        super().__init__(plan.batches.order, plan.model.samples, plan.replicas, plan.dynamics, queue)

    def _ready(self, name: str, items: int, arguments: dict[str, Any]) -> Callable[..., None]:
        """Return a counting kernel for ``items`` sites or bonds, which still needs the addresses of its sums."""
        samples, blocks, sites, _ = self.plan.shape
        launch = Launch(self._queue.device, "measuring/count_replica_packed.cu", name, {
            "state": self.present, "sites": np.uint32(sites), "unsatisfied": np.uint64(0), **arguments,
        })  # fmt: skip
        least, at_once = -(-items // (COUNT_THREADS * ITEMS_A_THREAD)), COUNTING * multiprocessors(self._queue.device)
        parts = max(least, min(items // (COUNT_THREADS * FEWEST_ITEMS), at_once // (samples * blocks)))
        return partial(launch, self._queue.stream, (parts, blocks, samples), COUNT_THREADS)

    def _arguments(self, edges: Any, negative: Any) -> dict[str, Any]:
        bonds = len(edges)
        stride = np.uint64(bonds if len(negative) > 1 else 0)
        return {"edges": edges, "negative": negative, "sign_stride": stride, "bonds": np.uint32(bonds)}

    @cached_property
    def _count(self) -> Callable[..., None]:
        spins = {"first_sites": np.uint32(self.plan.first), "up": np.uint64(0), "up_first": np.uint64(0)}
        items, bonds = max(len(self.edges), self.plan.model.sites), self._arguments(self.edges, self._negative)
        return self._ready("count_replica", items, bonds | spins)

    @cached_property
    def _count_more(self) -> list[tuple[Callable[..., None], int]]:
        """Kernels for bonds of a second term and for bonds that represent fields, with the number of their sum."""
        (rows, lone), further = self._lone.shape, len(self._further_edges)
        of_fields = {"lone": self._lone, "stride": np.uint64(lone if rows > 1 else 0), "bonds": np.uint32(lone)}
        of_term = self._arguments(self._further_edges, self._further_negative)
        kinds = ("count_more_bonds", 2, further, of_term), ("count_lone", 1, lone, of_fields)
        return [(self._ready(name, items, given), number) for name, number, items, given in kinds if items]

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding spins +1, unsatisfied bonds of each term and, given one more address, the sublattice's spins."""
        for count, number in self._count_more:
            count(unsatisfied=to[number])
        up_first = (*to, 0)[3 if self.plan.observables.terms else 2]
        self._count(up=to[0], unsatisfied=to[1], up_first=up_first)
