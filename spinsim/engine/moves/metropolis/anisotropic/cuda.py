"""An energy of two terms on a GPU: replica-packed words in global memory, one launch for each half-sweep."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance
from spinsim.cuda.device import multiprocessors, require_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.layouts.replica_packed.cuda_words import COUNT_THREADS, ITEMS_A_THREAD, OrderedWords, places
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.moves.exchange.cuda import Placed
from spinsim.engine.moves.metropolis.anisotropic.plan import LEAST_CLASS_BITS, MOST_CLASS_BITS, TermPlan
from spinsim.engine.moves.metropolis.replica_packed.cuda import UNBOUNDED, compare, squares
from spinsim.engine.moves.metropolis.replica_packed.cuda_tables import DeviceTables, LadderTables
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.model.terms import MOST_TERMS

THREADS: Final = 128  # of a block that sweeps
RESIDENT: Final = 4  # such blocks on one multiprocessor: more would only begin where these end
BATCH: Final = struct_type(
    first=np.uint32, size=np.uint32, slots=(np.uint32, MOST_TERMS), kind=np.uint32, offset=np.uint32
)
MODEL: Final = struct_type(
    order=ADDRESS, neighbour=ADDRESS, signs=ADDRESS, sign_stride=SIZE, first_bits=np.uint32, field=np.uint32
)


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """The engine of a model of two terms, each of couplings of one magnitude, in a uniform field."""
    plan, queue = TermPlan(model, replicas, dynamics, UNBOUNDED), Queue(device, dynamics)
    check_grid(*plan.shape[:2])
    with queue.here():
        lattices = TermLattices(plan, queue)
        shape = len(plan.observables.sums), *plan.shape[:2], packing.LANES
        counting = CudaCounting(queue.stream, plan.observables, shape, replicas, lattices.add)
    parts = CudaParts(
        packing=packing.Packing.ANISOTROPIC,
        queue=queue,
        state=lattices,
        sweeper=TermSweeper(queue, lattices),
        counting=counting,
        compare=partial(compare, plan, device),
        temperatures=(MOST_TERMS,),
        squares=partial(squares, plan, device),
    )
    return CudaEngine(model, replicas, parts)


class TermLattices(OrderedWords):
    """The spins of a run, and what kernels read of its model.

    Args:
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.

    Attributes:
        plan: As given.
        lanes: Lanes in use.
        model: What sweeps read, as they take it.
    """

    def __init__(self, plan: TermPlan, queue: Queue) -> None:
        import cupy

        self.plan, self._queue = plan, queue
        batches, place = plan.batches, places(plan.batches)
        arrays = batches.order, place[batches.neighbour], batches.signs, plan.lanes
        bonds = [place[edges].view(np.int32) for edges in plan.edges]
        signs = [negative.astype(np.uint8) for negative in plan.negative]
        needed = sum(a.nbytes for a in (*arrays, *bonds, *signs)) + 8 * int(np.prod(plan.shape))
        require_memory(queue.device, needed, f"the state of {plan.model.name}")
        *self._lists, self.lanes = (cupy.asarray(array) for array in arrays)
        self._bonds = [
            (cupy.asarray(ends), cupy.asarray(negative)) for ends, negative in zip(bonds, signs, strict=True)
        ]
        order, neighbour, of_slots = self._lists
        self.model = record(
            MODEL, order=order, neighbour=neighbour, signs=of_slots, first_bits=plan.classes.count_bits[0],
            sign_stride=batches.signs.shape[1] if len(batches.signs) > 1 else 0, field=plan.classes.field != 0,
        )  # fmt: skip
        super().__init__(plan, queue, self.lanes)

    @cached_property
    def _counts(self) -> list[Launch]:
        """The kernels that count spins with the bonds of term 0, and the bonds of term 1."""
        file, device = "measuring/count_replica_packed.cu", self._queue.device
        launches: list[Launch] = []
        for ends, negative in self._bonds:
            bonds = negative.shape[1]
            arguments = {
                "state": self.present, "sites": np.uint32(self.plan.model.sites), "edges": ends, "negative": negative,
                "sign_stride": np.uint64(bonds if len(negative) > 1 else 0), "bonds": np.uint32(bonds),
                "unsatisfied": np.uint64(0),
            }  # fmt: skip
            if launches:
                launches.append(Launch(device, file, "count_more_bonds", arguments))
            else:
                spins = {"first_sites": np.uint32(self.plan.first), "up": np.uint64(0), "up_first": np.uint64(0)}
                launches.append(Launch(device, file, "count_replica", arguments | spins))
        return launches

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding spins +1, bonds of both terms and, where a fourth address is given, the first sublattice's."""
        up, first, second, up_first = (*to, 0)[:4]
        samples, blocks, sites, _ = self.plan.shape
        grid = -(-max(self.plan.model.bonds, sites) // (COUNT_THREADS * ITEMS_A_THREAD)), blocks, samples
        spins, others = self._counts
        spins(self._queue.stream, grid, COUNT_THREADS, up=up, unsatisfied=first, up_first=up_first)
        others(self._queue.stream, grid, COUNT_THREADS, unsatisfied=second)


class TermSweeper:
    """A ``CudaSweeper`` of an energy of two terms.

    Args:
        queue: Where sweeps are queued.
        lattices: The spins.
    """

    rounds = measured_rounds = None  # there is no kernel of many rounds

    def __init__(self, queue: Queue, lattices: TermLattices) -> None:
        plan = lattices.plan
        self.colours, self.tasks = plan.colours, plan.shape[0] * plan.shape[1]
        self._queue, self._lattices = queue, lattices
        self._on_ladder: LadderTables | None = None
        batches = plan.batches
        slots = zip(batches.of_term_0.tolist(), (batches.slots - batches.of_term_0).tolist(), strict=True)
        sizes, rows = np.diff(batches.first), (batches.first[:-1], batches.parity, batches.offset)
        self._batches = [
            (first, size, of_terms, kind, offset)
            for size, of_terms, first, kind, offset in zip(
                sizes.tolist(), slots, *map(np.ndarray.tolist, rows), strict=True
            )
        ]
        self._expression = instance("sweep_terms", plan.classes.bits, queue.rng_rounds)
        self._launch: Launch | None = None

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each term (replicas, 2)."""
        self._make_launch(DeviceTables.of(self._lattices, self._lattices.plan.tables(beta)[0]))
        self._on_ladder = None

    def set_ladder(self, placed: Placed) -> None:
        """Make room for tables of each sample."""
        self._on_ladder = LadderTables(self._queue, self._lattices, placed)
        self._make_launch(self._on_ladder)

    def _make_launch(self, tables: DeviceTables) -> None:
        """Make ready for sweeps, whatever the tables will hold."""
        self._tables = tables  # the record holds addresses alone
        self._launch = Launch(self._queue.device, "metropolis/anisotropic.cu", self._expression, {
            "state": self._lattices.present, "sites": np.uint32(self._lattices.plan.model.sites),
            "batch": np.zeros((), BATCH), "model": self._lattices.model, "tables": tables.record,
            "kinds": np.uint32(self._lattices.plan.classes.tables), "first_sample": self._queue.first_sample,
            "first_block": self._queue.first_block, "half_sweep": np.uint64(0), "key": self._queue.keys,
        })  # fmt: skip

    def lay_tables(self) -> None:
        """Queue what gives replicas the temperatures of their places."""
        if self._on_ladder is not None:
            self._on_ladder.lay()

    def sweep(self, count: int, half_sweep: int) -> None:
        """Queue ``count`` attempts of every spin, after so many half-sweeps."""
        if self._launch is None:
            raise InputError(NO_TEMPERATURE)
        samples, blocks = self._lattices.plan.shape[:2]
        room = max(1, RESIDENT * multiprocessors(self._queue.device) // (samples * blocks))
        starts = self._lattices.plan.batches.colour_start
        for done in range(count * self.colours):
            colour = (half_sweep + done) % self.colours
            for batch in self._batches[starts[colour] : starts[colour + 1]]:
                grid = min(room, -(-batch[1] // THREADS)), blocks, samples
                self._launch(self._queue.stream, grid, THREADS, batch=batch, half_sweep=half_sweep + done)


INSTANCES: Final[Instances] = (
    *(
        ("metropolis/anisotropic.cu", instance("sweep_terms", bits, r))
        for bits, r in product(range(LEAST_CLASS_BITS, MOST_CLASS_BITS + 1), PHILOX_ROUNDS)
    ),
    ("measuring/count_replica_packed.cu", "count_more_bonds"),
    ("measuring/by_temperature_terms.cu", "sort_terms"),
    *(("tempering/exchange_terms.cu", instance("exchange_terms", rounds)) for rounds in PHILOX_ROUNDS),
)
