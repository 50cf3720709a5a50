"""Energies and magnetisations from counted sums of every replica, and the sums on a GPU.

Kernels count whatever is cheapest in their layout, such as spins +1 and unsatisfied bonds. Every sum has a name, and
every observable states its weight for each sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Totals, TotalsPool
from spinsim.model.ising import Ising

Integers = npt.NDArray[np.int64]


class Counts(NamedTuple):
    """Exact integers from packed spins, each of shape (samples, replicas)."""

    energy: npt.NDArray[np.int64]  # total energy in quanta, ``int64``
    magnetization: npt.NDArray[np.int64]  # sum of spins, ``int64``
    staggered_magnetization: npt.NDArray[np.int64]  # first sublattice minus the second; 0 without sublattices
    terms: npt.NDArray[np.int64] | None = None  # energy of each term, (samples, replicas, terms); None for one term

    def of(self, samples: slice) -> Counts:
        terms = None if self.terms is None else self.terms[samples]
        return Counts(self.energy[samples], self.magnetization[samples], self.staggered_magnetization[samples], terms)

    @property
    def by_term(self) -> npt.NDArray[np.int64]:
        """Energy of each term, (samples, replicas, 1 or 2)."""
        return self.energy[..., None] if self.terms is None else self.terms


@dataclass(frozen=True)
class Linear:
    """Integer that is a weighted sum of counted sums, plus a constant."""

    weights: Mapping[str, int]  # weight of each sum, by name, in the kernels' order of sums
    constant: int  # added constant

    def of(self, sums: Mapping[str, Integers]) -> Integers:
        weighted = [weight * sums[name] for name, weight in self.weights.items() if weight]
        if not weighted:
            return np.full_like(next(iter(sums.values())), self.constant)
        total = weighted[0]
        total += self.constant
        for more in weighted[1:]:
            total += more
        return total

    @property
    def in_order(self) -> tuple[int, ...]:
        """Return the weights and the constant, as kernels take them."""
        return (*self.weights.values(), self.constant)


@dataclass(frozen=True)
class Observables:
    """Observables derived from the sums of every replica."""

    energy: Linear  # total energy in quanta
    magnetization: Linear  # sum of spins
    staggered_magnetization: Linear  # sum over the first sublattice minus the second; 0 without sublattices
    # energies of a model's terms, in quanta, if its update has two. There are four sums then: spins, each of the terms,
    # and spins of the first sublattice.
    terms: tuple[Linear, ...] = ()

    @property
    def from_energy(self) -> Observables:
        """Return the observables for a counted total energy instead of the sums of two terms."""
        spins, _, _, of_first = self.sums

        def of_spins(given: Linear) -> Linear:
            return Linear({"energy": 0} | {name: given.weights[name] for name in (spins, of_first)}, given.constant)

        energy = Linear({"energy": 1, spins: 0, of_first: 0}, 0)
        return Observables(energy, of_spins(self.magnetization), of_spins(self.staggered_magnetization))

    @property
    def sums(self) -> tuple[str, ...]:
        return tuple(self.energy.weights)

    @property
    def all(self) -> tuple[Linear, ...]:
        return self.energy, self.magnetization, self.staggered_magnetization, *self.terms

    def counts(self, sums: Mapping[str, Integers]) -> Counts:
        """Return energies and magnetisations from sums (samples, replicas) by name."""
        energy, magnetization, staggered, *terms = (each.of(sums) for each in self.all)
        return Counts(energy, magnetization, staggered, np.stack(terms, axis=-1) if terms else None)


def observables_of_spins(sums: tuple[str, ...], sites: int, first: int, *terms: Linear) -> Observables:
    """Create observables from counted sums: ``up`` counts the spins +1, ``up_first`` those of the first sublattice.

    Args:
        sums: Names of all sums, in the kernels' order.
        sites: Number of counted sites.
        first: Sites of the first sublattice, 0 if the model is not bipartite.
        terms: Energy of each term in quanta, with weights of the sums that it depends on.
    """

    def linear(constant: int, weights: Mapping[str, int]) -> Linear:
        return Linear({**dict.fromkeys(sums, 0), **weights}, constant)

    there, of_terms = 1 if first else 0, tuple(linear(term.constant, term.weights) for term in terms)
    total = {name: sum(term.weights[name] for term in of_terms) for name in sums}
    return Observables(
        energy=linear(sum(term.constant for term in terms), total),
        magnetization=linear(-sites, {"up": 2}),
        staggered_magnetization=linear(there * (sites - 2 * first), {"up": -2 * there, "up_first": 4}),
        terms=of_terms if len(terms) > 1 else (),
    )


def of_up_and_unsatisfied(sites: int, bonds: int, magnitude: int, field: int, first: int) -> Observables:
    """Use spins +1, unsatisfied bonds of |J| = ``magnitude``, and spins +1 of the first sublattice, in a field."""
    ground = field * sites - magnitude * bonds  # all spins -1, all bonds satisfied
    energy = Linear({"up": -2 * field, "unsatisfied": 2 * magnitude}, ground)
    return observables_of_spins(("up", "unsatisfied", "up_first"), sites, first, energy)


def of_energy_and_down(model: Ising) -> Observables:
    """Use the total ``energy`` in quanta and the number of spins -1, ``down``, of models without sublattices."""
    none = {"energy": 0, "down": 0, "down_first": 0}
    return Observables(Linear(none | {"energy": 1}, 0), Linear(none | {"down": -2}, model.sites), Linear(none, 0))


class CudaCounting:
    """Sums of one engine's present state, (sums, samples, ...), replicas in order.

    A kernel that makes many rounds may store the sums of its final state. They replace a new count until a sweep
    follows.
    """

    def __init__(
        self, stream: Any, observables: Observables, shape: tuple[int, ...], replicas: int,
        add: Callable[[tuple[int, ...]], None],
    ) -> None:  # fmt: skip
        self.observables, self.shape, self.add, self._replicas = observables, shape, add, replicas
        self._totals = TotalsPool(stream)
        self._left: Totals | None = None
        self._left_at = -1

    @property
    def stride(self) -> int:
        """Distance from one sample's sums to the next sample's."""
        return int(np.prod(self.shape[2:]))

    def room(self) -> tuple[int, ...]:
        """Addresses where a kernel may store the sums of its final state."""
        if self._left is None:
            self._left = self._totals.reserve(self.shape)
        return self._left.parts

    def left_at(self, half_sweep: int) -> None:
        """Note that a kernel stores its sums after ``half_sweep`` half-sweeps."""
        self._left_at = half_sweep

    def forget(self) -> None:
        """Discard stored sums, because the state has changed."""
        self._left_at = -1

    def claim(self, half_sweep: int) -> Totals:
        """Return the sums of the present state, which is the one after ``half_sweep`` half-sweeps."""
        if self._left is not None and self._left_at == half_sweep:
            totals, self._left, self._left_at = self._left, None, -1
        else:
            totals = self._totals.reserve(self.shape)
            self.add(totals.parts)
        return totals

    def give_back(self, totals: Totals) -> None:
        """Take back sums that a kernel launched just before has read and cleared."""
        self._totals.give_back(totals)

    def begin(self, half_sweep: int) -> Callable[[], Counts]:
        fetched, names = self._totals.fetch(self.claim(half_sweep)), self.observables.sums

        def counts() -> Counts:
            sums = fetched().reshape(len(names), self.shape[1], -1)[..., : self._replicas]
            return self.observables.counts(dict(zip(names, sums, strict=True)))

        return counts
