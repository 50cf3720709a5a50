"""Last states of dimod's sampler: Boltzmann's distribution at a constant inverse temperature, 0 and infinity."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import spinsim as ss
from spinsim.dimod import SpinsimSampler
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.metropolis.by_replica import Annealer
from spinsim.sampling.schedules import EngineReads

READS = 4000


def at(bqm: dimod.BQM, beta: float, seed: int, **more: object) -> dimod.SampleSet:
    given = {"num_reads": READS, "num_sweeps": 60, "beta_range": [beta, beta], "answer": "last"} | more
    return SpinsimSampler(device="cpu").sample(bqm, seed=seed, **given)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_a_spin_in_a_field(vartype: str) -> None:
    bqm = dimod.BQM({"a": 1.0}, {}, 0.0, "SPIN").change_vartype(vartype, inplace=False)
    down = (at(bqm, 0.5, 1).record.sample < 1).mean()
    exact = expit(1.0)  # 0.731
    assert abs(down - exact) <= 4 * np.sqrt(exact * (1 - exact) / READS)


def test_energies_of_a_square_lattice() -> None:
    energies = at(ss.Ising(ss.square(4)).to_bqm(), 0.3, 2).record.energy
    exact = -13.505  # all 2^16 states
    assert abs(energies.mean() - exact) <= 4 * energies.std() / np.sqrt(READS)


def glass(seed: int) -> dimod.BQM:
    rng = np.random.default_rng(seed)
    pairs = {(int(i), int(j)): float(rng.normal()) for i, j in ss.square(4).edges()}
    return dimod.BQM({i: float(rng.normal()) for i in range(16)}, pairs, 0.0, "SPIN")


def scores(bqm: dimod.BQM, spins: np.ndarray, beta: float) -> np.ndarray:
    """Derivatives by beta of the logarithms of pseudolikelihoods, sum over i of ln P(s_i | others), for each read."""
    linear, (rows, columns, pairs), _ = bqm.to_numpy_vectors(variable_order=range(16))
    couplings = np.zeros((16, 16))
    np.add.at(couplings, (rows, columns), pairs)
    costs = -2 * spins * (linear + spins @ (couplings + couplings.T))  # of turning each spin
    return (costs * expit(-beta * costs)).sum(axis=1)


@pytest.mark.parametrize("beta", [0.2, 0.7])
def test_pseudolikelihood_finds_the_temperature(beta: float) -> None:
    """The estimate of dwave's utilities, with its error from the scatter of the reads (Godambe, 1960)."""
    bqm = glass(3)
    spins = at(bqm, beta, 4).samples(sorted_by=None)[:, list(range(16))].astype(float)
    found = brentq(lambda b: scores(bqm, spins, b).sum(), 0.01, 5)
    step = 1e-4
    slope = (scores(bqm, spins, found + step).sum() - scores(bqm, spins, found - step).sum()) / (2 * step)
    error = scores(bqm, spins, found).std() * np.sqrt(READS) / abs(slope)
    assert abs(found - beta) <= 4 * error


@pytest.mark.parametrize("beta", [0.2, 0.7])
def test_the_utilities_of_dwave_find_the_temperature(beta: float) -> None:
    temperatures = pytest.importorskip("dwave.system.temperatures")
    bqm = glass(5)
    found, resampled = temperatures.maximum_pseudolikelihood_temperature(
        bqm, at(bqm, beta, 6), num_bootstrap_samples=20, seed=1
    )
    assert abs(found - 1 / beta) <= 4 * np.std(resampled)


def test_last_states_are_those_of_the_engine() -> None:
    bqm = glass(7)
    last, best = (at(bqm, 0.5, 8, answer=answer, num_reads=50) for answer in ("last", "best"))
    engine = create_engine(ss.Ising.from_bqm(bqm), 50, Dynamics(8), "cpu")
    engine.set_beta(0.5)
    engine.sweep(60)
    assert (last.record.sample == np.stack([engine.spins(0, read) for read in range(50)])).all()
    assert (best.record.energy <= last.record.energy).all()
    many = SpinsimSampler(device="cpu").sample_many(
        [bqm], seed=8, num_reads=50, num_sweeps=60, beta_range=[0.5, 0.5], answer="last"
    )
    assert (many[0].record.sample == last.record.sample).all()


@pytest.mark.parametrize("model", [ss.Ising(ss.square(4)), ss.Ising.from_bqm(glass(9))])
def test_forms_agree_at_zero_and_at_the_greedy_end(model: ss.Ising) -> None:
    betas, each = np.array([0.0, 0.5, 2.0**10 / model.quantum]), np.full(3, 5)
    looks = np.ones(3, np.bool_)
    reads = [Annealer(model, 40, Dynamics(2)), EngineReads(create_engine(model, 40, Dynamics(2), "cpu"))]
    for form in reads:
        form.anneal(betas, each, looks)
    assert (reads[0].present() == reads[1].present()).all()
    assert (reads[0].states() == reads[1].states()).all()


def test_at_zero_all_states_are_alike() -> None:
    spins = at(glass(1), 0.0, 3).record.sample
    assert np.abs(spins.mean(axis=0)).max() <= 4 / np.sqrt(READS)


@pytest.mark.parametrize(
    "schedule",
    [
        {"beta_schedule": [0, 1, np.inf], "num_sweeps_per_beta": 50},
        {"beta_range": [0.1, np.inf], "num_sweeps": 500},
        {"beta_range": [0, np.inf], "num_sweeps": 500, "beta_schedule_type": "linear"},
        {"beta_range": [np.inf, np.inf], "num_sweeps": 100},
    ],
)
def test_no_turn_lowers_the_energy_after_a_greedy_end(schedule: dict) -> None:
    bqm = glass(2)
    found = SpinsimSampler(device="cpu").sample(bqm, num_reads=40, seed=1, answer="last", **schedule)
    assert found.info["beta_range"][1] == np.inf
    spins, names = found.record.sample, list(found.variables)
    for site in range(16):
        turned = spins.copy()
        turned[:, site] *= -1
        assert (bqm.energies((turned, names)) >= found.record.energy - 1e-12).all()


def test_ranges_from_zero() -> None:
    bqm, sampler = glass(4), SpinsimSampler(device="cpu")
    linear = sampler.sample(bqm, beta_range=[0, 5], beta_schedule_type="linear", seed=1)
    assert linear.info["beta_range"] == [0, 5]
    for beta in (0, 500, 1000):  # as dwave-hybrid's PopulationAnnealing asks, one after the other
        state = sampler.sample(bqm, beta_range=(beta, beta), beta_schedule_type="linear", num_sweeps=10, seed=1)
        assert state.info["beta_range"] == [beta, beta]
    with pytest.raises(ss.InputError, match="choose the type linear"):
        sampler.sample(bqm, beta_range=[0, 5])
    with pytest.raises(ss.InputError, match="answer 'worst' is unknown: choose best or last"):
        sampler.sample(bqm, answer="worst")


@pytest.mark.parametrize("bqm", [dimod.BQM("SPIN"), glass(1)])
def test_ranges_have_two_numbers_without_sweeps_too(bqm: dimod.BQM) -> None:
    for given in ({}, {"beta_range": [1, 3]}, {"beta_schedule_type": "linear"}):
        found = SpinsimSampler(device="cpu").sample(bqm, num_sweeps=0, **given)
        assert len(found.info["beta_range"]) == 2
        assert found.info["beta_range"] == given.get("beta_range", found.info["beta_range"])
