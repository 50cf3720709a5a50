"""Rates on this machine, measured on states in equilibrium dynamics, never frozen ones; here what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spinsim.engine.protocols import Sweeps

WARM_UP_SWEEPS: Final = 50
SECONDS: Final = 0.5  # of a run
MEASURE_EVERY: Final = 10  # sweeps between measurements


def sweep_rates(engine: Sweeps, repeats: int, timed: Callable[[int], float] | None = None) -> tuple[int, list[float]]:
    """Sweeps that take about half a second, and the updates/ns of as many in each of ``repeats`` runs, once warm.

    ``timed`` sweeps so often and returns the seconds that it took; by default sweeps of the engine alone.
    """
    timed = timed or engine.timed_sweep
    updates = engine.model.sites * engine.model.samples * engine.replicas
    timed(1)  # compiles, or loads what is compiled
    engine.wait()
    sweeps = max(1, int(SECONDS / timed(WARM_UP_SWEEPS) * WARM_UP_SWEEPS))
    return sweeps, [updates * sweeps / timed(sweeps) / 1e9 for _ in range(repeats)]


def wait_for(device: str) -> None:
    """Return when what the present stream of a GPU was given is done; at once on the CPU."""
    if device == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
