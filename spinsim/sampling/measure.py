"""Engines in a changing field or shown by their best slices; present and lowest energies and configurations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.choosing import choose_packing
from spinsim.engine.layouts.unpacked import total_energies
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.protocols import Engine, KeptSpins, Spins, bits_of
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.graph import colouring
from spinsim.model.ising import Ising
from spinsim.model.trotter import check_gamma_step, coupling_in_time
from spinsim.packing import Bits, Packing, of_replica_packed, packed_spins, unpacked_spins


class InField:
    """An ``Engine`` of a model in a uniform field that can be changed at any time.

    It wraps an engine of the model in the present field. A new engine takes over the configurations and the count of
    half-sweeps of the previous one: acceptance depends on the field, random numbers do not.

    Args:
        make: Returns an engine of another model with as many replicas of as many samples on the same device.

    Attributes:
        field: The present uniform field, added to the model's own.
    """

    def __init__(self, engine: Engine, make: Callable[[Ising], Engine]) -> None:
        self._model, self._engine, self._make = engine.model, engine, make
        self.field = 0.0

    def check(self, field: float) -> Ising:
        """Return the model in a field; refuse a field so large that its couplings would be rounded."""
        model = self._model.in_field(field)
        model.field_changes = field != 0
        if _is_rounded(model, self._model):
            raise InputError(
                f"field {field:g} is so large that the couplings of {model.name} would be rounded away beside it: "
                "give a smaller one"
            )
        return model

    def set_field(self, field: float) -> None:
        if field == self.field:
            return
        model, saved = self.check(field), self._engine.snapshot()
        del self._engine  # frees memory for the next one
        self._engine, self.field = self._make(model), field
        self._engine.restore(saved)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_engine"], name)


def _is_rounded(model: Ising, without: Ising) -> bool:
    """Return True if a field changes the rounded sizes of the couplings of a model.

    In a changing field, two kinds of graphs get another update with the same layout of spins: graphs of large degrees,
    and graphs whose couplings and fields are few units. All other models keep their update.
    """
    if choose_packing(model) == choose_packing(without):
        return False
    if model.terms is not None or without.weights is None:
        return True
    return model.weights is None or not np.array_equal(model.weights[1], without.weights[1])


_COPIES: Final = 4  # copies of a block's spins, one byte each, while its slices are evaluated


class BestSlices:
    """An ``Engine`` of a space-time model in the role of an engine of space: each replica shows its best slice.

    A replica of ``trotter(space, slices, by_term=True)`` is a ring of slices, each a configuration of space. The weight
    exp(- K_s E_s - K_tau E_tau) is that of the quantum model in the transverse field Gamma at the inverse temperature
    beta, with K_s = beta / slices and K_tau = -ln tanh(Gamma K_s) / 2 (model/trotter.py). As Gamma falls, the coupling
    of neighbouring slices grows: simulated quantum annealing.

    Sweeps, states and random numbers are those of the space-time engine. Energies, magnetisations and configurations
    are those of the slice of lowest energy, the first among equals.

    Source: R. Martonak, G. E. Santoro, E. Tosatti, Phys. Rev. B 66, 094203 (2002).

    Args:
        engine: Engine of the space-time model; for a changing uniform field, an ``InField`` of it.
        threads: CPU threads that search for the best slices, None for all.

    Attributes:
        model: The model in space, in the present uniform field.
        field: The present uniform field, added to the model's own.
        engine: The given engine.
        slices: Number of slices in time.
        gamma: The present transverse field.
        mean_energy: Mean energy over the slices of each replica at the last count, in the unit of the couplings,
            (samples, replicas).
    """

    def __init__(self, space: Ising, engine: Engine | InField, threads: int | None = None) -> None:
        self.model, self.engine, self.slices, self.gamma = space, engine, engine.model.graph.slices, np.inf
        self._space, self.field = space, 0.0
        self._threads, self._lines = Threads(threads), engine.model.graph.world_lines()
        self._first = np.flatnonzero(colouring(space.graph) == 0) if space.is_bipartite else np.empty(0, np.int64)
        shape = space.samples, engine.replicas
        at_once = min(self._threads.count, space.samples * packing.block_count(engine.replicas))
        needed = space.sites * (space.samples * engine.replicas + at_once * _COPIES * packing.LANES * self.slices)
        require(needed, f"finding the best of {self.slices} slices of {space.name}", "take fewer replicas or slices")
        self.mean_energy = np.empty(shape)
        self._best = np.empty((*shape, space.sites), np.int8)

    def check(self, gamma: float, temperature: float) -> None:
        """Refuse a transverse field that decouples the slices, or at which nothing would move."""
        check_gamma_step(gamma, 1 / temperature / self.slices)

    def set_field(self, field: float) -> None:
        """Set the uniform field of all slices, before ``set_beta``."""
        if field != self.field:
            cast("InField", self.engine).set_field(field)
            self.field, self.model = field, self._space.in_field(field)

    def set_gamma(self, gamma: float) -> None:
        """Set the transverse field for the next ``set_beta``."""
        self.gamma = gamma

    def set_beta(self, beta: float) -> None:
        """Set the inverse temperature of the quantum model, in the present transverse field."""
        step = beta / self.slices
        self.engine.set_beta([[step, coupling_in_time(self.gamma, step)]])

    def counts(self) -> Counts:
        """Return energy and magnetisation of the best slice of every replica."""
        words = np.asarray(self.engine.snapshot()["spins"], np.uint64)
        totals = np.zeros((3, self.model.samples, self.replicas), np.int64)
        blocks = range(words.shape[1])
        self._threads.run(partial(self._count, words, totals, k, b) for k in range(self.model.samples) for b in blocks)
        return Counts(*totals)

    def _count(self, words: npt.NDArray[np.uint64], totals: npt.NDArray[np.int64], sample: int, block: int) -> None:
        model, first = self.model, block * packing.LANES
        mine = slice(first, min(first + packing.LANES, self.replicas))
        width = mine.stop - first
        spins = packing.unpack(words[sample : sample + 1, block : block + 1], width)[0][self._lines]
        energy = np.zeros((1, self.slices * width), np.int64)
        total_energies(
            np.ascontiguousarray(spins.reshape(model.sites, -1)), model.graph.edges, model.bonds,
            model.integer_couplings(sample), model.integer_fields(sample), energy, np.zeros(energy.size, np.int64),
        )  # fmt: skip
        by_slice = energy.reshape(self.slices, width)
        best = by_slice.argmin(axis=0)
        chosen = spins[:, best, np.arange(width)]
        self._best[sample, mine] = chosen.T
        self.mean_energy[sample, mine] = by_slice.sum(axis=0) * (model.quantum / self.slices)
        totals[0, sample, mine] = by_slice.min(axis=0)
        totals[1, sample, mine] = chosen.sum(axis=0, dtype=np.int64)
        if self._first.size:
            totals[2, sample, mine] = 2 * chosen[self._first].sum(axis=0, dtype=np.int64) - totals[1, sample, mine]

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """Return the best slice of a replica at the last count, shape (sites,), +1 or -1."""
        return np.array(self._best[sample, replica])

    copied_bits = None  # slices are evaluated on the host

    def bits(self, sample: int, replica: int) -> Bits:
        return packed_spins(self._best[sample, replica])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["engine"], name)


class Measurement(NamedTuple):
    """Totals of every replica, each of shape (samples, replicas)."""

    energy: npt.NDArray[np.float64]
    """Total energy, ``float64``, exact: an integer number of the model's quanta below 2^53."""
    magnetization: npt.NDArray[np.int64]  # sum of spins, ``int64``
    staggered_magnetization: npt.NDArray[np.int64]
    """Sum over the first sublattice minus that over the second, ``int64``; 0 if the model is not bipartite."""


def measure(engine: Engine | InField | BestSlices) -> Measurement:
    counts = engine.counts()
    energy = counts.energy * np.float64(engine.model.quantum)
    return Measurement(energy, counts.magnetization, counts.staggered_magnetization)


class BestOfEach:
    """Lowest energy of every replica and its configuration, the first one met among equals, as bits."""

    def __init__(self, engine: Engine | InField | BestSlices) -> None:
        samples, sites = engine.model.samples, engine.model.sites
        self._sites = sites
        require(3.0 * samples * engine.replicas * -(-sites // 8), "the lowest state of every replica")
        self.energy = np.full((samples, engine.replicas), np.inf)
        self.bits: Bits = np.zeros((samples, engine.replicas, -(-sites // 8)), np.uint8)

    def update(self, energy: npt.NDArray[np.float64], engine: Engine | InField | BestSlices) -> None:
        """Update from energies (samples, replicas) of the engine's present configurations."""
        lower = energy < self.energy
        if not lower.any():
            return
        find = present_bits(engine)
        for sample in np.flatnonzero(lower.any(axis=1)).tolist():
            self.bits[sample, lower[sample]] = find(sample)[lower[sample]]
        np.minimum(self.energy, energy, out=self.energy)

    def spins(self, sample: int) -> npt.NDArray[np.int8]:
        return unpacked_spins(self.bits[sample], self._sites)


def present_spins(engine: Engine | InField | BestSlices) -> Spins:
    """Return access to the present configurations of an engine; large lattices are not unpacked to bytes."""
    return KeptSpins(engine.spins, one=engine.bits, copied=getattr(engine, "copied_bits", None))


def present_configurations(engine: Engine | InField | BestSlices) -> Callable[[int], npt.NDArray[np.int8]]:
    """Return a function from a sample to the present configurations of its replicas, +1 and -1, (replicas, sites)."""
    if engine.device_name == "cpu" and engine.packing is not Packing.SITE:  # packing to bits would be a detour
        return lambda sample: np.stack([engine.spins(sample, r) for r in range(engine.replicas)])
    find, sites = present_bits(engine), engine.model.sites
    return lambda sample: unpacked_spins(find(sample), sites)


def present_bits(engine: Engine | InField | BestSlices) -> Callable[[int], Bits]:
    """Return a function from a sample to the present configurations of its replicas, as bits.

    A GPU sends one snapshot, unless snapshots have another packing than by replicas.
    """
    if isinstance(engine, BestSlices) or engine.device_name == "cpu" or engine.packing is Packing.SITE:
        spins = present_spins(engine)
        return lambda sample: bits_of(spins, sample, engine.replicas)
    words = np.asarray(engine.snapshot()["spins"], np.uint64)
    return lambda sample: of_replica_packed(words[sample], engine.replicas)
