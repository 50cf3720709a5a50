"""Small problems of all kinds, and their lowest energies by comparing all states."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

import spinsim as ss

KINDS = ("signs", "normal", "few", "powers", "one", "decades")


@cache
def states(sites: int) -> npt.NDArray[np.int8]:
    """All states, (sites, states)."""
    return ((np.arange(2**sites) >> np.arange(sites)[:, None] & 1) * 2 - 1).astype(np.int8)


def energies(model: ss.Ising) -> npt.NDArray[np.float64]:
    """Energies of all states, in the order of ``states``."""
    pairs = np.zeros((model.sites, model.sites))
    for end in (model.graph.edges.T, model.graph.edges.T[::-1]):
        np.add.at(pairs, tuple(end), model.integer_couplings(0))
    energy = np.zeros(1)
    for row, local in zip(pairs, model.integer_fields(0)[:, None].astype(np.float64), strict=True):
        for coupling in row[: energy.size.bit_length() - 1]:  # to the sites before, each twice as many states
            local = np.concatenate([local - coupling, local + coupling])
        energy = np.concatenate([energy + local, energy - local])
    return energy * model.quantum


def values(kind: str, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    if kind == "signs":
        return rng.choice([-1.0, 1.0], size)
    if kind == "normal":
        return rng.normal(size=size)
    if kind == "few":  # and zeros
        return rng.integers(-3, 4, size).astype(float)
    if kind == "powers":
        return np.ldexp(rng.integers(-5, 6, size).astype(float), rng.integers(0, 40, size))
    if kind == "one":
        return np.full(size, -1.0)
    return rng.choice([-1, 1], size) * 10.0 ** rng.uniform(-3, 3, size)


def problem(rng: np.random.Generator, most: int = 15) -> ss.Ising:
    """A problem of up to ``most`` sites, perhaps with parallel bonds, lone sites, zeros or fields at some sites."""
    sites = int(rng.integers(1, most + 1))
    bonds = int(rng.integers(0, rng.choice([1, 3, 6]) * sites + 1))
    ends = rng.integers(0, sites, (bonds, 2))
    ends, kind = ends[ends[:, 0] != ends[:, 1]], rng.choice(KINDS)
    share = rng.choice([0.0, 0.2, 1.0])
    field = values(kind, sites, rng) * (rng.random(sites) < share)
    return ss.Ising(ss.Graph(sites, ends), values(kind, len(ends), rng), field)
