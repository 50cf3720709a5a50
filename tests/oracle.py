"""The update, written as plainly as it can be: unpacked spins, one 64-bit uniform for each, no tricks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import acceptance
from spinsim.engine.tables import FIXED_PLANES, TAIL_PLANE
from spinsim.model.colouring import colouring
from spinsim.model.ising import Ising

U = np.uint64


def start(model: Ising, replicas: int, seed: int, rounds: int = 10) -> npt.NDArray[np.int8]:
    """Random initial spins (sample, site, replica)."""
    k, i, r = np.ogrid[: model.samples, : model.sites, :replicas]
    words = rng.draw(seed, rng.Stream.START, group=i, sample=k, block=r // 128, rounds=rounds)
    word = np.choose(r % 128 // 32, words)
    return (2 * (word >> (r % 32).astype(U) & U(1)).astype(np.int8) - 1).astype(np.int8)


def uniform_packed(seed, k, i, r, half_sweep, rounds=10):
    """The 64-bit uniform of the replica-packed update: FIXED_PLANES shared planes, then the lane's own call."""
    lane, counters = r % 128, {"group": i, "sample": k, "block": r // 128, "half_sweep": half_sweep, "rounds": rounds}
    top = U(0)
    for plane in range(FIXED_PLANES):
        word = np.choose(lane // 32, rng.draw(seed, rng.Stream.UPDATE, plane=plane, **counters))
        top = top << U(1) | (word >> (lane % 32).astype(U) & U(1))
    own = rng.draw(seed, rng.Stream.UPDATE, plane=TAIL_PLANE + lane, **counters)
    return top << U(64 - FIXED_PLANES) | (own[0] << U(32) | own[1]) >> U(FIXED_PLANES)


def uniform_general(seed, k, i, r, half_sweep, rounds=10):
    """The 64-bit uniform of the general update."""
    counters = {"group": i, "sample": k, "block": r // 128, "half_sweep": half_sweep, "rounds": rounds}
    halves = [
        np.choose(r % 4, rng.draw(seed, rng.Stream.UPDATE, plane=plane + r % 128 // 4, **counters)) for plane in (0, 32)
    ]
    return halves[0] << U(32) | halves[1]


def sweep(model, spins, beta, seed, sweeps, uniform, zero_acceptance=63 / 64, first=0, rounds=10):
    """Metropolis sweeps of ``spins`` (sample, site, replica), in place; ``beta`` is a number or one per replica."""
    colour = colouring(model.graph)
    k, _, r = np.ogrid[: model.samples, :1, : spins.shape[2]]
    ends = model.graph.edges
    couplings = np.stack([model.integer_couplings(s) for s in range(model.samples)])[:, :, None]
    fields = np.stack([model.integer_fields(s) for s in range(model.samples)])[:, :, None]
    for half_sweep in range(first * (colour.max() + 1), (first + sweeps) * (colour.max() + 1)):
        sites = np.flatnonzero(colour == half_sweep % (colour.max() + 1))
        local = np.broadcast_to(fields, spins.shape).astype(np.int64)
        np.add.at(local, (slice(None), ends[:, 0]), couplings * spins[:, ends[:, 1]])
        np.add.at(local, (slice(None), ends[:, 1]), couplings * spins[:, ends[:, 0]])
        cost = (2 * local * spins)[:, sites]
        always, threshold = acceptance(cost, np.asarray(beta) * model.quantum, zero_acceptance)
        flip = always | (uniform(seed, k, sites[None, :, None], r, half_sweep, rounds) < threshold)
        spins[:, sites] = np.where(flip, -spins[:, sites], spins[:, sites])
