"""Engines: packed spins, their update and their exact measurement."""

from __future__ import annotations

from dataclasses import replace

import numpy.typing as npt

from spinsim.engine.choosing import check_memory, check_run, choose_packing
from spinsim.engine.devices import DEVICES, resolve_device
from spinsim.engine.dynamics import Dynamics, Start
from spinsim.engine.given import as_spins, set_spins
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.protocols import Engine
from spinsim.engine.split.shares import on_all_devices
from spinsim.engine.update import PlannedSizes
from spinsim.inputs.arguments import judges, public
from spinsim.model.ising import Ising, check_model

__all__ = [
    "DEVICES", "Counts", "Dynamics", "Engine", "PlannedSizes", "Start", "check_memory", "check_run", "choose_packing",
    "create_engine", "resolve_device",
]  # fmt: skip


@public
@judges("model")
def create_engine(
    model: Ising, replicas: int, dynamics: Dynamics, device: str = "auto", threads: int | None = None,
    start: npt.ArrayLike | None = None, slabs: bool = True, round_sweeps: int | None = None,
) -> Engine:  # fmt: skip
    """Create the engine for a model on a device, with its replicas in their initial state.

    Args:
        model: Model to simulate.
        replicas: Configurations per sample.
        dynamics: Seed and rules of the dynamics.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda``; ``cuda:all``, ``cuda:2`` and ``cuda:0,2`` share the
            work among all GPUs, two GPUs or the named ones.
        threads: CPU threads, None for all.
        start: Initial configurations, which replace ``dynamics.start``: +1 or -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        slabs: True if several devices may share one lattice; the engine then takes no ladder.
        round_sweeps: Sweeps from one exchange or measurement to the next, if known. Rounds that take one GPU almost no
            time are not shared.

    Returns:
        The engine, whose ``sweep`` moves all replicas.

    Raises:
        InputError: for an unknown device, a run that does not fit its memory or random counters, or a start that does
            not fit the model.
    """
    check_model(model)
    if start is not None:
        spins = as_spins(start, model, replicas)
        engine = create_engine(
            model, replicas, replace(dynamics, start="up"), device, threads, None, slabs, round_sweeps
        )
        set_spins(engine, spins)
        return engine
    check_run(model, replicas, 0, 1)
    return on_all_devices(model, replicas, dynamics, resolve_device(device), threads, slabs, round_sweeps)
