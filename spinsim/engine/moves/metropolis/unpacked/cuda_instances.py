"""The kernel instances of unpacked spins, and of spins of a byte each."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.model.terms import MOST_TERMS

INTEGERS: Final = ("int", "long long")  # of couplings and fields
INSTANCES: Final[Instances] = (
    *(
        ("metropolis/unpacked.cu", instance("sweep_unpacked", integer, terms, held, r))
        for integer, terms, held, r in product(INTEGERS, (1, MOST_TERMS), FLAGS, PHILOX_ROUNDS)
    ),
    *(
        ("tempering/temper_unpacked.cu", instance("temper_unpacked", integer, r))
        for integer, r in product(INTEGERS, PHILOX_ROUNDS)
    ),
    *(("measuring/count_unpacked.cu", instance("total_energy", integer)) for integer in INTEGERS),
    ("tempering/lay_tables.cu", "lay_betas"),
    ("measuring/overlaps.cu", "differing_spins"),
)
