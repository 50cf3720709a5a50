"""Dense models on the CPU: replicas in chunks, a task each, with their local fields."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import check_beta
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import NO_TEMPERATURE, Dynamics
from spinsim.engine.layouts.unpacked.cpu import WORDS
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.moves.metropolis.dense.cpu_state import DenseState, Rows, in_lines
from spinsim.engine.moves.metropolis.dense.cpu_sweep import sweep_dense
from spinsim.engine.moves.metropolis.dense.cpu_tempering import temper_dense
from spinsim.engine.moves.metropolis.dense.cpu_vectors import SITES
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

LONG_ROUND = 2**16  # attempts of a sample from which on its chunks are worth a thread each in every round


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    """The engine of dense models."""
    rows, pool = model.once(Rows), Threads(threads)
    state = DenseState(model, replicas, dynamics, pool, rows)
    parts = CpuParts(
        packing=packing.Packing.UNPACKED,
        state=state,
        sweeper=DenseSweeper(model, rows, dynamics, state),
        counts=state.counts,
        comparison=CpuReplicaComparison(model, replicas),
        threads=pool,
    )
    return CpuEngine(model, replicas, dynamics, parts)


class DenseSweeper:
    """A ``CpuSweeper`` of dense models.

    Args:
        model: What is simulated.
        rows: Its couplings.
        dynamics: How replicas move.
        state: The spins and their local fields.
    """

    def __init__(self, model: Ising, rows: Rows, dynamics: Dynamics, state: DenseState) -> None:
        self.colours, self.tasks = rows.colours, state.count
        self._rows, self._dynamics, self._state = rows, dynamics, state
        self._unit, self._key = 2.0 * model.quantum, (*rng.split_seed(dynamics.seed), dynamics.rng_rounds)
        self._double_beta: npt.NDArray[np.float64] | None = None  # (1 or samples, replicas)

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, or one for each replica (replicas,)."""
        self._double_beta = self._unit * check_beta(beta, self._state.replicas)[None]

    def set_ladder(self, ladder: Ladder) -> None:
        """Nothing to prepare: there are no tables."""

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        """Give replicas the temperatures ``place`` (samples, replicas) of a ladder."""
        self._double_beta = self._unit * ladder.beta[place]

    def sweep(self, count: int, half_sweep: int) -> None:
        """Attempt every spin ``count`` times, after so many half-sweeps."""
        if self._double_beta is None:
            raise InputError(NO_TEMPERATURE)
        self._state.each(partial(self._sweep_chunk, self._double_beta, count, half_sweep), count)

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
            double_beta[sample % len(double_beta), first : first + len(up)].copy(),
            self._dynamics.zero_acceptance,
            (self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS)),
            self._key,
            np.uint64(half_sweep),
            count,
        )

    def temper(self, tempering: CpuTempering, rounds: int, sweeps: int, half_sweep: int) -> bool:
        """Do all rounds of a sample in one call, unless its chunks are worth a thread each in every round."""
        rows, state, ladder = self._rows, self._state, tempering.ladder
        samples, threads = state.model.samples, state.threads
        idle = samples < threads.count and len(state.firsts) > 1
        if idle and rows.sites * state.replicas * sweeps >= LONG_ROUND:
            return False

        def task(k: int) -> None:
            couplings = rows.of(k)
            temper_dense(
                state.up[k],
                state.all_fields_of(k),
                in_lines((SITES,), couplings.dtype),
                (rows.order, rows.colour, rows.colours),
                couplings,
                rows.fields[k % len(rows.fields)],
                self._unit * ladder.beta,
                self._dynamics.zero_acceptance,
                (tempering.steps, ladder.copies),
                tempering.of_sample(k),
                self._dynamics.first_sample + k,
                self._key,
                np.uint64(half_sweep),
                (tempering.round, rounds, sweeps),
            )

        threads.run(partial(task, k) for k in range(samples))
        tempering.round += rounds
        self.set_places(ladder, tempering.exchange.place)
        return True
