"""Engines: packed spins, their update and their exact measurement, one device each."""

from __future__ import annotations

from typing import Final

from spinsim.engine.base import Counts, Dynamics, Engine, Start, check_run, choose_packing
from spinsim.errors import InputError
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.packing import Packing, block_count

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

DEVICES: Final = ("auto", "cpu", "cuda")


def needed_bytes(sites: int, bonds: int, samples: int, replicas: int) -> int:
    """Memory that a run's model and engine take at most: edges, couplings, adjacency, batches and spins."""
    shared = bonds * (8 + 8 + 16 + 16 + 16) + sites * 64
    return shared + samples * (bonds * 24 + sites * 16 * block_count(replicas))


def check_memory(sites: int, bonds: int, samples: int, replicas: int) -> None:
    """Refuse a run that cannot fit, before its model is built."""
    what = f"a run of {sites} sites x {samples} samples x {replicas} replicas"
    require(needed_bytes(sites, bonds, samples, replicas), what)


def resolve_device(device: str) -> str:
    """``cpu`` or ``cuda``; ``auto`` is ``cuda`` where a GPU can be used.

    Raises:
        InputError: for an unknown device, and for ``cuda`` where there is none, saying what is missing.
    """
    if device not in DEVICES:
        raise InputError(f"device {device!r} is unknown: choose one of {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    from spinsim.engine.cuda.device import why_not

    missing = why_not()
    if missing is None:
        return "cuda"
    if device == "cuda":
        raise InputError(missing)
    return "cpu"


def create_engine(
    model: Ising, replicas: int, dynamics: Dynamics, device: str = "auto", threads: int | None = None
) -> Engine:
    """The engine for a model on a device, with its replicas in their initial state.

    Raises:
        InputError: for an unknown device or a run that does not fit its memory or random counters.
    """
    check_run(model, replicas, 0, 1)
    packed = choose_packing(model) is Packing.REPLICA
    if resolve_device(device) == "cuda":
        from spinsim.engine.cuda.general_engine import CudaGeneralEngine
        from spinsim.engine.cuda.packed_engine import CudaPackedEngine

        return (CudaPackedEngine if packed else CudaGeneralEngine)(model, replicas, dynamics)
    check_memory(model.sites, model.bonds, model.samples, replicas)
    from spinsim.engine.cpu.general_engine import GeneralEngine
    from spinsim.engine.cpu.packed_engine import PackedEngine

    return (PackedEngine if packed else GeneralEngine)(model, replicas, dynamics, threads)
