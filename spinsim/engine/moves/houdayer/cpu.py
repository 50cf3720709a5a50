"""Houdayer moves on the CPU: words of replicas become words of pairs and back; unpacked spins are packed before.

A square of 64 sites and 64 replicas is transposed, so that a word holds 64 sites of one replica; two of them give the
overlap of a pair, and the squares of pairs are transposed back. What clusters flip goes the same way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.layouts.unpacked import Chunks
from spinsim.engine.measuring.cpu_comparison import transpose
from spinsim.engine.moves.houdayer.move import HALF, bonds_of, grow, pair_up, sow
from spinsim.engine.moves.move import FastPath, Moment, most_halvings
from spinsim.machine.compiled import kernel, part
from spinsim.model.couplings import distinct
from spinsim.model.ising import Ising
from spinsim.packing import block_count

PASSES = 16  # of all words, in the time of which a move takes place, about


@part
def write_overlaps(state, first, second, work):  # type: ignore[no-untyped-def]
    """Set ``work[word, site, 0]`` to words of pairs that differ, from ``state`` (blocks, sites, 2) of a sample."""
    blocks, sites = state.shape[:2]
    of_replica, of_pair = np.empty(blocks * 2 * HALF, np.uint64), np.empty(HALF, np.uint64)
    for base in range(0, sites, HALF):
        width = min(HALF, sites - base)
        for word in range(2 * blocks):
            square = of_replica[word * HALF : (word + 1) * HALF]
            for i in range(width):
                square[i] = state[word // 2, base + i, word % 2]
            square[width:] = np.uint64(0)
            transpose(square)
        for word in range(work.shape[0]):
            for p in range(HALF):
                pair = HALF * word + p
                inside = pair < first.size
                of_pair[p] = of_replica[first[pair]] ^ of_replica[second[pair]] if inside else np.uint64(0)
            transpose(of_pair)
            for i in range(width):
                work[word, base + i, 0] = of_pair[i]


@part
def flip_both(state, first, second, work):  # type: ignore[no-untyped-def]
    """Flip both replicas of each pair at the sites of ``work[word, site, 1]``."""
    blocks, sites = state.shape[:2]
    of_replica, of_pair = np.empty(blocks * 2 * HALF, np.uint64), np.empty(HALF, np.uint64)
    for base in range(0, sites, HALF):
        width = min(HALF, sites - base)
        of_replica[:] = np.uint64(0)
        for word in range(work.shape[0]):
            for i in range(width):
                of_pair[i] = work[word, base + i, 1]
            of_pair[width:] = np.uint64(0)
            transpose(of_pair)
            for p in range(min(HALF, first.size - HALF * word)):
                of_replica[first[HALF * word + p]] = of_replica[second[HALF * word + p]] = of_pair[p]
        for word in range(2 * blocks):
            square = of_replica[word * HALF : (word + 1) * HALF]
            transpose(square)
            for i in range(width):
                state[word // 2, base + i, word % 2] ^= square[i]


@kernel
def move_packed(state, holder, start, neighbour, in_field, first_sample, time, key, most):  # type: ignore[no-untyped-def]
    """Move the replicas of samples, ``state`` uint64 (samples, blocks, sites, 2), as ``move_unpacked`` does."""
    samples, _, sites, _ = state.shape
    pairs = holder.shape[1] // 2 * holder.shape[2]
    first, second, halvings = np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    work = np.empty(((pairs + HALF - 1) // HALF, sites, 2), np.uint64)
    for k in range(samples):
        pair_up(holder[k], first_sample + k, time, key, most, first, second, halvings)
        write_overlaps(state[k], first, second, work)
        for word in range(work.shape[0]):
            sow(work[word], word, halvings, in_field, first_sample + k, time, key)
            grow(work[word], start[k % start.shape[0]], neighbour)
        flip_both(state[k], first, second, work)


def fast_path(model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath | None:
    """The move of an engine's spins where they lie, samples side by side; None where they are dense ones."""
    spins, (start, neighbour) = parts.state, bonds_of(model)
    if not isinstance(spins, Blocks | Chunks):
        return None
    in_field, most = bool(np.any(distinct(model.fields))), most_halvings(model.sites)

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        time, key = moment.time, rng.split_seed(moment.seed)

        def task(begin: int, stop: int) -> None:
            rows = start if len(start) == 1 else start[begin:stop]
            these = slice(begin, stop)
            arguments = holder[these], rows, neighbour, in_field, first_sample + begin, time, key, most
            if isinstance(spins, Blocks):
                move_packed(spins.state[these], *arguments)
            else:
                words = spins.words_of(these)
                before = words.copy()
                move_packed(words, *arguments)
                spins.flip(words ^ before, these)

        if holder.shape[1] > 1:
            parts.threads.share_out(task, model.samples, PASSES * model.samples * model.sites * block_count(replicas))

    return move
