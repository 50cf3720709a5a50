"""Every kernel instance that the CUDA engines may ask for, so that all can be compiled ahead of a run."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.engine.tables import MAX_DEGREE
from spinsim.rng import FEWER_ROUNDS, ROUNDS

PHILOX_ROUNDS: Final = (FEWER_ROUNDS, ROUNDS)
INTEGERS: Final = ("int", "long long")
FIXED_SLOTS: Final = (4, 6, 7)
COUNT_BITS: Final = range(3, MAX_DEGREE.bit_length() + 1)
FIELD: Final = ("false", "true")
COUNTING: Final = ("count_up", "count_unsatisfied")

# Slots, count bits, field and plain of the packed update. Fixed slots have three bits of count, plain rules no field.
FIXED: Final = [f"{s}, 3, {rule}" for s in FIXED_SLOTS for rule in ("false, false", "false, true", "true, false")]
ANY_SLOTS: Final = [f"0, {bits}, {field}, false" for bits in COUNT_BITS for field in FIELD]
FROM_GLOBAL: Final = [*FIXED, *ANY_SLOTS[len(FIELD) :]]  # three bits of count always have fixed slots there
IN_SHARED: Final = [*FIXED, *ANY_SLOTS]


def instantiations() -> list[tuple[str, str]]:
    """Pairs of a kernel file and an expression that names a function or a template instance of it."""
    rounds = PHILOX_ROUNDS
    return [
        *(("start.cu", f"random_start<{r}>") for r in rounds),
        *(("metropolis_general.cu", f"sweep_general<{i}, {r}>") for i, r in product(INTEGERS, rounds)),
        *(("metropolis_replica.cu", f"sweep_replica<{form}, {r}>") for form, r in product(FROM_GLOBAL, rounds)),
        *(("metropolis_shared.cu", f"sweep_shared<{form}, {r}>") for form, r in product(IN_SHARED, rounds)),
        *(("measure.cu", function) for function in COUNTING),
        *(("measure.cu", f"total_energy<{i}>") for i in INTEGERS),
    ]
