"""Every kernel instance that engines may ask for on a GPU: pairs of a file and an expression that names it."""

from __future__ import annotations

from itertools import product

from spinsim.cuda.compile import FLAGS, Instances, instance
from spinsim.engine.measuring.cuda_reduction import MERGED
from spinsim.engine.moves.fortuin_kasteleyn.cuda import INSTANCES as FORTUIN_KASTELEYN
from spinsim.engine.moves.fortuin_kasteleyn.lattice_cuda import INSTANCES as CLUSTERS_OF_LATTICES
from spinsim.engine.moves.houdayer_cuda import FILE as HOUDAYER_FILE
from spinsim.engine.moves.houdayer_cuda import KEPT
from spinsim.engine.moves.metropolis.classes import LEAST_CLASS_BITS, MAX_DEGREE_IN_FIELD, MOST_CLASS_BITS, Kind
from spinsim.engine.moves.metropolis.dense_cuda import CLUSTER, serves
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import TERM_BONDS, TREE_BITS
from spinsim.engine.moves.single_spin_cuda import FILE as SINGLE_SPIN
from spinsim.model.graph import MOST_TERMS
from spinsim.observables.clusters_cuda import INSTANCES as DESCRIBED_CLUSTERS
from spinsim.optimum.enumeration_cuda import INSTANCES as CHUNKS
from spinsim.rng import FEWER_ROUNDS, ROUNDS

PHILOX_ROUNDS = (FEWER_ROUNDS, ROUNDS)
INTEGERS = ("int", "long long")  # of couplings and fields
DIMENSIONS = (2, 3)

SHARED: Instances = (
    *(("metropolis/start.cu", instance("random_start", rounds)) for rounds in PHILOX_ROUNDS),
    *(("tempering/exchange.cu", instance("exchange_neighbours", rounds)) for rounds in PHILOX_ROUNDS),
    ("measuring/by_temperature.cu", "sort_by_temperature"),
    ("measuring/overlaps.cu", "finish_sums"),
    ("measuring/reduce.cu", "add_measurements"),
    *(("measuring/reduce.cu", instance("merge_blocks", number)) for number in MERGED.values()),
    *(("measuring/energies.cu", name) for name in ("widen_energies", "add_energies", "halve_sums")),
    ("measuring/lowest.cu", "keep_lowest"),
    ("packing/copy_lanes.cu", "copy_lanes"),
    *((SINGLE_SPIN, instance("sweep_single_spins", *kind)) for kind in product(INTEGERS, PHILOX_ROUNDS)),
)
HOUDAYER: Instances = (
    *((HOUDAYER_FILE, name) for name in ("pair_copies", "turn_replicas", "sow", "flip_replicas")),
    *((HOUDAYER_FILE, instance("move_in_rows", words)) for words in (*KEPT, 0)),
    *((HOUDAYER_FILE, instance("move_clusters", in_shared)) for in_shared in FLAGS),
)
TERM_RULES = (  # bits of classes, bonds of both terms
    *((bits, 0, 0) for bits in range(LEAST_CLASS_BITS, MOST_CLASS_BITS + 1)),
    *((bits, *bonds) for bonds, bits in TERM_BONDS.items()),
)
ANISOTROPIC: Instances = (
    *(
        ("metropolis/anisotropic.cu", instance("sweep_terms", *rule, r))
        for rule, r in product(TERM_RULES, PHILOX_ROUNDS)
    ),
    ("measuring/count_replica_packed.cu", "count_more_bonds"),
    ("measuring/by_temperature_terms.cu", "sort_terms"),
    *(("tempering/exchange_terms.cu", instance("exchange_terms", rounds)) for rounds in PHILOX_ROUNDS),
)

# (slots, count bits, field, kind): a fixed number of slots, of three count bits, or 0 for any number
RULES = (
    *product((0,), range(3, MAX_DEGREE_IN_FIELD.bit_length() + 1), FLAGS, (int(Kind.ANY),)),
    *((slots, 3, field, int(Kind.ANY)) for slots, field in product((4, 6, 7), FLAGS)),
    *((slots, 3, "false", int(Kind.PLAIN)) for slots in (4, 6, 7)),
    *((slots, 3, "true", int(Kind.PLAIN)) for slots in (0, 4, 6, 7)),
    *((slots, 3, field, int(kind)) for slots, field, kind in product((4, 6), FLAGS, (Kind.WARM, Kind.COLD))),
)
UPDATES = (
    ("metropolis/replica_packed.cu", "sweep_replica"),
    ("metropolis/replica_packed_shared.cu", "sweep_shared"),
    ("tempering/temper_shared.cu", "temper_shared"),
)
IN_HALVES = (  # updates that have kernels of special cases alone, and if they do in a field
    ("tempering/temper_global.cu", "temper_global", False),
    ("metropolis/replica_packed_spread.cu", "sweep_spread_replica", True),
    ("tempering/temper_spread.cu", "temper_spread", True),
)
REPLICA_PACKED: Instances = (
    *(
        (file, instance(name, *rule, r))
        for (file, name, in_field), rule, r in product(IN_HALVES, RULES, PHILOX_ROUNDS)
        if rule[0] and rule[3] != int(Kind.ANY) and (in_field or rule[2] == "false")
    ),
    *((file, instance(name, *rule, r)) for (file, name), rule, r in product(UPDATES, RULES, PHILOX_ROUNDS)),
    *(("measuring/count_replica_packed.cu", name) for name in ("count_replica", "count_lone")),
    *(("measuring/in_time.cu", name) for name in ("correlate_in_time", "sort_in_time")),
    ("measuring/products.cu", "products_of_replicas"),
    ("measuring/local.cu", "squares_of_replicas"),
    ("tempering/lay_tables.cu", "lay_tables"),
    *(("measuring/overlaps.cu", instance("differing_replicas", columns)) for columns in (0, 4)),
)
DEGREES: Instances = tuple(
    ("metropolis/replica_packed_degrees.cu", instance("sweep_degrees", bits, in_shared, in_fields, r))
    for bits, in_shared, in_fields, r in product(TREE_BITS, FLAGS, FLAGS, PHILOX_ROUNDS)
)

SITE_RULES = (("false", int(Kind.ANY)), ("true", int(Kind.ANY)), ("false", int(Kind.PLAIN)))  # (field, kind)
GEOMETRIES = ("Slab", "AnyRows")
SITE_PACKED: Instances = (
    *(("metropolis/site_packed_signs.cu", instance("draw_signs", dimension)) for dimension in DIMENSIONS),
    *(
        ("metropolis/site_packed.cu", instance("sweep_site", dimension, signed, *rule, layers, r, slabs))
        for dimension, signed, rule, (layers, slabs), r in product(
            DIMENSIONS, FLAGS, SITE_RULES, ((1, False), (2, False), (2, True)), PHILOX_ROUNDS
        )
    ),
    *(
        ("measuring/count_site_packed.cu", instance("count_site", d, signed, kind))
        for d, signed, kind in product(DIMENSIONS, FLAGS, GEOMETRIES)
    ),
    ("tempering/lay_tables.cu", "lay_uniform_tables"),
    ("measuring/overlaps_site_packed.cu", "differing_lattices"),
    *(
        ("measuring/overlaps_site_packed.cu", instance("differing_bonds", dimension, kind))
        for dimension, kind in product(DIMENSIONS, GEOMETRIES)
    ),
    *(
        ("measuring/overlaps_site_packed.cu", instance(f"layers_of_{lines}", kind))
        for lines, kind in product(("rows", "columns"), GEOMETRIES)
    ),
    *(
        ("metropolis/site_packed_rows.cu", instance("sweep_rows", dimension, signed, *rule, r))
        for dimension, signed, rule, r in product(DIMENSIONS, FLAGS, SITE_RULES, PHILOX_ROUNDS)
    ),
    *(
        ("metropolis/site_packed_words.cu", instance(name, dimension, signed, *rule, r))
        for name, dimension, signed, rule, r in product(
            ("sweep_words", "sweep_spread"), DIMENSIONS, FLAGS, SITE_RULES, PHILOX_ROUNDS
        )
    ),
    *(
        ("tempering/measure_words.cu", instance(name, dimension, signed, *rule, r))
        for name, dimension, signed, rule, r in product(
            ("measure_words", "measure_spread"), DIMENSIONS, FLAGS, SITE_RULES, PHILOX_ROUNDS
        )
    ),
)

# Bytes of a coupling, the type of fields, the replicas of a thread block and the thread blocks of a cluster
OF_BYTES = tuple(
    (*kind, group, cluster)
    for kind in ((1, "int"), (3, "int"), (3, "long long"), (4, "long long"), (8, "long long"))
    for group, cluster in ((16, 1), (32, 1), (16, CLUSTER))
    if serves(kind[0], group, cluster)
)
DENSE: Instances = (
    *(("metropolis/dense_signs.cu", instance("sweep_signs", *each)) for each in product(FLAGS, PHILOX_ROUNDS)),
    *(("metropolis/dense_signs.cu", instance("energies_signs", complete)) for complete in FLAGS),
    *(("metropolis/dense_bytes.cu", instance("sweep_bytes", *kind, r)) for kind, r in product(OF_BYTES, PHILOX_ROUNDS)),
    *(("metropolis/dense_bytes.cu", instance("energies_bytes", *kind)) for kind in OF_BYTES),
)
UNPACKED: Instances = (
    *(
        ("metropolis/unpacked.cu", instance("sweep_unpacked", *each))
        for each in product(INTEGERS, (1, MOST_TERMS), FLAGS, PHILOX_ROUNDS)
    ),
    *(
        ("tempering/temper_unpacked.cu", instance("temper_unpacked", integer, r))
        for integer, r in product(INTEGERS, PHILOX_ROUNDS)
    ),
    *(("measuring/count_unpacked.cu", instance("total_energy", integer)) for integer in INTEGERS),
    ("tempering/lay_tables.cu", "lay_betas"),
    ("measuring/overlaps.cu", "differing_spins"),
)

OF_ENGINES: Instances = (
    *(SHARED + FORTUIN_KASTELEYN + CLUSTERS_OF_LATTICES + HOUDAYER + ANISOTROPIC + REPLICA_PACKED + DEGREES),
    *(SITE_PACKED + DENSE + UNPACKED + DESCRIBED_CLUSTERS + CHUNKS),
)
