"""Fortuin-Kasteleyn moves of replica-packed words on a GPU, which unpacked models have there too.

Clusters of lattices that fit into a thread block are flooded, 32 replicas at a time; all others are found by
union-find, a replica at a time. The kernels are in kernels/clusters/fortuin_kasteleyn.cu.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import Instances, instance, parameters
from spinsim.cuda.device import require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.layouts.replica_packed.cuda_words import OrderedWords, place_of
from spinsim.engine.moves.fortuin_kasteleyn.bonds import KINDS, SEEDED, SWENDSEN_WANG, WOLFF, Bonds, axes_of
from spinsim.engine.moves.fortuin_kasteleyn.move import clusters_of, most_halvings
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising

FILE: Final = "clusters/fortuin_kasteleyn.cu"
THREADS: Final = 512  # of a block, at most
LANES: Final = 32  # replicas of a block
RUN: Final = 16  # sites of a row that a thread has, at most
FEW_LEVELS: Final = 4  # sizes of bonds whose thresholds a block keeps
FIXED: Final = 4096  # bytes of shared memory for temperatures and thresholds, more than there are
MOST_LABELS: Final = 2**28  # of replicas that are labelled at a time
SIDES: Final = {2: (16, 32, 64), 3: (8, 10, 12, 16)}  # of lattices whose sides kernels know
BONDS: Final = struct_type(
    ends=ADDRESS, number=ADDRESS, negative=ADDRESS, level=ADDRESS, costs=ADDRESS, terms=ADDRESS, negative_stride=SIZE,
    level_stride=SIZE, count=np.uint32, inner=np.uint32, levels=np.uint32,
)  # fmt: skip
SITES: Final = struct_type(
    place=ADDRESS, rank=ADDRESS, count=np.uint32, bits=np.uint32, most=np.uint32, row=np.uint32, size=np.uint32
)
LINES: Final = struct_type(axis=(np.uint32, (3, 4)), begin=ADDRESS, most=np.uint32)
LADDER: Final = struct_type(holder=ADDRESS, beta=ADDRESS, copies=np.uint32, temperatures=np.uint32, terms=np.uint32)
INSTANCES: Final[Instances] = (
    *((FILE, instance("flip_clusters", axes, side)) for axes, sides in SIDES.items() for side in (0, *sides)),
    (FILE, "choose"),
    (FILE, "flip_labelled"),
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
    if axes not in SIDES or lattice is None:
        return None
    rows = Rows(lattice.shape)
    return rows if rows.threads <= THREADS and 4 * (axes + 2) * rows.size <= room else None


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """The move of a kind of an engine's words; None where spins lie otherwise, as those of dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(kind, model, replicas, first_sample, parts, parts.state)


class Launched(NamedTuple):
    """A kernel with its grid and the threads of a block."""

    launch: Launch
    grid: tuple[int, int, int]
    threads: int


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
        self._kind, self._model, self._queue = kind, model, parts.queue
        self._replicas, self._kept = replicas, list[Any]()
        self._ladder: tuple[tuple[int, ...], bytes, Any] | None = None
        clusters = model.once(clusters_of)
        bonds, order = clusters.bonds, clusters.order
        rows = rows_of(model, shared_memory(parts.queue.device) - FIXED)
        require_memory(
            parts.queue.device, sum(array.nbytes for array in bonds) + 8 * model.sites, f"the bonds of {model.name}"
        )
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=np.uint32)
        sites = self._record(
            SITES, place=place_of(words.site_at), rank=rank, count=model.sites, bits=(model.sites - 1).bit_length(),
            most=most_halvings(model.sites), row=rows.row if rows else 0, size=rows.size if rows else model.sites,
        )  # fmt: skip
        self._common = {
            "state": words.present, "blocks": np.uint32(words.present.shape[1]), "replicas": np.uint32(replicas),
            "bonds": self._bonds(bonds, model.bonds), "sites": sites, "kind": np.uint32(kind),
            "first_sample": np.uint32(first_sample), "time": np.uint64(0),
        }  # fmt: skip
        self._launches = self._in_rows(rows) if rows else self._labelled(bonds, rank)

    def _in_rows(self, rows: Rows) -> list[Launched]:
        """The kernel that floods along rows."""
        axes, sides = len(rows.axis), set(rows.axis[:, 0].tolist())
        side = next(iter(sides)) if len(sides) == 1 and sides <= set(SIDES[axes]) else 0
        lines = self._record(LINES, axis=0, begin=rows.begin, most=rows.begin.shape[1])
        lines["axis"][:axes] = rows.axis
        launch = self._launch(instance("flip_clusters", axes, side), 4 * (axes + 2) * rows.size, lines=lines)
        words = -(-self._replicas // LANES)
        return [Launched(launch, (words, self._model.samples, 1), max(rows.threads, 2 * LANES))]

    def _labelled(self, bonds: Bonds, rank: Any) -> list[Launched]:
        """The kernels of any graph: which bonds are open, then clusters of some samples at a time."""
        import cupy

        model, replicas, count = self._model, self._replicas, len(bonds.number)
        words, samples = -(-replicas // LANES), model.samples
        at_once = max(1, min(samples, MOST_LABELS // (replicas * (model.sites + 1))))
        needed = 4 * (samples * words * (count + model.sites) + at_once * replicas * (model.sites + 1)) + 8 * count
        require_memory(self._queue.device, needed, f"the clusters of {model.name}")
        opened, chosen = (cupy.empty((samples, words, size), cupy.uint32) for size in (count, model.sites))
        labels = cupy.asarray(np.append(rank + 1, 0).astype(np.int32)[bonds.ends])
        parents = cupy.empty((at_once, replicas, model.sites + 1), cupy.uint32)
        parts = min(64, -(-count // (4 * THREADS)) or 1)
        choosing = self._launch("choose", opened=opened, chosen=chosen)
        found = [Launched(choosing, (words, samples, parts), THREADS)]
        for first in range(0, samples, at_once):
            launch = self._launch(
                "flip_labelled", opened=opened, chosen=chosen, labels=labels, parents=parents, first=np.uint32(first)
            )
            grid = replicas, min(at_once, samples - first), 1
            found.append(Launched(launch, grid, min(THREADS, -(-model.sites // LANES) * LANES)))
        return found

    def _launch(self, name: str, shared: int = 0, **arguments: Any) -> Launch:
        """A kernel with all arguments but those of a moment."""
        given = {"ladder": np.zeros((), LADDER), **self._common, **arguments, "key": self._queue.keys.copy()}
        names = parameters(FILE, name)
        return Launch(self._queue.device, FILE, name, {one: given[one] for one in names}, shared)

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
        now: dict[str, Any] = {"time": np.uint64(KINDS * moment.time + self._kind), "key": round_keys(moment.seed)}
        for number, (launch, grid, threads) in enumerate(self._launches):
            of_moment = now if number else {**now, "ladder": ladder}  # only the first kernel knows temperatures
            launch(self._queue.stream, grid, threads, **of_moment)


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
