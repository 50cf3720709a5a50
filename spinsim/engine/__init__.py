"""Engines: packed spins, their update and their exact measurement, one device each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy.typing as npt

from spinsim.engine.choosing import check_run, choose_packing
from spinsim.engine.dynamics import Dynamics, Start
from spinsim.engine.protocols import Counts, Engine
from spinsim.engine.starting import as_spins, begin_with
from spinsim.errors import InputError
from spinsim.memory import require
from spinsim.model.ising import Ising, check_model
from spinsim.packing import LANES, Packing, block_count

__all__ = [
    "DEVICES",
    "Counts",
    "Dynamics",
    "Engine",
    "Start",
    "check_run",
    "choose_packing",
    "create_engine",
    "resolve_device",
]

DEVICES: Final = ("auto", "cpu", "cuda", "gpu")


def needed_bytes(
    sites: int, bonds: int, samples: int, replicas: int, packing: Packing, one_coupling: bool = False
) -> int:
    """Memory that a run takes at most: edges, couplings, adjacency, batches, spins and what is measured.

    Site-packed runs have no adjacency and no batches, and next to nothing for each bond where all have one coupling.
    """
    if packing is Packing.SITE:
        drawn = 0 if one_coupling else bonds * (8 + 8 * samples)  # a byte each, and passes over them
        return bonds * 24 + drawn + samples * (sites * 4 + replicas * (sites // 8 + 512))
    shared = bonds * (8 + 8 + 16 + 16 + 16) + sites * 64
    site = 16 if packing is Packing.REPLICA else LANES
    unpacking = 0 if packing is Packing.REPLICA else 3 * LANES * sites  # of one block's start
    measured = 96 * replicas  # seen: up to 84
    return shared + unpacking + samples * (bonds * 40 + sites * site * block_count(replicas) + measured)


def check_memory(
    sites: int, bonds: int, samples: int, replicas: int, packing: Packing, one_coupling: bool = False
) -> None:
    """Refuse a run that cannot fit, before its model is built."""
    what = f"a run of {sites} sites x {samples} samples x {replicas} replicas"
    require(needed_bytes(sites, bonds, samples, replicas, packing, one_coupling), what)


def resolve_device(device: str) -> str:
    """``cpu`` or ``cuda``; ``gpu`` is ``cuda``, and so is ``auto`` where a GPU can be used.

    Raises:
        InputError: for an unknown device, and for ``cuda`` where there is none, saying what is missing.
    """
    if device not in DEVICES:
        raise InputError(f"device {device!r} is unknown: choose one of {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    from spinsim.cuda.device import why_not

    missing = why_not()
    if missing is None:
        return "cuda"
    if device != "auto":
        raise InputError(missing)
    return "cpu"


def create_engine(
    model: Ising,
    replicas: int,
    dynamics: Dynamics,
    device: str = "auto",
    threads: int | None = None,
    start: npt.ArrayLike | None = None,
) -> Engine:
    """The engine for a model on a device, with its replicas in their initial state.

    Args:
        model: What is simulated.
        replicas: Configurations of each sample.
        dynamics: How they move.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.
        start: Initial configurations instead of those of ``dynamics.start``: +1 or -1, shape (sites,), (samples, sites)
            or (samples, replicas, sites).

    Raises:
        InputError: for an unknown device, a run that does not fit its memory or random counters and a start that does
            not fit the model.
    """
    check_model(model)
    if start is not None:
        spins = as_spins(start, model, replicas)
        engine = create_engine(model, replicas, replace(dynamics, start="up"), device, threads)
        begin_with(engine, spins)
        return engine
    check_run(model, replicas, 0, 1)
    packing = choose_packing(model)
    if resolve_device(device) == "cuda":
        return _cuda_engine(packing)(model, replicas, dynamics)
    check_memory(model.sites, model.bonds, model.samples, replicas, packing, model.one_coupling)
    return _cpu_engine(packing)(model, replicas, dynamics, threads)


def _cpu_engine(packing: Packing) -> Callable[[Ising, int, Dynamics, int | None], Engine]:
    """The CPU's engine for a packing; only its kernels are loaded."""
    if packing is Packing.SITE:
        from spinsim.engine.site_packed.cpu import SiteEngine

        return SiteEngine
    if packing is Packing.REPLICA:
        from spinsim.engine.replica_packed.cpu import PackedEngine

        return PackedEngine
    from spinsim.engine.unpacked.cpu import GeneralEngine

    return GeneralEngine


def _cuda_engine(packing: Packing) -> Callable[[Ising, int, Dynamics], Engine]:
    """The GPU's engine for a packing."""
    if packing is Packing.SITE:
        from spinsim.engine.site_packed.cuda import CudaSiteEngine

        return CudaSiteEngine
    if packing is Packing.REPLICA:
        from spinsim.engine.replica_packed.cuda import CudaPackedEngine

        return CudaPackedEngine
    from spinsim.engine.unpacked.cuda import CudaGeneralEngine

    return CudaGeneralEngine
