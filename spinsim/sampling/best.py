"""The lowest states met at the ends of steps, where energies are measured."""

from __future__ import annotations

import numpy as np

from spinsim.engine.base import Engine
from spinsim.measure import Measurement


class Best:
    """Keeps the lowest energy of every replica and the configuration of the lowest of every sample.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
        spins: Configuration of lowest energy, ``int8`` (samples, sites); the first met among equals.
    """

    def __init__(self, engine: Engine) -> None:
        self.energy = np.full((engine.model.samples, engine.replicas), np.inf)
        self.spins = np.zeros((engine.model.samples, engine.model.sites), np.int8)

    def update(self, engine: Engine, measured: Measurement) -> None:
        """Take in the engine's present state, as ``measured``."""
        before = self.energy.min(axis=1)
        np.minimum(self.energy, measured.energy, out=self.energy)
        lowest = measured.energy.argmin(axis=1)
        for sample in np.flatnonzero(measured.energy.min(axis=1) < before):
            self.spins[sample] = engine.spins(int(sample), int(lowest[sample]))
