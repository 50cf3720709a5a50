"""Houdayer moves in plain NumPy: every random number by its address, clusters by breadth-first search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim import rng

Spins = npt.NDArray[np.int8]


class Draws:
    """Random words (4, ...) of one application to a sample."""

    def __init__(self, seed: int, sample: int, time: int) -> None:
        self._seed, self._of = seed, {"sample": sample, "half_sweep": time}

    def __call__(self, **address: Any) -> npt.NDArray[np.uint64]:
        return rng.draw(self._seed, rng.Stream.HOUDAYER, **self._of, **address)


def pairs(holder: npt.NDArray[np.int64], sites: int, draw: Draws) -> list[tuple[int, int, int]]:
    """Both replicas and k of each pair, from the replica of each copy at each temperature."""
    most, found = max(1, int(np.ceil(np.log2(sites)))), []
    for at_one in holder.T:
        words = draw(group=at_one, plane=255)
        order = np.argsort(words[0] << np.uint64(32) | words[1], kind="stable")
        for one, other in zip(order[::2], order[1::2], strict=False):
            found.append((int(at_one[one]), int(at_one[other]), 1 + (int(words[2, one]) * most >> 32)))
    return found


def move(spins: Spins, holder: npt.NDArray[np.int64], model: ss.Ising, seed: int, sample: int, time: int) -> Spins:
    """Replicas (replicas, sites) of a sample after the move of a time."""
    draw, moved, in_field = Draws(seed, sample, time), spins.copy(), bool(model.fields.any())
    near: list[list[int]] = [[] for _ in range(model.sites)]
    for (i, j), coupling in zip(model.graph.edges.tolist(), model.integer_couplings(sample).tolist(), strict=True):
        if coupling:
            near[i].append(j)
            near[j].append(i)
    for pair, (one, other, k) in enumerate(pairs(holder, model.sites, draw)):
        overlap, plane = spins[one] * spins[other], np.arange(k)
        words = draw(group=np.arange(model.sites)[:, None], block=pair // 32, plane=plane // 4)
        bits = words[plane % 4, :, plane] >> np.uint64(pair % 32) & np.uint64(1)
        queue = [i for i in np.flatnonzero(bits.all(axis=0)).tolist() if not (in_field and overlap[i] == 1)]
        reached = set(queue)
        for i in queue:
            new = [j for j in dict.fromkeys(near[i]) if overlap[j] == overlap[i] and j not in reached]
            reached.update(new)
            queue.extend(new)
        moved[one, sorted(reached)] *= -1
        moved[other, sorted(reached)] *= -1
    return moved
