"""Fortuin-Kasteleyn moves of replica-packed words on the CPU, where the words lie: 512 replicas at a time."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.moves.fortuin_kasteleyn.bonds import SEEDED, SWENDSEN_WANG, WOLFF
from spinsim.engine.moves.fortuin_kasteleyn.move import Flips
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising
from spinsim.packing import LANES, block_count

PASSES: Final = 64  # of all words, in the time of which a move takes place, about


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath:
    """The move of a kind of an engine's words where they lie."""
    blocks, flips = parts.state, Flips(kind, model, replicas, first_sample)
    assert isinstance(blocks, Blocks)  # noqa: S101  (engines of replica-packed words have them)

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        flip = flips.at(moment, blocks.state, of_lanes(moment.beta, holder, block_count(replicas)))
        parts.threads.share_out(flip, blocks.count, PASSES * blocks.total)

    return move


def of_lanes(beta: npt.ArrayLike, holder: npt.NDArray[np.int64], blocks: int) -> npt.NDArray[np.float64]:
    """Inverse temperatures of the lanes of each block, (samples, blocks, 128, terms); 0 past the last replica.

    Args:
        beta: As ``Moment`` has them.
        holder: Replica of each copy at each temperature, (samples, copies, temperatures).
        blocks: Of 128 replicas.
    """
    values = np.asarray(beta, np.float64).reshape(-1, *np.shape(beta)[1:2] or (1,))
    samples, terms = len(holder), values.shape[1]
    rows = np.broadcast_to(values, (*holder.shape, terms)).reshape(samples, -1, terms)
    found = np.zeros((samples, blocks * LANES, terms))
    np.put_along_axis(found, holder.reshape(samples, -1, 1), rows, axis=1)
    return found.reshape(samples, blocks, LANES, terms)


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
