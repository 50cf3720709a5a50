"""The kernel instances of dense models."""

from __future__ import annotations

from typing import Final

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.engine.moves.metropolis.dense.cuda_bytes import CLUSTER, serves

KINDS: Final = ((1, "int"), (3, "int"), (3, "long long"), (4, "long long"), (8, "long long"))
"""Bytes of a coupling and the type of fields."""

BYTES: Final = tuple(
    (*kind, group, cluster)
    for kind in KINDS
    for group, cluster in ((16, 1), (32, 1), (16, CLUSTER))
    if serves(kind[0], group, cluster)
)
"""These, the replicas of a thread block and the thread blocks of a cluster."""

INSTANCES: Final[Instances] = (
    *(
        ("metropolis/dense_signs.cu", instance("sweep_signs", complete, rounds))
        for complete in FLAGS
        for rounds in PHILOX_ROUNDS
    ),
    *(("metropolis/dense_signs.cu", instance("energies_signs", complete)) for complete in FLAGS),
    *(
        ("metropolis/dense_bytes.cu", instance("sweep_bytes", *kind, rounds))
        for kind in BYTES
        for rounds in PHILOX_ROUNDS
    ),
    *(("metropolis/dense_bytes.cu", instance("energies_bytes", *kind)) for kind in BYTES),
)
