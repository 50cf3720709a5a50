"""How much is done between two reports of progress."""

from __future__ import annotations

from typing import Final

from spinsim.engine.protocols import Sweeps
from spinsim.sampling.best_slices import BestSlices
from spinsim.sampling.in_field import InField

UPDATES: Final = {"cpu": 2e8, "cuda": 1e11}
"""Spin updates of a device that take a fraction of a second; shorter portions would keep a GPU waiting for the host."""


def updates_a_sweep(engine: Sweeps | InField | BestSlices) -> int:
    """Attempted spin updates of one sweep of all replicas, in all slices where there is time."""
    slices = engine.slices if isinstance(engine, BestSlices) else 1
    return int(engine.model.sites * engine.model.samples * engine.replicas * slices)


def sweeps_a_portion(engine: Sweeps | InField | BestSlices, unit: int = 1) -> int:
    """Sweeps between two reports, a multiple of ``unit``, at least one."""
    most = UPDATES["cpu" if engine.device_name == "cpu" else "cuda"] * engine.devices
    return max(1, int(most / (updates_a_sweep(engine) * unit))) * unit
