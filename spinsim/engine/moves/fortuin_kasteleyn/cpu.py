"""Fortuin-Kasteleyn moves on the CPU, where spins lie: of replica-packed words 512 replicas at a time."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.layouts.unpacked import Chunks
from spinsim.engine.moves.fortuin_kasteleyn.bonds import SEEDED, SWENDSEN_WANG, WOLFF
from spinsim.engine.moves.fortuin_kasteleyn.move import Flips
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising
from spinsim.packing import LANES, block_count

PASSES: Final = 64  # of all words, in the time of which a move takes place, about


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath | None:
    """The move of a kind of an engine's spins where they lie; None where they are dense ones."""
    spins, blocks = parts.state, block_count(replicas)
    if not isinstance(spins, Blocks | Chunks):
        return None
    flips, work = Flips(kind, model, replicas, first_sample), PASSES * model.samples * model.sites * blocks

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        beta = of_lanes(moment.beta, holder, blocks)
        if isinstance(spins, Blocks):
            parts.threads.share_out(flips.at(moment, spins.state, beta), spins.count, work)
            return

        def task(begin: int, stop: int) -> None:
            these = slice(begin, stop)
            words = spins.words_of(these)
            before = words.copy()
            flips.at(moment, words, beta[these], begin)(0, (stop - begin) * blocks)
            spins.flip(words ^ before, these)

        parts.threads.share_out(task, model.samples, work)

    return move


def of_lanes(beta: npt.ArrayLike, holder: npt.NDArray[np.int64], blocks: int) -> npt.NDArray[np.float64]:
    """Inverse temperatures of the lanes of each block, (samples, blocks, 128, terms); 0 past the last replica.

    ``beta`` is as ``Moment`` has it, ``holder`` as ``Batch`` does.
    """
    values = np.asarray(beta, np.float64).reshape(-1, *np.shape(beta)[1:2] or (1,))
    samples, terms = len(holder), values.shape[1]
    rows = np.broadcast_to(values, (*holder.shape, terms)).reshape(samples, -1, terms)
    by_replica = np.zeros((samples, blocks * LANES, terms))
    np.put_along_axis(by_replica, holder.reshape(samples, -1, 1), rows, axis=1)
    return by_replica.reshape(samples, blocks, LANES, terms)


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
