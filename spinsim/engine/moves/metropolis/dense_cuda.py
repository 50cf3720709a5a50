"""Dense models on a GPU: a thread block has a group of replicas, whose spins stay in shared memory for many sweeps.

Couplings of 0 and +-unit are bits in the order in which kernels/metropolis/dense_signs.cu multiplies them. A block of
the sweep has 64 sites. Each of 8 warps multiplies two tiles of 8 sites with spins, for half of the columns. A step has
256 columns, and a warp fetches two steps of a tile at once. Within a step lane 4 g + t has words t and t + 4 of eight,
for the site of column g of the tile. Columns 2 q and 2 q + 1 are sites 32 apart. Then one warp visits the sites of each
of the 16 replicas.

Other couplings are bytes in the order in which kernels/metropolis/dense_bytes.cu multiplies them. A block of the sweep
has 64 sites, four tiles of 16 rows. In a tile, one byte of the couplings of 64 columns takes 1 kB. Lane 4 g + t of a
warp has columns 16 t to 16 t + 15 of rows g and g + 8, eight columns in each half: four bytes of row g, four of row g +
8, the next four of row g, and of row g + 8, as the tensor cores take them. All bytes of these columns follow each
other; then come the next 64 columns. Then warps visit replicas.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.device import cupy, has_clusters, require_memory, shared_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison, compare_replicas
from spinsim.engine.measuring.sums import CudaCounting, of_energy_and_down
from spinsim.engine.moves.exchange_cuda import CudaTempering
from spinsim.engine.moves.metropolis.dense import DRAW_BYTES, SITES, DensePlan, Program, form_of, stride
from spinsim.engine.moves.metropolis.unpacked_cuda import SpinSweeper
from spinsim.engine.moves.metropolis.unpacked_cuda import engine as unpacked_engine
from spinsim.engine.moves.resample import Moves
from spinsim.model.ising import Ising

WARPS: Final = 8
PARTS: Final = 2
STEP_COLUMNS: Final = 256  # columns
WHOLE_BITS: Final = 4 * PARTS * STEP_COLUMNS  # columns are a multiple of this

_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)

Words = npt.NDArray[np.uint32]


class Signs(NamedTuple):
    """Couplings of +-unit and 0 of all samples, as bits."""

    # bits of positive couplings and, unless the graph is complete, of negative ones, without couplings to the previous
    # block of sites, in streaming order, uint32 (1 or samples, blocks, steps / 4, 2 tiles, planes, 256 lanes, 4)
    planes: Words
    # words that lanes read for their two sites, uint32 (1 or samples, blocks, 3 or 5, 32 lanes, 4): bits of positive
    # couplings to the previous block and to earlier sites of their own, local fields without any counted spin, and,
    # unless the graph is complete, the same bits of all non-zero couplings
    rows: Words
    complete: bool  # True if no coupling is 0
    unit: int
    depth: int  # columns, including padding with 0

    @property
    def nbytes(self) -> int:
        return self.planes.nbytes + self.rows.nbytes


def signs(plan: DensePlan) -> Signs | None:
    """Return the couplings of a run as signs; None if they have several magnitudes."""
    doubled, sites = plan.double_couplings, plan.order.size
    unit = int(np.abs(doubled).max()) // 2
    if doubled.dtype == np.int64 or not unit or not np.all((doubled == 0) | (np.abs(doubled) == 2 * unit)):
        return None
    complete = all(np.count_nonzero(matrix) == sites * (sites - 1) for matrix in doubled)
    depth = -(-sites // WHOLE_BITS) * WHOLE_BITS
    blocks = np.arange(-(-sites // SITES))
    before = (blocks - 1) % blocks.size
    planes, rows, uncounted = [], [], []
    for matrix in doubled:
        words = np.stack([_words(matrix > 0, depth), _words(matrix < 0, depth)])
        by_block = words.reshape(2, blocks.size, SITES, -1, 2)
        near = by_block[:, blocks, :, before]  # (blocks, 2, sites, 2)
        rows.append(_rows(by_block[:, blocks, :, blocks], near, complete))
        by_block[:, blocks, :, before] = 0
        planes.append(np.stack([_streamed(plane) for plane in (words[:1] if complete else words)], axis=3))
        ones = _count(words)
        uncounted.append(ones[1] - ones[0] + _count(near).sum(axis=1).reshape(-1))
    samples = max(len(doubled), len(plan.fields))
    all_rows = np.stack([rows[k % len(rows)] for k in range(samples)])
    for k, row in enumerate(all_rows):
        local = unit * uncounted[k % len(uncounted)]
        local[:sites] += plan.fields[k % len(plan.fields)]
        row[:, 2, :, :2] = local.astype(np.int32).view(np.uint32).reshape(-1, 2, 32).transpose(0, 2, 1)
    return Signs(np.stack(planes), all_rows, complete, unit, depth)


def _words(bonds: npt.NDArray[np.bool_], depth: int) -> Words:
    """Pack bonds into words (64 blocks, depth / 32), the first column lowest."""
    sites = len(bonds)
    padded = np.zeros((-(-sites // SITES) * SITES, depth), np.bool_)
    padded[:sites, :sites] = bonds
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def _count(words: Words) -> npt.NDArray[np.int64]:
    return np.asarray(_ONES[np.ascontiguousarray(words).view(np.uint8)].sum(axis=-1, dtype=np.int64))


def _streamed(words: Words) -> Words:
    """Reorder words to the warps' order, (blocks, pairs of steps, 2 tiles, 256 lanes, 4)."""
    pairs = words.shape[1] // (16 * PARTS)
    split = words.reshape(-1, 2, 4, 2, 4, PARTS, pairs, 2, 2, 4)  # e tiles tile q part pair step half t
    return split.transpose(0, 6, 3, 2, 5, 4, 1, 9, 7, 8).reshape(len(split), pairs, 2, 32 * WARPS, 4)


def _rows(own: Words, near: Words, complete: bool) -> Words:
    """Words of lanes, from bits (blocks, 2 planes, 64 sites, 2 words) of the sites' block and the previous block."""
    earlier = (2 ** np.arange(32, dtype=np.uint64) - 1).astype(np.uint32)
    rows = np.zeros((len(own), 5, 32, 4), np.uint32)
    for first, planes in ((0, slice(1)), (3, slice(2))):
        mine, before = (np.bitwise_or.reduce(words[:, planes], axis=1) for words in (own, near))
        rows[:, first, :, :2], rows[:, first, :, 2:] = before[:, :32], before[:, 32:]
        masked = mine[:, :32, 0] & earlier, mine[:, 32:, 0], mine[:, 32:, 1] & earlier
        rows[:, first + 1, :, :3] = np.stack(masked, axis=-1)
    return rows[:, :3] if complete else rows


REPLICAS: Final = 16
AHEAD: Final = WARPS + REPLICAS // 4 * SITES // 32  # warps that multiply or draw for the next block
ROWS_APART: Final = 4  # words between rows in shared memory


def shared_of_signs(sites: int) -> int:
    depth = -(-sites // WHOLE_BITS) * WHOLE_BITS
    bits, sums, bounds = 4 * (depth // 32 + ROWS_APART), 2 * PARTS * 4 * (32 + ROWS_APART), 2 * SITES * 8
    return DRAW_BYTES + REPLICAS * (16 + bits + sums + bounds)


def program_of_signs(signs: Signs, fields: Any) -> Program:
    """Return the kernels of such a model; ``fields`` are int64 (1 or samples, 64 blocks)."""
    planes, rows, complete, unit, depth = signs
    return Program(
        name="signs", kind=(complete,), group=REPLICAS, cluster=1, threads=32 * (REPLICAS + AHEAD),
        shared=shared_of_signs(depth),
        arguments={
            "depth": np.uint32(depth), "unit": np.uint32(unit),
            "couplings": cupy.asarray(planes), "coupling_stride": stride(planes, planes[0].size // 4),
            "rows": cupy.asarray(rows), "row_stride": stride(rows, rows[0].size // 4),
            "fields": cupy.asarray(fields.astype(np.int32)), "field_stride": stride(fields, fields.shape[1]),
        },
    )  # fmt: skip


WHOLE_BYTES: Final = 4 * SITES
"""Columns are a multiple of this, so that each of up to four thread blocks has whole blocks of sites."""

STEP_BYTES: Final = 1024  # bytes of 16 rows and 64 columns, for one byte of each coupling
BYTES: Final = (1, 3, 4, 8)  # sizes of a coupling in bytes that have kernels

Integers = npt.NDArray[np.signedinteger]


class Matrix(NamedTuple):
    """Couplings of all samples, in bytes."""

    stages: npt.NDArray[np.uint8]  # couplings in the kernel's streaming order, uint8 (1 or samples, bytes)
    own: Integers  # couplings to later sites within each block of the sweep, else 0, (1 or samples, blocks, 64, 64)
    bytes: int  # bytes of a coupling, one of ``BYTES``
    wide: bool  # True if local fields have 64 bits
    depth: int  # columns, including padding with 0

    @property
    def nbytes(self) -> int:
        return self.stages.nbytes + self.own.nbytes


def matrix(plan: DensePlan) -> Matrix:
    doubled, sites = plan.double_couplings, plan.order.size
    largest = int(np.abs(doubled).max()) // 2
    size = _bytes(doubled, largest)
    depth, blocks = -(-sites // WHOLE_BYTES) * WHOLE_BYTES, -(-sites // SITES)
    own = np.zeros((len(doubled), blocks, SITES, SITES), entry(size))
    stages = []
    for k, row in enumerate(doubled):
        for b in range(blocks):
            part = np.zeros((SITES, depth), np.int64)
            there = row[b * SITES : (b + 1) * SITES]
            part[: len(there), :sites] = there // 2
            own[k, b] = np.triu(part[:, b * SITES : (b + 1) * SITES])
            stages.append(_limbs(part, size))
    wide = doubled.dtype == np.int64 or size > 3
    return Matrix(np.stack(stages).reshape(len(doubled), -1), own, size, wide, depth)


def entry(size: int) -> type[np.signedinteger]:
    """Type of a block's own couplings, for ``size`` bytes each."""
    return np.int8 if size <= 1 else np.int32 if size <= 4 else np.int64


def _bytes(doubled: Integers, largest: int) -> int:
    """Least number of signed bytes, from -128 to 127, that can represent the couplings."""
    least = 3 if doubled.dtype == np.int64 else 1
    return next(size for size in BYTES if size >= least and largest <= 127 * sum(256**k for k in range(size)))


def _limbs(part: Integers, size: int) -> npt.NDArray[np.uint8]:
    """Split a block of rows (64, depth) into signed bytes, lowest first."""
    rest, limbs = part.astype(np.int64), []
    for _ in range(size):
        limb = rest.astype(np.int8)
        limbs.append(limb.reshape(4, 2, 8, -1, 4, 2, 2, 4))  # tile, g / 8, g, step, t, half, four, byte
        rest = (rest - limb) >> 8
    return np.ascontiguousarray(np.stack(limbs).transpose(1, 4, 0, 6, 3, 5, 7, 2, 8)).reshape(-1).view(np.uint8)


THREADS: Final = 512
STAGES: Final = 3  # stages of couplings that fit a warp's memory
STAGES_OF_CLUSTERS: Final = 6
FIELDS_APART: Final = 4  # fields between one replica's and the next one's
GAP: Final = 64  # bytes between replicas' spins
CLUSTER: Final = 2  # thread blocks that share reads of couplings
LARGE: Final = 4096  # replicas from which blocks have 32, because multiprocessors otherwise have several blocks of 16


def shared_of_bytes(sites: int, size: int, wide: bool, replicas: int, cluster: int = 1) -> int:
    """Shared memory of a thread block's replicas, for couplings of ``size`` bytes and fields of 32 or 64 bits."""
    share = -(-sites // WHOLE_BYTES) * WHOLE_BYTES // cluster
    stages = STAGES_OF_CLUSTERS if cluster > 1 else STAGES
    sums = 4 * (SITES + FIELDS_APART) * ((size + 1) // 2 if wide else 1)
    of_block = THREADS // 32 * stages * STEP_BYTES + SITES**2 * entry(size)().itemsize
    return replicas * (cluster * (share + GAP + sums) + 4 * SITES + 4) + of_block


def groups(matrix: Matrix, sites: int, width: int, room: int, clusters: bool) -> tuple[int, int]:
    """Replicas of a thread block and blocks of a cluster; arguments are as in ``program_of_bytes``."""
    size, wide = matrix.bytes, matrix.wide
    return next(
        (group, cluster)
        for group, cluster in ((32, 1), (16, CLUSTER), (16, 1))
        if (group == 16 or width >= LARGE)
        and (cluster == 1 or (clusters and width > group))
        and serves(size, group, cluster)
        and ((group, cluster) == (16, 1) or shared_of_bytes(sites, size, wide, group, cluster) <= room)
    )


def program_of_bytes(matrix: Matrix, fields: Any, sites: int, width: int, room: int, clusters: bool) -> Program:
    """Return the kernels of such a model; ``fields`` are int64 (1 or samples, 64 blocks)."""
    stages, own, size, wide, depth = matrix
    group, cluster = groups(matrix, sites, width, room, clusters)
    kind = size, "long long" if wide else "int", group, cluster
    fields = fields.astype(np.int64 if wide else np.int32)
    return Program(
        name="bytes", kind=kind, group=group, cluster=cluster, threads=THREADS,
        shared=shared_of_bytes(sites, size, wide, group, cluster),
        arguments={
            "depth": np.uint32(depth),
            "couplings": cupy.asarray(stages), "coupling_stride": stride(stages, stages.shape[1]),
            "fields": cupy.asarray(fields), "field_stride": stride(fields, fields.shape[1]),
            "own": cupy.asarray(own), "own_stride": stride(own, own[0].nbytes),
        },
    )  # fmt: skip


def serves(size: int, group: int, cluster: int) -> bool:
    """Return True if a kernel exists: single bytes are slower in clusters, and products must fit registers."""
    return group * cluster == 16 or (group * cluster == 32 and size in (3, 4))


CALLS_A_BLOCK: Final = np.uint32(packing.LANES // WORDS)  # calls of a block of 128 replicas
WORD_REPLICAS: Final = 32  # replicas of a column in shared memory, where copies are compared
MOST_SITES: Final = 2**15 - 1  # counts of neighbours have 16 bits
UPDATES_A_LAUNCH: Final = 2**31  # so that a launch takes well below a second, except with few replicas


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """Engine of dense models, or an unpacked one if not even a small group of replicas fits a multiprocessor."""
    if model.sites > MOST_SITES:
        return unpacked_engine(model, replicas, dynamics, device)
    plan, couplings = form_of(model, _plan_and_couplings)
    if isinstance(couplings, Signs):
        needed = shared_of_signs(model.sites)
    else:
        needed = shared_of_bytes(model.sites, couplings.bytes, couplings.wide, 16)
    if needed > shared_memory(device):
        return unpacked_engine(model, replicas, dynamics, device)
    queue = Queue(device, dynamics)
    check_grid(model.samples, 1)
    with queue.here():
        spins = DenseSpins(model, replicas, dynamics, plan, couplings, queue)
        observables = of_energy_and_down(model)
        shape = len(observables.sums), model.samples, spins.width
        counting = CudaCounting(queue.stream, observables, shape, replicas, spins.add)
    sweeper = DenseSweeper(queue, spins, replicas, dynamics.zero_acceptance)
    compared = partial(compare, model, spins.width, device)
    parts = CudaParts(packing.Packing.UNPACKED, queue, spins, sweeper, counting, compared)
    return CudaEngine(model, replicas, parts)


def _plan_and_couplings(model: Ising) -> tuple[DensePlan, Signs | Matrix]:
    plan = DensePlan(model)
    return plan, signs(plan) or matrix(plan)


def compare(model: Ising, width: int, device: int, tempering: CudaTempering, wanted: Quantities) -> Comparison:
    """Comparison of copies of a ladder with one byte per spin; no such model has time."""
    shape = {"sites": np.uint32(model.sites), "width": np.uint32(width)}
    comparison = Compared(device, model, tempering, wanted)
    return compare_replicas(comparison, "differing_spins", shape, -(-width // WORD_REPLICAS), None)


class DenseSpins:
    """Spins of a dense run, int8 (samples, sites, width), and the model as kernels read it."""

    replica_axis = 2

    def __init__(
        self, model: Ising, replicas: int, dynamics: Dynamics, plan: DensePlan, couplings: Signs | Matrix, queue: Queue
    ) -> None:
        self.plan, self.model, self._replicas, self._queue = plan, model, replicas, queue
        self.width = -(-replicas // WORDS) * WORDS
        state, packed = model.samples * model.sites * self.width, 16 * model.sites * packing.block_count(replicas)
        require_memory(queue.device, couplings.nbytes + state + packed, f"the state of {model.name}")
        self.present = cupy.ones((model.samples, model.sites, self.width), cupy.int8)
        if dynamics.start == "random":
            for sample in range(model.samples):
                self.present[sample] = self._unpacked_start(sample)
        places = -(-model.sites // SITES) * SITES
        fields = np.zeros((len(plan.fields), places), np.int64)
        fields[:, : model.sites] = plan.fields
        order, colour = np.zeros((2, places), np.uint32)
        order[: model.sites], colour[: model.sites] = plan.order, plan.colour
        if isinstance(couplings, Signs):
            self.program = program_of_signs(couplings, fields)
        else:
            room = shared_memory(queue.device)
            clusters = has_clusters(queue.device)
            self.program = program_of_bytes(couplings, fields, model.sites, self.width, room, clusters)
        group, cluster = self.program.group, self.program.cluster
        self.grid = -(-self.width // (group * cluster)) * cluster, model.samples, 1
        self._arguments = {
            "spins": self.present, "sites": np.uint32(model.sites), "width": np.uint32(self.width),
            "order": cupy.asarray(order), "colour": cupy.asarray(colour), "colours": np.uint32(plan.colours),
        }  # fmt: skip

    def _unpacked_start(self, sample: int) -> Any:
        blocks, sites = packing.block_count(self._replicas), self.model.sites
        words = cupy.empty((1, blocks, sites, 2), cupy.uint64)
        lanes = cupy.full((blocks, 2), np.uint64(2**64 - 1))
        self._queue.start_at_random(words, lanes, sample=sample)
        bits = cupy.unpackbits(words[0].transpose(1, 0, 2).reshape(-1).view(cupy.uint8), bitorder="little")
        return 2 * bits.reshape(sites, -1)[:, : self.width].astype(cupy.int8) - 1

    def words(self) -> npt.NDArray[np.uint64]:
        return packing.pack(self.present.get()[..., : self._replicas])

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.present.set(np.ascontiguousarray(packing.unpack(words, self.width)))

    def copy(self, moves: Moves) -> None:
        sample, source, target = (cupy.asarray(array) for array in moves)
        self.present[sample, :, target] = self.present[sample, :, source]

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return np.asarray(state[sample, :, replica].get())

    @cached_property
    def _count(self) -> Launch:
        sums = {"energies": np.uint64(0), "down": np.uint64(0)}
        return self.program.launch(self._queue.device, "energies", (), self._arguments | sums)

    def sweeps(self, arguments: dict[str, Any]) -> Launch:
        rounds = (self._queue.rng_rounds,)
        return self.program.launch(self._queue.device, "sweep", rounds, self._arguments | arguments)

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding energies and numbers of spins -1 to sums at addresses; there is no first sublattice."""
        self._count(self._queue.stream, self.grid, self.program.threads, energies=to[0], down=to[1])


class DenseSweeper(SpinSweeper):
    """A ``CudaSweeper`` of dense models."""

    def __init__(self, queue: Queue, spins: DenseSpins, replicas: int, zero_acceptance: float) -> None:
        super().__init__(queue, spins.model, replicas, spins.width, spins.plan.colours, terms=1)
        self._dense, self._zero_acceptance = spins, zero_acceptance

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Prepare sweeps at temperatures (samples, 1, width), or one row shared by all samples."""
        spins, queue = self._dense, self._queue
        self._launch = spins.sweeps({
            "double_beta": double_beta, "beta_stride": np.uint32(spins.width if len(double_beta) > 1 else 0),
            "zero_acceptance": np.float64(self._zero_acceptance), "first_sample": queue.first_sample,
            "first_call": queue.first_block * CALLS_A_BLOCK, "half_sweep": np.uint64(0), "count": np.uint32(0),
            "key": queue.keys,
        })  # fmt: skip

    def sweep(self, count: int, half_sweep: int) -> None:
        spins = self._dense
        most = max(1, UPDATES_A_LAUNCH // (spins.model.sites * spins.width * spins.model.samples))
        while count:
            several = min(count, most)
            self._launch(self._queue.stream, spins.grid, spins.program.threads, half_sweep=half_sweep, count=several)
            half_sweep += several * self.colours
            count -= several
