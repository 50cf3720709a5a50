"""The kernel instances of replica-packed spins."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.engine.moves.metropolis.packed.classes import MAX_DEGREE_IN_FIELD
from spinsim.engine.moves.metropolis.packed.kinds import Kind
from spinsim.engine.moves.metropolis.replica_packed.degrees.cuda_instances import INSTANCES as DEGREES

# (slots, count bits, field, kind): a fixed number of slots, of three count bits, or 0 for any number
RULES: Final = (
    *product((0,), range(3, MAX_DEGREE_IN_FIELD.bit_length() + 1), FLAGS, (int(Kind.ANY),)),
    *((slots, 3, field, int(Kind.ANY)) for slots, field in product((4, 6, 7), FLAGS)),
    *((slots, 3, "false", int(Kind.PLAIN)) for slots in (4, 6, 7)),
    *((slots, 3, "false", int(kind)) for slots, kind in product((4, 6), (Kind.WARM, Kind.COLD))),
)
UPDATES: Final = (
    ("metropolis/replica_packed.cu", "sweep_replica"),
    ("metropolis/replica_packed_shared.cu", "sweep_shared"),
    ("tempering/temper_shared.cu", "temper_shared"),
)
COUNTED_RULES: Final = tuple(
    rule for rule in RULES if rule[3] != int(Kind.ANY)
)  # whose kernels count bonds on their way
INSTANCES: Final[Instances] = (
    *DEGREES,
    *(
        ("tempering/temper_global.cu", instance("temper_global", *rule, r))
        for rule, r in product(COUNTED_RULES, PHILOX_ROUNDS)
    ),
    *((file, instance(name, *rule, r)) for (file, name), rule, r in product(UPDATES, RULES, PHILOX_ROUNDS)),
    *(("measuring/count_replica_packed.cu", name) for name in ("count_replica", "count_lone")),
    *(("measuring/in_time.cu", name) for name in ("correlate_in_time", "sort_in_time")),
    ("measuring/products.cu", "products_of_replicas"),
    ("measuring/local.cu", "squares_of_replicas"),
    ("tempering/lay_tables.cu", "lay_tables"),
    *(("measuring/overlaps.cu", instance("differing_replicas", columns)) for columns in (0, 4)),
)
