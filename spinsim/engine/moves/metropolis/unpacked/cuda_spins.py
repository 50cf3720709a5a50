"""Spins of replicas on a GPU, a byte each, and temperatures of replicas that are updated one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta, check_betas
from spinsim.cuda.device import require_memory
from spinsim.cuda.launch import Launch
from spinsim.engine.cuda import MeasuredRounds
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked.cpu import WORDS
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison, compare_replicas
from spinsim.engine.moves.exchange.cuda import CudaTempering, Placed
from spinsim.engine.moves.metropolis.unpacked.plan import UnpackedPlan
from spinsim.engine.moves.resample.moves import Moves
from spinsim.model.ising import Ising

LAY_THREADS: Final = 256
CALLS_A_BLOCK: Final = np.uint32(packing.LANES // WORDS)  # of 128 replicas
WORD_REPLICAS: Final = 32  # of a column in shared memory, where copies are compared


def compare(model: Ising, width: int, device: int, tempering: CudaTempering, wanted: Wanted) -> Comparison:
    """What compares copies of a ladder whose spins have a byte each; no such model has time."""
    shape = {"sites": np.uint32(model.sites), "width": np.uint32(width)}
    what = Compared(device, model, tempering, wanted)
    return compare_replicas(what, "differing_spins", shape, -(-width // WORD_REPLICAS), None)


class SpinBytes:
    """The spins of a run, int8 (samples, sites, width).

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
        dynamics: How they start.
        queue: Where its work is queued; the present device and stream of CuPy.
        others: Bytes that a run takes beside them.

    Attributes:
        model: As given.
        replicas: As given.
        calls: Philox calls of a site.
        width: Replicas rounded up to whole calls.
        present: The spins.
    """

    replica_axis = 2

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, queue: Queue, others: int) -> None:
        import cupy

        self.model, self.replicas, self._queue = model, replicas, queue
        self.calls = -(-replicas // WORDS)
        self.width = self.calls * WORDS
        state, packed = model.samples * model.sites * self.width, 16 * model.sites * packing.block_count(replicas)
        require_memory(queue.device, others + state + packed, f"the state of {model.name}")
        self.present = cupy.ones((model.samples, model.sites, self.width), cupy.int8)
        if dynamics.start == "random":
            for sample in range(model.samples):
                self.present[sample] = self._unpacked_start(sample)

    def _unpacked_start(self, sample: int) -> Any:
        """The packed start of one sample, unpacked on the device."""
        import cupy

        blocks, sites = packing.block_count(self.replicas), self.model.sites
        words = cupy.empty((1, blocks, sites, 2), cupy.uint64)
        lanes = cupy.full((blocks, 2), np.uint64(2**64 - 1))
        self._queue.start_at_random(words, lanes, sample=sample)
        bits = cupy.unpackbits(words[0].transpose(1, 0, 2).reshape(-1).view(cupy.uint8), bitorder="little")
        return 2 * bits.reshape(sites, -1)[:, : self.width].astype(cupy.int8) - 1

    def words(self) -> npt.NDArray[np.uint64]:
        """The words of a snapshot: replica-packed."""
        return packing.pack(self.present.get()[..., : self.replicas])

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        self.present.set(np.ascontiguousarray(packing.unpack(words, self.width)))

    def copy(self, moves: Moves) -> None:
        """Queue copies of configurations."""
        import cupy

        sample, source, target = (cupy.asarray(array) for array in moves)
        self.present[sample, :, target] = self.present[sample, :, source]

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""
        return np.asarray(state[sample, :, replica].get())


class Replicas(Protocol):
    """Spins whose replicas may each have a temperature."""

    @property
    def model(self) -> Ising:
        """The model."""

    @property
    def replicas(self) -> int:
        """Replicas of each sample."""

    @property
    def width(self) -> int:
        """Replicas that kernels read."""


class SpinSweeper(ABC):
    """What a ``CudaSweeper`` of such spins knows of temperatures; its launch is made anew when they change.

    Args:
        queue: Where sweeps are queued.
        spins: The spins.
        colours: Half-sweeps in a sweep.
        terms: Of the energy, 1 or 2.

    Attributes:
        are_laid: Whether replicas have the temperatures of their present places.
    """

    rounds: MeasuredRounds | None = None  # there may be no kernel of many rounds
    measured_rounds: MeasuredRounds | None = None
    are_laid = True

    def __init__(self, queue: Queue, spins: Replicas, colours: int, terms: int) -> None:
        self.colours, self.tasks = colours, spins.model.samples  # replicas run side by side within each
        self._queue, self._spins, self._terms = queue, spins, terms
        self._launch: Launch | None = None
        self._lay: Launch | None = None
        self._rows = 0  # of temperatures that change: samples times terms
        self._coldest = np.zeros(terms)  # largest 2 beta times the quantum, of each term

    @abstractmethod
    def _make_launch(self, double_beta: Any, single_beta: Any) -> None: ...

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Take an inverse temperature, one for each replica (replicas,), or of each of two terms (replicas, 2)."""
        import cupy

        spins = self._spins
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        values = UnpackedPlan.double_beta(spins.model, check(beta, spins.replicas)[None])
        missing = spins.width - values.shape[-1]
        padded = np.pad(values, [(0, 0), (0, 0), (0, missing)], "edge")
        self._coldest = np.broadcast_to(values[0].max(axis=-1), self._terms)
        single_beta = np.minimum(padded, np.finfo(np.float32).max).astype(np.float32)
        self._make_launch(cupy.asarray(padded), cupy.asarray(single_beta))
        self._lay = None

    def set_ladder(self, placed: Placed) -> None:
        """Make room for temperatures of each sample's replicas."""
        import cupy

        ladder, model, width = placed.ladder, self._spins.model, self._spins.width
        by_term = np.ascontiguousarray(ladder.beta.reshape(ladder.temperatures, -1).T)
        shape = model.samples, len(by_term), width
        double_beta, single_beta = cupy.empty(shape, cupy.float64), cupy.empty(shape, cupy.float32)
        self._coldest = 2.0 * model.quantum * np.broadcast_to(by_term.max(axis=-1), self._terms)
        self._make_launch(double_beta, single_beta)
        self._rows = shape[0] * shape[1]
        self._lay = Launch(self._queue.device, "tempering/lay_tables.cu", "lay_betas", {
            "double_beta": double_beta, "single_beta": single_beta,
            "ladder": cupy.asarray(2.0 * model.quantum * by_term), "place": placed.place,
            "samples": np.uint32(model.samples), "terms": np.uint32(len(by_term)),
            "temperatures": np.uint32(ladder.temperatures), "replicas": np.uint32(self._spins.replicas),
            "width": np.uint32(width),
        })  # fmt: skip

    def lay_tables(self) -> None:
        """Queue what gives replicas the temperatures of their places."""
        self.are_laid = True
        if self._lay is not None:
            grid = -(-self._rows * self._spins.width // LAY_THREADS), 1, 1
            self._lay(self._queue.stream, grid, LAY_THREADS)
