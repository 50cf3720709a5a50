"""What CUDA engines share: a device, a stream of its own, timing by device events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from spinsim.engine.base import Counts, Dynamics
from spinsim.engine.cuda.device import names
from spinsim.engine.cuda.launch import Launch
from spinsim.engine.cuda.records import round_keys
from spinsim.engine.cuda.totals import TotalsInTurn
from spinsim.errors import InputError
from spinsim.model.ising import Ising

GRID_LIMIT: Final = 65535  # of a grid's y and z extents
START_THREADS: Final = 128


class CudaEngine(ABC):
    """The part of an ``Engine`` that depends on the device alone.

    Attributes:
        device: Number of the device.
        stream: Where all its work is queued.
        half_sweep: Half-sweeps done.
    """

    colours: int

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int) -> None:
        import cupy

        self.model, self.replicas, self.dynamics, self.device = model, replicas, dynamics, device
        self.device_name = names()[device]
        self.half_sweep = 0
        self._round_keys = round_keys(dynamics.seed)
        with cupy.cuda.Device(device):
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._totals = TotalsInTurn(self.stream)

    @contextmanager
    def _here(self) -> Iterator[None]:
        """CuPy's calls go to this engine's device and stream."""
        import cupy

        with cupy.cuda.Device(self.device), self.stream:
            yield

    def _random_start(self, state: Any, lanes: Any, order: Any = None, sample: int = 0) -> None:
        """Fill ``state`` (samples, blocks, sites, 2), its first sample number ``sample``, with random spins.

        ``order`` holds the site at each place, None where a site is its own; ``lanes`` (blocks, 2) are those in use.
        """
        samples, blocks, sites, _ = state.shape
        Launch(self.device, "start.cu", f"random_start<{self.dynamics.rng_rounds}>", {
            "state": state, "lanes": lanes, "order": np.uint64(0) if order is None else order,
            "sites": np.uint32(sites), "sample": np.uint32(sample), "block": np.uint32(0), "key": self._round_keys,
        })(self.stream, (-(-sites // START_THREADS), blocks, samples), START_THREADS)  # fmt: skip

    @abstractmethod
    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds between two events on the device."""
        import cupy

        with self._here():
            began, ended = cupy.cuda.Event(), cupy.cuda.Event()
            began.record()
            self.sweep(count)
            ended.record()
            ended.synchronize()
            return float(cupy.cuda.get_elapsed_time(began, ended)) / 1e3

    @abstractmethod
    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        return self.begin_counts()()

    def wait(self) -> None:
        """Return when the device is done."""
        self.stream.synchronize()


def check_grid(samples: int, blocks: int) -> None:
    """Refuse more samples or blocks of replicas than a launch can have."""
    if max(samples, blocks) > GRID_LIMIT:
        raise InputError(f"{max(samples, blocks)} samples or blocks of replicas exceed a GPU grid: split the run")
