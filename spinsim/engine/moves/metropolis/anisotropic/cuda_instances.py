"""The kernel instances of energies of two terms."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance
from spinsim.engine.moves.metropolis.anisotropic.classes import LEAST_CLASS_BITS, MOST_CLASS_BITS

INSTANCES: Final[Instances] = (
    *(
        ("metropolis/anisotropic.cu", instance("sweep_terms", bits, r))
        for bits, r in product(range(LEAST_CLASS_BITS, MOST_CLASS_BITS + 1), PHILOX_ROUNDS)
    ),
    ("measuring/count_replica_packed.cu", "count_more_bonds"),
    ("measuring/by_temperature_terms.cu", "sort_terms"),
    *(("tempering/exchange_terms.cu", instance("exchange_terms", rounds)) for rounds in PHILOX_ROUNDS),
)
