"""The kernel instances of unpacked spins."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance
from spinsim.model.terms import MOST_TERMS

INTEGERS: Final = ("int", "long long")  # of couplings and fields
CALLS: Final = (1, 4)  # Philox calls of a thread
INSTANCES: Final[Instances] = (
    *(
        ("metropolis/unpacked.cu", instance("sweep_general", integer, calls, r, terms))
        for integer, calls, r, terms in product(INTEGERS, CALLS, PHILOX_ROUNDS, (1, MOST_TERMS))
    ),
    *(("measuring/count_unpacked.cu", instance("total_energy", i, calls)) for i, calls in product(INTEGERS, CALLS)),
    *(("measuring/count_unpacked.cu", instance("count_down", calls)) for calls in CALLS),
    ("tempering/lay_tables.cu", "lay_betas"),
    ("measuring/overlaps.cu", "differing_spins"),
    ("measuring/products.cu", "products_of_spins"),
    ("measuring/local.cu", "squares_of_spins"),
)
