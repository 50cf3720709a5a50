"""Fortuin-Kasteleyn moves of replica-packed words on a GPU, which unpacked models have there too.

Open bonds are drawn for 128 replicas at a time. On lattices that fit, clusters of Wolff and seeded moves are then
flooded, 32 replicas a block of threads. All others are found by union-find over turned words, which are 32 bonds of one
replica: a warp has a replica in shared memory, or a block of threads in memory where there is no room for its labels.
The kernels are in kernels/clusters/: fortuin_kasteleyn.cu, flood.cu, join.cu.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import FLAGS, Instances, instance, parameters
from spinsim.cuda.device import require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.layouts.replica_packed.cuda_words import OrderedWords, place_of
from spinsim.engine.moves.fortuin_kasteleyn.bonds import KINDS, SEEDED, SWENDSEN_WANG, WOLFF, Bonds
from spinsim.engine.moves.fortuin_kasteleyn.cuda_flood import FLOOD, FLOODS, LINES, WIDTH, Rows, rows_of
from spinsim.engine.moves.fortuin_kasteleyn.move import clusters_of, most_halvings
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising
from spinsim.packing import LANES

FILE: Final = "clusters/fortuin_kasteleyn.cu"
JOIN: Final = "clusters/join.cu"
THREADS: Final = 256  # of a block that draws bonds or flips sites
JOINING: Final = 512  # of a block that joins a replica's sites in memory
MOST_WARPS: Final = 32  # of a block whose warps have a replica each
ENOUGH_IDLE: Final = 16  # of the 64 bonds that a warp can have in hand, so that new ones are handed out
ENOUGH: Final = 8  # such warps, for which labels of bonds are worth their shared memory
FEW_LEVELS: Final = 4  # sizes of bonds whose thresholds a block keeps
MOST_PARTS: Final = 16  # blocks that share the columns of a block of replicas
COLUMNS_A_WARP: Final = 8  # at least
MOST_PARENTS: Final = 2**28  # of replicas that are joined in memory at a time
BONDS: Final = struct_type(
    places=ADDRESS, number=ADDRESS, negative=ADDRESS, level=ADDRESS, costs=ADDRESS, terms=ADDRESS, pairs=ADDRESS,
    labels=ADDRESS, starts=ADDRESS, negative_stride=SIZE, level_stride=SIZE, count=np.uint32, columns=np.uint32,
    levels=np.uint32,
)  # fmt: skip
SITES: Final = struct_type(
    site=ADDRESS, place=ADDRESS, label=ADDRESS, count=np.uint32, columns=np.uint32, most=np.uint32
)
LADDER: Final = struct_type(holder=ADDRESS, beta=ADDRESS, copies=np.uint32, temperatures=np.uint32, terms=np.uint32)
BATCH: Final = struct_type(
    state=ADDRESS, opened=ADDRESS, chosen=ADDRESS, blocks=np.uint32, replicas=np.uint32, move=np.uint32,
    first_sample=np.uint32,
)  # fmt: skip
INSTANCES: Final[Instances] = (
    *((FILE, instance("choose", is_few, turned)) for is_few in FLAGS for turned in FLAGS),
    (FILE, "flip_sites"),
    *((FLOOD, expression) for expression in FLOODS),
    *((JOIN, instance("join_in_shared", in_shared)) for in_shared in FLAGS),
    (JOIN, "join_in_memory"),
)


class Room(NamedTuple):
    """Warps of a block that join replicas in shared memory, its bytes, and if labels of bonds lie there too."""

    warps: int
    size: int
    has_pairs: bool


def room_for(sites: int, bonds: int, shared: int) -> Room | None:
    """Shared memory of a block for replicas of so many sites; None where not even one has room."""
    columns, pairs = -(-sites // WIDTH), 4 * WIDTH * -(-bonds // WIDTH)
    quads = -(-columns // 4)
    replica = 4 * (max(WIDTH, 4 * quads + 1) + 64 * quads + 1)
    if sites >= 2**16 - 1 or replica > shared:
        return None
    beside_pairs = max(0, shared - pairs) // replica
    has_pairs = beside_pairs >= min(ENOUGH, shared // replica)
    warps = min(MOST_WARPS, beside_pairs if has_pairs else shared // replica)
    return Room(warps, warps * replica + has_pairs * pairs, has_pairs)


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """The move of a kind of an engine's words; None where spins lie otherwise, as those of dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(kind, model, replicas, first_sample, parts, parts.state)


class Launched(NamedTuple):
    """A kernel with its grid and the threads of a block, and if it takes the time and the key of a moment."""

    launch: Launch
    grid: tuple[int, int, int]
    threads: int
    draws: bool = True


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
        self._replicas, self._kept = replicas, list[Any]()
        self._ladder: tuple[tuple[int, ...], bytes, Any] | None = None
        clusters, device, (samples, blocks, count, _) = model.once(clusters_of), parts.queue.device, words.present.shape
        bonds, edges = clusters.bonds, len(clusters.bonds.number)
        columns, of_bonds, lanes = -(-count // WIDTH), -(-edges // WIDTH), samples * blocks * LANES
        needed = sum(array.nbytes for array in bonds) + 12 * count + 12 * edges + 4 * lanes * (columns + of_bonds)
        require_memory(device, needed, f"the bonds of clusters of {model.name}")
        shared = shared_memory(device)
        rows = None if kind == SWENDSEN_WANG else rows_of(model, shared)
        room = room_for(count, edges, shared)
        order = np.arange(count) if rows else clusters.order[::-1]
        label, place = np.empty(count + 1, np.uint32), place_of(words.site_at)
        label[order], label[count] = np.arange(count), count
        opened, chosen = (cupy.empty(lanes * each, cupy.uint32) for each in (of_bonds, columns))
        self._kept += [words, opened, chosen]
        batch = record(
            BATCH, state=words.present, opened=opened, chosen=chosen, blocks=blocks, replicas=replicas, move=kind,
            first_sample=first_sample,
        )  # fmt: skip
        sites = self._record(
            SITES, site=np.ascontiguousarray(order, np.uint32), place=place[order], label=label[:count], count=count,
            columns=columns, most=most_halvings(count),
        )  # fmt: skip
        turned = None if rows else label
        self._common = {
            "batch": batch, "sites": sites, "samples": np.uint32(samples), "time": np.uint64(0),
            "bonds": self._bonds(bonds, turned, np.append(place, np.uint32(count)), bool(room)),
        }  # fmt: skip
        choosing = self._launch(FILE, instance("choose", len(bonds.costs) <= FEW_LEVELS, not rows))
        self._launches = [Launched(choosing, (self._parts(of_bonds + columns), blocks, samples), THREADS)]
        if rows:
            self._launches.append(self._in_rows(rows, samples))
            return
        flipping = self._launch(FILE, "flip_sites")
        self._launches += [
            *(self._in_shared(room) if room else self._in_memory(samples, count)),
            Launched(flipping, (self._parts(columns), blocks, samples), THREADS, draws=False),
        ]

    def _parts(self, columns: int) -> int:
        return max(1, min(MOST_PARTS, columns * WIDTH // (THREADS * COLUMNS_A_WARP)))

    def _in_rows(self, rows: Rows, samples: int) -> Launched:
        """The kernel that floods lattices, 32 replicas a block."""
        lines = self._record(LINES, axis=0, begin=rows.begin, most=rows.begin.shape[1], row=rows.row, size=rows.size)
        lines["axis"][: len(rows.axis)] = rows.axis
        launch = self._launch(FLOOD, rows.kernel, rows.room, lines=lines)
        return Launched(launch, (-(-self._replicas // WIDTH), samples, 1), rows.threads)

    def _in_shared(self, room: Room) -> list[Launched]:
        """The kernel whose warps find the clusters of a replica each."""
        launch = self._launch(JOIN, instance("join_in_shared", room.has_pairs), room.size)
        blocks = -(-self._model.samples * self._replicas // room.warps)
        return [Launched(launch, (blocks, 1, 1), room.warps * WIDTH)]

    def _in_memory(self, samples: int, count: int) -> list[Launched]:
        """The kernels whose blocks find the clusters of a replica each, of some samples at a time."""
        import cupy

        replicas = self._replicas
        at_once = max(1, min(samples, MOST_PARENTS // (replicas * (count + 1))))
        size = at_once * replicas * (count + 1)
        require_memory(self._queue.device, 5 * size, f"the clusters of {self._model.name}")
        parents, marks = cupy.empty(size, cupy.uint32), cupy.empty(size, cupy.uint8)
        launches = []
        for first in range(0, samples, at_once):
            launch = self._launch(JOIN, "join_in_memory", parents=parents, marks=marks, first=np.uint32(first))
            launches.append(Launched(launch, (replicas, min(at_once, samples - first), 1), JOINING))
        return launches

    def _launch(self, file: str, name: str, shared: int = 0, **arguments: Any) -> Launch:
        """A kernel with all arguments but those of a moment."""
        given = {"ladder": np.zeros((), LADDER), **self._common, **arguments, "key": self._queue.keys.copy()}
        names = parameters(file, name)
        return Launch(self._queue.device, file, name, {one: given[one] for one in names}, shared)

    def _record(self, kind: Any, **members: Any) -> Any:
        """A struct whose arrays are put on the device, where they stay as long as the move."""
        import cupy

        on_device = {
            name: cupy.asarray(value) if isinstance(value, np.ndarray) else value for name, value in members.items()
        }
        self._kept.extend(on_device.values())
        return record(kind, **on_device)

    def _bonds(self, bonds: Bonds, label: Any, place: Any, are_pairs: bool) -> Any:
        """The bonds, with labels in the order of the smaller one that each joins, that to the largest one first."""
        count, columns = len(bonds.number), -(-len(bonds.number) // WIDTH)
        order, none = np.arange(count), np.zeros((0, 2), np.uint32)
        lists: dict[str, Any] = {"pairs": none, "labels": none, "starts": none}
        if label is not None:
            labels = np.sort(label[bonds.ends], axis=1)
            order = np.lexsort((-labels[:, 1].astype(np.int64), labels[:, 0]))
            labels = labels[order]
            begins, packed = np.zeros(columns * WIDTH, np.uint8), np.zeros(columns * WIDTH, np.uint32)
            begins[:count] = np.diff(labels[:, 0], prepend=np.uint32(2**32 - 1)) != 0
            lists["starts"] = np.packbits(begins, bitorder="little").view(np.uint32)
            packed[:count] = labels[:, 0] | labels[:, 1] << 16
            lists["pairs" if are_pairs else "labels"] = packed if are_pairs else labels
        for name in ("number", "negative", "level"):
            lists[name] = np.ascontiguousarray(getattr(bonds, name)[..., order])
        return self._record(
            BONDS, **lists, places=place[bonds.ends[order]], costs=bonds.costs, terms=bonds.terms, count=count,
            columns=columns, levels=len(bonds.costs), negative_stride=count if len(bonds.negative) > 1 else 0,
            level_stride=count if len(bonds.level) > 1 else 0,
        )  # fmt: skip

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
        for number, (launch, grid, threads, draws) in enumerate(self._launches):
            of_ladder = {} if number else {"ladder": ladder}  # only the first kernel knows temperatures
            launch(self._queue.stream, grid, threads, **of_ladder, **(now if draws else {}))


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
