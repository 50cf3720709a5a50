"""Present state of an engine: energies and magnetisations, configurations, and the lowest that replicas have met."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, of_replica_packed, unpacked_spins
from spinsim.engine.protocols import Counting, Engine, PresentSpins, Spins, bits_of
from spinsim.machine.memory import require
from spinsim.packing import Packing
from spinsim.sampling.in_field import BestSlices, InField


class Measurement(NamedTuple):
    """Totals of every replica, each of shape (samples, replicas)."""

    energy: npt.NDArray[np.float64]
    """Total energy, ``float64``, exact: an integer number of the model's quanta below 2^53."""
    magnetization: npt.NDArray[np.int64]  # sum of spins, ``int64``
    staggered_magnetization: npt.NDArray[np.int64]
    """Sum over the first sublattice less that over the second, ``int64``; 0 where the model is not bipartite."""


def measure(engine: Counting) -> Measurement:
    counts = engine.counts()
    energy = counts.energy * np.float64(engine.model.quantum)
    return Measurement(energy, counts.magnetization, counts.staggered_magnetization)


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

    def update(self, energy: npt.NDArray[np.float64], engine: Engine | InField | BestSlices) -> None:
        """Take in energies (samples, replicas) and the present configurations of an engine, which have them."""
        lower = energy < self.energy
        if not lower.any():
            return
        find = _present_bits(engine)
        for sample in np.flatnonzero(lower.any(axis=1)).tolist():
            self.bits[sample, lower[sample]] = find(sample)[lower[sample]]
        np.minimum(self.energy, energy, out=self.energy)

    def spins(self, sample: int) -> npt.NDArray[np.int8]:
        return unpacked_spins(self.bits[sample], self._sites)


def present_spins(engine: Engine | InField | BestSlices) -> Spins:
    """Returns what finds the present configurations of an engine, of large lattices without a byte a site."""
    return PresentSpins(cast("Counting", engine))  # the others do what one does


def present_configurations(engine: Engine) -> Callable[[int], npt.NDArray[np.int8]]:
    """Returns what finds the present configurations of all replicas of a sample, +1 and -1, (replicas, sites)."""
    if engine.device_name == "cpu" and engine.packing is not Packing.SITE:  # bits would be one detour more
        return lambda sample: np.stack([engine.spins(sample, r) for r in range(engine.replicas)])
    find, sites = _present_bits(engine), engine.model.sites
    return lambda sample: unpacked_spins(find(sample), sites)


def _present_bits(engine: Engine | InField | BestSlices) -> Callable[[int], Bits]:
    """Returns what finds the present configurations of all replicas of a sample as bits.

    A GPU is asked once, for a snapshot, unless snapshots hold other words than those of the replicas.
    """
    if isinstance(engine, BestSlices) or engine.device_name == "cpu" or engine.packing is Packing.SITE:
        spins = present_spins(engine)
        return lambda sample: bits_of(spins, sample, engine.replicas)
    words = np.asarray(engine.snapshot()["spins"], np.uint64)
    return lambda sample: of_replica_packed(words[sample], engine.replicas)
