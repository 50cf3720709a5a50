"""Many rounds of sweeps and exchanges in one launch, for models with any couplings in shared memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, shared_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.records import ADDRESS, SIZE, record, struct_type
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.cuda import NOTHING
from spinsim.engine.moves.exchange.cuda import CudaTempering
from spinsim.engine.moves.exchange.cuda_rounds import LaunchedRounds
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.packed.cuda_sharing import LATTICE_BARRIER
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import NOTES
from spinsim.engine.moves.metropolis.unpacked.cuda_words import WORD, UnpackedSpins
from spinsim.engine.moves.metropolis.unpacked.tempering.rows import COUNTED_BONDS, counted_rows

TOLD: Final = struct_type(all=ADDRESS, replicas=SIZE)
LEFT_SUMS: Final = struct_type(energy=ADDRESS, up=ADDRESS, up_first=ADDRESS)
BYTES_OF_OWN: Final = 8 + 4 + 4  # of a block's replica: temperature twice, spins +1
BYTES_OF_ALL: Final = 8 + 4 + 4 + 1  # of a sample's replica: energy, place, holder, end of the ladder


def shared_bytes(spins: UnpackedSpins, ladder: Ladder) -> int:
    """Shared memory of a thread block that has the ladder of its sample beside what sweeps need."""
    how, padding = spins.grouping, 4
    own, every = WORD * how.words, WORD * how.words * groups(spins)
    held = BYTES_OF_OWN * own + 8 * (ladder.temperatures + 1) + BYTES_OF_ALL * every + padding
    return how.shared_bytes(spins.model.sites, 1) + held


def groups(spins: UnpackedSpins) -> int:
    """Thread blocks that have the replicas of a sample."""
    return -(-spins.replicas // (WORD * spins.grouping.words))


def fits_with_ladder(spins: UnpackedSpins, ladder: Ladder, device: int) -> bool:
    """Whether thread blocks hold lattices and ladder, and the energy is one, of one term."""
    fits = spins.grouping.held and shared_bytes(spins, ladder) <= shared_memory(device)
    return fits and spins.plan.plan.terms == 1


class UnpackedRounds(LaunchedRounds):
    """Rounds of samples whose replicas one thread block has, or several that are resident together.

    Args:
        spins: The spins.
        coldest: The largest 2 beta in quanta.
        queue: As for ``LaunchedRounds``.
        tempering: Likewise.
        given: What else it takes.

    Attributes:
        together: Samples of one launch; 0 where not even the blocks of one are resident together.
    """

    def __init__(
        self, spins: UnpackedSpins, coldest: np.float32, queue: Queue, tempering: CudaTempering, **given: Any
    ) -> None:
        import cupy

        super().__init__(queue=queue, tempering=tempering, **given)
        self._threads, self._groups, self._samples = spins.grouping.threads, groups(spins), spins.model.samples
        every = WORD * spins.grouping.words * self._groups
        shares = self._samples if self._groups > 1 else 0
        self._told = cupy.zeros((2, shares, 2, every), cupy.int64)
        self._arrived, self._arrivals = cupy.zeros(self._samples, cupy.uint32), 0
        self._launch = self._ready(spins, coldest, every)
        resident = self._launch.blocks_at_once(self._threads) * multiprocessors(queue.device)
        self.together = self._samples if self._groups == 1 else min(self._samples, resident // self._groups)

    def _ready(self, spins: UnpackedSpins, coldest: np.float32, every: int) -> Launch:
        """The kernel with all arguments but those of a launch."""
        import cupy

        queue, plan, ladder = self._queue, spins.plan.plan, self._tempering.ladder
        two_beta = cupy.asarray(2.0 * spins.model.quantum * np.ascontiguousarray(ladder.beta.reshape(-1)))
        near, couplings = self._rows = [cupy.asarray(array) for array in counted_rows(spins.plan)]
        digit, samples = couplings[0].size, couplings.shape[1]
        bonds = record(
            COUNTED_BONDS, near=near, couplings=couplings, digits=digit, rows=len(near),
            stride=digit // samples if samples > 1 else 0,
        )  # fmt: skip
        expression = instance("temper_unpacked", spins.integer, queue.rng_rounds)
        return Launch(queue.device, "tempering/temper_unpacked.cu", expression, {
            **spins.arguments, "samples": np.uint32(self._samples),
            "ladder": two_beta, "coldest": coldest, "exchange": self._tempering.record,
            "told": record(TOLD, all=self._told, replicas=every), "bonds": bonds,
            "first_sites": np.uint32(plan.first), "sums": np.zeros((), LEFT_SUMS), "first_here": np.uint32(0),
            "first_half_sweep": np.uint64(0), "sweeps": np.uint32(0),
            "first_round": np.uint64(0), "rounds": np.uint32(0),
            "barriers": np.zeros((), LATTICE_BARRIER), "notes": np.zeros((), NOTES), "measured": NOTHING,
        }, shared_bytes(spins, ladder))  # fmt: skip

    def _start(self, count: int, half_sweeps: int, **arguments: Any) -> None:
        """Launch the thread blocks of as many samples as are resident together, again and again."""
        for first in range(0, self._samples, self.together):
            grid = self._groups, 1, min(self.together, self._samples - first)
            self._launch(
                self._queue.stream, grid, self._threads, self._groups > 1, first_here=first,
                barriers=(self._arrived.data.ptr, self._arrivals), **arguments,
            )  # fmt: skip
        self._arrivals = (self._arrivals + count * self._groups) % 2**32
