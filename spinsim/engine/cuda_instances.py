"""Every kernel instance that engines may ask for on a GPU, so that all can be compiled ahead of a run."""

from __future__ import annotations

from spinsim.cuda.compile import PHILOX_ROUNDS, Instances, instance
from spinsim.engine.measuring.cuda_reduction import MERGED
from spinsim.engine.moves.fortuin_kasteleyn.cuda import INSTANCES as FORTUIN_KASTELEYN
from spinsim.engine.moves.fortuin_kasteleyn.lattice.cuda import INSTANCES as CLUSTERS_OF_LATTICES
from spinsim.engine.moves.houdayer.cuda import INSTANCES as HOUDAYER
from spinsim.engine.moves.metropolis.anisotropic.cuda import INSTANCES as ANISOTROPIC
from spinsim.engine.moves.metropolis.dense.cuda import INSTANCES as DENSE
from spinsim.engine.moves.metropolis.replica_packed.cuda_records import INSTANCES as REPLICA_PACKED
from spinsim.engine.moves.metropolis.replica_packed.degrees.cuda import INSTANCES as DEGREES
from spinsim.engine.moves.metropolis.site_packed.cuda import INSTANCES as SITE_PACKED
from spinsim.engine.moves.metropolis.unpacked.cuda import INSTANCES as UNPACKED

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
)
"""Kernels that serve all updates."""


def instantiations() -> Instances:
    """Pairs of a kernel file and an expression that names a function or a template instance of it."""
    return (
        *SHARED,
        *FORTUIN_KASTELEYN,
        *CLUSTERS_OF_LATTICES,
        *HOUDAYER,
        *ANISOTROPIC,
        *REPLICA_PACKED,
        *DEGREES,
        *SITE_PACKED,
        *DENSE,
        *UNPACKED,
    )
