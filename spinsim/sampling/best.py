"""The lowest states met where energies are measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, unpacked_spins
from spinsim.engine.measuring.kept_spins import bits_of
from spinsim.engine.protocols import Counting, Spins
from spinsim.machine.memory import require


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


class BestOfEach:
    """Keeps the lowest energy of every replica and its configuration.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
        bits: Configurations of lowest energy as ``spinsim.bits`` says, (samples, replicas, bytes); the first met among
            equals.
    """

    def __init__(self, engine: Counting) -> None:
        samples, sites = engine.model.samples, engine.model.sites
        self._sites = sites
        require(3.0 * samples * engine.replicas * -(-sites // 8), "the lowest state of every replica")
        self.energy = np.full((samples, engine.replicas), np.inf)
        self.bits: Bits = np.zeros((samples, engine.replicas, -(-sites // 8)), np.uint8)

    def update(self, energy: npt.NDArray[np.float64], spins: Spins) -> None:
        """Take in energies (samples, replicas) and the configurations that have them."""
        lower = energy < self.energy
        for sample in np.flatnonzero(lower.any(axis=1)).tolist():
            found = bits_of(spins, sample, self.energy.shape[1])
            self.bits[sample, lower[sample]] = found[lower[sample]]
        np.minimum(self.energy, energy, out=self.energy)

    def spins(self, sample: int) -> npt.NDArray[np.int8]:
        """Configurations of lowest energy of one sample, +1 and -1, (replicas, sites)."""
        return unpacked_spins(self.bits[sample], self._sites)
