"""The kernel instances of site-packed spins."""

from __future__ import annotations

from itertools import product
from typing import Final

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.engine.moves.metropolis.packed.kinds import Kind

RULES: Final = (("false", int(Kind.ANY)), ("true", int(Kind.ANY)), ("false", int(Kind.PLAIN)))  # (field, kind)
DIMENSIONS: Final = (2, 3)
INSTANCES: Final[Instances] = (
    *(("metropolis/site_packed_signs.cu", instance("draw_signs", dimension)) for dimension in DIMENSIONS),
    *(
        ("metropolis/site_packed.cu", instance("sweep_site", dimension, signed, *rule, layers, r, slabs))
        for dimension, signed, rule, (layers, slabs), r in product(
            DIMENSIONS, FLAGS, RULES, ((1, False), (2, False), (2, True)), PHILOX_ROUNDS
        )
    ),
    *(
        ("measuring/count_site_packed.cu", instance("count_site", d, signed))
        for d, signed in product(DIMENSIONS, FLAGS)
    ),
    ("tempering/lay_tables.cu", "lay_uniform_tables"),
    ("measuring/overlaps_site_packed.cu", "differing_lattices"),
    *(("measuring/overlaps_site_packed.cu", instance("differing_bonds", dimension)) for dimension in DIMENSIONS),
    *(("measuring/overlaps_site_packed.cu", f"layers_of_{lines}") for lines in ("rows", "columns")),
)
