"""Dense models on a GPU: a thread block has a group of replicas, whose spins stay in shared memory for many sweeps."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.device import cupy, has_clusters, require_memory, shared_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import CudaEngine, CudaParts
from spinsim.engine.cuda_queue import Queue, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison, compare_replicas
from spinsim.engine.measuring.sums import CudaCounting, of_energy_and_down
from spinsim.engine.moves.exchange.cuda import CudaTempering
from spinsim.engine.moves.metropolis.dense import cuda_bytes, cuda_signs
from spinsim.engine.moves.metropolis.dense.cuda_bytes import Matrix, matrix
from spinsim.engine.moves.metropolis.dense.cuda_signs import Signs, signs
from spinsim.engine.moves.metropolis.dense.update import SITES, DensePlan
from spinsim.engine.moves.metropolis.unpacked import cuda as unpacked
from spinsim.engine.moves.resample import Moves
from spinsim.model.ising import Ising

CALLS_A_BLOCK: Final = np.uint32(packing.LANES // WORDS)  # of 128 replicas
WORD_REPLICAS: Final = 32  # of a column in shared memory, where copies are compared
MOST_SITES: Final = 2**15 - 1  # counts of neighbours have 16 bits
UPDATES_A_LAUNCH: Final = 2**31  # so that a launch stays well below a second, but for few replicas


def engine(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> CudaEngine:
    """The engine of dense models; an unpacked one where not even a small group of replicas fits a multiprocessor."""
    if model.sites > MOST_SITES:
        return unpacked.engine(model, replicas, dynamics, device)
    plan = model.once(DensePlan)
    couplings = signs(plan) or matrix(plan)
    if isinstance(couplings, Signs):
        needed = cuda_signs.group_bytes(model.sites)
    else:
        needed = cuda_bytes.group_bytes(model.sites, couplings.bytes, couplings.wide, 16)
    if needed > shared_memory(device):
        return unpacked.engine(model, replicas, dynamics, device)
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


def compare(model: Ising, width: int, device: int, tempering: CudaTempering, wanted: Wanted) -> Comparison:
    """The comparison of copies of a ladder whose spins have a byte each; no such model has time."""
    shape = {"sites": np.uint32(model.sites), "width": np.uint32(width)}
    comparison = Compared(device, model, tempering, wanted)
    return compare_replicas(comparison, "differing_spins", shape, -(-width // WORD_REPLICAS), None)


class DenseSpins:
    """The spins of a dense run, int8 (samples, sites, width), and what kernels read of its model."""

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
            self.program = cuda_signs.program(couplings, fields)
        else:
            room = shared_memory(queue.device)
            clusters = has_clusters(queue.device)
            self.program = cuda_bytes.program(couplings, fields, model.sites, self.width, room, clusters)
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
        """Queue adding energies and spins -1 to sums at addresses; there is no first sublattice."""
        self._count(self._queue.stream, self.grid, self.program.threads, energies=to[0], down=to[1])


class DenseSweeper(unpacked.SpinSweeper):
    """A ``CudaSweeper`` of dense models."""

    def __init__(self, queue: Queue, spins: DenseSpins, replicas: int, zero_acceptance: float) -> None:
        super().__init__(queue, spins.model, replicas, spins.width, spins.plan.colours, terms=1)
        self._dense, self._zero_acceptance = spins, zero_acceptance

    def _make_launch(self, double_beta: Any, single_beta: Any) -> None:
        """Make ready for sweeps at temperatures (samples, 1, width); all samples share one row."""
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
