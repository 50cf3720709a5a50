"""An energy of two terms on a GPU: replica-packed words in global memory, one launch for each half-sweep."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.cuda import CudaEngine
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.cuda_words import CountedWords, place_of
from spinsim.engine.moves.metropolis.anisotropic.update import TermPlan
from spinsim.engine.moves.metropolis.packed.classes import Limits
from spinsim.engine.moves.metropolis.replica_packed.cuda import UNBOUNDED, engine_of
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import DeviceTables, TableSweeper
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising

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
    return engine_of(
        plan, queue, lattices, lambda _: TermSweeper(queue, lattices), packing.Packing.ANISOTROPIC, (MOST_TERMS,)
    )


class TermLattices(CountedWords):
    """The spins of a run, and its model as kernels read it."""

    plan: TermPlan

    def __init__(self, plan: TermPlan, queue: Queue) -> None:
        batches = plan.batches
        super().__init__(plan, queue, (batches.order, place_of(batches.order)[batches.neighbour], batches.signs))
        order, neighbour, signs = self.lists
        self.model = record(
            MODEL, order=order, neighbour=neighbour, signs=signs, first_bits=plan.classes.count_bits[0],
            sign_stride=batches.signs.shape[1] if len(batches.signs) > 1 else 0, field=plan.classes.field != 0,
        )  # fmt: skip


class TermSweeper(TableSweeper):
    """A ``CudaSweeper`` of an energy of two terms; there is no kernel of many rounds."""

    def __init__(self, queue: Queue, lattices: TermLattices) -> None:
        plan, batches = lattices.plan, lattices.plan.batches
        super().__init__(queue, lattices, plan)
        self._state, self._model, self._kinds = lattices.present, lattices.model, plan.classes.tables
        samples, blocks = plan.shape[:2]
        most = max(1, RESIDENT * multiprocessors(queue.device) // (samples * blocks))
        slots = zip(batches.of_term_0.tolist(), (batches.slots - batches.of_term_0).tolist(), strict=True)
        sizes, others = np.diff(batches.first).tolist(), (batches.parity.tolist(), batches.offset.tolist())
        # Plain numbers, as a launch of small lattices takes no longer than handing over its arguments.
        rows = zip(batches.first[:-1].tolist(), sizes, slots, *others, strict=True)
        self._batches = [((min(most, -(-row[1] // THREADS)), blocks, samples), row) for row in rows]
        self._expression = instance("sweep_terms", plan.classes.bits, queue.rng_rounds)

    def _make_ready(self, tables: DeviceTables, limits: Limits) -> None:
        queue = self._queue
        self._launch = Launch(queue.device, "metropolis/anisotropic.cu", self._expression, {
            "state": self._state, "sites": np.uint32(self._plan.model.sites), "batch": np.zeros((), BATCH),
            "model": self._model, "tables": tables.record, "kinds": np.uint32(self._kinds),
            "first_sample": queue.first_sample, "first_block": queue.first_block, "half_sweep": np.uint64(0),
            "key": queue.keys,
        })  # fmt: skip

    def _queue_sweeps(self, count: int, half_sweep: int) -> None:
        """One launch for each batch of each half-sweep."""
        starts, launch, stream = self._plan.batches.colour_start, self._launch, self._queue.stream
        for done in range(count * self.colours):
            colour = (half_sweep + done) % self.colours
            for grid, batch in self._batches[starts[colour] : starts[colour + 1]]:
                launch(stream, grid, THREADS, batch=batch, half_sweep=half_sweep + done)
