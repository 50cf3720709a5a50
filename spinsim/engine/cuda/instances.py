"""Every kernel instance that the CUDA engines may ask for, so that all can be compiled ahead of a run."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.engine.tables import MAX_DEGREE
from spinsim.rng import FEWER_ROUNDS, ROUNDS

PHILOX_ROUNDS: Final = (FEWER_ROUNDS, ROUNDS)
INTEGERS: Final = ("int", "long long")
FIXED_SLOTS: Final = (4, 6, 7)
COUNTING: Final = ("count_up", "count_unsatisfied")

# (count bits, field, slots) of the packed update: any number of slots, or three bits of count and one of three numbers
ANY_SLOTS: Final = tuple(product(range(3, MAX_DEGREE.bit_length() + 1), ("false", "true"), (0,)))
FIXED: Final = tuple(product((3,), ("false",), FIXED_SLOTS))


def instantiations() -> list[tuple[str, str]]:
    """Pairs of a kernel file and an expression that names a function or a template instance of it."""
    rounds = PHILOX_ROUNDS
    from_global = [form for form in ANY_SLOTS if form != (3, "false", 0)] + list(
        FIXED
    )  # a batch has one number of slots
    in_shared = ANY_SLOTS + FIXED
    return [
        *(("start.cu", f"random_start<{r}>") for r in rounds),
        *(("metropolis_general.cu", f"sweep_general<{i}, {r}>") for i, r in product(INTEGERS, rounds)),
        *(
            ("metropolis_replica.cu", f"sweep_replica<{c}, {f}, {s}, {r}>")
            for (c, f, s), r in product(from_global, rounds)
        ),
        *(("metropolis_shared.cu", f"sweep_shared<{c}, {f}, {s}, {r}>") for (c, f, s), r in product(in_shared, rounds)),
        *(("measure.cu", function) for function in COUNTING),
        *(("measure.cu", f"total_energy<{i}>") for i in INTEGERS),
    ]
