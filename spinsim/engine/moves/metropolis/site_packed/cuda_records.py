"""What the kernels of site-packed spins take by value."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.cuda.records import ADDRESS, SIZE, struct_type
from spinsim.engine.moves.metropolis.packed.cuda_sharing import LATTICE_BARRIER

SLAB: Final = struct_type(**dict.fromkeys(("width", "height", "depth", "first_row", "parity"), np.uint32))
HALO: Final = struct_type(before=(ADDRESS, 2), after=(ADDRESS, 2), stride=SIZE)
SIGNS: Final = struct_type(negative=ADDRESS, stride=SIZE)
UNIFORM_TABLES: Final = struct_type(always=ADDRESS, planes=ADDRESS, thresholds=ADDRESS, stride=SIZE)
DIVISOR: Final = struct_type(number=np.uint32, inverse=np.uint32)
SLAB_BARRIER: Final = struct_type(
    own=LATTICE_BARRIER,
    **dict.fromkeys(("before", "after", "to_before", "to_after", "edges"), ADDRESS),
    done=np.uint32,
    edge_tiles=np.uint32,
)
SHARE: Final = struct_type(columns=np.uint32, tiles=np.uint32, across=DIVISOR, width=DIVISOR)


def divisor(number: int) -> tuple[int, int]:
    """A ``DIVISOR``: a number and the inverse by which the kernels divide."""
    return number, (2**32 // number + 1) % 2**32
