"""Single-spin dynamics by name: the exact law of small systems after some sweeps, and an oracle's bits."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import spinsim as ss
from spinsim import rng
from spinsim.engine.moves.single_spin import CHECKERBOARD, DYNAMICS, SingleSpin
from spinsim.model.graph import colouring

NAMES = [name for name in DYNAMICS if name != CHECKERBOARD]
SMALL = ss.EdwardsAnderson(ss.square(2, 3), seed=4, field=0.25)
STATES = 2 * (np.arange(64)[:, None] >> np.arange(6) & 1) - 1
BETA, ZERO = 0.7, 0.8


def probability(cost: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
    if "heat-bath" in name:
        return 1 / (1 + np.exp(BETA * cost))
    return np.where(cost == 0, ZERO, np.exp(-BETA * np.maximum(cost, 0)))


def sites_in_order(model: ss.Ising, name: str) -> npt.NDArray[np.int64] | None:
    if name.startswith(CHECKERBOARD):
        return np.argsort(colouring(model.graph), kind="stable")
    return np.arange(model.sites) if name.startswith("typewriter") else None


def exact_law(model: ss.Ising, name: str, sweeps: int) -> npt.NDArray[np.float64]:
    """Probability of each state after some sweeps from all spins up, from the transition matrices of the sites."""
    energy, flips = model.energy(STATES.T[None])[0], []
    for site in range(6):
        to = np.arange(64) ^ 1 << site
        p = probability(energy[to] - energy, name)
        matrix = np.diag(1 - p)
        matrix[np.arange(64), to] = p
        flips.append(matrix)
    order = sites_in_order(model, name)
    sweep = np.linalg.matrix_power(sum(flips) / 6, 6) if order is None else reduce(np.matmul, (flips[i] for i in order))
    weight = np.exp(-BETA * energy)
    np.testing.assert_allclose((weight / weight.sum()) @ sweep, weight / weight.sum(), atol=1e-14)  # Boltzmann's
    return np.linalg.matrix_power(sweep, sweeps)[-1]


@pytest.mark.parametrize("model", [SMALL, ss.EdwardsAnderson(ss.square(2, 3), seed=4)], ids=["field", "no-field"])
@pytest.mark.parametrize("name", NAMES)
def test_the_law_after_some_sweeps_is_exact(name: str, model: ss.Ising) -> None:
    replicas = 16_000
    own = ss.Simulation(
        model, 1 / BETA, replicas, seed=6, start="up", zero_acceptance=ZERO, dynamics=name, device="cpu"
    )
    for sweeps in (1, 3):
        own.sweep(sweeps - own.sweeps)
        law = exact_law(model, name, sweeps)
        state = ((own.spins()[0] > 0) << np.arange(6)).sum(axis=1)
        seen = np.bincount(state, minlength=64) / replicas
        z = (seen - law) / np.sqrt(np.maximum(law * (1 - law), 1e-12) / replicas)
        assert np.abs(z[law > 20 / replicas]).max() < 4, z
        energy = model.energy(STATES.T[None])[0]
        spread = np.sqrt(law @ energy**2 - (law @ energy) ** 2)
        assert abs(own.energy.mean() - law @ energy) < 4 * spread / np.sqrt(replicas)


def oracle(model: ss.Ising, spins: npt.NDArray[np.int8], name: str, sweep: int, seed: int) -> None:
    """A sweep of (samples, replicas, sites) in plain NumPy, all replicas side by side."""
    samples, replicas, sites = spins.shape
    k, r = np.arange(samples)[:, None], np.arange(replicas)
    order, energy = sites_in_order(model, name), model.energy
    for attempt in range(sites):
        words = rng.draw(
            seed, rng.Stream.SINGLE_SPIN, group=attempt, sample=k, block=r // 128, half_sweep=sweep, plane=r % 128
        )
        drawn = [[int(a) + (int(b) << 32) for a, b in zip(*row, strict=True)] for row in zip(*words[2:], strict=True)]
        chosen = np.array([[x * sites >> 64 for x in row] for row in drawn])
        site = chosen if order is None else np.full_like(chosen, order[attempt])
        flipped = spins.copy()
        flipped[k, r, site] *= -1
        cost = energy(flipped.transpose(0, 2, 1)) - energy(spins.transpose(0, 2, 1))
        uniform = (words[0] + words[1] * 2.0**32) / 2.0**64
        accepted = uniform < probability(cost, name)
        spins[accepted] = flipped[accepted]


@pytest.mark.parametrize("name", NAMES)
def test_spins_are_those_of_an_oracle(name: str, device: str) -> None:
    for model in (
        ss.EdwardsAnderson(ss.square(3, 4), samples=2, seed=2, couplings="gaussian", field=0.5),
        ss.EdwardsAnderson(ss.cubic(2), samples=2, seed=2),
    ):
        own = ss.Simulation(model, 1 / BETA, 130, seed=9, zero_acceptance=ZERO, dynamics=name, device=device, threads=2)
        spins = own.spins()
        own.sweep(2)
        for sweep in range(2):
            oracle(model, spins, name, sweep, 9)
        np.testing.assert_array_equal(own.spins(), spins)


def test_sweeps_go_on_after_a_stop_and_as_moves() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
    own, parts, moved = (
        ss.Simulation(model, 1.0, 5, dynamics=name, device="cpu") for name in ("typewriter", "typewriter", CHECKERBOARD)
    )
    own.sweep(5)
    parts.sweep(2)
    saved = parts.engine.snapshot()
    parts.sweep(1)
    parts.engine.restore(saved)
    parts.sweep(3)
    for _ in range(5):
        moved.apply(SingleSpin("typewriter"))
    np.testing.assert_array_equal(own.spins(), parts.spins())
    np.testing.assert_array_equal(own.spins(), moved.spins())
    own.field, own.temperature = 0.5, 0
    own.sweep(20)
    frozen = own.energy.copy()
    own.sweep(20)
    assert (own.energy <= frozen).all()
    assert own.sweeps == own.engine.half_sweep == 45


def test_every_layout_of_spins_serves() -> None:
    graph = ss.Graph(130, np.column_stack(np.triu_indices(130, 1)))
    dense = ss.Ising(graph, np.arange(len(graph.edges)) % 3 - 1.0)
    for model in (ss.Ising(ss.square(256, 4)), dense, ss.EdwardsAnderson(ss.square(4), couplings="gaussian")):
        own = ss.Simulation(model, 3.0, 2, dynamics="typewriter", device="cpu")
        before = own.spins()
        own.sweep(1)
        assert (own.spins() != before).any()
        np.testing.assert_array_equal(own.energy, model.energy(own.spins().transpose(0, 2, 1)))


def test_what_is_no_dynamics_is_refused() -> None:
    with pytest.raises(ss.InputError, match="dynamics 'kawasaki' are unknown: choose one of checkerboard, typewriter"):
        ss.Simulation(SMALL, 1.0, 2, dynamics="kawasaki")
    with pytest.raises(ss.InputError, match="one temperature: give a number"):
        ss.Simulation(SMALL, [1.0, 2.0], 2, dynamics="typewriter")


@pytest.mark.parametrize(
    ("name", "magnetization"), [(CHECKERBOARD, 0.124), ("typewriter", 0.241), ("random-sequential", 0.283)]
)
def test_the_order_decides_where_a_quench_ends(name: str, magnetization: float) -> None:
    """Square antiferromagnet, L = 16, field h = 3, from random spins to T = 0.01; the numbers have three digits."""
    run: Any = ss.evolve(ss.Ising(ss.square(16), -1.0), "T=0.01 h=3 for 300", replicas=256, dynamics=name, device="cpu")
    each = run.magnetization[-1, 0] / 256
    assert abs(each.mean() - magnetization) < 4 * np.hypot(each.std() / 16, 0.0005)
