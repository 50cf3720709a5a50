"""Observables in physical units from an engine's exact integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.protocols import Counting


class Measurement(NamedTuple):
    """Totals of every replica, each of shape (samples, replicas).

    Attributes:
        energy: Total energy, ``float64``, exact: an integer number of the model's quanta below 2^53.
        magnetization: Sum of spins, ``int64``.
        staggered_magnetization: Sum over the first sublattice less that over the second, ``int64``; 0 where the model
            is not bipartite.
    """

    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    staggered_magnetization: npt.NDArray[np.int64]


def measure(engine: Counting) -> Measurement:
    """Energies and magnetisations of the engine's present state."""
    counts = engine.counts()
    energy = counts.energy * np.float64(engine.model.quantum)
    return Measurement(energy, counts.magnetization, counts.staggered_magnetization)
