"""The update of dense models: models that it suits, memory, engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.metropolis.replica_packed.update import pack
from spinsim.engine.moves.metropolis.unpacked.update import UPDATE as UNPACKED
from spinsim.engine.moves.metropolis.unpacked.update import needed_bytes as unpacked_bytes
from spinsim.engine.protocols import Engine
from spinsim.engine.update import Busy, Outline, Pace, Update, by_sites, engine_of
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count

LEAST_DEGREE: Final = 128
"""Bonds of a site from which on kept fields are faster than sums over neighbours."""

SPARSEST: Final = 8
"""At most so many times the sites' mean number of bonds are sites: the matrix of couplings has few zeros."""

LEAST_ON_CPU: Final = 40
SPARSEST_ON_CPU: Final = 2
"""The same where only a CPU keeps fields, for models that nothing but the unpacked update takes."""


def suits(outline: Outline) -> bool:
    """Return True for a dense model: a graph of which a large part of all pairs are bonds."""
    return _is_dense(outline, LEAST_DEGREE, SPARSEST)


def suits_on_cpu(outline: Outline) -> bool:
    """Return True for a small and dense model: kept fields are faster on a CPU alone."""
    return _is_dense(outline, LEAST_ON_CPU, SPARSEST_ON_CPU)


def _is_dense(outline: Outline, least_degree: int, sparsest: int) -> bool:
    degrees = 2 * outline.bonds
    dense = least_degree * outline.sites <= degrees and outline.sites**2 <= sparsest * degrees
    return dense and outline.lattice is None and outline.slices == 1 and not outline.in_terms


def needed_bytes(outline: Outline, replicas: int) -> int:
    most = 8  # of a coupling or local field
    making = 3 * most * outline.sites**2
    matrices = outline.samples * outline.sites * (most * outline.sites + 512)  # rows end with whole tiles
    return unpacked_bytes(outline, replicas) + making + matrices + _of_fields(outline, replicas, most)


def _of_fields(outline: Outline, replicas: int, most: int) -> int:
    return most * outline.samples * outline.sites * LANES * block_count(replicas)


def _on_cuda(model: Ising, replicas: int, dynamics: Dynamics, device: int) -> Engine:
    from spinsim.engine.moves.metropolis.dense.cuda import engine
    from spinsim.engine.moves.metropolis.unpacked.cuda import engine as unpacked_engine

    return engine(model, replicas, dynamics, device) or unpacked_engine(model, replicas, dynamics, device)


on_cpu = engine_of(f"{__package__}.cpu")

UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, pack, on_cpu, _on_cuda),
    busy=Busy(group=16, most=1),
    pace=Pace(30),
    one_by_one=True,
)
"""On every device."""

ON_CPU: Final = replace(UNPACKED, suits=suits_on_cpu, needed_bytes=needed_bytes, on_cpu=on_cpu, one_by_one=True)
"""Small ones, which are unpacked on a GPU."""
