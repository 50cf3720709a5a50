"""The kernel instances of dense models."""

from __future__ import annotations

from typing import Final

from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance
from spinsim.engine.metropolis.dense.matrix import HELD, LARGE_GROUPS

KINDS: Final = ((0, "int"), (1, "int"), (3, "int"), (3, "long long"), (4, "long long"), (8, "long long"))
"""Bytes of a coupling and the type of fields."""

GROUPS: Final = (
    *((*kind, 16, 0) for kind in KINDS),
    *((*kind, 32, 0) for kind in KINDS if kind[0] in LARGE_GROUPS),
    *((*KINDS[0], 16, held) for held in HELD),
)
"""These, the replicas of a thread block, and how deep spins are in registers."""

INSTANCES: Final[Instances] = (
    *(("metropolis/dense.cu", instance("sweep_dense", *group, rounds)) for group in GROUPS for rounds in PHILOX_ROUNDS),
    *(("metropolis/dense.cu", instance("energies_dense", *group)) for group in GROUPS),
)
