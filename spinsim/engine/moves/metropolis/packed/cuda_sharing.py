"""How thread blocks share a lattice: tickets for its parts, and barriers."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.cuda.launch import ADDRESS, struct_type

APART: Final = 8  # words from one block's count to the next, so that polls spread over the cache
TICKETS: Final = struct_type(next=ADDRESS, before=np.uint32)
LATTICE_BARRIER: Final = struct_type(arrived=ADDRESS, before=np.uint32)
NEIGHBOUR_BARRIER: Final = struct_type(arrived=ADDRESS, before=np.uint32, reach=np.uint32)
