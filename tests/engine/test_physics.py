"""Equilibrium averages at constant temperature against exact values."""

from __future__ import annotations

import numpy as np
import pytest
from exact import assert_agree, enumerate_states, replica_mean

import spinsim as ss

T_C = 2 / np.log(1 + np.sqrt(2))

# Kaufman's finite tori, -e per site, and periodic chains at T = 1
TORUS = {
    (4, 2.0): 1.75538028879,
    (4, T_C): 1.56562378764,
    (4, 2.5): 1.37911648226,
    (8, 2.0): 1.74568317029,
    (8, T_C): 1.49158910744,
    (8, 2.5): 1.22232064325,
}
CHAIN = {8: 0.8176628754, 16: 0.7685692242}


def series(model: ss.Ising, temperature: float, steps: int, start: str = "random", seed: int = 1, sweeps: int = 5):
    """Energy and squared magnetisation per site (steps, samples, 1024 replicas), after 300 steps that are dropped.

    Many replicas and few steps, as a step takes the interpreter as long as all these replicas take for their sweeps;
    of the engine alone, as a run would make the tables of its one temperature at every step. Standard errors are some
    5e-4, so that a deviation of 2e-3 in a probability or an energy is seen.
    """
    engine = ss.create_engine(model, 1024, ss.Dynamics(seed=seed, start=start))
    engine.set_beta(1 / temperature)
    engine.sweep(300 * sweeps)
    energy, squared = [], []
    for _ in range(steps):
        engine.sweep(sweeps)
        counts = engine.counts()
        energy.append(counts.energy * model.quantum / model.sites)
        squared.append((counts.magnetization / model.sites) ** 2)
    return np.array(energy), np.array(squared)


# Of one seed both starts soon end in the same states, and would be the same test twice.
STARTS = pytest.mark.parametrize(("start", "seed"), [("random", 1), ("up", 2)], ids=["random", "up"])


@STARTS
def test_square_ferromagnet(start: str, seed: int) -> None:
    rows = []
    for (side, temperature), exact in TORUS.items():
        energy, _ = series(ss.Ising(ss.square(side)), temperature, 400, start, seed)
        rows.append((f"L = {side}, T = {temperature:.4f}, {start}", *replica_mean(energy[:, 0]), -exact))
    assert_agree(rows, largest_error=1e-3)


@STARTS
def test_periodic_chain(start: str, seed: int) -> None:
    rows = []
    for length, exact in CHAIN.items():
        energy, _ = series(ss.Ising(ss.chain(length)), 1.0, 600, start, seed, sweeps=10)
        rows.append((f"chain of {length}, {start}", *replica_mean(energy[:, 0]), -exact))
    assert_agree(rows, largest_error=1e-3)


MODELS = {
    "pm-j 4x4": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, seed=11),
    "pm-j 4x4 with field": lambda: ss.EdwardsAnderson(ss.square(4), seed=11, field=0.35),
    "Gaussian 4x4 with field": lambda: ss.EdwardsAnderson(
        ss.square(4), samples=2, seed=12, couplings="gaussian", field=0.4
    ),
    "odd 3x5": lambda: ss.Ising(ss.square(3, 5)),
    "odd 3x3 antiferromagnet": lambda: ss.Ising(ss.square(3), -1.0),
    "open 4x4": lambda: ss.Ising(ss.square(4, periodic=False)),
    "open odd 3x5 pm-j": lambda: ss.EdwardsAnderson(ss.square(3, 5, periodic=False), seed=13),
    "cubic 2x2x4": lambda: ss.Ising(ss.cubic(2, 2, 4)),
    "cubic 3x2x2 open Gaussian": lambda: ss.EdwardsAnderson(
        ss.cubic(3, 2, 2, periodic=False), seed=14, couplings="gaussian"
    ),
    "chain of 7": lambda: ss.Ising(ss.chain(7)),
    "site fields": lambda: ss.Ising(ss.square(4, 3), 1.0, np.linspace(-1, 1, 12)),
}


@pytest.mark.parametrize("name", MODELS)
def test_against_enumeration(name: str) -> None:
    model = MODELS[name]()
    rows = []
    for temperature in (1.2, 2.4):
        energy, squared = series(model, temperature, 300)
        for sample in range(model.samples):
            exact = enumerate_states(model, temperature, sample)
            where = f"{name}, T = {temperature}, sample {sample}"
            rows.append((f"{where}: e", *replica_mean(energy[:, sample]), exact.energy))
            rows.append((f"{where}: m^2", *replica_mean(squared[:, sample]), exact.magnetization_squared))
    assert_agree(rows)


def test_a_zero_acceptance_of_one_is_reducible() -> None:
    """Why the zero-cost rule exists: without it a chain of 8 sites from random starts misses the exact energy."""
    result = ss.anneal(ss.Ising(ss.chain(8)), np.ones(600), sweeps=5, replicas=512, zero_acceptance=1.0)
    mean, error = replica_mean(result.energy[200:, 0] / 8)
    if abs(mean + CHAIN[8]) < 10 * error:
        raise AssertionError(f"energy {mean} +- {error} should miss {-CHAIN[8]}")


def test_infinite_lattice_below_and_above_the_transition() -> None:
    """L = 256, site-packed: Onsager's energy and Yang's magnetisation at T = 2, the energy at T = 2.5."""
    rows = []
    for temperature, energy_exact, magnetization in ((2.0, 1.74556457531, 0.911319378), (2.5, 1.10607920375, None)):
        model = ss.Ising(ss.square(256))
        result = ss.anneal(model, np.full(35, temperature), sweeps=40, replicas=24, seed=3, start="up")
        rows.append((f"e at {temperature}", *replica_mean(result.energy[15:, 0] / model.sites), -energy_exact))
        if magnetization:
            m = np.abs(result.magnetization[15:, 0]) / model.sites
            rows.append((f"|m| at {temperature}", *replica_mean(m), magnetization))
    assert_agree(rows)


@pytest.mark.gpu
@pytest.mark.parametrize("lattice", [ss.square(4096), ss.square(1000)], ids=["site-packed", "replica-packed"])
def test_large_lattices_on_the_gpu(lattice: ss.Lattice) -> None:
    """Onsager's energy and Yang's magnetisation at T = 2, for which both lattices are infinite."""
    model = ss.Ising(lattice)
    result = ss.anneal(model, np.full(60, 2.0), sweeps=50, replicas=16, seed=4, start="up", device="cuda")
    m = np.abs(result.magnetization[20:, 0]) / model.sites
    assert_agree(
        [
            ("e", *replica_mean(result.energy[20:, 0] / model.sites), -1.74556457531),
            ("|m|", *replica_mean(m), 0.911319378),
        ]
    )
