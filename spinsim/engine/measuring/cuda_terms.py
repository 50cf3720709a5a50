"""Numbers of a measurement on a GPU, and terms made of them, as ``kernels/measuring/terms.cuh`` has them."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.cuda.launch import SIZE, struct_type

THREADS: Final = 128
MOST_ELEMENTS: Final = 8  # that a source adds up
SOURCE: Final = struct_type(
    **dict.fromkeys(("first", "of_sample", "of_chain", "of_place", "count", "is_real"), SIZE),
    elements=(np.uint32, MOST_ELEMENTS),
)
TERM: Final = struct_type(
    sources=(SOURCE, 2),
    count=SIZE,
    chains=SIZE,
    **dict.fromkeys(("power", "followed", "own", "judged", "row", "pair_row"), np.int64),
)
