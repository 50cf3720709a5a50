"""Every kernel instance that the CUDA engines may ask for, so that all can be compiled ahead of a run."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import instance
from spinsim.engine.packed.classes import MAX_DEGREE
from spinsim.engine.packed.kinds import Kind
from spinsim.rng import FEWER_ROUNDS, ROUNDS

PHILOX_ROUNDS: Final = (FEWER_ROUNDS, ROUNDS)
INTEGERS: Final = ("int", "long long")
FLAGS: Final = ("false", "true")

# (slots, count bits, field, kind): a fixed number of slots, of three count bits, or 0 for any number
RULES: Final = (
    *product((0,), range(3, MAX_DEGREE.bit_length() + 1), FLAGS, (int(Kind.ANY),)),
    *((slots, 3, field, int(Kind.ANY)) for slots, field in product((4, 6, 7), FLAGS)),
    *((slots, 3, "false", int(Kind.PLAIN)) for slots in (4, 6, 7)),
    *((slots, 3, "false", int(Kind.COLD)) for slots in (4, 6)),
)
REPLICA_PACKED: Final = (("replica_packed", "replica"), ("replica_packed_shared", "shared"))  # (file, form)
SITE_RULES: Final = (("false", int(Kind.ANY)), ("true", int(Kind.ANY)), ("false", int(Kind.PLAIN)))  # (field, kind)


def instantiations() -> list[tuple[str, str]]:
    """Pairs of a kernel file and an expression that names a function or a template instance of it."""
    rounds = PHILOX_ROUNDS
    return [
        *(("metropolis/start.cu", instance("random_start", r)) for r in rounds),
        *(
            ("metropolis/unpacked.cu", instance("sweep_general", integer, calls, r))
            for integer, calls, r in product(INTEGERS, (1, 4), rounds)
        ),
        *(
            (f"metropolis/{file}.cu", instance(f"sweep_{form}", *rule, r))
            for (file, form), rule, r in product(REPLICA_PACKED, RULES, rounds)
        ),
        *(("tempering/temper_shared.cu", instance("temper_shared", *rule, r)) for rule, r in product(RULES, rounds)),
        *(
            ("metropolis/site_packed.cu", instance("sweep_site", dimension, signed, *rule, layers, r))
            for dimension, signed, rule, layers, r in product((2, 3), FLAGS, SITE_RULES, (1, 2), rounds)
        ),
        ("measure/count_replica_packed.cu", "count_replica"),
        *(("measure/count_unpacked.cu", instance("total_energy", i, calls)) for i, calls in product(INTEGERS, (1, 4))),
        *(("measure/count_site_packed.cu", instance("count_site", d, signed)) for d, signed in product((2, 3), FLAGS)),
        *(("tempering/exchange.cu", instance("exchange_neighbours", r)) for r in rounds),
        ("measure/by_temperature.cu", "sort_by_temperature"),
        *(("tempering/lay_tables.cu", name) for name in ("lay_tables", "lay_uniform_tables", "lay_betas")),
        *(("measure/overlaps.cu", instance("differing_replicas", columns)) for columns in (0, 4)),
        ("measure/overlaps.cu", "differing_spins"),
        ("measure/overlaps.cu", "finish_sums"),
        ("measure/overlaps_site_packed.cu", "differing_lattices"),
        *(("measure/overlaps_site_packed.cu", instance("differing_bonds", dimension)) for dimension in (2, 3)),
        *(("measure/overlaps_site_packed.cu", f"layers_of_{lines}") for lines in ("rows", "columns")),
    ]
