"""Device and stream on which one engine queues its GPU work, and the consecutive kernels of a move."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.device import cupy
from spinsim.cuda.launch import Launch, Struct, record, round_keys
from spinsim.engine.dynamics import Dynamics
from spinsim.errors import InputError
from spinsim.machine.memory import using

GRID_LIMIT: Final = 65535  # largest y and z extent of a grid
START_THREADS: Final = 128


class Queue:
    """A device, a stream of its own there, and the numbers of ``Dynamics`` as kernels take them."""

    def __init__(self, device: int, dynamics: Dynamics) -> None:
        self.device, self.rng_rounds, self.keys = device, dynamics.rng_rounds, round_keys(dynamics.seed)
        self.first_sample, self.first_block = np.uint32(dynamics.first_sample), np.uint32(dynamics.first_block)
        with using(device):
            self.stream = cupy.cuda.Stream(non_blocking=True)

    def here(self) -> AbstractContextManager[None]:
        """Direct CuPy's calls to this device and stream."""
        return using(self.device, self.stream)

    def start_at_random(
        self, state: Any, lanes: Any, order: Any = None, sample: int = 0, block: int = 0, site: int = 0
    ) -> None:
        """Fill ``state`` (samples, blocks, sites, 2) with random spins.

        ``order`` holds the site at each place; None if places are site numbers. ``lanes`` (blocks, 2) marks the lanes
        in use. ``sample``, ``block`` and ``site`` are the numbers of the first ones in the model.
        """
        samples, blocks, sites, _ = state.shape
        Launch(self.device, "metropolis/start.cu", f"random_start<{self.rng_rounds}>", {
            "state": state, "lanes": lanes, "order": np.uint64(0) if order is None else order,
            "sites": np.uint32(sites), "first_site": np.uint32(site), "key": self.keys,
            "first_sample": self.first_sample + np.uint32(sample), "first_block": self.first_block + np.uint32(block),
        })(self.stream, (-(-sites // START_THREADS), blocks, samples), START_THREADS)  # fmt: skip


class OnDevice:
    """Makes structs whose arrays are copied to the device and stay there as long as this object."""

    def __init__(self) -> None:
        self._kept = list[Any]()

    def __call__(self, kind: Struct, **members: Any) -> Any:
        there = {name: cupy.asarray(one) if type(one) is np.ndarray else one for name, one in members.items()}
        self._kept.extend(there.values())
        return record(kind, **there)


class Step(NamedTuple):
    """Kernel of a move, its grid and threads per block; ``draws`` if it takes the time and the key of a moment."""

    launch: Launch
    grid: tuple[int, int, int]
    threads: int
    draws: bool = True


def queue_steps(stream: Any, steps: Sequence[Step], of_first: dict[str, Any], now: dict[str, Any]) -> None:
    """Queue the kernels of a move; only the first one takes ``of_first``, the temperatures or their replicas."""
    for number, (launch, grid, threads, draws) in enumerate(steps):
        launch(stream, grid, threads, **({} if number else of_first), **(now if draws else {}))


def check_grid(samples: int, blocks: int) -> None:
    """Refuse more samples or blocks of replicas than a grid allows."""
    if max(samples, blocks) > GRID_LIMIT:
        raise InputError(f"{max(samples, blocks)} samples or blocks of replicas exceed a GPU grid: split the run")
