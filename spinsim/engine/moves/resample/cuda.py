"""Copies of replica-packed configurations on a GPU: a thread for each site of a block of 128 replicas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spinsim.cuda.launch import Launch
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.resample.moves import Moves, first_moves

THREADS: Final = 128


def copy_lanes(queue: Queue, state: Any, moves: Moves) -> None:
    """Queue copies of lanes of a state (samples, blocks, sites, 2); the present device and stream are the queue's."""
    import cupy

    samples, blocks, sites, _ = state.shape
    Launch(queue.device, "packing/copy_lanes.cu", "copy_lanes", {
        "state": state, "sites": np.uint32(sites), "first": cupy.asarray(first_moves(moves, samples, blocks)),
        "source": cupy.asarray(moves.source.astype(np.uint32)), "target": cupy.asarray(moves.target.astype(np.uint32)),
    })(queue.stream, (-(-sites // THREADS), blocks, samples), THREADS)  # fmt: skip
