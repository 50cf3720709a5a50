"""The unpacked update: memory, engines."""

from __future__ import annotations

from typing import Final

from spinsim.engine.moves.metropolis.replica_packed.update import pack
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency, engine_of
from spinsim.packing import LANES, Packing


def suits(_: Outline) -> bool:
    """Return True: it can update all models."""
    return True


def needed_bytes(outline: Outline, replicas: int) -> int:
    unpacking = 3 * LANES * outline.sites  # of one block's start
    return unpacking + bytes_with_adjacency(outline, replicas, LANES)


on_cpu = engine_of(f"{__package__}.cpu")
on_cuda = engine_of(f"{__package__}.cuda")

UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, pack, on_cpu, on_cuda), pace=Pace(500, in_one_call=False)
)
