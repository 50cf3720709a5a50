"""Dense models on the CPU: replicas in chunks, a task each, with their local fields."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.dense_bits import DenseState, Rows, in_lines
from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering, Times
from spinsim.engine.moves.metropolis.dense.cpu_sweep import (
    SITES,
    sweep_dense,
    temper_dense,
)
from spinsim.engine.moves.metropolis.unpacked.cpu import ChunkSweeper
from spinsim.engine.moves.metropolis.unpacked.plan import UnpackedPlan
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

LONG_ROUND = 2**16  # attempts of a sample from which on its chunks are worth a thread each in every round


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    rows, pool = model.once(Rows), Threads(threads)
    state = DenseState(model, replicas, dynamics, pool, rows)
    parts = CpuParts(
        packing=packing.Packing.UNPACKED,
        state=state,
        sweeper=DenseSweeper(model, rows, dynamics, state),
        counts=state.counts,
        comparison=CpuReplicaComparison(model),
        threads=pool,
    )
    return CpuEngine(model, replicas, dynamics, parts)


class DenseSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of dense models."""

    def __init__(self, model: Ising, rows: Rows, dynamics: Dynamics, state: DenseState) -> None:
        super().__init__(model, rows.colours, 1, dynamics, state)
        self._rows, self._state = rows, state
        self._keys = (*self._key, dynamics.rng_rounds)

    @property
    def _long_round(self) -> int:
        return LONG_ROUND

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        rows, state, (block, lane) = self._rows, self._state, divmod(first, packing.LANES)
        up, couplings = state.of(sample, first), rows.of(sample)
        sweep_dense(
            up,
            state.fields_of(sample, first),
            in_lines((SITES,), couplings.dtype),
            (rows.order, rows.colour, rows.colours),
            couplings,
            double_beta[sample % len(double_beta), 0, first : first + len(up)].copy(),
            self._dynamics.zero_acceptance,
            (self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS)),
            self._keys,
            np.uint64(half_sweep),
            count,
        )

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        rows = self._rows
        double_beta = UnpackedPlan.double_beta(self._model, tempering.ladder.beta[None])[0, 0]
        for sample in range(samples.start, samples.stop):
            couplings = rows.of(sample)
            temper_dense(
                self._state.up[sample],
                self._state.all_fields_of(sample),
                in_lines((SITES,), couplings.dtype),
                (rows.order, rows.colour, rows.colours),
                couplings,
                rows.fields[sample % len(rows.fields)],
                double_beta,
                self._dynamics.zero_acceptance,
                (tempering.steps, tempering.ladder.copies),
                tempering.of_sample(sample),
                self._dynamics.first_sample + sample,
                self._keys,
                np.uint64(half_sweep),
                times,
            )
