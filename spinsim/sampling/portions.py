"""How much is done between two reports of progress."""

from __future__ import annotations

from typing import Final

from spinsim.engine.protocols import Sweeps

UPDATES: Final = {"cpu": 2e8, "cuda": 1e11}
"""Spin updates that take a fraction of a second; shorter portions would keep a GPU waiting for the host."""


def sweeps_a_portion(engine: Sweeps, unit: int = 1) -> int:
    """Sweeps between two reports, a multiple of ``unit``, at least one."""
    most = UPDATES["cpu" if engine.device_name == "cpu" else "cuda"]
    updates_a_sweep = engine.model.sites * engine.model.samples * engine.replicas
    return max(1, int(most / (updates_a_sweep * unit))) * unit
