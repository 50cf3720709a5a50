"""The lowest states met where energies are measured, kept on the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.bits import States
from spinsim.engine.protocols import Spins, bits_of_one
from spinsim.model.ising import Ising


class Best:
    """Keeps the lowest energy of every replica and the configuration of the lowest of every sample.

    Args:
        samples: How many there are, if not those of the model.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
    """

    # configuration of lowest energy, ``int8`` (samples, sites); the first met among equals. ``States`` of a lattice
    # whose bonds are not listed, as in the files of its runs.
    spins: npt.NDArray[np.int8] | States

    def __init__(self, model: Ising, replicas: int, samples: int | None = None) -> None:
        rows = samples or model.samples
        self.energy = np.full((rows, replicas), np.inf)
        if model.graph.is_listed:
            self.spins = np.zeros((rows, model.sites), np.int8)
        else:
            self.spins = States(np.zeros((rows, -(-model.sites // 8)), np.uint8), model.sites)

    def update(self, energy: npt.NDArray[np.float64], spins: Spins) -> npt.NDArray[np.int64]:
        """Take in energies (samples, replicas) and their configurations; return the samples with lower ones."""
        better = np.flatnonzero(energy.min(axis=1) < self.energy.min(axis=1))
        np.minimum(self.energy, energy, out=self.energy)
        for sample in better.tolist():
            self.take(sample, int(energy[sample].argmin()), spins)
        return better

    def take(self, sample: int, replica: int, spins: Spins) -> None:
        """Take the configuration of a replica as the one of lowest energy of its sample."""
        if isinstance(self.spins, States):
            self.spins.bits[sample] = bits_of_one(spins, sample, replica)
        else:
            self.spins[sample] = spins(sample, replica)
