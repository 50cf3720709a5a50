"""What follows from the sums that counting makes of every replica: energies and magnetisations.

Kernels count what is cheapest in their layout, such as spins +1 and unsatisfied bonds; every sum has a name, and
observables say what they take of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.engine.protocols import Counts
from spinsim.model.ising import Ising

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Linear:
    """An integer that is a weighted sum of counted sums, and a constant.

    Attributes:
        weights: Of each sum, by its name, in the order in which kernels take the sums.
        constant: What is added.
    """

    weights: Mapping[str, int]
    constant: int

    def of(self, sums: Mapping[str, Integers]) -> Integers:
        """Its exact values."""
        return np.asarray(sum(weight * sums[name] for name, weight in self.weights.items()) + self.constant)

    @property
    def in_order(self) -> tuple[int, ...]:
        """The weights and the constant, as kernels take them."""
        return (*self.weights.values(), self.constant)


@dataclass(frozen=True)
class Observables:
    """What follows from the sums of every replica.

    Attributes:
        energy: Total energy in quanta.
        magnetization: Sum of spins.
    """

    energy: Linear
    magnetization: Linear

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of the sums, in the order in which kernels take them."""
        return tuple(self.energy.weights)

    def counts(self, sums: Mapping[str, Integers]) -> Counts:
        """Energies and magnetisations from sums (samples, replicas) by their names."""
        return Counts(self.energy.of(sums), self.magnetization.of(sums))


def of_up_and_unsatisfied(model: Ising, magnitude: int, field: int) -> Observables:
    """From ``up``, the spins +1, and ``unsatisfied``, the unsatisfied bonds, of couplings of one magnitude.

    Args:
        model: Couplings of one magnitude and a uniform field.
        magnitude: |J| in quanta.
        field: h in quanta.
    """
    ground = field * model.sites - magnitude * model.bonds  # all spins -1, all bonds satisfied
    return Observables(
        energy=Linear({"up": -2 * field, "unsatisfied": 2 * magnitude}, ground),
        magnetization=Linear({"up": 2, "unsatisfied": 0}, -model.sites),
    )


def of_energy_and_down(model: Ising) -> Observables:
    """From ``energy``, the total energy in quanta, and ``down``, the spins -1."""
    return Observables(
        energy=Linear({"energy": 1, "down": 0}, 0),
        magnetization=Linear({"energy": 0, "down": -2}, model.sites),
    )
