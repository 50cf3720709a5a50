"""The kernel instances of unpacked spins."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance

INTEGERS: Final = ("int", "long long")  # of couplings and fields
CALLS: Final = (1, 4)  # Philox calls of a thread
INSTANCES: Final[Instances] = (
    *(
        ("metropolis/unpacked.cu", instance("sweep_general", integer, calls, r))
        for integer, calls, r in product(INTEGERS, CALLS, PHILOX_ROUNDS)
    ),
    *(("measuring/count_unpacked.cu", instance("total_energy", i, calls)) for i, calls in product(INTEGERS, CALLS)),
    *(("measuring/count_unpacked.cu", instance("count_down", calls)) for calls in CALLS),
    ("tempering/lay_tables.cu", "lay_betas"),
    ("measuring/overlaps.cu", "differing_spins"),
    ("measuring/products.cu", "products_of_spins"),
)
