"""The lowest states met where energies are measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.engine.protocols import Counting, Spins


class Best:
    """Keeps the lowest energy of every replica and the configuration of the lowest of every sample.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
        spins: Configuration of lowest energy, ``int8`` (samples, sites); the first met among equals.
    """

    def __init__(self, engine: Counting) -> None:
        self.energy = np.full((engine.model.samples, engine.replicas), np.inf)
        self.spins = np.zeros((engine.model.samples, engine.model.sites), np.int8)

    def update(self, energy: npt.NDArray[np.float64], spins: Spins) -> None:
        """Take in energies (samples, replicas) and the configurations that have them."""
        before = self.energy.min(axis=1)
        np.minimum(self.energy, energy, out=self.energy)
        lowest = energy.argmin(axis=1)
        for sample in np.flatnonzero(energy.min(axis=1) < before):
            self.spins[sample] = spins(int(sample), int(lowest[sample]))
