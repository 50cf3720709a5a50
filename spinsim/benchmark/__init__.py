"""Rates on this machine, measured on states in equilibrium dynamics, never frozen ones; here what all of them share."""

from __future__ import annotations

from typing import Final

from spinsim.engine.protocols import Sweeps

WARM_UP_SWEEPS: Final = 50
SECONDS: Final = 0.5  # of a run
MEASURE_EVERY: Final = 10  # sweeps between measurements


def sweep_rates(engine: Sweeps, repeats: int) -> tuple[int, list[float]]:
    """Sweeps that take about half a second, and the updates/ns of as many in each of ``repeats`` runs, once warm."""
    updates = engine.model.sites * engine.model.samples * engine.replicas
    engine.sweep(1)  # compiles, or loads what is compiled
    engine.wait()
    sweeps = max(1, int(SECONDS / engine.timed_sweep(WARM_UP_SWEEPS) * WARM_UP_SWEEPS))
    return sweeps, [updates * sweeps / engine.timed_sweep(sweeps) / 1e9 for _ in range(repeats)]


def wait_for(device: str) -> None:
    """Return when what the present stream of a GPU was given is done; at once on the CPU."""
    if device == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
