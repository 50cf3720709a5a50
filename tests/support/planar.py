"""Small planar graphs with couplings of several kinds, and lowest energies by enumeration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import Delaunay

import spinsim as ss

Array = npt.NDArray[np.float64]


def all_energies(model: ss.Ising) -> Array:
    """Energies of all states, (2^sites,)."""
    spins = (2 * (np.arange(2**model.sites) >> np.arange(model.sites)[:, None] & 1) - 1).astype(np.int8)
    return np.asarray(model.energy(spins[None])[0])


def triangulation(sites: int, share: float, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """A share of the bonds of a triangulation of random points, (bonds, 2): planar, often in several parts."""
    corners = Delaunay(random.random((sites, 2))).simplices
    pairs = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1)
    pairs = np.unique(pairs, axis=0)
    return np.asarray(pairs[random.random(len(pairs)) < share], np.int64)


def values(number: int, random: np.random.Generator) -> Array:
    """Couplings or fields of a random kind: +-1, normal, with zeros, of wide range, nearly equal, antiferromagnetic."""
    signs = random.choice([-1.0, 1.0], number)
    kinds = [
        signs,
        random.normal(size=number),
        random.integers(-3, 4, number).astype(float),
        signs * 10 ** random.uniform(-6, 6, number),
        signs * (1 + 1e-9 * random.integers(0, 4, number)),
        -np.ones(number),
        random.normal(size=number) * 10.0 ** random.integers(-12, 12),
    ]
    return kinds[random.integers(len(kinds))]
