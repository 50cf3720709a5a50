"""Houdayer moves of replica-packed words on a GPU: a thread block for 32 pairs of a sample.

Unpacked models have such words on a GPU too. The kernels are in kernels/clusters/houdayer.cu.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import FLAGS, Instances, instance
from spinsim.cuda.device import require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.layouts.replica_packed.cuda_words import OrderedWords, place_of
from spinsim.engine.moves.houdayer.move import Bonds, bonds_of, most_halvings
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.graph import colouring
from spinsim.model.ising import Ising
from spinsim.model.quanta import distinct

FILE: Final = "clusters/houdayer.cu"
THREADS: Final = 512  # of a block, at most
LANES: Final = 32  # pairs of a block
PAIRS: Final = struct_type(
    one=ADDRESS, other=ADDRESS, halvings=ADDRESS, of_replica=ADDRESS, keys=ADDRESS, count=np.uint32, replicas=np.uint32
)
GROWTH: Final = struct_type(
    order=ADDRESS, near=ADDRESS, degree=ADDRESS, colour_start=ADDRESS, near_stride=SIZE, degree_stride=SIZE,
    sites=np.uint32, colours=np.uint32, in_field=np.uint32,
)  # fmt: skip
INSTANCES: Final[Instances] = (
    (FILE, "pair_copies"),
    *((FILE, instance("move_clusters", in_shared)) for in_shared in FLAGS),
)


def fast_path(model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """The move of an engine's words where they lie; None where spins lie otherwise, as those of dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(model, replicas, first_sample, parts, parts.state)


class ClustersOnGpu:
    """A ``FastPath``.

    Args:
        model: What is simulated.
        replicas: Of each sample.
        first_sample: Number of the first one in the whole run.
        parts: Of the engine; the present device and stream of CuPy are its own.
        words: The spins.
    """

    def __init__(self, model: Ising, replicas: int, first_sample: int, parts: CudaParts, words: OrderedWords) -> None:
        self._model, self._replicas, self._queue, self._words = model, replicas, parts.queue, words
        self._first_sample = np.uint32(first_sample)
        self._threads = min(THREADS, -(-model.sites // LANES) * LANES)
        self._growth = self._laid_out(bonds_of(model))
        self._launches: tuple[tuple[int, ...], Launch, Launch] | None = None

    def _laid_out(self, bonds: Bonds) -> Any:
        """The graph in the order of the words, as kernels take it."""
        import cupy

        order, sites, device = self._words.site_at, self._model.sites, self._queue.device
        place, degree = place_of(order), np.diff(bonds.start)[:, order]
        slots, rows = int(degree.max(initial=1)), len(degree)
        require_memory(device, rows * sites * (4 * slots + 2), f"the bonds of clusters of {self._model.name}")
        near = np.zeros((rows, slots, sites), np.uint32)
        first = bonds.start[:, :-1][:, order]
        for slot in range(slots):
            there = slot < degree
            near[:, slot][there] = place[bonds.neighbour[first[there] + slot]]
        colour = colouring(self._model.graph)[order]
        starts = np.searchsorted(colour, np.arange(colour[-1] + 2)).astype(np.uint32)
        arrays = order, near, np.ascontiguousarray(degree, np.uint16), starts
        self._arrays = [cupy.asarray(array) for array in arrays]  # the record holds addresses alone
        strides = (near[0].size, sites) if rows > 1 else (0, 0)
        in_field = bool(np.any(distinct(self._model.fields)))
        return record(
            GROWTH, **dict(zip(("order", "near", "degree", "colour_start"), self._arrays, strict=True)),
            near_stride=strides[0], degree_stride=strides[1], sites=sites, colours=len(starts) - 1, in_field=in_field,
        )  # fmt: skip

    def __call__(self, moment: Moment, holder: Any) -> None:
        """Queue a move; ``holder`` is int32 on the device."""
        samples, copies, temperatures = holder.shape
        if copies < 2:
            return
        if self._launches is None or self._launches[0] != holder.shape:
            self._launches = holder.shape, *self._made(copies, temperatures)
        _, pairing, moving = self._launches
        stream = self._queue.stream
        now: dict[str, Any] = {"time": moment.time, "key": round_keys(moment.seed)}
        pairing(stream, (samples, 1, 1), THREADS, holder=holder.data.ptr, **now)
        words = -(-(copies // 2 * temperatures) // LANES)
        moving(stream, (words, samples, 1), self._threads, **now)

    def _made(self, copies: int, temperatures: int) -> tuple[Launch, Launch]:
        """Both kernels with all arguments but those of a moment."""
        import cupy

        queue, model, count = self._queue, self._model, copies // 2 * temperatures
        sizes = {"one": count, "other": count, "halvings": count, "of_replica": self._replicas}
        arrays = {name: cupy.zeros((model.samples, size), cupy.uint32) for name, size in sizes.items()}
        arrays["keys"] = cupy.zeros((model.samples, self._replicas), cupy.uint64)
        pairs = record(PAIRS, **arrays, count=count, replicas=self._replicas)
        bytes_a_block = 2 * 4 * model.sites
        in_shared = bytes_a_block + 1024 <= shared_memory(queue.device)
        lie = model.samples * -(-count // LANES) * bytes_a_block
        if not in_shared:
            require_memory(queue.device, lie, f"the clusters of {model.name}")
        scratch = cupy.empty(0 if in_shared else lie // 4, cupy.uint32)
        self._arrays[4:] = [*arrays.values(), scratch]
        common = {"pairs": pairs, "first_sample": self._first_sample, "time": np.uint64(0), "key": queue.keys.copy()}
        pairing = Launch(queue.device, FILE, "pair_copies", {
            "holder": np.uint64(0), "copies": np.uint32(copies), "temperatures": np.uint32(temperatures),
            "most": np.uint32(most_halvings(model.sites)), **common,
        })  # fmt: skip
        moving = Launch(queue.device, FILE, instance("move_clusters", in_shared), {
            "state": self._words.present, "blocks": np.uint32(self._words.present.shape[1]), "growth": self._growth,
            "scratch": scratch, **common | {"key": queue.keys.copy()},
        }, bytes_a_block if in_shared else 0)  # fmt: skip
        return pairing, moving
