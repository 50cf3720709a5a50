"""What the update of dense models says of itself."""

from __future__ import annotations

from typing import Final

from spinsim.engine.dynamics import Dynamics
from spinsim.engine.metropolis.replica_packed.update import pack
from spinsim.engine.metropolis.unpacked.update import needed_bytes as unpacked_bytes
from spinsim.engine.protocols import Engine
from spinsim.engine.update import Busy, Outline, Pace, Update, by_sites
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count

LEAST_DEGREE: Final = 128
"""Bonds of a site from which on kept fields are faster than sums over neighbours."""

SPARSEST: Final = 8
"""At most so many times the sites' mean number of bonds are sites: the matrix of couplings has few zeros."""


def suits(outline: Outline) -> bool:
    """Whether a model is dense: a graph of which a large part of all pairs are bonds."""
    degrees = 2 * outline.bonds
    dense = LEAST_DEGREE * outline.sites <= degrees and outline.sites**2 <= SPARSEST * degrees
    return dense and outline.lattice is None and outline.slices == 1 and not outline.in_terms


def needed_bytes(outline: Outline, replicas: int) -> int:
    """Memory that a run takes at most."""
    most = 8  # of a coupling or local field
    making = 3 * most * outline.sites**2
    matrices = most * outline.samples * outline.sites**2
    return unpacked_bytes(outline, replicas) + making + matrices + _of_fields(outline, replicas, most)


def _of_fields(outline: Outline, replicas: int, most: int) -> int:
    return most * outline.samples * outline.sites * LANES * block_count(replicas)


def _on_cpu(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> Engine:
    from spinsim.engine.metropolis.dense.cpu import engine

    return engine(model, replicas, dynamics, threads)


def _on_cuda(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> Engine:
    from spinsim.engine.metropolis.dense.cuda import engine
    from spinsim.engine.metropolis.unpacked.cuda import engine as unpacked_engine

    return engine(model, replicas, dynamics, device) or unpacked_engine(model, replicas, dynamics, device)


UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, pack, _on_cpu, _on_cuda),
    busy=Busy(group=16, most=1),
    pace=Pace(30),
    searching=16,
)
