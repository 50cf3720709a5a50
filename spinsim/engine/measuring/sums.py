"""What follows from the sums that counting kernels make of every replica: energies and magnetisations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.protocols import Counts
from spinsim.model.ising import Ising


class Linear(NamedTuple):
    """``one`` times the first of two sums, ``other`` times the second and a constant."""

    one: int
    other: int
    constant: int

    def of(self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Exact integers."""
        return self.one * one + self.other * other + self.constant


class Observables(NamedTuple):
    """What follows from the two sums that a counting kernel makes of every replica.

    Attributes:
        energy: Total energy in quanta.
        magnetization: Sum of spins.
    """

    energy: Linear
    magnetization: Linear

    def counts(self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Counts:
        """Of the two sums, (samples, replicas)."""
        return Counts(self.energy.of(one, other), self.magnetization.of(one, other))


def _of_up_and_unsatisfied(model: Ising, magnitude: int, field: int) -> Observables:
    """From the spins +1 and the unsatisfied bonds of a model of one magnitude and a uniform field."""
    ground = field * model.sites - magnitude * model.bonds  # all spins -1, all bonds satisfied
    return Observables(Linear(-2 * field, 2 * magnitude, ground), Linear(2, 0, -model.sites))
