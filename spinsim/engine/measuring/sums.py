"""Numbers that follow from counted sums of every replica: energies and magnetisations; and the sums on a GPU.

Kernels count what is cheapest in their layout, such as spins +1 and unsatisfied bonds; every sum has a name, and
observables say what they take of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.cuda.totals import Totals, TotalsInTurn
from spinsim.engine.protocols import Counts
from spinsim.model.ising import Ising

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Linear:
    """An integer that is a weighted sum of counted sums, and a constant."""

    weights: Mapping[str, int]  # of each sum, by its name, in the order in which kernels take the sums
    constant: int  # what is added

    def of(self, sums: Mapping[str, Integers]) -> Integers:
        weighted = [weight * sums[name] for name, weight in self.weights.items() if weight]
        if not weighted:
            return np.full_like(next(iter(sums.values())), self.constant)
        found = weighted[0]
        found += self.constant
        for more in weighted[1:]:
            found += more
        return found

    @property
    def in_order(self) -> tuple[int, ...]:
        """The weights and the constant, as kernels take them."""
        return (*self.weights.values(), self.constant)


@dataclass(frozen=True)
class Observables:
    """Numbers that follow from the sums of every replica."""

    energy: Linear  # total energy in quanta
    magnetization: Linear  # sum of spins
    staggered_magnetization: Linear  # sum over the first sublattice less that over the second; 0 where there are none
    # energies of the terms of a model, in quanta, where its update knows of two. There are four sums then: one of
    # spins, one of each term, and one of spins of the first sublattice.
    terms: tuple[Linear, ...] = ()

    @property
    def from_energy(self) -> Observables:
        """The same where the total energy is counted instead of sums of two terms."""
        spins, _, _, of_first = self.sums

        def of_spins(given: Linear) -> Linear:
            return Linear({"energy": 0} | {name: given.weights[name] for name in (spins, of_first)}, given.constant)

        energy = Linear({"energy": 1, spins: 0, of_first: 0}, 0)
        return Observables(energy, of_spins(self.magnetization), of_spins(self.staggered_magnetization))

    @property
    def sums(self) -> tuple[str, ...]:
        return tuple(self.energy.weights)

    def counts(self, sums: Mapping[str, Integers]) -> Counts:
        """Energies and magnetisations from sums (samples, replicas) by their names."""
        terms = np.stack([term.of(sums) for term in self.terms], axis=-1) if self.terms else None
        return Counts(
            energy=self.energy.of(sums),
            magnetization=self.magnetization.of(sums),
            staggered_magnetization=self.staggered_magnetization.of(sums),
            terms=terms,
        )


def of_up_and_unsatisfied(sites: int, bonds: int, magnitude: int, field: int, first: int) -> Observables:
    """From spins +1, ``up``, unsatisfied bonds, and the spins +1 of the first sublattice, ``up_first``.

    Args:
        sites: That are counted.
        bonds: That are counted.
        magnitude: |J| of every bond in quanta.
        field: h of every site in quanta.
        first: Sites of the first sublattice, 0 where the model is not bipartite.
    """
    ground = field * sites - magnitude * bonds  # all spins -1, all bonds satisfied
    there = 1 if first else 0
    return Observables(
        energy=Linear({"up": -2 * field, "unsatisfied": 2 * magnitude, "up_first": 0}, ground),
        magnetization=Linear({"up": 2, "unsatisfied": 0, "up_first": 0}, -sites),
        staggered_magnetization=Linear(
            {"up": -2 * there, "unsatisfied": 0, "up_first": 4}, there * (sites - 2 * first)
        ),
    )


def of_energy_and_down(model: Ising) -> Observables:
    """From the total ``energy`` in quanta and spins -1, ``down``, of models without sublattices."""
    none = Linear({"energy": 0, "down": 0, "down_first": 0}, 0)
    return Observables(
        energy=Linear({"energy": 1, "down": 0, "down_first": 0}, 0),
        magnetization=Linear({"energy": 0, "down": -2, "down_first": 0}, model.sites),
        staggered_magnetization=none,
    )


def of_energy_and_up(model: Ising, first: int) -> Observables:
    """From the total ``energy`` in quanta, spins +1, ``up``, and those of the first sublattice, ``up_first``.

    ``first`` is the number of its sites, 0 where the model is not bipartite.
    """
    there = 1 if first else 0
    return Observables(
        energy=Linear({"energy": 1, "up": 0, "up_first": 0}, 0),
        magnetization=Linear({"energy": 0, "up": 2, "up_first": 0}, -model.sites),
        staggered_magnetization=Linear(
            {"energy": 0, "up": -2 * there, "up_first": 4}, there * (model.sites - 2 * first)
        ),
    )


def of_energies_and_up(model: Ising, first: int) -> Observables:
    """From spins +1, ``up``, energies of both terms in quanta, and spins +1 of the first sublattice, ``up_first``.

    ``first`` is the number of its sites, 0 where the model is not bipartite.
    """
    one = of_energy_and_up(model, first)

    def of_spins(given: Linear) -> Linear:
        up, of_first = (given.weights[name] for name in ("up", "up_first"))
        return Linear({"up": up, "energy_0": 0, "energy_1": 0, "up_first": of_first}, given.constant)

    first_term, second = (
        Linear({"up": 0, "energy_0": of_first, "energy_1": 1 - of_first, "up_first": 0}, 0) for of_first in (1, 0)
    )
    return Observables(
        energy=Linear({"up": 0, "energy_0": 1, "energy_1": 1, "up_first": 0}, 0),
        magnetization=of_spins(one.magnetization),
        staggered_magnetization=of_spins(one.staggered_magnetization),
        terms=(first_term, second),
    )


class CudaCounting:
    """The sums of one engine's present state.

    A kernel that makes many rounds may leave the sums of the state in which it ends; they are taken instead of
    counting anew, as long as no sweep has followed.

    Args:
        stream: Of the kernels; the present one of CuPy.
        observables: What follows from the sums.
        shape: Of the sums, (sums, samples, ...), the replicas in order.
        add: Queues adding the present sums to those at addresses, in the order of ``observables.sums``.
    """

    def __init__(
        self,
        stream: Any,
        observables: Observables,
        shape: tuple[int, ...],
        replicas: int,
        add: Callable[[tuple[int, ...]], None],
    ) -> None:
        self.observables, self.shape, self.add, self._replicas = observables, shape, add, replicas
        self._totals = TotalsInTurn(stream)
        self._left: Totals | None = None
        self._left_at = -1

    @property
    def stride(self) -> int:
        """Distance of one sample's sums from the next sample's."""
        return int(np.prod(self.shape[2:]))

    def room(self) -> tuple[int, ...]:
        """Addresses where a kernel may leave the sums of the state in which it ends."""
        if self._left is None:
            self._left = self._totals.reserve(self.shape)
        return self._left.parts

    def left_at(self, half_sweep: int) -> None:
        """A kernel that ends after so many half-sweeps leaves its sums."""
        self._left_at = half_sweep

    def forget(self) -> None:
        """The state is another one: what was left does not count any more."""
        self._left_at = -1

    def take(self, half_sweep: int) -> Totals:
        """The sums of the state after so many half-sweeps, which is the present one."""
        if self._left is not None and self._left_at == half_sweep:
            totals, self._left, self._left_at = self._left, None, -1
        else:
            totals = self._totals.reserve(self.shape)
            self.add(totals.parts)
        return totals

    def give_back(self, totals: Totals) -> None:
        """Take sums back that a kernel just launched has read and cleared."""
        self._totals.give_back(totals)

    def begin(self, half_sweep: int) -> Callable[[], Counts]:
        fetched, names = self._totals.fetch(self.take(half_sweep)), self.observables.sums

        def counts() -> Counts:
            sums = fetched().reshape(len(names), self.shape[1], -1)[..., : self._replicas]
            return self.observables.counts(dict(zip(names, sums, strict=True)))

        return counts
