"""A problem of one sample as couplings alone: fields are couplings to one more spin, the ghost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

Integers = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Couplings between nodes, which are the sites and, where there are fields, the ghost as last node."""

    nodes: int
    ends: Integers  # (bonds, 2), sorted, without parallels and loops
    couplings: Integers  # in quanta, not 0

    @property
    def size(self) -> int:
        """Sum of all |J| in quanta: no energy is below its negative."""
        return int(np.abs(self.couplings).sum())

    @property
    def keys(self) -> Integers:
        """A number for each bond, rising: its lower end times the number of nodes, plus its higher end."""
        return self.ends[:, 0] * self.nodes + self.ends[:, 1]

    def between(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Integers:
        """Return the numbers of the bonds between nodes, all of which are joined."""
        low, high = np.minimum(one, other).astype(np.int64), np.maximum(one, other)
        return np.asarray(np.searchsorted(self.keys, low * self.nodes + high))

    def energy(self, unsatisfied: npt.NDArray[np.bool_]) -> int:
        """Return the energy in quanta of spins whose unsatisfied bonds are these."""
        return 2 * int(np.abs(self.couplings[unsatisfied]).sum()) - self.size


def with_ghost(model: Ising) -> Pairs:
    """Couplings of one sample with fields as bonds to a ghost spin; parallel bonds are added up."""
    fields = model.integer_fields(0)
    sites = np.flatnonzero(fields)
    ghost = np.stack([sites, np.full_like(sites, model.sites)], axis=1)
    ends = np.sort(np.concatenate([model.graph.edges.astype(np.int64), ghost]), axis=1)
    nodes = model.sites + bool(len(sites))
    keys, couplings = ends[:, 0] * nodes + ends[:, 1], np.concatenate([model.integer_couplings(0), fields[sites]])
    if not (keys[1:] > keys[:-1]).all():
        given = couplings
        keys, place = np.unique(keys, return_inverse=True)
        couplings = np.zeros(len(keys), np.int64)
        np.add.at(couplings, place, given)
    kept = couplings != 0
    return Pairs(nodes, np.stack([keys // nodes, keys % nodes], axis=1)[kept], couplings[kept])


def attainable_from(pairs: Pairs, bound: int) -> int:
    """Return the lowest energy in quanta, at or above a bound, that differs from attained ones by their common step.

    From all spins up, flipping the spins S changes the energy by 2 [sum_S d_i - 2 sum J_ij within S] with d_i the sum
    of all couplings of i. All changes are hence multiples of twice the greatest common divisor of all d_i and 2 J_ij.
    """
    sums = np.zeros(pairs.nodes, np.int64)
    np.add.at(sums, pairs.ends.reshape(-1), np.repeat(pairs.couplings, 2))
    step = 2 * int(np.gcd(np.gcd.reduce(sums, initial=0), 2 * np.gcd.reduce(pairs.couplings, initial=0)))
    up = -int(pairs.couplings.sum())
    return up if not step else up - (up - bound) // step * step
