"""A byte holds a spin of one replica, +1 or -1: ``spins[site, replica]``, with replicas padded to whole Philox calls.

On a CPU replicas are cut into chunks. Replicas of a chunk that take the same word of their Philox calls are contiguous.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.dynamics import Dynamics, fill_start
from spinsim.engine.moves.resample import Moves
from spinsim.engine.protocols import Spins, room_like
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising

WORDS: Final = 4  # replicas that one Philox call serves, one word each
SMALLEST_CHUNK: Final = 32  # replicas


def by_word(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Reorder the last axis from replica order to the order of ``sweep_general``."""
    shape = values.shape
    return values.reshape(*shape[:-1], -1, WORDS).swapaxes(-1, -2).reshape(shape)


@kernel
def total_energies(spins, edges, of_first, couplings, fields, energy, magnetization):  # type: ignore[no-untyped-def]
    """Add energies in quanta, (1 or 2 terms, replicas), and magnetisations of ``spins``, int8 (sites, replicas).

    The first ``of_first`` bonds belong to term 0, as all fields do. Sums are below 2^53, where float64 is exact; vector
    units cannot multiply 64-bit integers.
    """
    for term in range(energy.shape[0]):
        total = np.zeros(magnetization.size)
        first, stop = (of_first, edges.shape[0]) if term else (0, of_first)
        for b in range(first, stop):
            coupling = np.float64(couplings[b])
            one, other = spins[np.uint32(edges[b, 0])], spins[np.uint32(edges[b, 1])]
            for r in range(total.size):
                total[r] -= coupling * np.float64(one[r] * other[r])
        for i in range(0 if term else spins.shape[0]):
            field = np.float64(fields[i])
            row = spins[i]
            for r in range(total.size):
                total[r] -= field * np.float64(row[r])
                magnetization[r] += row[r]
        for r in range(total.size):
            energy[term, r] += np.int64(total[r])


@kernel
def sum_spins(spins, sites, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (replicas,) the sum over ``sites`` of each replica's ``spins``, int8 (all sites, replicas)."""
    for i in sites:
        row = spins[i]
        for r in range(totals.size):
            totals[r] += row[r]


@kernel
def count_chunks(edges, of_first, couplings, fields, sublattice, size, memory, sample, begin, end, counts):  # type: ignore[no-untyped-def]
    """Count replicas from ``begin`` to before ``end`` of some samples; they must be whole chunks.

    ``couplings`` and ``fields`` are in quanta, (1 or all samples, bonds or sites). ``sublattice`` has the sites of the
    first sublattice; ``size`` and ``memory`` are as in ``pack_chunks``. The results go into ``counts`` (numbers,
    samples, replicas): energies of each term, sums of spins and sums of the first sublattice's spins.
    """
    sites, terms, replicas = fields.shape[1], counts.shape[0] - 2, counts.shape[2]
    for k in range(memory.shape[0]):
        of_bonds, of_sites = couplings[(sample + k) % couplings.shape[0]], fields[(sample + k) % fields.shape[0]]
        for first in range(begin, end, size):
            calls = (min(size, replicas - first) + WORDS - 1) // WORDS
            spins = memory[k, first * sites : (first + WORDS * calls) * sites].reshape((sites, WORDS * calls))
            sums = np.zeros((counts.shape[0], WORDS * calls), np.int64)
            total_energies(spins, edges, of_first, of_bonds, of_sites, sums[:terms], sums[terms])
            sum_spins(spins, sublattice, sums[terms + 1])
            for number in range(counts.shape[0]):
                for r in range(first, min(first + size, replicas)):
                    counts[number, k, r] = sums[number, (r - first) % WORDS * calls + (r - first) // WORDS]


@part
def every_fourth(bits):  # type: ignore[no-untyped-def]
    """Spread the low 16 bits of a word to bits 0, 4, 8, ... of 64."""
    bits &= np.uint64(0xFFFF)
    bits = (bits | (bits << np.uint64(24))) & np.uint64(0x000000FF000000FF)
    bits = (bits | (bits << np.uint64(12))) & np.uint64(0x000F000F000F000F)
    bits = (bits | (bits << np.uint64(6))) & np.uint64(0x0303030303030303)
    return (bits | (bits << np.uint64(3))) & np.uint64(0x1111111111111111)


@part
def first_bits(count):  # type: ignore[no-untyped-def]
    """Return a word whose first ``count`` bits are set, of at most 64."""
    return ~np.uint64(0) if count >= 64 else (np.uint64(1) << np.uint64(max(0, count))) - np.uint64(1)


@kernel
def pack_chunks(memory, size, replicas, words):  # type: ignore[no-untyped-def]
    """Set the bits of spins +1 in replica-packed ``words`` (samples, blocks, sites, 2), which must be 0 before.

    ``memory`` belongs to ``Chunks`` of ``size`` replicas: position w * calls + c of a chunk is its replica 4 c + w.
    """
    sites = words.shape[2]
    for k in range(memory.shape[0]):
        for first in range(0, replicas, size):
            lanes, block, lane = min(size, replicas - first), first // packing.LANES, first % packing.LANES
            calls = (lanes + WORDS - 1) // WORDS
            spins = memory[k, first * sites : (first + WORDS * calls) * sites].reshape((sites, WORDS, calls))
            half, shift = lane // 64, np.uint64(lane % 64)
            in_low, in_high = first_bits(lanes), first_bits(lanes - 64)
            for i in range(sites):
                low, high = np.uint64(0), np.uint64(0)
                for w in range(WORDS):
                    row, up = spins[i, w], np.uint64(0)
                    for c in range(calls):
                        up |= np.uint64(row[c] > 0) << np.uint64(c)
                    low |= every_fourth(up) << np.uint64(w)
                    high |= every_fourth(up >> np.uint64(16)) << np.uint64(w)
                words[k, block, i, half] |= (low & in_low) << shift
                if lanes > 64:
                    words[k, block, i, 1] = high & in_high


@kernel
def flip_chunks(memory, size, replicas, flips):  # type: ignore[no-untyped-def]
    """Flip the spins whose bits are set in ``flips`` (samples, blocks, sites, 2); ``memory`` as in ``pack_chunks``."""
    sites = flips.shape[2]
    for k in range(memory.shape[0]):
        for first in range(0, replicas, size):
            lanes = min(size, replicas - first)
            calls = (lanes + WORDS - 1) // WORDS
            spins = memory[k, first * sites : (first + WORDS * calls) * sites].reshape((sites, WORDS * calls))
            for i in range(sites):
                row, of_site = spins[i], flips[k, first // packing.LANES, i]
                for lane in range(lanes):
                    bit = first % packing.LANES + lane
                    flip = of_site[bit // 64] >> np.uint64(bit % 64) & np.uint64(1)
                    row[lane % WORDS * calls + lane // WORDS] *= np.int8(1) - np.int8(2) * np.int8(flip)


class InChunks(ABC):
    """Spins of all samples on a CPU in chunks of replicas; each chunk is a task.

    Each chunk but the last has a block of 128 replicas, or fewer if that would leave threads idle.
    """

    def __init__(self, model: Ising, replicas: int, threads: Threads, smallest: int) -> None:
        self.model, self.replicas, self.threads = model, replicas, threads
        self.size = packing.LANES
        while self.size > smallest and model.samples * -(-replicas // self.size) < threads.count:
            self.size //= 2
        self.firsts = range(0, replicas, self.size)
        self.count = model.samples * len(self.firsts)

    def _start(self, dynamics: Dynamics) -> None:
        words = np.empty((1, 1, self.model.sites, 2), np.uint64)
        for sample in range(self.model.samples):
            for block, first in enumerate(range(0, self.replicas, packing.LANES)):
                fill_start(words[0, 0], packing.lane_masks(packing.LANES)[0], dynamics, sample, block)
                lanes = min(packing.LANES, self.width(first, self.replicas))
                self._set(sample, first, packing.unpack(words, lanes)[0])

    def width(self, first: int, stop: int | None = None) -> int:
        """Padded number of replicas in the chunk that begins at ``first``, or up to ``stop``, in whole Philox calls."""
        stop = min(first + self.size, self.replicas) if stop is None else stop
        return -(-(stop - first) // WORDS) * WORDS

    @abstractmethod
    def _set(self, sample: int, first: int, spins: npt.NDArray[np.int8]) -> None:
        """Set the configurations (sites, replicas), in whole Philox calls, of the replicas from ``first`` on."""

    @abstractmethod
    def words_of(self, samples: slice) -> npt.NDArray[np.uint64]: ...

    def worth(self, sweeps: int) -> int | None:
        """Words of 128 spins whose update costs as much as ``sweeps`` sweeps, as ``Threads.run`` takes them."""
        return None

    def each(self, task: Callable[[int, int], None], sweeps: int = 1, samples: slice | None = None) -> None:
        """Run ``task(sample, first)`` for all chunks; it takes about as long as ``sweeps`` sweeps.

        If ``samples`` is given, only their chunks are run, in this thread.
        """
        mine = range(self.model.samples)[samples or slice(None)]
        tasks = (partial(task, sample, first) for sample in mine for first in self.firsts)
        self.threads.run(tasks, self.worth(sweeps) if samples is None else 0)

    def words(self) -> npt.NDArray[np.uint64]:
        return self.words_of(slice(None))

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        for sample, spins in enumerate(packing.unpack(words, self.width(0, self.replicas))):
            self._set(sample, 0, spins)


class Chunks(InChunks):
    """One byte per spin; chunks are int8 (sites, width) in the order of ``by_word``, contiguous in ``memory``."""

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, threads: Threads) -> None:
        super().__init__(model, replicas, threads, SMALLEST_CHUNK)
        self.memory = np.empty((model.samples, self.width(0, replicas) * model.sites), np.int8)
        self.nbytes = self.memory.nbytes
        self._views = [[self._view(self.memory, k, first) for first in self.firsts] for k in range(model.samples)]
        self._start(dynamics)

    def _view(self, memory: npt.NDArray[np.int8], sample: int, first: int) -> npt.NDArray[np.int8]:
        sites, width = self.model.sites, self.width(first)
        return memory[sample, first * sites : (first + width) * sites].reshape(sites, width)

    def _set(self, sample: int, first: int, spins: npt.NDArray[np.int8]) -> None:
        for at in range(0, spins.shape[1], self.size):
            self.of(sample, first + at)[:] = by_word(spins[:, at : at + self.size])

    def of(self, sample: int, first: int) -> npt.NDArray[np.int8]:
        return self._views[sample][first // self.size]

    def words_of(self, samples: slice) -> npt.NDArray[np.uint64]:
        memory = self.memory[samples]
        words = np.zeros((len(memory), packing.block_count(self.replicas), self.model.sites, 2), np.uint64)
        pack_chunks(memory, self.size, self.replicas, words)
        return words

    def flip(self, flips: npt.NDArray[np.uint64], samples: slice) -> None:
        """Flip the spins of some samples where bits of ``flips`` (samples, blocks, sites, 2) are set."""
        flip_chunks(self.memory[samples], self.size, self.replicas, flips)

    def copy(self, moves: Moves) -> None:
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            origin, goal = (self.of(sample, replica) for replica in (source, target))
            goal[:, self._column(goal, target)] = origin[:, self._column(origin, source)]

    def _column(self, chunk: npt.NDArray[np.int8], replica: int) -> int:
        lane = replica % self.size
        return int(lane % WORDS * (chunk.shape[1] // WORDS) + lane // WORDS)

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return self._read(self.memory, sample, replica)

    def keep(self) -> tuple[Callable[[slice], None], Spins]:
        keep, copy = room_like(self.memory)
        return keep, partial(self._read, copy)

    def _read(self, memory: npt.NDArray[np.int8], sample: int, replica: int) -> npt.NDArray[np.int8]:
        spins = self._view(memory, sample, replica - replica % self.size)
        return spins[:, self._column(spins, replica)].copy()
