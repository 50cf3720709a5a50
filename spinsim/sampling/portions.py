"""Portions: the sweeps between two reports of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from spinsim.machine.compiled import seconds_without_compiling
from spinsim.model.ising import Ising
from spinsim.sampling.measure import BestSlices, InField

OnUpdates = Callable[[int], None]  # called at intervals with the number of spin updates since the last call
Pause = Callable[[], bool]  # called at intervals; True to pause
UPDATES: Final = {"cpu": 2e8, "cuda": 1e11}
"""Most spin updates in a portion of one device; much shorter portions would keep a GPU waiting for the host."""
_FIRST: Final = 1024  # the first portion is this many times smaller
_SHORT, _LONG = 0.1, 0.4  # seconds


class Swept(Protocol):
    """Replicas of a model on a device, independent of the engine."""

    model: Ising
    replicas: int
    device_name: str
    devices: int


def updates_a_sweep(engine: Swept | InField | BestSlices) -> int:
    """Attempted spin updates of one sweep of all replicas; in a space-time model, of all slices."""
    slices = engine.slices if isinstance(engine, BestSlices) else 1
    return int(engine.model.sites * engine.model.samples * engine.replicas * slices)


def ignore(*_: object) -> None:
    """Ignore reports of progress."""


def never() -> bool:
    return False


def sweeps_a_portion(engine: Swept | InField | BestSlices, unit: int = 1) -> int:
    """Largest number of sweeps between two reports, a multiple of ``unit``, at least one unit."""
    most = UPDATES["cpu" if engine.device_name == "cpu" else "cuda"] * engine.devices
    return max(1, int(most / (updates_a_sweep(engine) * unit))) * unit


class Portions:
    """Number of sweeps between two reports: small at first, then adapted to a fraction of a second."""

    def __init__(self, engine: Swept | InField | BestSlices, unit: int = 1) -> None:
        self._unit, self._most = unit, sweeps_a_portion(engine, unit)
        self.sweeps = max(1, self._most // _FIRST // unit) * unit  # of the next portion
        self._began = 0.0

    def begin(self) -> None:
        self._began = seconds_without_compiling()

    def end(self) -> None:
        """Adapt to the duration of the portion that has just ended, with all queued work."""
        took = seconds_without_compiling() - self._began
        if took < _SHORT:
            self.sweeps = min(2 * self.sweeps, self._most)
        elif took > _LONG:
            self.sweeps = max(1, self.sweeps // 2 // self._unit) * self._unit
