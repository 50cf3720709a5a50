"""Fortuin-Kasteleyn moves of site-packed lattices in plain Python: whole uniforms, breadth-first search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import spinsim as ss
from spinsim import rng
from spinsim.acceptance import acceptance

KINDS = ["swendsen-wang", "wolff", "seeded-clusters"]


class Sites:
    """Colours and places of the sites of a lattice among those of their colour, (sites,)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        site = np.arange(np.prod(shape))
        x, y, z = site % shape[0], site // shape[0] % shape[1], site // (shape[0] * shape[1])
        self.shape, self.parity = shape, (y + z) % 2
        self.colour = (x + y + z) % 2
        self.lane = site // shape[0] * (shape[0] // 2) + x // 2
        self.groups = -(-site.size // 256)
        self.place = self.colour * self.groups * 128 + self.lane

    def slot(self, edges: npt.NDArray[np.int32], number: npt.NDArray[np.int64]) -> Any:
        """Sites of colour 0 of bonds, and the slot of each there; bond d s + a is that of site s along axis a."""
        axis, first = number % len(self.shape), number // len(self.shape)
        assert (edges == first[:, None]).any(axis=1).all()
        other = edges.sum(axis=1) - first
        is_first = self.colour[first] == 0
        zero = np.where(is_first, first, other)
        along_x = np.where(
            is_first == (self.parity[zero] == 0), 2, 3
        )  # the same place is x + 1 of even rows, x - 1 of odd
        return zero, np.select([axis == 0, axis == 1], [along_x, 0 + is_first], 4 + is_first)


def move(spins: npt.NDArray[np.int8], beta: Any, model: ss.Ising, name: str, seed: int, sample: int, time: int) -> Any:
    """Replicas (replicas, sites) of a sample after the move of a time, beta (replicas,); ``sample`` in the model."""
    kind, sites, moved = KINDS.index(name), Sites(model.lattice.shape), spins.copy()
    zero, slot = sites.slot(model.graph.edges, np.arange(model.bonds))
    couplings, fields, ghost = model.integer_couplings(sample), model.integer_fields(sample), model.sites
    of_colour = sites.groups * 128
    place = np.concatenate([slot * of_colour + sites.lane[zero], 2 * len(sites.shape) * of_colour + sites.place])
    ends = np.concatenate([model.graph.edges, np.stack([np.arange(ghost), np.full(ghost, ghost)], axis=1)])
    values = np.concatenate([couplings, fields])
    groups = np.arange(2 * len(sites.shape) * sites.groups + 2 * sites.groups)

    for r, one in enumerate(spins):
        at = {"sample": sample, "block": r, "half_sweep": 4 * time + kind}

        def bits(groups: Any, plane: int, at: Any = at) -> Any:
            words = rng.draw(seed, rng.Stream.FORTUIN_KASTELEYN, group=groups, plane=plane, **at).T.astype("<u4")
            return np.unpackbits(words.copy().view(np.uint8), bitorder="little")

        uniform = sum(bits(groups, p)[place].astype(np.uint64) << np.uint64(63 - p) for p in range(64))
        always, threshold = acceptance(np.maximum(2 * np.abs(values), 1), beta[r] * model.quantum, 1.0)
        with_ghost = np.append(one, 1)
        satisfied = values * with_ghost[ends[:, 0]] * with_ghost[ends[:, 1]] > 0
        opened = satisfied & ~always & (uniform >= threshold)
        near: list[list[int]] = [[] for _ in range(ghost + 1)]
        for i, j in ends[opened].tolist():
            near[i].append(j)
            near[j].append(i)
        own = rng.draw(seed, rng.Stream.FORTUIN_KASTELEYN, plane=65, **at)
        k = 1 + (int(own[1]) * max(1, (ghost - 1).bit_length()) >> 32)
        coin = bits(groups, 64)[sites.place]
        seeds = np.all([bits(groups, 128 + p)[sites.place] for p in range(k)], axis=0)
        seen = np.zeros(ghost + 1, bool)
        for leader in [ghost, *range(ghost)]:
            if seen[leader]:
                continue
            seen[leader], queue = True, [leader]
            for i in queue:
                for j in near[i]:
                    if not seen[j]:
                        seen[j] = True
                        queue.append(j)
            if leader < ghost and (coin[leader], (int(own[0]) * ghost >> 32) in queue, seeds[queue].any())[kind]:
                moved[r, queue] *= -1
    return moved
