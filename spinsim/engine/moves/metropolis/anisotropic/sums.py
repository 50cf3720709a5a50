"""What follows from the sums that counting makes of replicas whose energy has two terms."""

from __future__ import annotations

import numpy as np

from spinsim.engine.measuring.sums import Integers, Linear, Observables
from spinsim.model.ising import Ising


def observables_of(model: Ising, magnitudes: tuple[int, ...], field: int, first: int) -> Observables:
    """From spins +1, ``up``, unsatisfied bonds of each term, and the spins +1 of the first sublattice, ``up_first``.

    Args:
        model: Bonds of two terms, each with couplings of one magnitude, and a uniform field, which belongs to term 0.
        magnitudes: |J| of each term in quanta.
        field: h in quanta.
        first: Sites of the first sublattice, 0 where the model is not bipartite.
    """
    assert model.terms is not None  # noqa: S101  (there are two)
    names = ("up", "unsatisfied_0", "unsatisfied_1", "up_first")
    ground = [-magnitude * int(np.count_nonzero(model.terms == term)) for term, magnitude in enumerate(magnitudes)]
    ground[0] += field * model.sites
    weights = np.array([[-2 * field, 2 * magnitudes[0], 0, 0], [0, 0, 2 * magnitudes[1], 0]])
    there = 1 if first else 0

    def linear(of_sums: Integers, constant: int) -> Linear:
        return Linear(dict(zip(names, of_sums.tolist(), strict=True)), constant)

    return Observables(
        energy=linear(weights.sum(axis=0), sum(ground)),
        magnetization=linear(np.array([2, 0, 0, 0]), -model.sites),
        staggered_magnetization=linear(np.array([-2 * there, 0, 0, 4]), there * (model.sites - 2 * first)),
        terms=tuple(map(linear, weights, ground)),
    )
