"""Lower bounds never exceed the lowest energy, and reach it where they should."""

from __future__ import annotations

import numpy as np
import pytest
from planar import all_energies, values

import spinsim as ss
from spinsim.optimum.bounds import lower_bound
from spinsim.optimum.cycles import cycle_bounds
from spinsim.optimum.pairs import attainable_from, with_ghost
from spinsim.optimum.semidefinite import semidefinite_bounds


def models(number: int, sites: int, seed: int) -> list[ss.Ising]:
    """Random graphs with couplings and, in half of them, fields."""
    random, made = np.random.default_rng(seed), []
    for _ in range(number):
        n = int(random.integers(2, sites))
        pairs = np.column_stack(np.triu_indices(n, 1))
        pairs = pairs[random.random(len(pairs)) < random.choice([0.15, 0.3, 0.6, 1])].astype(np.int32)
        field = values(n, random) * (random.random(n) < random.choice([0.3, 1])) if random.random() < 0.5 else 0.0
        made.append(ss.Ising(ss.Graph(n, pairs), values(len(pairs), random) if len(pairs) else 0.0, field))
    return made


def test_bounds_are_never_wrong() -> None:
    tight, given = 0, models(200, 12, 1)
    for model in given:
        lowest, bound = all_energies(model).min(), lower_bound(model, 5)
        assert bound.energy <= lowest, (bound, lowest)
        tight += bound.energy == lowest
    assert tight > 130


def test_each_method_alone_is_never_wrong() -> None:
    for model in models(100, 10, 2):
        pairs, lowest = with_ghost(model), round(all_energies(model).min() / model.quantum)
        for found in [*cycle_bounds(pairs, 5), *semidefinite_bounds(pairs, 5)]:
            assert found <= lowest


def test_attainable_energies_have_the_step_of_all_states() -> None:
    for model in models(100, 10, 3):
        pairs = with_ghost(model)
        energies = np.rint(all_energies(model) / model.quantum).astype(np.int64)
        step = int(np.gcd.reduce(energies - energies[0]))
        for bound in (int(energies.min()), int(energies.min()) - 1):
            assert attainable_from(pairs, bound) == energies.min()
        assert attainable_from(pairs, int(energies.min()) + 1) == energies.min() + step


def test_an_odd_ring_has_the_known_semidefinite_value() -> None:
    """Vectors at angles 4 pi / 5: energy -5 cos(pi / 5)."""
    ring = np.array([(i, (i + 1) % 5) for i in range(5)], np.int32)
    model = ss.Ising(ss.Graph(5, ring), [-1.0, -1.0, -1.0, -1.0, -1.0 + 2.0**-30])
    assert model.quantum == 2.0**-30
    (bound,) = semidefinite_bounds(with_ghost(model), 5)
    assert bound * model.quantum == pytest.approx(-5 * np.cos(np.pi / 5), rel=1e-5)
    assert lower_bound(model, 5).energy == -3 - 2.0**-30


def test_cycles_prove_the_optimum_of_a_torus() -> None:
    """A bound that equals the energy of a state found proves both."""
    model = ss.Ising(ss.square(10), np.random.default_rng(3).choice([-1.0, 1.0], 200))
    found = ss.temper(model, [0.4, 0.6, 0.9, 1.3], sweeps=300, thermalize=0, device="cpu")
    best = float(found.best_energy.min())
    bound = lower_bound(model, 30, target=best)
    assert bound.energy == best
    assert bound.method == "frustrated cycles"
    assert bound.seconds < 30


def test_dense_couplings_have_a_semidefinite_bound() -> None:
    pairs = np.column_stack(np.triu_indices(60, 1)).astype(np.int32)
    model = ss.Ising(ss.Graph(60, pairs), np.random.default_rng(4).normal(size=len(pairs)))
    bound = lower_bound(model, 2)
    assert -0.6 * np.abs(model.couplings).sum() < bound.energy
    assert bound.method == "semidefinite"


def test_without_terms_the_bound_is_0() -> None:
    assert lower_bound(ss.Ising(ss.Graph(3, np.zeros((0, 2), np.int32))), 1).energy == 0
