"""Fortuin-Kasteleyn moves of replica-packed words on a GPU; unpacked models also have such words there.

Open bonds are drawn for 128 replicas at a time. On lattices that fit, clusters of Wolff and seeded moves are then
flooded, with 32 replicas per thread block. All other clusters are found by union-find over transposed words, which hold
32 bonds of one replica. A replica is processed by a warp in shared memory or, if its labels do not fit, by a thread
block in global memory. The kernels are in kernels/clusters/: fortuin_kasteleyn.cu, flood.cu, join.cu.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import FLAGS, Instances, instance, parameters
from spinsim.cuda.device import cupy, require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.cuda_queue import OnDevice, Step, queue_steps
from spinsim.engine.layouts.replica_packed_cuda import OrderedWords, place_of
from spinsim.engine.moves.fortuin_kasteleyn.clusters import KINDS, SEEDED, SWENDSEN_WANG, WOLFF, Bonds, axes_of
from spinsim.engine.moves.fortuin_kasteleyn.move import Clusters, clusters_of
from spinsim.engine.moves.move import FastPath, Moment, most_halvings
from spinsim.model.ising import Ising
from spinsim.packing import LANES

FLOOD: Final = "clusters/flood.cu"
WIDTH: Final = 32  # replicas of a thread block, threads of a warp
FLOODING: Final = 512  # most threads of a block that floods a lattice
RUN: Final = 16  # most sites of a row per thread
SIDES: Final = {2: (16, 32, 64), 3: (8, 10, 12, 16)}  # sides of lattices with kernels of their own
LINES: Final = struct_type(axis=(np.uint32, (3, 4)), begin=ADDRESS, most=np.uint32, row=np.uint32, size=np.uint32)
FLOODS: Final = tuple(instance("flood_clusters", axes, side) for axes, sides in SIDES.items() for side in (0, *sides))


class Rows:
    """Rows of a lattice of right angles along each axis, as assigned to threads, and the padding between them.

    Each row of ``row`` sites along the first axis is followed by a word of padding. ``size`` is the number of words of
    all sites. ``axis`` has length, stride, parts per row and number of rows of each axis; ``begin`` (axes, rows) is
    where rows begin.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.row, sites = shape[0], int(np.prod(shape))
        at = np.arange(sites) + np.arange(sites) // self.row
        grid = at.reshape(shape[::-1])
        self.size = sites + sites // self.row
        self.room = 8 * self.size  # bytes of shared memory
        parts = [-(-side // RUN) for side in shape]
        begins = [np.moveaxis(grid, -1 - a, 0)[0].reshape(-1) for a in range(len(shape))]
        strides = [int(np.moveaxis(grid, -1 - a, 0)[1 % side].flat[0]) for a, side in enumerate(shape)]
        rows = [begin.size for begin in begins]
        self.axis = np.array(list(zip(shape, strides, parts, rows, strict=True)), np.uint32)
        self.begin = np.zeros((len(shape), max(rows)), np.uint32)
        for a, begin in enumerate(begins):
            self.begin[a, : begin.size] = begin
        of_warp = [WIDTH // part if part <= WIDTH else 0 for part in parts]
        warps = [-(-count // each) if each else FLOODING for count, each in zip(rows, of_warp, strict=True)]
        self.threads = WIDTH * max(2, *warps)
        sides = set(shape)
        side = shape[0] if len(sides) == 1 and sides <= set(SIDES[len(shape)]) else 0
        self.kernel = instance("flood_clusters", len(shape), side)


def rows_of(model: Ising, room: int) -> Rows | None:
    """Return the rows of a model's lattice, if the threads of a block and ``room`` bytes suffice for them."""
    axes, lattice = axes_of(model), model.lattice
    if axes not in SIDES or lattice is None:
        return None
    rows = Rows(lattice.shape)
    return rows if rows.threads <= FLOODING and rows.room <= room else None


FILE: Final = "clusters/fortuin_kasteleyn.cu"
JOIN: Final = "clusters/join.cu"
THREADS: Final = 256  # threads of a block that draws bonds or flips sites
JOINING: Final = 512  # threads of a block that joins a replica's sites in memory
MOST_WARPS: Final = 24  # most warps of a block, one replica each; a multiprocessor has two such blocks
ENOUGH_IDLE: Final = 24  # idle bonds, of the 64 that a warp works on, before it gets new ones
ENOUGH: Final = 8  # warps, for which it pays to keep labels of bonds in shared memory
SPREAD: Final = WIDTH + 2  # labels from one column of bonds there to the next, so that its threads read other banks
FEW_LEVELS: Final = 4  # most sizes of bonds whose thresholds a block keeps
MOST_PARTS: Final = 16  # most blocks that share the columns of a block of replicas
COLUMNS_A_WARP: Final = 8  # least columns that a warp draws
GROUP: Final = THREADS // WIDTH  # columns that a block draws and writes at once
MOST_PARENTS: Final = 2**28  # most parents of replicas joined in memory at a time
FIRST_LEAF: Final = 2**31  # the first leaf, in place of a label
NO_BOND: Final = 2**32 - 1
RESERVED: Final = 1024  # bytes of shared memory that a block cannot use
BONDS: Final = struct_type(
    places=ADDRESS, number=ADDRESS, negative=ADDRESS, level=ADDRESS, costs=ADDRESS, terms=ADDRESS, larger=ADDRESS,
    smaller=ADDRESS, labels=ADDRESS, negative_stride=SIZE, level_stride=SIZE, count=np.uint32, columns=np.uint32,
    leaf_columns=np.uint32, leaf_width=np.uint32, width=np.uint32, levels=np.uint32,
)  # fmt: skip
SITES: Final = struct_type(
    site=ADDRESS, place=ADDRESS, label=ADDRESS, count=np.uint32, joined=np.uint32, columns=np.uint32,
    joined_columns=np.uint32, most=np.uint32,
)  # fmt: skip
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


class SharedLabels(NamedTuple):
    """Labels in a block's shared memory: warps (a replica each), bytes, and True if labels of bonds are there too."""

    warps: int
    size: int
    has_bonds: bool


def labels_in_shared(columns: int, bond_columns: int, shared: int) -> SharedLabels | None:
    """Shared memory of a block for replicas of ``columns`` columns of labels; None if not even one fits.

    A multiprocessor has two blocks if they have more warps than one larger block.
    """
    one = labels_of_block(columns, bond_columns, shared)
    two = labels_of_block(columns, bond_columns, (shared + RESERVED) // 2 - RESERVED)
    return two if one and two and two.has_bonds == one.has_bonds and 2 * two.warps > one.warps else one


def labels_of_block(columns: int, bond_columns: int, shared: int) -> SharedLabels | None:
    """Shared memory of one block, at most ``shared`` bytes."""
    bonds, quads = 2 * SPREAD * bond_columns, -(-columns // 4)
    replica = 4 * (max(WIDTH, 4 * quads + 1) + 64 * quads + 1)
    if replica > shared:
        return None
    next_to_bonds = max(0, shared - bonds) // replica
    has_bonds = next_to_bonds >= min(ENOUGH, shared // replica)
    warps = min(MOST_WARPS, next_to_bonds if has_bonds else shared // replica)
    return SharedLabels(warps, warps * replica + has_bonds * bonds, has_bonds)


class Layout:
    """Places in words of a model's sites and bonds, including bonds to the ghost; in natural order for floods.

    Attributes:
        bond_at: Bond at each place of the columns, NO_BOND in holes.
        site_at: Site at each position of the columns, the number of sites in holes.
        label: Label of each site, uint32 (sites,); leaves have labels from FIRST_LEAF on.
        joined: Number of labels.
        lists: Labels that bonds join, by name.
        leaf_columns: Number of columns with bonds of leaves.
        widths: Places for bonds of a leaf and of a label, with holes.
    """

    def __init__(self, count: int, edges: int) -> None:
        self.joined, self.leaf_columns, self.widths = count, 0, (0, 0)
        none = np.zeros(0, np.uint16)
        self.lists: dict[str, Any] = {"larger": none, "smaller": none, "labels": none}
        self.label = np.arange(count, dtype=np.uint32)
        self.bond_at, self.site_at = in_groups(np.arange(edges), NO_BOND), in_groups(np.arange(count), count)

    @property
    def columns(self) -> int:
        return len(self.site_at) // WIDTH

    @property
    def bond_columns(self) -> int:
        return len(self.bond_at) // WIDTH

    @property
    def joined_columns(self) -> int:
        return -(-self.joined // WIDTH)


class InMemory(Layout):
    """Labels of all sites; a site that leads earlier has a larger label."""

    def __init__(self, clusters: Clusters) -> None:
        order = clusters.order[::-1]
        super().__init__(order.size, len(clusters.bonds.number))
        self.label[order] = np.arange(order.size)
        self.site_at = in_groups(order, order.size)
        self.lists["labels"] = np.append(self.label, np.uint32(order.size))[clusters.bonds.ends]


class InShared(Layout):
    """Labels of all sites but leaves; bonds are grouped by leaf, and by label for bonds to larger labels.

    Raises:
        ValueError: if a label has more such bonds than a word has bits, or the number of labels exceeds 16 bits.
    """

    def __init__(self, clusters: Clusters) -> None:
        order, ends, leaves = clusters.order, clusters.bonds.ends, clusters.leaves
        count = order.size - leaves
        if count >= 2**16 - 1:  # checked before millions of bonds are sorted
            raise ValueError("labels that do not fit")
        super().__init__(order.size, len(ends))
        self.joined = count
        joined, leaf = order[:count][::-1], order[count:]
        self.label[joined], self.label[leaf] = np.arange(count), FIRST_LEAF + np.arange(leaves)
        labels = np.append(self.label, np.uint32(count))[ends]  # leaves have the largest labels
        lower, upper = labels.min(axis=1), labels.max(axis=1)
        of_leaf = upper >= FIRST_LEAF
        group, larger = np.where(of_leaf, upper - FIRST_LEAF, lower), np.where(of_leaf, lower, upper)
        places, columns, widths = np.zeros(len(ends), np.int64), [0, 0], [0, 0]
        for k, (bonds, groups) in enumerate(((np.flatnonzero(of_leaf), leaves), (np.flatnonzero(~of_leaf), count))):
            bonds = bonds[np.lexsort((-larger[bonds].astype(np.int64), group[bonds]))]
            begin = np.searchsorted(group[bonds], np.arange(groups + 1))
            widths[k] = max(int(np.diff(begin).max(initial=0)), int(k == 0))
            if widths[k] > WIDTH:
                raise ValueError("labels that do not fit")
            if widths[k]:
                word, part = np.divmod(group[bonds], WIDTH // widths[k])
                columns[k] = -(-groups // (WIDTH // widths[k]))
                member = np.arange(len(bonds)) - begin[group[bonds]]
                places[bonds] = (k * columns[0] + word) * WIDTH + part * widths[k] + member
        self.widths, self.leaf_columns = (widths[0], widths[1]), columns[0]
        self.bond_at = in_groups(np.full(WIDTH * sum(columns), NO_BOND), NO_BOND)
        self.bond_at[places] = np.arange(len(ends))
        halves = {name: np.zeros(self.bond_at.size, np.uint16) for name in ("larger", "smaller")}
        halves["larger"][places], halves["smaller"][places] = larger, lower
        self.lists |= halves
        of_word = WIDTH // widths[0]
        word, part = np.divmod(np.arange(leaves), of_word)
        at = np.full(WIDTH * of_word * -(-columns[0] // WIDTH), order.size, np.uint32)
        at[(word // WIDTH * of_word + part) * WIDTH + word % WIDTH] = leaf
        self.site_at = in_groups(np.append(in_groups(joined, order.size, WIDTH), at), order.size)


def in_groups(numbers: npt.NDArray[Any], hole: int, size: int = WIDTH * GROUP) -> npt.NDArray[np.uint32]:
    """Pad numbers with ``hole`` to whole groups of columns, or to a multiple of another size."""
    filled = np.full(-(-numbers.size // size) * size, hole, np.uint32)
    filled[: numbers.size] = numbers
    return filled


def parts_of(columns: int) -> int:
    """Number of blocks that share ``columns`` columns."""
    return max(1, min(MOST_PARTS, columns // (GROUP * COLUMNS_A_WARP)))


def layout_for(clusters: Clusters, shared: int) -> tuple[Layout, SharedLabels | None]:
    """Return labels in ``shared`` bytes of shared memory, with their sizes, or else labels in global memory."""
    try:
        layout = InShared(clusters)
    except ValueError:
        return InMemory(clusters), None
    room = labels_in_shared(layout.joined_columns, layout.bond_columns, shared)
    return (layout, room) if room else (InMemory(clusters), None)


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """Make the move of a kind for an engine's words; None for other layouts, such as dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(kind, model, replicas, first_sample, parts, parts.state)


def record_of_bonds(on_device: OnDevice, bonds: Bonds, layout: Layout, place: npt.NDArray[np.uint32]) -> Any:
    """Record of a layout's bonds for kernels; ``place`` is the place of each site's words. Holes have level -1."""
    at, count = layout.bond_at, layout.bond_at.size
    order, is_hole = np.where(at == NO_BOND, 0, at), at == NO_BOND
    level = np.ascontiguousarray(np.where(is_hole, -1, bonds.level[:, order]), np.int32)
    return on_device(
        BONDS, **layout.lists, places=place[bonds.ends[order]], number=bonds.number[order], level=level,
        negative=np.ascontiguousarray(bonds.negative[:, order]), costs=bonds.costs, terms=bonds.terms,
        negative_stride=count if len(bonds.negative) > 1 else 0, level_stride=count if len(level) > 1 else 0,
        count=len(bonds.number), columns=layout.bond_columns, leaf_columns=layout.leaf_columns,
        leaf_width=layout.widths[0], width=layout.widths[1], levels=len(bonds.costs),
    )  # fmt: skip


class ClustersOnGpu:
    """A ``FastPath`` of an engine; CuPy's present device and stream must be the engine's."""

    def __init__(
        self, kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts, words: OrderedWords
    ) -> None:
        self._kind, self._model, self._queue = kind, model, parts.queue
        self._replicas, self._on_device = replicas, OnDevice()
        self._ladder: tuple[tuple[int, ...], bytes, Any] | None = None
        clusters, device, (samples, blocks, count, _) = model.once(clusters_of), parts.queue.device, words.present.shape
        shared, bonds, lanes = shared_memory(device), clusters.bonds, samples * blocks * LANES
        rows = None if kind == SWENDSEN_WANG else rows_of(model, shared)
        layout, room = (Layout(count, len(bonds.number)), None) if rows else layout_for(clusters, shared)
        columns, of_bonds = layout.columns, layout.bond_columns
        needed = sum(array.nbytes for array in bonds) + 12 * count + (32 * WIDTH + 4 * lanes) * (columns + of_bonds)
        require_memory(device, needed, f"the bonds of clusters of {model.name}")
        place = np.append(place_of(words.site_at), np.uint32(count))
        opened, chosen = cupy.empty(lanes * of_bonds, cupy.uint32), cupy.zeros(lanes * columns, cupy.uint32)
        batch = self._on_device(
            BATCH, state=words.present, opened=opened, chosen=chosen, blocks=blocks, replicas=replicas, move=kind,
            first_sample=first_sample,
        )  # fmt: skip
        sites = self._on_device(
            SITES, site=layout.site_at, place=place[layout.site_at], label=layout.label, count=count,
            joined=layout.joined, columns=columns, joined_columns=layout.joined_columns, most=most_halvings(count),
        )  # fmt: skip
        self._common = {
            "batch": batch, "sites": sites, "bonds": record_of_bonds(self._on_device, bonds, layout, place),
            "samples": np.uint32(samples), "time": np.uint64(0),
        }  # fmt: skip
        choose = self._launch(FILE, instance("choose", len(bonds.costs) <= FEW_LEVELS, not rows))
        self._steps = [Step(choose, (parts_of(of_bonds + columns), blocks, samples), THREADS)]
        if rows:
            self._steps.append(self._in_rows(rows, samples))
            return
        self._steps += [
            *(self._in_shared(room) if room else self._in_memory(samples, count)),
            Step(self._launch(FILE, "flip_sites"), (parts_of(2 * columns), blocks, samples), THREADS, draws=False),
        ]

    def _in_rows(self, rows: Rows, samples: int) -> Step:
        lines = self._on_device(LINES, axis=0, begin=rows.begin, most=rows.begin.shape[1], row=rows.row, size=rows.size)
        lines["axis"][: len(rows.axis)] = rows.axis
        launch = self._launch(FLOOD, rows.kernel, rows.room, lines=lines)
        return Step(launch, (-(-self._replicas // WIDTH), samples, 1), rows.threads)

    def _in_shared(self, room: SharedLabels) -> list[Step]:
        """Return the kernel whose warps find the clusters of one replica each."""
        launch = self._launch(JOIN, instance("join_in_shared", room.has_bonds), room.size)
        blocks = -(-self._model.samples * self._replicas // room.warps)
        return [Step(launch, (blocks, 1, 1), room.warps * WIDTH)]

    def _in_memory(self, samples: int, count: int) -> list[Step]:
        """Return the kernels whose blocks find the clusters of one replica each, for some samples at a time."""
        replicas = self._replicas
        at_once = max(1, min(samples, MOST_PARENTS // (replicas * (count + 1))))
        size = at_once * replicas * (count + 1)
        require_memory(self._queue.device, 5 * size, f"the clusters of {self._model.name}")
        parents, marks = cupy.empty(size, cupy.uint32), cupy.empty(size, cupy.uint8)
        launches = []
        for first in range(0, samples, at_once):
            launch = self._launch(JOIN, "join_in_memory", parents=parents, marks=marks, first=np.uint32(first))
            launches.append(Step(launch, (replicas, min(at_once, samples - first), 1), JOINING))
        return launches

    def _launch(self, file: str, name: str, shared: int = 0, **arguments: Any) -> Launch:
        """Return a kernel with all arguments except the moment's."""
        given = {"ladder": np.zeros((), LADDER), **self._common, **arguments, "key": self._queue.keys.copy()}
        names = parameters(file, name)
        return Launch(self._queue.device, file, name, {one: given[one] for one in names}, shared)

    def __call__(self, moment: Moment, holder: Any) -> None:
        """Queue a move; ``holder`` is int32 on the device."""
        _, copies, temperatures = holder.shape
        beta = np.asarray(moment.beta, np.float64).reshape(-1, *np.shape(moment.beta)[1:2] or (1,))
        scaled = np.ascontiguousarray(np.broadcast_to(beta * self._model.quantum, (temperatures, beta.shape[1])))
        if self._ladder is None or self._ladder[:2] != (holder.shape, scaled.tobytes()):
            self._ladder = holder.shape, scaled.tobytes(), cupy.asarray(scaled)
        ladder = record(
            LADDER, holder=holder, beta=self._ladder[2], copies=copies, temperatures=temperatures, terms=beta.shape[1]
        )
        now = {"time": np.uint64(KINDS * moment.time + self._kind), "key": round_keys(moment.seed)}
        queue_steps(self._queue.stream, self._steps, {"ladder": ladder}, now)


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
