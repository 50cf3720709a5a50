"""What the unpacked update says of itself."""

from __future__ import annotations

from typing import Final

from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.metropolis.replica_packed.update import pack
from spinsim.engine.protocols import Engine
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing


def suits(_: Outline) -> bool:
    """Whether it can update a model: it can update all of them."""
    return True


def needed_bytes(outline: Outline, replicas: int) -> int:
    unpacking = 3 * LANES * outline.sites  # of one block's start
    return unpacking + bytes_with_adjacency(outline, replicas, LANES)


def _on_cpu(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> Engine:
    from spinsim.engine.moves.metropolis.unpacked.cpu import engine

    return engine(model, replicas, dynamics, threads)


def _on_cuda(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> Engine:
    from spinsim.engine.moves.metropolis.unpacked.cuda import engine

    return engine(model, replicas, dynamics, device)


UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, pack, _on_cpu, _on_cuda), pace=Pace(500, in_one_call=False)
)
