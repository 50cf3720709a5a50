"""Fortuin-Kasteleyn moves of replica-packed words on a GPU, which unpacked models have there too.

Open bonds are drawn for 128 replicas at a time and turned, so that a word is 32 bonds of one replica. Then a warp finds
the clusters of a replica by union-find in shared memory, or a block of threads in memory where they do not fit. The
kernels are in kernels/clusters/fortuin_kasteleyn.cu.
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
from spinsim.engine.moves.fortuin_kasteleyn.move import clusters_of, most_halvings
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising
from spinsim.packing import LANES

FILE: Final = "clusters/fortuin_kasteleyn.cu"
THREADS: Final = 256  # of a block that draws bonds or flips sites
JOINING: Final = 512  # of a block that joins a replica's sites in memory
MOST_WARPS: Final = 32  # of a block whose warps have a replica each
ENOUGH: Final = 8  # such warps, for which labels of bonds are worth their shared memory
WIDTH: Final = 32  # bonds or labels of a column
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
    *((FILE, name) for name in ("choose", "join_in_memory", "flip_sites")),
    *((FILE, instance("join_in_shared", in_shared)) for in_shared in FLAGS),
)


class Room(NamedTuple):
    """Warps of a block that join replicas in shared memory, its bytes, and if labels of bonds lie there too."""

    warps: int
    size: int
    has_pairs: bool


def room_for(sites: int, bonds: int, shared: int) -> Room | None:
    """Shared memory of a block for replicas of so many sites; None where not even one has room."""
    columns, pairs = -(-sites // WIDTH), 4 * WIDTH * -(-bonds // WIDTH)
    replica = 4 * (17 * columns + 2)
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
        import cupy

        self._kind, self._model, self._queue = kind, model, parts.queue
        self._replicas, self._kept = replicas, list[Any]()
        self._ladder: tuple[tuple[int, ...], bytes, Any] | None = None
        clusters, device, (samples, blocks, count, _) = model.once(clusters_of), parts.queue.device, words.present.shape
        bonds, order = clusters.bonds, clusters.order[::-1]
        edges, columns, numbers = len(bonds.number), -(-count // WIDTH), partial(np.ascontiguousarray, dtype=np.uint32)
        bond_columns, lanes = -(-edges // WIDTH), samples * blocks * LANES
        needed = sum(array.nbytes for array in bonds) + 12 * count + 12 * edges + 4 * lanes * (columns + bond_columns)
        require_memory(device, needed, f"the bonds of clusters of {model.name}")
        room, label = room_for(count, edges, shared_memory(device)), np.empty(count + 1, np.uint32)
        label[order], label[count] = np.arange(count, dtype=np.uint32), count
        place = place_of(words.site_at)
        opened, chosen = (cupy.empty(lanes * each, cupy.uint32) for each in (bond_columns, columns))
        self._kept += [words, opened, chosen]
        batch = record(
            BATCH, state=words.present, opened=opened, chosen=chosen, blocks=blocks, replicas=replicas, move=kind,
            first_sample=first_sample,
        )  # fmt: skip
        sites = self._record(
            SITES, site=numbers(order), place=numbers(place[order]), label=label[:count], count=count,
            columns=columns, most=most_halvings(count),
        )  # fmt: skip
        self._common = {
            "batch": batch, "bonds": self._bonds(bonds, label, np.append(place, np.uint32(count)), bool(room)),
            "sites": sites, "samples": np.uint32(samples), "time": np.uint64(0),
        }  # fmt: skip
        self._launches = [
            Launched(self._launch("choose"), (self._parts(bond_columns + columns), blocks, samples), THREADS),
            *(self._in_shared(room) if room else self._in_memory(samples, count)),
            Launched(self._launch("flip_sites"), (self._parts(columns), blocks, samples), THREADS),
        ]

    def _parts(self, columns: int) -> int:
        return max(1, min(MOST_PARTS, columns * WIDTH // (THREADS * COLUMNS_A_WARP)))

    def _in_shared(self, room: Room) -> list[Launched]:
        """The kernel whose warps find the clusters of a replica each."""
        launch = self._launch(instance("join_in_shared", room.has_pairs), room.size)
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
        found = []
        for first in range(0, samples, at_once):
            launch = self._launch("join_in_memory", parents=parents, marks=marks, first=np.uint32(first))
            found.append(Launched(launch, (replicas, min(at_once, samples - first), 1), JOINING))
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

    def _bonds(self, bonds: Bonds, label: Any, place: Any, are_pairs: bool) -> Any:
        """The bonds in the order of the smaller label that each joins."""
        count, labels = len(bonds.number), np.sort(label[bonds.ends], axis=1)
        order = np.argsort(labels[:, 0], kind="stable")
        labels, columns = labels[order], -(-count // WIDTH)
        begins = np.zeros(columns * WIDTH, np.uint8)
        begins[:count] = np.diff(labels[:, 0], prepend=np.uint32(2**32 - 1)) != 0
        packed, none = np.zeros(columns * WIDTH, np.uint32), np.zeros((0, 2), np.uint32)
        if are_pairs:
            packed[:count] = labels[:, 0] | labels[:, 1] << 16
        ordered = {
            name: np.ascontiguousarray(getattr(bonds, name)[..., order]) for name in ("number", "negative", "level")
        }
        return self._record(
            BONDS, **ordered, places=place[bonds.ends[order]], costs=bonds.costs, terms=bonds.terms, pairs=packed,
            labels=none if are_pairs else labels, starts=np.packbits(begins, bitorder="little").view(np.uint32),
            negative_stride=count if len(bonds.negative) > 1 else 0, level_stride=count if len(bonds.level) > 1 else 0,
            count=count, columns=columns, levels=len(bonds.costs),
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
        for number, (launch, grid, threads) in enumerate(self._launches):
            last = number == len(self._launches) - 1  # which draws nothing; only the first one knows temperatures
            of_moment = {} if last else now if number else {**now, "ladder": ladder}
            launch(self._queue.stream, grid, threads, **of_moment)


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
