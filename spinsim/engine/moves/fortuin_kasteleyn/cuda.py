"""Fortuin-Kasteleyn moves of replica-packed words on a GPU: a thread block for 32 replicas of a sample.

Unpacked models have such words on a GPU too. The kernels are in kernels/clusters/fortuin_kasteleyn.cu.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import FLAGS, Instances, instance
from spinsim.cuda.device import require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.layouts.replica_packed.cuda_words import OrderedWords, place_of
from spinsim.engine.moves.fortuin_kasteleyn.bonds import KINDS, SEEDED, SWENDSEN_WANG, WOLFF, Bonds, axes_of
from spinsim.engine.moves.fortuin_kasteleyn.move import clusters_of, most_halvings
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.graph import adjacency, colouring
from spinsim.model.ising import Ising

FILE: Final = "clusters/fortuin_kasteleyn.cu"
THREADS: Final = 512  # of a block, at most
LANES: Final = 32  # replicas of a block
RUN: Final = 16  # sites of a row that a thread has, at most
FEW_LEVELS: Final = 4  # sizes of bonds whose thresholds a block keeps
FIXED: Final = 4096  # bytes of shared memory for temperatures and thresholds, more than there are
AXES: Final = (2, 3)  # of lattices that threads have along rows
SIDES: Final = {2: (16, 32, 64), 3: (8, 16)}  # of lattices whose sides kernels know
BONDS: Final = struct_type(
    ends=ADDRESS, number=ADDRESS, negative=ADDRESS, level=ADDRESS, costs=ADDRESS, terms=ADDRESS, negative_stride=SIZE,
    level_stride=SIZE, count=np.uint32, inner=np.uint32, levels=np.uint32,
)  # fmt: skip
SITES: Final = struct_type(
    place=ADDRESS, rank=ADDRESS, count=np.uint32, bits=np.uint32, most=np.uint32, row=np.uint32, size=np.uint32
)
GRAPH: Final = struct_type(
    order=ADDRESS, near=ADDRESS, bond=ADDRESS, colour_start=ADDRESS, degree=ADDRESS, colours=np.uint32
)
LINES: Final = struct_type(axis=(np.uint32, (3, 4)), begin=ADDRESS, most=np.uint32)
LADDER: Final = struct_type(holder=ADDRESS, beta=ADDRESS, copies=np.uint32, temperatures=np.uint32, terms=np.uint32)
INSTANCES: Final[Instances] = (
    *((FILE, instance("flip_clusters", axes, side, True)) for axes in AXES for side in (0, *SIDES[axes])),
    *((FILE, instance("flip_clusters", 0, 0, in_shared)) for in_shared in FLAGS),
)


class Rows:
    """Rows of a lattice of right angles along each axis, as threads have them, and the padding between them.

    Args:
        shape: Sides of the lattice.

    Attributes:
        row: Sites of a row along the first axis, behind each of which there is a word of padding.
        size: Words of all sites.
        axis: Length, stride, parts of a row and rows of each axis.
        begin: Where rows begin, (axes, rows).
        threads: Of a block.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.row, sites = shape[0], int(np.prod(shape))
        at = np.arange(sites) + np.arange(sites) // self.row
        grid = at.reshape(shape[::-1])
        self.size = sites + sites // self.row
        parts = [-(-side // RUN) for side in shape]
        begins = [np.moveaxis(grid, -1 - a, 0)[0].reshape(-1) for a in range(len(shape))]
        strides = [int(np.moveaxis(grid, -1 - a, 0)[1 % side].flat[0]) for a, side in enumerate(shape)]
        rows = [begin.size for begin in begins]
        self.axis = np.array(list(zip(shape, strides, parts, rows, strict=True)), np.uint32)
        self.begin = np.zeros((len(shape), max(rows)), np.uint32)
        for a, begin in enumerate(begins):
            self.begin[a, : begin.size] = begin
        of_warp = [LANES // part if part <= LANES else 0 for part in parts]
        warps = [-(-count // each) if each else THREADS for count, each in zip(rows, of_warp, strict=True)]
        self.threads = LANES * max(warps)


def rows_of(model: Ising, room: int) -> Rows | None:
    """Return the rows of a model's lattice, where a thread block has threads and so many bytes for all of them."""
    axes, lattice = axes_of(model), model.lattice
    if axes not in AXES or lattice is None:
        return None
    rows = Rows(lattice.shape)
    return rows if rows.threads <= THREADS and 4 * (axes + 2) * rows.size <= room else None


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """The move of a kind of an engine's words; None where spins lie otherwise, as those of dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(kind, model, replicas, first_sample, parts, parts.state)


class ClustersOnGpu:
    """A ``FastPath``.

    Args:
        kind: Which clusters flip.
        model: What is simulated.
        replicas: Of each sample.
        first_sample: Number of the first one in the whole run.
        parts: Of the engine; the present device and stream of CuPy are its own.
        words: The spins.
    """

    def __init__(
        self, kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts, words: OrderedWords
    ) -> None:
        import cupy

        self._kind, self._model, self._queue = kind, model, parts.queue
        device, clusters = parts.queue.device, model.once(clusters_of)
        bonds, order, room = clusters.bonds, clusters.order, shared_memory(device) - FIXED
        inner, rows, self._kept = model.bonds, rows_of(model, room), list[Any]()
        size = rows.size if rows else model.sites
        block_bytes = 4 * (2 * size + (rows.axis.shape[0] * size if rows else inner))
        words_of_replicas = -(-replicas // LANES)
        in_shared = block_bytes <= room
        lie = 0 if in_shared else block_bytes * words_of_replicas * model.samples
        lists = sum(array.nbytes for array in bonds) + 16 * inner
        require_memory(device, lie + lists, f"the clusters of {model.name}")
        scratch = cupy.empty(lie // 4, cupy.uint32)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=np.uint32)
        sites = self._record(
            SITES, place=place_of(words.site_at), rank=rank, count=model.sites, bits=(model.sites - 1).bit_length(),
            most=most_halvings(model.sites), row=rows.row if rows else 0, size=size,
        )  # fmt: skip
        self._threads = (
            max(rows.threads, 2 * LANES) if rows else min(THREADS, -(-max(model.sites, 64) // LANES) * LANES)
        )
        self._grid = words_of_replicas, model.samples, 1
        self._ladder: tuple[tuple[int, ...], bytes, Any] | None = None
        axes, sides = (len(rows.axis), set(rows.axis[:, 0].tolist())) if rows else (0, set())
        side = next(iter(sides)) if len(sides) == 1 and sides <= set(SIDES.get(axes, ())) else 0
        name = instance("flip_clusters", axes, side, in_shared)
        self._launch = Launch(device, FILE, name, {
            "state": words.present, "blocks": np.uint32(words.present.shape[1]), "replicas": np.uint32(replicas),
            "bonds": self._bonds(bonds, inner), "sites": sites, "graph": self._graph(model, rows is None),
            "lines": self._lines(rows), "ladder": np.zeros((), LADDER), "scratch": scratch, "kind": np.uint32(kind),
            "first_sample": np.uint32(first_sample), "time": np.uint64(0), "key": parts.queue.keys.copy(),
        }, block_bytes if in_shared else 0)  # fmt: skip

    def _record(self, kind: Any, **members: Any) -> Any:
        """A struct whose arrays are put on the device, where they stay as long as the move."""
        import cupy

        on_device = {
            name: cupy.asarray(value) if isinstance(value, np.ndarray) else value for name, value in members.items()
        }
        self._kept.extend(on_device.values())
        return record(kind, **on_device)

    def _bonds(self, bonds: Bonds, inner: int) -> Any:
        count = len(bonds.number)
        strides = {
            f"{name}_stride": count if len(array) > 1 else 0
            for name, array in (("negative", bonds.negative), ("level", bonds.level))
        }
        return self._record(BONDS, **bonds._asdict(), **strides, count=count, inner=inner, levels=len(bonds.costs))

    def _graph(self, model: Ising, is_used: bool) -> Any:
        """Neighbours in the order of colours, of any graph."""
        if not is_used:
            return np.zeros((), GRAPH)
        near, colour = adjacency(model.graph), colouring(model.graph)
        order = np.argsort(colour, kind="stable").astype(np.uint32)
        degree, first = np.diff(near.start)[order], near.start[:-1][order]
        slots = int(degree.max(initial=1))
        of_slot = np.zeros((2, slots, model.sites), np.uint32)
        number = number_in_list(model)
        for slot in range(slots):
            there = slot < degree
            at = first[there] + slot
            of_slot[0, slot, there], of_slot[1, slot, there] = near.neighbour[at], number[near.bond[at]]
        starts = np.searchsorted(colour[order], np.arange(colour.max() + 2)).astype(np.uint32)
        return self._record(
            GRAPH, order=order, near=of_slot[0], bond=of_slot[1], colour_start=starts, degree=degree.astype(np.uint16),
            colours=len(starts) - 1,
        )  # fmt: skip

    def _lines(self, rows: Rows | None) -> Any:
        if rows is None:
            return np.zeros((), LINES)
        lines = self._record(LINES, axis=0, begin=rows.begin, most=rows.begin.shape[1])
        lines["axis"][: len(rows.axis)] = rows.axis
        return lines

    def __call__(self, moment: Moment, holder: Any) -> None:
        """Queue a move; ``holder`` is int32 on the device."""
        import cupy

        _, copies, temperatures = holder.shape
        beta = np.asarray(moment.beta, np.float64).reshape(-1, *np.shape(moment.beta)[1:2] or (1,))
        scaled = np.ascontiguousarray(np.broadcast_to(beta * self._model.quantum, (temperatures, beta.shape[1])))
        if self._ladder is None or self._ladder[:2] != (holder.shape, scaled.tobytes()):
            self._ladder = holder.shape, scaled.tobytes(), cupy.asarray(scaled)
        ladder = record(
            LADDER, holder=holder, beta=self._ladder[2], copies=copies, temperatures=temperatures, terms=beta.shape[1]
        )
        time = np.uint64(KINDS * moment.time + self._kind)
        self._launch(
            self._queue.stream, self._grid, self._threads, ladder=ladder, time=time, key=round_keys(moment.seed)
        )


def number_in_list(model: Ising) -> npt.NDArray[np.uint32]:
    """Place of each of the model's bonds in the list of ``bonds_of``."""
    axes, number = axes_of(model), np.arange(model.bonds, dtype=np.uint32)
    return np.ascontiguousarray(number.reshape(axes, -1).T).reshape(-1) if axes else number


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
