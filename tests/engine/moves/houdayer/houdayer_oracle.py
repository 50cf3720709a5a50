"""Houdayer moves in plain NumPy: every random number by its address, clusters by breadth-first search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim import rng

Spins = npt.NDArray[np.int8]


def number(seed: int, sample: int, time: int, group: int, plane: int, block: int = 0) -> list[int]:
    words = rng.draw(seed, rng.Stream.HOUDAYER, group=group, sample=sample, block=block, half_sweep=time, plane=plane)
    return [int(word) for word in words]


def pairs(holder: npt.NDArray[np.int64], sites: int, seed: int, sample: int, time: int) -> list[tuple[int, int, int]]:
    """Both replicas and k of each pair, from the replica of each copy at each temperature."""
    most, found = max(1, int(np.ceil(np.log2(sites)))), []
    for at_one in holder.T.tolist():
        drawn = {replica: number(seed, sample, time, replica, 255) for replica in at_one}
        order = sorted(at_one, key=lambda replica: (drawn[replica][0] << 32 | drawn[replica][1], at_one.index(replica)))
        for one, other in zip(order[::2], order[1::2], strict=False):
            found.append((one, other, 1 + (drawn[one][2] * most >> 32)))
    return found


def move(spins: Spins, holder: npt.NDArray[np.int64], model: ss.Ising, seed: int, sample: int, time: int) -> Spins:
    """Replicas (replicas, sites) of a sample after the move of a time."""
    moved, couplings, in_field = spins.copy(), model.integer_couplings(sample), bool(model.fields.any())
    near: list[list[int]] = [[] for _ in range(model.sites)]
    for (i, j), coupling in zip(model.graph.edges.tolist(), couplings.tolist(), strict=True):
        if coupling:
            near[i].append(j)
            near[j].append(i)
    for pair, (one, other, k) in enumerate(pairs(holder, model.sites, seed, sample, time)):
        overlap, bit = spins[one] * spins[other], pair % 32
        planes = [
            [number(seed, sample, time, i, p // 4, pair // 32)[p % 4] >> bit & 1 for p in range(k)]
            for i in range(model.sites)
        ]
        queue = [i for i in range(model.sites) if all(planes[i]) and not (in_field and overlap[i] == 1)]
        reached = set(queue)
        for i in queue:
            new = [j for j in dict.fromkeys(near[i]) if overlap[j] == overlap[i] and j not in reached]
            reached.update(new)
            queue.extend(new)
        flipped = sorted(reached)
        moved[one, flipped] *= -1
        moved[other, flipped] *= -1
    return moved
