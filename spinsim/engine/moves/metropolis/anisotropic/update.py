"""The update of an energy of two terms: models that it suits, memory, engines."""

from __future__ import annotations

from typing import Final

from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.replica_packed.adders import BATCH
from spinsim.engine.moves.metropolis.anisotropic.plan import MOST_CLASS_BITS, TermPlan, bits_of_counts
from spinsim.engine.moves.metropolis.replica_packed.update import WORD_BYTES, pack
from spinsim.engine.protocols import Engine
from spinsim.engine.update import Outline, Pace, Update, by_sites, bytes_with_adjacency, engine_of
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising
from spinsim.packing import Packing


def suits(outline: Outline) -> bool:
    """Return True for two terms of one magnitude each and a uniform field, if classes have at most six bits."""
    degrees, field = outline.degrees_of_terms, outline.in_field
    if degrees is None or not outline.one_field:
        return False
    return sum(bits_of_counts(degrees, field)) + field <= MOST_CLASS_BITS


def needed_bytes(outline: Outline, replicas: int) -> int:
    """Memory that a run takes at most."""
    return bytes_with_adjacency(outline, replicas, WORD_BYTES)


def _on_cpu(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> Engine:
    from spinsim.engine.moves.metropolis.replica_packed import cpu

    plan = TermPlan(model, replicas, dynamics, BATCH)
    return cpu.engine_of(plan, threads, Packing.ANISOTROPIC, (MOST_TERMS,))


on_cuda = engine_of(f"{__package__}.cuda")

UPDATE: Final = Update(
    *(Packing.ANISOTROPIC, suits, needed_bytes, by_sites, pack, _on_cpu, on_cuda), pace=Pace(600, in_one_call=False)
)
