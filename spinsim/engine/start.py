"""Initial spins, from the START stream: one Philox call for each group of 128 lanes (replica-packed: a site)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.dynamics import Dynamics
from spinsim.machine.compiled import kernel

START = np.uint64(rng.Stream.START)


@kernel
def _fill_random(state, lanes, first, block, key, rounds):  # type: ignore[no-untyped-def]
    word3 = rng.counter_plane(np.uint64(0), START, np.uint64(0))
    for i in range(state.shape[0]):
        x0, x1, x2, x3 = rng.philox(first + np.uint64(i), block, np.uint64(0), word3, key[0], key[1], rounds)
        state[i, 0] = (rng.low32(x0) | (x1 << np.uint64(32))) & lanes[0]
        state[i, 1] = (rng.low32(x2) | (x3 << np.uint64(32))) & lanes[1]


def fill_start(
    state: npt.NDArray[np.uint64],
    lanes: npt.NDArray[np.uint64],
    dynamics: Dynamics,
    sample: int,
    block: int,
    first: int = 0,
) -> None:
    """Set packed spins of a block of a sample, uint64 (groups, 2), to the start of their dynamics.

    ``first`` is the number of their first group in the block.
    """
    if dynamics.start == "up":
        state[:] = lanes
    else:
        counter = dynamics.counter_block(sample, block)
        _fill_random(state, lanes, np.uint64(first), counter, rng.split_seed(dynamics.seed), dynamics.rng_rounds)
