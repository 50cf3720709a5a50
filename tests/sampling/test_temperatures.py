"""The range of temperatures of problems that are given none, and ladders around transitions."""

from __future__ import annotations

import numpy as np
import pytest
from penalties import FAMILIES, at_most_one, independent_set

import spinsim as ss
from spinsim.inputs.texts import COLD_SHARE, HOT_ACCEPTANCE, T_START, T_STOP
from spinsim.sampling.descents import descended, local_minima
from spinsim.sampling.temperatures import (
    automatic_temperatures,
    transition_temperature,
)


def random_graph(sites: int, bonds: int, seed: int) -> ss.Ising:
    random = np.random.default_rng(seed)
    ends = np.stack([random.permutation(sites)[:2] for _ in range(bonds)])
    return ss.Ising(ss.Graph(sites, ends), random.normal(size=bonds), random.normal(size=sites))


def zero_descent(model: ss.Ising) -> float:
    return descent(model, np.full(model.sites, -1, np.int8))


def descent(model: ss.Ising, start: np.ndarray) -> float:
    """Energy at the end of a descent, by the plain definition."""
    spins = start.copy()
    energy = float(model.energy(spins[None])[0])
    lowered = True
    while lowered:
        lowered = False
        for site in range(model.sites):
            spins[site] *= -1
            other = float(model.energy(spins[None])[0])
            if other < energy:
                energy, lowered = other, True
            else:
                spins[site] *= -1
    return energy


def test_descents_end_in_local_minima_from_the_zero_state_first() -> None:
    model = random_graph(12, 30, 1)
    minima = local_minima(model, 0, 9)
    assert minima.costs.shape == (12, 9)
    assert (minima.costs >= 0).all()
    assert minima.energies[0] * model.quantum == pytest.approx(zero_descent(model), abs=1e-12)
    states = 2 * (np.arange(2**12)[:, None] >> np.arange(12) & 1).astype(np.int8) - 1
    energies = model.energy(states.T[None])[0]
    turned = (states.T * np.where(np.arange(12) == i, -1, 1)[:, None].astype(np.int8) for i in range(12))
    flipped = np.stack([model.energy(each[None])[0] for each in turned])
    costs = np.rint((flipped - energies) / model.quantum)
    lowest = {(round(e / model.quantum), tuple(c)) for e, c in zip(energies, costs.T, strict=True) if (c >= 0).all()}
    assert {(round(e), tuple(c)) for e, c in zip(minima.energies, minima.costs.T, strict=True)} <= lowest


def test_descents_of_given_states_end_where_plain_ones_do() -> None:
    model = random_graph(30, 80, 5)
    states = np.where(np.random.default_rng(6).random((7, 30)) < 0.5, 1, -1).astype(np.int8)
    for state, end in zip(states, descended(model, 0, states), strict=True):
        assert float(model.energy(end[None])[0]) == pytest.approx(descent(model, state), abs=1e-12)


def test_the_range_is_that_of_its_definition() -> None:
    model = random_graph(40, 100, 2)
    hot, cold, _ = automatic_temperatures(model)
    minima = local_minima(model, 0, 24)
    costs = minima.costs[minima.costs > 0] * model.quantum
    above = np.sort(minima.energies - minima.energies.min())[:12].mean() * model.quantum
    assert np.exp(-costs / hot).mean() == pytest.approx(HOT_ACCEPTANCE, rel=0.03)
    assert (costs * np.exp(-costs / cold)).sum() / 24 == pytest.approx(COLD_SHARE * above, rel=0.1)


def test_the_range_scales_with_the_couplings_and_knows_no_device() -> None:
    model = random_graph(40, 100, 3)
    small = ss.Ising(model.graph, model.couplings[0] / 1024, model.fields[0] / 1024)
    assert automatic_temperatures(small)[:2] == pytest.approx(np.array(automatic_temperatures(model)[:2]) / 1024, 0.01)


def test_the_last_temperature_does_not_depend_on_penalties() -> None:
    cold = [automatic_temperatures(at_most_one(6, 10, penalty, 4)).cold for penalty in (1e2, 1e4, 1e6)]
    assert max(cold) < 1.2 * min(cold)
    assert max(cold) < 5 < 20


def test_lattices_and_problems_in_which_nothing_costs() -> None:
    lattice = ss.Ising(ss.square(8), 2.0)
    scale = lattice.energy_scale
    assert automatic_temperatures(lattice)[:2] == (T_START * scale, T_STOP * scale)
    assert automatic_temperatures(ss.Ising(ss.Graph(2)))[:2] == (T_START, T_STOP)


def test_the_usual_range_of_couplings_of_one_size() -> None:
    glass = ss.EdwardsAnderson(ss.square(20), seed=3)
    graph = ss.Ising(ss.Graph(400, glass.graph.edges), glass.couplings[0])
    hot, cold, has_gap = automatic_temperatures(graph)
    assert 2 < hot < 3
    assert 0.3 < cold < 0.7
    assert has_gap


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("call", [ss.anneal, ss.temper])
def test_defaults_find_no_worse_than_a_descent_from_the_zero_state(family: str, call) -> None:  # type: ignore[no-untyped-def]
    for seed in range(2):
        model = FAMILIES[family](seed)
        reached = zero_descent(model)
        if call is ss.anneal:
            assert call(model).best_energy.min() <= reached
        else:
            assert call(model, target=reached + model.offset, time_limit=60).search.is_met


@pytest.mark.parametrize("penalty", [1e2, 1e4, 1e6])
def test_penalties_are_met_by_every_replica_of_a_default_anneal(penalty: float) -> None:
    model = at_most_one(6, 10, penalty, 5)
    result = ss.anneal(model)
    assert result.best_energy.min() + model.offset == -120  # the first of each group
    assert (result.best_energy + model.offset < -60).all()  # two of a group would cost at least 100 - 20


def test_independent_sets_by_defaults_are_the_largest() -> None:
    for seed in range(3):
        model = independent_set(16, 0.4, 100.0, seed)
        states = (2 * (np.arange(2**16)[:, None] >> np.arange(16) & 1) - 1).astype(np.int8)
        lowest = model.energy(states.T[None]).min()
        assert ss.anneal(model, steps=20, sweeps=5).best_energy.min() == lowest
        assert ss.temper(model, sweeps=100, thermalize=50).best_energy.min() == lowest


def test_a_quantum_anneal_has_fields_of_the_same_range() -> None:
    model = independent_set(20, 0.4, 100.0, 1)
    usual = automatic_temperatures(model)
    result = ss.anneal(model, quantum=True, steps=3, sweeps=1, replicas=2, slices=4)
    assert result.gamma is not None
    assert result.gamma[[0, -1]] == pytest.approx(usual[:2])
    assert 4 * result.temperature == pytest.approx(usual.hot / 3)  # of a slice


TRANSITIONS = {
    "square": (ss.Ising(ss.square(8)), 2 / np.log(1 + np.sqrt(2))),
    "square antiferromagnet": (ss.Ising(ss.square(8), -2.0), 4 / np.log(1 + np.sqrt(2))),
    "triangular": (ss.Ising(ss.triangular(6)), 4 / np.log(3)),
    "honeycomb": (ss.Ising(ss.honeycomb(6)), 2 / np.log(2 + np.sqrt(3))),
    "cubic": (ss.Ising(ss.cubic(6)), 4.511523),
}


@pytest.mark.parametrize(("model", "exact"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_transitions_of_lattices(model: ss.Ising, exact: float) -> None:
    assert transition_temperature(model) == pytest.approx(exact, rel=1e-5)


def test_missing_bonds_and_weaker_axes_lower_the_transition() -> None:
    whole = ss.Ising(ss.square(32))
    bonds = whole.bonds
    present = np.random.default_rng(7).random(bonds) < 0.8
    diluted = transition_temperature(ss.Ising(ss.square(32), present.astype(np.int8)))
    assert diluted is not None
    assert 1.3 < diluted < 1.8  # 1.5 or so at 20 % of missing bonds
    weak = np.where(np.arange(bonds) % 2, 0.5, 1.0)
    along = transition_temperature(ss.Ising(ss.square(32), weak))
    assert along == pytest.approx(1.641018, rel=0.05)  # sinh(2 / T) sinh(1 / T) = 1
    few = np.random.default_rng(7).random(bonds) < 0.2
    assert transition_temperature(ss.Ising(ss.square(32), few.astype(np.int8))) is None


@pytest.mark.parametrize(
    "model",
    [
        ss.Ising(ss.chain(8)),
        ss.EdwardsAnderson(ss.square(8)),
        ss.Ising(ss.triangular(6), -1),
        ss.Ising(ss.square(4), 0),
    ],
    ids=["chain", "glass", "frustrated", "without couplings"],
)
def test_models_without_a_transition_that_is_known(model: ss.Ising) -> None:
    assert transition_temperature(model) is None


def test_default_ladders_straddle_the_transition() -> None:
    for model, exact in TRANSITIONS.values():
        ladder = ss.temper(model, sweeps=10, thermalize=0).temperature
        assert ladder[0] < 0.8 * exact < 1.2 * exact < ladder[-1]
