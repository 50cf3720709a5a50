"""Fortuin-Kasteleyn moves in plain Python: whole uniforms of every bond, clusters by breadth-first search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim import rng
from spinsim.acceptance import acceptance
from spinsim.model.graph import colouring

Spins = npt.NDArray[np.int8]


class Draws:
    """Random words (4, ...) of one application to a sample."""

    def __init__(self, seed: int, sample: int, time: int, kind: int) -> None:
        self._seed, self._of = seed, {"sample": sample, "half_sweep": 4 * time + kind}

    def __call__(self, **address: Any) -> npt.NDArray[np.uint64]:
        return rng.draw(self._seed, rng.Stream.FORTUIN_KASTELEYN, **self._of, **address)

    def bit(self, replica: int, **address: Any) -> npt.NDArray[np.bool_]:
        """One bit of a replica, of each of some groups."""
        words = self(block=replica // 128, **address)[replica % 128 // 32]
        return (words >> np.uint64(replica % 32) & np.uint64(1)).astype(bool)

    def is_closed(self, replica: int, number: npt.NDArray[np.int64], cost: npt.NDArray[np.int64], beta: Any) -> Any:
        """Which bonds stay closed: whose uniforms of 72 bits are below exp(-beta cost)."""
        always, threshold = acceptance(np.maximum(cost, 1), beta, 1.0)
        block, word, bit = replica // 128, replica % 128 // 32, np.uint64(replica % 32)
        calls = [self(group=number, block=block, plane=4 * c + word) for c in range(2)]
        top = [int(f"0b{''.join(map(str, bits))}", 2) for bits in (np.concatenate(calls) >> bit & np.uint64(1)).T]
        rest = self(group=number, block=block, plane=128 + replica % 128)
        uniform = [t << 64 | int(high) << 32 | int(low) for t, high, low in zip(top, *rest[:2], strict=True)]
        return always | np.array([u < int(t) << 8 for u, t in zip(uniform, threshold, strict=True)])


def move(spins: Spins, beta: Any, model: ss.Ising, name: str, seed: int, sample: int, time: int) -> Spins:
    """Replicas (replicas, sites) of a sample after the move of a time, beta (replicas,) or of two terms each."""
    kind = ["swendsen-wang", "wolff", "seeded-clusters"].index(name)
    draw, moved, sites = Draws(seed, sample, time, kind), spins.copy(), np.arange(model.sites)
    fields, ghost = model.integer_fields(sample), model.sites
    ends = np.concatenate([model.graph.edges, np.stack([sites, np.full_like(sites, ghost)], axis=1)])
    couplings = np.concatenate([model.integer_couplings(sample), fields])
    terms = np.zeros(len(ends), int)
    if model.terms is not None:
        terms[: model.bonds] = model.terms
    colour = colouring(model.graph)
    leaves = colour == np.argmax(
        [np.sum(colour == c) for c in range(colour.max() + 1)]
    )  # no model here has 32 bonds a site
    order = np.array(sorted(sites, key=lambda i: (leaves[i], i * 2654435769 % 2**32)))
    most = max(1, int(np.ceil(np.log2(model.sites))))
    for r, one in enumerate(spins):
        with_ghost = np.append(one, 1)
        satisfied = couplings * with_ghost[ends[:, 0]] * with_ghost[ends[:, 1]] > 0
        scaled = (np.broadcast_to(beta[r], 2) * model.quantum)[terms]
        opened = np.flatnonzero(satisfied)
        opened = opened[~draw.is_closed(r, opened, 2 * np.abs(couplings[opened]), scaled[opened])]
        near: list[list[int]] = [[] for _ in range(ghost + 1)]
        for i, j in ends[opened].tolist():
            near[i].append(j)
            near[j].append(i)
        own, chosen = draw(group=r, plane=9), draw.bit(r, group=sites, plane=8)
        k = 1 + (int(own[1]) * most >> 32)
        if kind == 1:
            chosen = sites == int(own[0]) * ghost >> 32
        elif kind == 2:
            chosen = np.all([draw.bit(r, group=sites, plane=16 + p) for p in range(k)], axis=0)
        seen = {ghost}
        for leader in [ghost, *order.tolist()]:
            if leader in seen and leader != ghost:
                continue
            queue = [leader]
            for i in queue:
                new = [j for j in dict.fromkeys(near[i]) if j not in seen]
                seen.update(new)
                queue.extend(new)
            seen.update(queue)
            if leader == ghost:
                continue
            if chosen[queue].any() if kind else chosen[leader]:
                moved[r, queue] *= -1
    return moved
