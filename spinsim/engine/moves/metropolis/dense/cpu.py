"""Dense models on the CPU: replicas in chunks, a task each, with their local fields.

A bit holds a spin of one replica, ``up[sample, replica, block]`` 64 sites in the order of their visits. Local fields
lie beside them, ``fields[sample, replica, site]``, filled up to whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.cpu import CpuEngine, CpuParts
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS, InChunks
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.moves.exchange.cpu import CpuTempering, Times
from spinsim.engine.moves.metropolis.dense.cpu_sweep import (
    SITES,
    TILE,
    begin_fields,
    energies_from_fields,
    sweep_dense,
    temper_dense,
)
from spinsim.engine.moves.metropolis.dense.update import DensePlan
from spinsim.engine.moves.metropolis.unpacked.cpu import ChunkSweeper
from spinsim.engine.moves.metropolis.unpacked.update import UnpackedPlan
from spinsim.engine.moves.resample import Moves
from spinsim.engine.protocols import Counts, Spins, room_like
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

LINE = 64  # bytes of a cache line, and of the widest vectors
NANOSECONDS = 6  # of two attempts: what 128 spins of other updates take, in whose words the worth of a thread is told


def in_lines(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin with a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(kind).reshape(shape)


class Rows:
    """A model as the CPU reads it: rows of whole tiles, and orders of whole blocks.

    Attributes:
        order: Sites as they are visited, uint32, with zeros up to whole blocks.
        double_couplings: 2 J in quanta, (1 or samples, sites, columns).
        fields: h in quanta, int64 (1 or samples, sites).
        all_down: Local fields where all spins are -1, (1 or samples, columns).
    """

    def __init__(self, model: Ising) -> None:
        plan, sites = DensePlan(model), model.sites
        couplings = plan.double_couplings
        tile, self.sites, self.blocks = TILE // couplings.itemsize, sites, -(-sites // SITES)
        columns = -(-sites // tile) * tile
        self.order, self.colour = np.zeros((2, SITES * self.blocks), np.uint32)
        self.order[:sites], self.colour[:sites], self.colours = plan.order, plan.colour, plan.colours
        self.double_couplings = in_lines((len(couplings), sites, columns), couplings.dtype)
        self.double_couplings[..., :sites] = couplings
        self.fields = plan.fields
        self.all_down = np.zeros((len(plan.all_down), columns), couplings.dtype)
        self.all_down[:, :sites] = plan.all_down

    def of(self, sample: int) -> npt.NDArray[np.signedinteger]:
        return np.asarray(self.double_couplings[sample % len(self.double_couplings)])


class DenseState(InChunks):
    """Bits of spins and their local fields, as the head of this file says."""

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: Threads, rows: Rows) -> None:
        super().__init__(model, replicas, threads, WORDS)
        self._rows = rows
        self.up = np.zeros((model.samples, replicas, rows.blocks), np.uint64)
        self.nbytes = self.up.nbytes
        shape = model.samples, replicas, rows.all_down.shape[1]
        self._fields = in_lines(shape, rows.all_down.dtype)
        self._begun: set[tuple[int, int]] = set()  # chunks that have their fields
        self._start(dynamics)

    def _set(self, sample: int, first: int, spins: npt.NDArray[np.int8]) -> None:
        spins = spins[:, : self.replicas - first]
        bits = np.zeros((spins.shape[1], SITES * self._rows.blocks), np.bool_)
        bits[:, : self.model.sites] = spins[self._rows.order[: self.model.sites]].T > 0
        words = np.packbits(bits, axis=1, bitorder="little").view("<u8")
        self.up[sample, first : first + spins.shape[1]] = words
        self._begun.clear()

    def worth(self, sweeps: int) -> int:
        return self.model.samples * self.replicas * self.model.sites * sweeps // NANOSECONDS

    def of(self, sample: int, first: int) -> npt.NDArray[np.uint64]:
        """Spins of the chunk from replica ``first`` on, (width, blocks), which may be changed."""
        return self.up[sample, first : first + self.size]

    def fields_of(self, sample: int, first: int) -> npt.NDArray[np.signedinteger]:
        """Local fields of the same, (width, columns) in the order of visits."""
        fields: npt.NDArray[np.signedinteger] = self._fields[sample, first : first + self.size]
        if (sample, first) not in self._begun:
            fields[:] = self._rows.all_down[sample % len(self._rows.all_down)]
            begin_fields(self.of(sample, first), fields, self._rows.of(sample))
            self._begun.add((sample, first))
        return fields

    def all_fields_of(self, sample: int) -> npt.NDArray[np.signedinteger]:
        for first in self.firsts:
            self.fields_of(sample, first)
        return np.asarray(self._fields[sample])

    def words_of(self, samples: slice) -> npt.NDArray[np.uint64]:
        spins = _in_order(self.up[samples], self._rows).swapaxes(1, 2)
        return packing.pack(spins)

    def copy(self, moves: Moves) -> None:
        """Copy configurations and their local fields, of chunks that have them."""
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            self.up[sample, target] = self.up[sample, source]
            if (sample, target - target % self.size) in self._begun:
                self._fields[sample, target] = self.all_fields_of(sample)[source]

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._read(self.up, sample, replica)

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        keep, copy = room_like(self.up)
        return keep, partial(self._read, copy)

    def _read(self, up: npt.NDArray[np.uint64], sample: int, replica: int) -> npt.NDArray[np.int8]:
        return _in_order(up[sample, replica], self._rows)

    def counts(self, samples: slice | None = None) -> Counts:
        mine = range(self.model.samples)[samples or slice(None)]
        energy = np.zeros((len(mine), self.replicas), np.int64)
        magnetization, rows = np.zeros_like(energy), self._rows

        def count(sample: int, first: int) -> None:
            chunk, fields = slice(first, first + self.size), rows.fields[sample % len(rows.fields)]
            of_chunk = energy[sample - mine.start, chunk], magnetization[sample - mine.start, chunk]
            energies_from_fields(self.of(sample, first), self.fields_of(sample, first), fields, *of_chunk)

        self.each(count, 1, samples)
        return Counts(energy, magnetization, np.zeros_like(energy))


def _in_order(up: npt.NDArray[np.uint64], rows: Rows) -> npt.NDArray[np.int8]:
    """Spins (..., sites) of words (..., blocks)."""
    bits = np.unpackbits(up.astype("<u8", copy=False).view(np.uint8), axis=-1, count=rows.sites, bitorder="little")
    spins = np.empty(bits.shape, np.int8)
    spins[..., rows.order[: rows.sites]] = 2 * bits.view(np.int8) - 1
    return spins


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    rows, pool = model.once(Rows), Threads(threads)
    state = DenseState(model, replicas, dynamics, pool, rows)
    sweeper = DenseSweeper(model, rows, dynamics, state)
    parts = CpuParts(packing.Packing.UNPACKED, state, sweeper, state.counts, CpuReplicaComparison(model).compare, pool)
    return CpuEngine(model, replicas, dynamics, parts)


class DenseSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of dense models."""

    long_round = 2**16

    def __init__(self, model: Ising, rows: Rows, dynamics: Dynamics, state: DenseState) -> None:
        super().__init__(model, rows.colours, 1, dynamics, state)
        self._rows, self._state = rows, state
        self._keys = (*self._key, dynamics.rng_rounds)

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        rows, state, (block, lane) = self._rows, self._state, divmod(first, packing.LANES)
        up, couplings = state.of(sample, first), rows.of(sample)
        sweep_dense(
            up, state.fields_of(sample, first), in_lines((SITES,), couplings.dtype),
            (rows.order, rows.colour, rows.colours), couplings,
            double_beta[sample % len(double_beta), 0, first : first + len(up)].copy(), self._dynamics.zero_acceptance,
            (self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS)), self._keys, np.uint64(half_sweep),
            count,
        )  # fmt: skip

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        rows = self._rows
        double_beta = UnpackedPlan.double_beta(self._model, tempering.ladder.beta[None])[0, 0]
        for sample in range(samples.start, samples.stop):
            couplings = rows.of(sample)
            temper_dense(
                self._state.up[sample], self._state.all_fields_of(sample), in_lines((SITES,), couplings.dtype),
                (rows.order, rows.colour, rows.colours), couplings, rows.fields[sample % len(rows.fields)],
                double_beta, self._dynamics.zero_acceptance, (tempering.steps, tempering.ladder.copies),
                tempering.of_sample(sample), self._dynamics.first_sample + sample, self._keys, np.uint64(half_sweep),
                times,
            )  # fmt: skip
