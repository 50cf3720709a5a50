"""The kernel instances of replica-packed graphs whose degrees differ much."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.engine.moves.metropolis.replica_packed.degrees.cuda import TREE_BITS

INSTANCES: Final[Instances] = tuple(
    ("metropolis/replica_packed_degrees.cu", instance("sweep_degrees", bits, in_shared, in_fields, r))
    for bits, in_shared, in_fields, r in product(TREE_BITS, FLAGS, FLAGS, PHILOX_ROUNDS)
)
