"""Spaces of up to 16 sites or so with ever more slices in time, from products with their transfer matrix.

T = D B D between neighbouring slices as docs/theory/transfer.md has it, in plain NumPy: the ground state, averages and
correlations in time in it, and the levels of both parities. With slices many gaps long a run has the same averages.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, eigsh

import spinsim as ss

Array = npt.NDArray[np.float64]


class GroundState:
    """The ground state of one sample without fields.

    Args:
        space: The couplings in space.
        k: The step in time.
        sample: Which of the samples.
    """

    def __init__(self, space: ss.Ising, k: float, sample: int = 0) -> None:
        self.sites, self.k, self.edges = space.sites, k, space.graph.edges
        states = np.arange(2**space.sites)
        self.spins = 2.0 * (states >> np.arange(space.sites)[:, None] & 1) - 1
        couplings = space.couplings[sample % len(space.couplings)]
        self.products = self.spins[self.edges[:, 0]] * self.spins[self.edges[:, 1]]
        bonds = couplings @ self.products
        self.energy = -bonds / space.sites
        self._diagonal = np.exp(k / 2 * (bonds - bonds.max()))
        largest, state = self._largest(self.times, 1)
        self._largest_eigenvalue, self.state = float(largest[0]), np.abs(state[:, 0])
        self.weight = self.state**2

    def times(self, vector: Array) -> Array:
        """T times a vector, up to a constant."""
        found = vector.reshape(-1) * self._diagonal
        for site in range(self.sites):
            pairs = found.reshape(-1, 2, 2**site)
            found = np.stack(
                [
                    np.exp(self.k) * pairs[:, 0] + np.exp(-self.k) * pairs[:, 1],
                    np.exp(-self.k) * pairs[:, 0] + np.exp(self.k) * pairs[:, 1],
                ],
                axis=1,
            ).reshape(-1)
        return np.asarray(found * self._diagonal)

    def _largest(self, product, count: int) -> tuple[Array, Array]:
        size = 2**self.sites
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.cos(np.arange(size) ** 2)  # whatever has something to do with all levels
        found: tuple[Array, Array] = eigsh(operator, count, which="LA", v0=start)
        return found

    def gap(self, parity: str) -> float:
        """ln(lambda_0 / lambda) of the largest lambda of a parity, of the even one the ground state's left out."""
        sign = 1 if parity == "even" else -1

        def of_parity(vector: Array) -> Array:
            vector = vector.reshape(-1)
            found = (vector + sign * vector[::-1]) / 2
            return np.asarray(found - self.state * (self.state @ found))

        values, _ = self._largest(lambda vector: of_parity(self.times(of_parity(vector))), 1)
        return float(np.log(self._largest_eigenvalue / values[0]))

    def correlations(self, operators: Array, times: int) -> Array:
        """Connected correlations at 1, 2, ..., ``times``, averaged over diagonal operators (operators, states)."""
        centred = operators - (operators @ self.weight)[:, None]
        left = centred * self.state
        right, found = left.copy(), []
        for _ in range(times):
            right = np.array([self.times(row) for row in right]) / self._largest_eigenvalue
            found.append((left * right).sum(axis=1).mean())
        return np.array(found)

    def overlap_power(self, power: int) -> float:
        """The average of the ``power``-th power of the overlap of two copies' equal slices."""
        averages = self.weight.copy()  # of all products of spins, by their bits: a Walsh transform
        for site in range(self.sites):
            pairs = averages.reshape(-1, 2, 2**site)
            averages = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 1] - pairs[:, 0]], axis=1).reshape(-1)
        bits = np.zeros(1, np.int64)
        for _ in range(power):
            bits = (bits[:, None] ^ 2 ** np.arange(self.sites)).reshape(-1)
        return float((averages[bits] ** 2).mean())
