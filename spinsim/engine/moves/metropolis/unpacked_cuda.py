"""Any couplings and fields on a GPU: spins are bits of words; a thread has a site of 32 replicas.

Bonds are in rows of up to six, whose signs select a sum of their couplings. Sites of a colour are sorted by their
number of rows, largest first. The first rows of all sites are a level, the second rows the next, and so on. The length
of level k is the number of sites with at least k rows, and neighbouring threads read neighbouring rows. A field is a
bond to a neighbour that is always +1 and comes after all sites.

Rounds of sweeps and exchanges are one launch if shared memory holds lattices and ladder. They count energies from other
rows, which have each bond once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta, check_betas
from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors, require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda import CudaEngine, CudaSweeper, LaunchedRounds
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed_cuda import COUNT_THREADS, ITEMS_A_THREAD, OrderedWords, place_of
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.measuring.sums import CudaCounting, Linear, observables_of_spins
from spinsim.engine.moves.exchange import Ladder
from spinsim.engine.moves.exchange_cuda import CudaTempering, GivenPlaces, ReplicaPlaces
from spinsim.engine.moves.metropolis.replica_packed.cuda import engine_of
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import NOTES
from spinsim.engine.moves.metropolis.unpacked import UnpackedPlan
from spinsim.model.ising import Ising

SLOTS: Final = 6  # bonds of a row
ROW: Final = 8  # numbers of a row in memory; the seventh coupling is the error of a site's sum
EXACT: Final = 2.0**24  # sums of smaller integers are exact in single precision
ROUNDINGS: Final = 12  # rounding errors in a sum of one row: couplings, six additions, temperatures and products
LEVEL: Final = struct_type(offset=np.uint32, count=np.uint32)


@dataclass(frozen=True)
class SlotRows:
    """Rows of slots of all sites, and the order of the sites."""

    order: npt.NDArray[np.uint32]  # sites, colour by colour
    # places of neighbours, uint32 (rows, ``ROW``). A field has the place after the last site; a slot without a bond has
    # the site's own place
    near: npt.NDArray[np.uint32]
    couplings: npt.NDArray[np.float32]  # J or h in quanta, float32 (1 or samples, rows, ``ROW``), 0 in empty slots
    levels: npt.NDArray[np.void]  # ``LEVEL`` of each level, sorted by colour, then term
    level_start: npt.NDArray[np.uint32]  # first level of each colour and term, then the number of levels


class Placing:
    """Places of the rows of an unpacked run."""

    def __init__(self, plan: UnpackedPlan, depth: list[npt.NDArray[np.int64]]) -> None:
        sites, begin = plan.order.size, np.asarray(plan.colour_start)
        colour = np.empty(sites, np.int64)
        colour[plan.order] = np.repeat(np.arange(plan.colours), np.diff(begin))
        self.order = np.lexsort((*(-each for each in reversed(depth)), colour)).astype(np.uint32)
        self.place = np.empty(sites, np.int64)
        self.place[self.order] = np.arange(sites)
        self._colour, self._within = colour, self.place - begin[colour]
        levels: list[tuple[int, int]] = []
        own, self.level_start, rows = [np.empty(0, np.int64)], [0], 0
        self._offset = np.zeros((len(depth), plan.colours, max(1, *(int(each.max()) for each in depth))), np.int64)
        for c in range(plan.colours):
            for term, each in enumerate(depth):
                mine = each[self.order[begin[c] : begin[c + 1]]]
                for level in range(int(mine.max(initial=0))):
                    levels.append((rows, 1 + int(np.flatnonzero(mine > level)[-1])))
                    own.append(begin[c] + np.arange(levels[-1][1]))
                    self._offset[term, c, level], rows = rows, rows + levels[-1][1]
                self.level_start.append(len(levels))
        self.levels, self.own = np.array(levels, LEVEL), np.concatenate(own)

    def row(self, term: int, site: npt.NDArray[np.int64], slot: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows that have these slots of sites, counted within a term."""
        return np.asarray(self._offset[term, self._colour[site], slot // SLOTS] + self._within[site])


def slot_rows(plan: UnpackedPlan) -> SlotRows:
    bounds = [(plan.start[:-1], plan.middle), (plan.middle, plan.start[1:])][: plan.terms]
    in_field = plan.fields.any(axis=0)
    used = [stop - first + (in_field if term == 0 else 0) for term, (first, stop) in enumerate(bounds)]
    depth = [-(-each // SLOTS) for each in used]
    placing, sites = Placing(plan, depth), plan.order.size
    near = np.repeat(placing.own[:, None], ROW, axis=1).astype(np.uint32)
    couplings = np.zeros((max(len(plan.couplings), len(plan.fields)), *near.shape), np.float32)
    for term, (first, stop) in enumerate(bounds):
        degree = stop - first
        site = np.repeat(np.arange(sites), degree)
        slot = np.arange(site.size) - np.repeat(np.cumsum(degree) - degree, degree)
        at, row = np.repeat(first, degree) + slot, placing.row(term, site, slot)
        near[row, slot % SLOTS] = placing.place[plan.neighbour[at]]
        couplings[:, row, slot % SLOTS] = plan.couplings[:, at]
        sizes = np.stack([np.bincount(site, np.abs(of_sample[at]), sites) for of_sample in plan.couplings])
        if term == 0:
            there = np.flatnonzero(in_field)
            slot, row = degree[there] % SLOTS, placing.row(0, there, degree[there])
            near[row, slot] = sites
            couplings[:, row, slot] = plan.fields[:, there]
            sizes = sizes + np.abs(plan.fields)
        there = np.flatnonzero(depth[term])
        errors = np.where((sizes < EXACT) & (plan.terms == 1), 0.0, sizes * (ROUNDINGS + depth[term]) / EXACT)
        couplings[:, placing.row(term, there, 0 * there), SLOTS] = errors[:, there]
    start = np.array(placing.level_start, np.uint32)
    return SlotRows(placing.order, near, couplings, placing.levels, start)


class SlotPlan:
    """Run whose words a GPU holds in the order of its rows of slots."""

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics) -> None:
        self.model, self.replicas, self.dynamics = model, replicas, dynamics
        self.plan = model.once(UnpackedPlan)
        self.batches: SlotRows = slot_rows(self.plan)
        self.shape = model.samples, packing.block_count(replicas), model.sites, 2
        names = ("energy_0", "energy_1") if self.plan.terms > 1 else ("energy",)
        sums = ("up", *names, "up_first") if self.plan.terms > 1 else ("energy", "up", "up_first")
        energies = [Linear({name: 1}, 0) for name in names]
        self.observables = observables_of_spins(sums, model.sites, self.plan.first, *energies)

    def exact(self) -> tuple[npt.NDArray[Any], ...]:
        """Return compressed rows of neighbours by places: start, middle, neighbours, couplings and fields."""
        plan, order = self.plan, self.batches.order
        degree = np.diff(plan.start)[order]
        start = np.append(0, np.cumsum(degree))
        at = np.repeat(plan.start[order] - start[:-1], degree) + np.arange(plan.neighbour.size)
        middle = start[:-1] + (plan.middle - plan.start[:-1])[order]
        return start, middle, place_of(order)[plan.neighbour[at]], plan.couplings[:, at], plan.fields[:, order]


DIGIT_BITS: Final = 24  # bits of each digit but the highest of 64-bit couplings, so that a sum of six fits 32 bits
COUNTED_BONDS: Final = struct_type(near=ADDRESS, couplings=ADDRESS, digits=SIZE, stride=SIZE, rows=SIZE)


class CountedRows(NamedTuple):
    """Each bond once, at its end of the higher place, and fields, as bonds to a neighbour that is always +1."""

    # places of neighbours, uint32 (rows, ``ROW``). A field has the place after the last site; empty slots, and the last
    # columns, have the row's own place
    near: npt.NDArray[np.uint32]
    couplings: npt.NDArray[np.int32]  # J or h in digits, (digits, 1 or samples, rows, ``ROW``), 0 in empty slots


def counted_rows(plan: SlotPlan) -> CountedRows:
    start, _, near, couplings, fields = plan.exact()
    sites = len(start) - 1
    place, in_field = np.repeat(np.arange(sites), np.diff(start)), np.flatnonzero(fields.any(axis=0))
    bonds = np.flatnonzero(near < place)
    own, other = np.append(place[bonds], in_field), np.append(near[bonds], np.full(in_field.size, sites))
    size = max(len(couplings), len(fields))
    of_bonds, of_fields = (np.broadcast_to(a, (size, a.shape[1])) for a in (couplings[:, bonds], fields[:, in_field]))
    values = np.concatenate([of_bonds, of_fields], axis=1)
    order = np.argsort(own, kind="stable")
    own, other, values = own[order], other[order], values[:, order]
    count = np.bincount(own, minlength=sites)
    slot = np.arange(own.size) - np.repeat(np.cumsum(count) - count, count)
    depth = -(-count // SLOTS)
    row = (np.cumsum(depth) - depth)[own] + slot // SLOTS
    places = np.repeat(np.repeat(np.arange(sites), depth)[:, None], ROW, axis=1).astype(np.uint32)
    places[row, slot % SLOTS] = other
    digits = [values] if values.dtype == np.int32 else [values & (2**DIGIT_BITS - 1), values >> DIGIT_BITS]
    in_rows: npt.NDArray[Any] = np.zeros((len(digits), size, *places.shape), np.int32)
    for to, digit in zip(in_rows, digits, strict=True):
        to[:, row, slot % SLOTS] = digit
    return CountedRows(places, in_rows)


WORD: Final = 32  # replicas of a thread; sites of a warp that has one word of each
WORDS: Final = packing.LANES // WORD  # words of a block of 128 replicas
SUMS_BYTES: Final = 4 << SLOTS  # bytes of a row's sums
MOST_THREADS: Final = 512
RESIDENT_WARPS: Final = 16  # warps of a multiprocessor, as registers allow
GLOBAL_THREADS: Final = 128  # threads of a block with lattices in global memory
MEASURE_THREADS: Final = 256
MEASURE_BLOCKS: Final = 2  # energy-measuring blocks on one multiprocessor
MEASURE_REPLICAS: Final = 16  # replicas per thread
MEASURE_COLUMNS: Final = 32  # most threads side by side in a block

SLOTS_TYPE: Final = struct_type(
    near=ADDRESS, couplings=ADDRESS, stride=SIZE, levels=ADDRESS, level_start=ADDRESS, terms=SIZE
)
EXACT_TYPE: Final = struct_type(
    **dict.fromkeys(("start", "middle", "near", "couplings", "fields"), ADDRESS),
    coupling_stride=SIZE,
    field_stride=SIZE,
)


class Grouping(NamedTuple):
    """Words of 32 replicas and the thread blocks that process them."""

    words: int  # words of a thread block
    threads: int  # threads of a thread block
    in_shared: bool  # True if the block holds its lattices in shared memory
    blocks: int  # thread blocks that share the sites of a colour

    def shared_bytes(self, sites: int, terms: int) -> int:
        """Shared memory of a block: temperatures, lattices and sums; sums begin at a multiple of a row's bytes."""
        sums = self.threads // WORD * (WORD // self.words) * SUMS_BYTES + SUMS_BYTES
        return 4 * WORD * self.words * terms + sums + (4 * (sites + 1) * self.words if self.in_shared else 0)


def grouping(plan: SlotPlan, room: int, processors: int) -> Grouping:
    """Choose the grouping that fills ``processors`` multiprocessors, each with ``room`` bytes of shared memory."""
    sites, terms, samples = plan.model.sites, plan.plan.terms, plan.model.samples
    colour, columns = int(np.diff(plan.plan.colour_start).max()), -(-plan.replicas // WORD)
    most = min(WORDS, 1 << (columns - 1).bit_length())
    words = next((w for w in (WORDS, WORDS // 2) if w <= most and 2 * samples * -(-columns // w) >= 3 * processors), 1)
    groups = samples * -(-columns // words)
    tiles = -(-colour * words // WORD)
    one_block = Grouping(words, WORD * min(tiles, RESIDENT_WARPS), True, 1)
    if one_block.shared_bytes(sites, terms) <= room and (2 * groups >= processors or tiles <= 2 * RESIDENT_WARPS):
        for blocks_together in (4, 2):
            several = Grouping(words, WORD * min(tiles, RESIDENT_WARPS // blocks_together), True, 1)
            if (
                -(-groups // processors) >= blocks_together
                and blocks_together * (several.shared_bytes(sites, terms) + 1024) <= room
            ):
                return several
        return one_block
    return Grouping(most, GLOBAL_THREADS, False, -(-colour * most // GLOBAL_THREADS))


class UnpackedSpins(OrderedWords):
    """Spins of an unpacked run, and its model as kernels read it."""

    def __init__(self, plan: SlotPlan, queue: Queue) -> None:
        self.plan, rows = plan, plan.batches
        self.model, self.replicas, self.width = plan.model, plan.replicas, packing.LANES * plan.shape[1]
        self.integer = "int" if plan.plan.couplings.dtype == np.int32 else "long long"
        arrays = [*plan.exact(), rows.near, rows.couplings, rows.levels.view(np.uint32), rows.level_start, rows.order]
        needed = sum(a.nbytes for a in arrays) + 8 * int(np.prod(plan.shape))
        require_memory(queue.device, needed, f"the state of {plan.model.name}")
        self.grouping = grouping(plan, shared_memory(queue.device), multiprocessors(queue.device))
        self._arrays = [cupy.asarray(np.ascontiguousarray(array)) for array in arrays]
        self._start, self._middle, self._near, self._couplings, self._fields, *slots, order = self._arrays
        of_slots = dict(zip(("near", "couplings", "levels", "level_start"), slots, strict=True))
        of_rows = record(SLOTS_TYPE, **of_slots, stride=_stride(rows.couplings), terms=plan.plan.terms)
        exact = record(
            EXACT_TYPE, start=self._start, middle=self._middle, near=self._near, couplings=self._couplings,
            fields=self._fields, coupling_stride=_stride(self._couplings), field_stride=_stride(self._fields),
        )  # fmt: skip
        super().__init__(rows.order, plan.model.samples, plan.replicas, plan.dynamics, queue)
        self.arguments = {
            "state": self.present, "sites": np.uint32(self.model.sites), "blocks": np.uint32(plan.shape[1]),
            "words": np.uint32(self.grouping.words), "order": order, "slots": of_rows, "exact": exact,
            "colour_start": cupy.asarray(plan.plan.colour_start.astype(np.uint32)),
            "colours": np.uint32(plan.plan.colours), "zero_acceptance": np.float64(plan.dynamics.zero_acceptance),
            "first_sample": queue.first_sample, "first_block": queue.first_block, "key": queue.keys,
        }  # fmt: skip

    @cached_property
    def counted_bonds(self) -> npt.NDArray[np.void]:
        """Rows with each bond once, in the form for rounds in one launch."""
        near, couplings = self._rows = [cupy.asarray(array) for array in counted_rows(self.plan)]
        digit, samples = couplings[0].size, couplings.shape[1]
        stride = digit // samples if samples > 1 else 0
        return record(COUNTED_BONDS, near=near, couplings=couplings, digits=digit, rows=len(near), stride=stride)

    @cached_property
    def _energies(self) -> list[Launch]:
        file, terms = "measuring/count_unpacked.cu", self.plan.plan.terms
        columns = min(MEASURE_COLUMNS, self.width // MEASURE_REPLICAS)
        common = {
            "state": self.present, "sites": np.uint32(self.model.sites), "blocks": np.uint32(self.plan.shape[1]),
            "columns": np.uint32(columns), "near": self._near, "couplings": self._couplings,
            "coupling_stride": np.uint64(_stride(self._couplings)), "energies": np.uint64(0),
        }  # fmt: skip
        fields = {"fields": self._fields, "field_stride": np.uint64(_stride(self._fields))}
        none = {"fields": np.uint64(0), "field_stride": np.uint64(0)}  # fields belong to term 0
        bonds = [{"start": self._start, "stop": self._start[1:]} | fields]
        if terms > 1:
            bonds = [{"start": self._start, "stop": self._middle} | fields]
            bonds.append({"start": self._middle, "stop": self._start[1:]} | none)
        expression = instance("total_energy", self.integer)
        return [Launch(self._queue.device, file, expression, common | given) for given in bonds]

    @cached_property
    def _spins_up(self) -> Launch:
        none = dict.fromkeys(("edges", "negative", "sign_stride", "unsatisfied", "up", "up_first"), np.uint64(0))
        return Launch(self._queue.device, "measuring/count_replica_packed.cu", "count_replica", {
            "state": self.present, "sites": np.uint32(self.model.sites), "bonds": np.uint32(0),
            "first_sites": np.uint32(self.plan.plan.first), **none,
        })  # fmt: skip

    @cached_property
    def _energy_grid(self) -> tuple[int, int, int]:
        """Grid of thread blocks that add up energies: shares of the sites, columns of replicas, samples."""
        columns = self.width // MEASURE_REPLICAS
        across, rows = -(-columns // MEASURE_COLUMNS), MEASURE_THREADS // min(MEASURE_COLUMNS, columns)
        fill = MEASURE_BLOCKS * multiprocessors(self._queue.device) // (across * self.model.samples)
        return max(1, min(fill, -(-self.model.sites // rows))), across, self.model.samples

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding to the sums of ``plan.observables``; the last address, for the first sublattice, is optional."""
        names, stream = self.plan.observables.sums[:-1], self._queue.stream
        samples, blocks, sites, _ = self.plan.shape
        energies = (address for address, name in zip(to, names, strict=False) if name != "up")
        for launch, energy in zip(self._energies, energies, strict=True):
            launch(stream, self._energy_grid, MEASURE_THREADS, energies=energy)
        grid = -(-sites // (COUNT_THREADS * ITEMS_A_THREAD)), blocks, samples
        up_first = (*to[len(names) :], 0)[0] if self.plan.plan.first else 0
        self._spins_up(stream, grid, COUNT_THREADS, up=to[names.index("up")], up_first=up_first)


def _stride(rows: Any) -> int:
    """Distance from one sample's rows to the next; 0 if samples share rows."""
    return rows[0].size if len(rows) > 1 else 0


LAY_THREADS: Final = 256


class SpinSweeper(CudaSweeper):
    """Temperatures of a ``CudaSweeper`` of single replicas; its launch is remade when they change."""

    are_laid = True  # False if the temperatures of replicas do not match their present places

    def __init__(self, queue: Queue, model: Ising, replicas: int, width: int, colours: int, terms: int) -> None:
        self.colours, self.tasks = colours, model.samples  # replicas run side by side within each sample
        self._queue, self._model, self._replicas, self._width, self._terms = queue, model, replicas, width, terms
        self._launch: Launch
        self._lay: Launch | None = None
        self._rows = 0  # rows of temperatures that change: samples times terms
        self._coldest = np.zeros(terms)  # largest 2 beta times the quantum, for each term

    @abstractmethod
    def _make_launch(self, double_beta: Any, single_beta: Any) -> None: ...

    def set_beta(self, beta: npt.ArrayLike) -> None:
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        values = UnpackedPlan.double_beta(self._model, check(beta, self._replicas)[None])
        padded = np.pad(values, [(0, 0), (0, 0), (0, self._width - values.shape[-1])], "edge")
        self._coldest = np.broadcast_to(values[0].max(axis=-1), self._terms)
        single_beta = np.minimum(padded, np.finfo(np.float32).max).astype(np.float32)
        self._make_launch(cupy.asarray(padded), cupy.asarray(single_beta))
        self._lay = None

    def set_ladder(self, places: ReplicaPlaces) -> None:
        ladder, model, width = places.ladder, self._model, self._width
        by_term = np.ascontiguousarray(ladder.beta.reshape(ladder.temperatures, -1).T)
        shape = model.samples, len(by_term), width
        double_beta, single_beta = cupy.empty(shape, cupy.float64), cupy.empty(shape, cupy.float32)
        self._coldest = 2.0 * model.quantum * np.broadcast_to(by_term.max(axis=-1), self._terms)
        self._make_launch(double_beta, single_beta)
        self._rows = shape[0] * shape[1]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_betas", {
            "double_beta": double_beta, "single_beta": single_beta,
            "ladder": cupy.asarray(2.0 * model.quantum * by_term), "place": places.place,
            "samples": np.uint32(model.samples), "terms": np.uint32(len(by_term)),
            "temperatures": np.uint32(ladder.temperatures), "replicas": np.uint32(self._replicas),
            "width": np.uint32(width),
        })  # fmt: skip

    def lay_tables(self) -> None:
        self.are_laid = True
        if self._lay is not None:
            grid = -(-self._rows * self._width // LAY_THREADS), 1, 1
            self._lay(self._queue.stream, grid, LAY_THREADS)


TOLD_KINDS: Final = 3  # numbers of each replica that blocks of a sample exchange
TOLD: Final = struct_type(all=ADDRESS, replicas=SIZE, number=np.uint32)
LEFT_SUMS: Final = struct_type(energy=ADDRESS, up=ADDRESS, up_first=ADDRESS)
BYTES_OF_OWN: Final = 8 + 4 + 4  # for each of a block's replicas: temperature twice, spins +1
BYTES_OF_ALL: Final = 8 + 4 + 4 + 1  # for each of a sample's replicas: energy, place, holder, end of the ladder


def shared_bytes(spins: UnpackedSpins, ladder: Ladder) -> int:
    """Shared memory of a thread block that holds its sample's ladder in addition to the data of sweeps."""
    how, padding = spins.grouping, 4
    own, every = WORD * how.words, WORD * how.words * groups(spins)
    ladder_bytes = BYTES_OF_OWN * own + 8 * (ladder.temperatures + 1) + BYTES_OF_ALL * every + padding
    return how.shared_bytes(spins.model.sites, 1) + ladder_bytes


def groups(spins: UnpackedSpins) -> int:
    return -(-spins.replicas // (WORD * spins.grouping.words))


def fits_with_ladder(spins: UnpackedSpins, ladder: Ladder, device: int) -> bool:
    """Return True if thread blocks can hold lattices and ladder, and the energy has one term."""
    fits = spins.grouping.in_shared and shared_bytes(spins, ladder) <= shared_memory(device)
    return fits and spins.plan.plan.terms == 1


class UnpackedRounds(LaunchedRounds):
    """Rounds of samples whose replicas are in one thread block, or in several that are resident together."""

    def __init__(
        self, spins: UnpackedSpins, coldest: np.float32, queue: Queue, tempering: CudaTempering, **given: Any
    ) -> None:
        super().__init__(queue=queue, tempering=tempering, **given)
        self._threads, self._groups, self._samples = spins.grouping.threads, groups(spins), spins.model.samples
        every = WORD * spins.grouping.words * self._groups
        shares = self._samples if self._groups > 1 else 0
        self._told, self._every, self._rounds = cupy.zeros((2, shares, TOLD_KINDS, every), cupy.uint64), every, 1
        self._launch = self._ready(spins, coldest, every)
        self.together = self._samples  # samples per launch; 0 if one sample's blocks are not resident together
        if self._groups > 1:  # otherwise the kernel may not be compiled yet
            resident = self._launch.blocks_at_once(self._threads) * multiprocessors(queue.device)
            self.together = min(self._samples, resident // self._groups)

    def _ready(self, spins: UnpackedSpins, coldest: np.float32, every: int) -> Launch:
        queue, plan, ladder = self._queue, spins.plan.plan, self._tempering.ladder
        two_beta = cupy.asarray(2.0 * spins.model.quantum * np.ascontiguousarray(ladder.beta.reshape(-1)))
        expression = instance("temper_unpacked", spins.integer, queue.rng_rounds)
        return Launch(queue.device, "tempering/temper_unpacked.cu", expression, {
            **spins.arguments, "samples": np.uint32(self._samples),
            "ladder": two_beta, "coldest": coldest, "exchange": self._tempering.record,
            "told": record(TOLD, all=self._told, replicas=every, number=1), "bonds": spins.counted_bonds,
            "first_sites": np.uint32(plan.first), "sums": np.zeros((), LEFT_SUMS), "first_here": np.uint32(0),
            "first_half_sweep": np.uint64(0), "sweeps": np.uint32(0),
            "first_round": np.uint64(0), "rounds": np.uint32(0),
            "notes": np.zeros((), NOTES), "measured": NOTHING,
        }, shared_bytes(spins, ladder))  # fmt: skip

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch the thread blocks of the samples that are resident together, until all samples are done."""
        number, self._rounds = self._rounds, (self._rounds + count) % 2**32
        for first in range(0, self._samples, self.together):
            grid = self._groups, 1, min(self.together, self._samples - first)
            self._launch(
                self._queue.stream, grid, self._threads, self._groups > 1, first_here=first,
                told=(self._told.data.ptr, self._every, number), **arguments,
            )  # fmt: skip


UPDATES_A_LAUNCH: Final = 2**35  # so that a launch takes well below a second
SWEEPS_A_LAUNCH: Final = 1000


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    plan, queue = SlotPlan(model, replicas, dynamics), Queue(device, dynamics)
    check_grid(model.samples, plan.shape[1] * WORDS)
    with queue.here():
        spins = UnpackedSpins(plan, queue)
    temperatures = tuple(range(1, plan.plan.terms + 1))
    sweeper = partial(UnpackedSweeper, queue, spins)
    return engine_of(plan, queue, spins, sweeper, packing.Packing.UNPACKED, temperatures)


class UnpackedSweeper(SpinSweeper):
    """A ``CudaSweeper`` of unpacked spins."""

    def __init__(self, queue: Queue, spins: UnpackedSpins, counting: CudaCounting) -> None:
        plan = spins.plan.plan
        super().__init__(queue, spins.model, spins.replicas, spins.width, plan.colours, plan.terms)
        self._unpacked, self._counting = spins, counting

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Prepare sweeps at temperatures (samples, terms, width), or one row shared by all samples."""
        spins, (rows, terms, width) = self._unpacked, double_beta.shape
        how, coldest = spins.grouping, self._single_coldest
        expression = instance("sweep_unpacked", spins.integer, terms, how.in_shared, self._queue.rng_rounds)
        self._launch = Launch(self._queue.device, "metropolis/unpacked.cu", expression, {
            **spins.arguments, "replicas": np.uint32(spins.replicas), "double_beta": double_beta,
            "single_beta": single_beta, "beta_stride": np.uint64(terms * width if rows > 1 else 0),
            "coldest": coldest[0], "coldest_other": coldest[-1],
            "half_sweep": np.uint64(0), "half_sweeps": np.uint32(0),
        }, how.shared_bytes(spins.model.sites, terms))  # fmt: skip
        self._grid = how.blocks, -(-spins.replicas // (WORD * how.words)), spins.model.samples
        self.rounds = None

    @property
    def _single_coldest(self) -> npt.NDArray[np.float32]:
        return np.minimum(self._coldest, np.finfo(np.float32).max).astype(np.float32)

    def set_ladder(self, places: ReplicaPlaces) -> None:
        super().set_ladder(places)
        spins, queue = self._unpacked, self._queue
        if isinstance(places, GivenPlaces) or not fits_with_ladder(spins, places.ladder, queue.device):
            return
        rounds = UnpackedRounds(
            spins, self._single_coldest[0], queue, places, colours=self.colours, tables=self, counting=self._counting,
            most_sweeps=self._most_sweeps,
        )  # fmt: skip
        if rounds.together:
            self.rounds = rounds

    @cached_property
    def _most_sweeps(self) -> int:
        updates = self._unpacked.model.sites * self._unpacked.width * self._unpacked.model.samples
        return max(1, min(UPDATES_A_LAUNCH // updates, SWEEPS_A_LAUNCH))

    def sweep(self, count: int, half_sweep: int) -> None:
        if not self.are_laid:
            self.lay_tables()
        how = self._unpacked.grouping
        most, left = self._most_sweeps * self.colours if how.in_shared else 1, count * self.colours
        while left:
            several = min(left, most)
            self._launch(self._queue.stream, self._grid, how.threads, half_sweep=half_sweep, half_sweeps=several)
            half_sweep += several
            left -= several
