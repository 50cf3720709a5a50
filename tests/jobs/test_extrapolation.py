"""Runs that differ in their slices alone: against exact diagonalisation, against known lines, and what is refused."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.runs import Axis
from spinsim.analysis.summary import Estimate
from spinsim.jobs.quantum.extrapolation import AtStep, extrapolated
from spinsim.model.trotter import first_slice, trotter

COLUMNS = {"energy": "quantum_energy_per_site", "sigma_x": "transverse_magnetization", "heat": "quantum_specific_heat"}


class Diagonalised:
    """A chain of transverse-field Ising spins, H = - sum sz sz - gamma sum sx, in sectors of parity."""

    def __init__(self, sites: int, gamma: float) -> None:
        half = np.arange(2 ** (sites - 1))  # each state with the last spin up stands for itself and its reverse
        spins = 1 - 2 * (half[:, None] >> np.arange(sites) & 1)
        bonds, self.sites = -(spins * np.roll(spins, 1, axis=1)).sum(axis=1), sites
        levels, turned = [], []
        for parity in (1, -1):
            flips = np.zeros((len(half), len(half)))
            for site in range(sites - 1):
                flips[half, half ^ (1 << site)] += 1
            flips[half, half ^ (2 ** (sites - 1) - 1)] += parity  # the last spin down is the reverse of all others
            energy, states = np.linalg.eigh(np.diag(bonds.astype(float)) - gamma * flips)
            levels.append(energy)
            turned.append((states * (flips @ states)).sum(axis=0))
        self.energy, self.turned = np.concatenate(levels), np.concatenate(turned)

    def averages(self, beta: float) -> dict[str, float]:
        """Per site at an inverse temperature."""
        weight = np.exp(-beta * (self.energy - self.energy.min()))
        weight /= weight.sum()
        mean = weight @ self.energy
        return {
            "energy": mean / self.sites,
            "sigma_x": weight @ self.turned / self.sites,
            "heat": beta**2 * (weight @ self.energy**2 - mean**2) / self.sites,
        }


def test_two_spins_are_diagonalised() -> None:
    """They have a double bond: levels -+2 and -+2 sqrt(1 + gamma^2)."""
    found = np.sort(Diagonalised(2, 0.7).energy)
    np.testing.assert_allclose(found, [-2 * np.hypot(1, 0.7), -2, 2, 2 * np.hypot(1, 0.7)])


def check_chain(sites: int, gamma: list[float], beta: float, slices: tuple[int, ...], sweeps: int, seed: int) -> None:
    space = ss.Ising(ss.chain(sites))
    length = {"sweeps": sweeps, "thermalize": sweeps // 20, "measure_every": 10, "correlation_times": 1}
    runs = [ss.quantum(space, slices=n, gamma=gamma, beta=beta, replicas=16, **length, seed=seed + n) for n in slices]
    found = ss.extrapolate(runs)
    rows, wrong = [], []
    for place, field in list(enumerate(found.gamma))[:: 3 if sites > 8 else 1]:
        exact = Diagonalised(sites, field).averages(beta)
        for name, column in COLUMNS.items():
            e = found.estimates[column]
            z = (e.value[place] - exact[name]) / e.error[place]
            rows.append(
                f"N = {sites}, beta = {beta}, Gamma = {field} {name}: {e.value[place]:.5f} +- {e.error[place]:.5f}, "
                f"exact {exact[name]:.5f}, z = {z:.2f}, p = {e.probability[place]:.2g}"
            )
            wrong += [column] * (not abs(z) <= 4)
    sys.stdout.write("\n".join([*rows, found.verdict, ""]))
    assert not wrong, "\n".join(rows)
    assert not {*COLUMNS.values()} & {*found.failing}, found.verdict


def test_a_chain_of_four_against_exact_diagonalisation() -> None:
    check_chain(4, [0.5, 0.6, 0.7, 0.8, 0.9, 1.2, 1.5, 1.8], 2.0, (12, 16, 24), 4000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("sites", [8, 12])
@pytest.mark.parametrize(("beta", "slices"), [(1.0, (8, 12, 16)), (4.0, (32, 48, 64)), (8.0, (64, 96, 128))])
def test_chains_against_exact_diagonalisation(sites: int, beta: float, slices: tuple[int, ...]) -> None:
    """From hot to nearly the ground state; of the chain of twelve three fields, as diagonalising takes long."""
    sweeps = 160_000 if beta == 8 else 40_000  # replicas walk longer along the ladder near the ground state
    check_chain(sites, [0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.8], beta, slices, sweeps, seed=100)


def made_up(slices: int, curve, error: float, samples: int = 1, seed: int = 1) -> AtStep:
    """A run whose averages are a curve in Delta tau^2 with noise, of samples that scatter 100 times as much."""
    random, points = np.random.default_rng([seed, slices]), 3
    gamma, beta, k = np.array([1.0, 2.0, 3.0]), np.full(points, 4.0), 4.0 / slices
    value = curve(k**2) + error * random.normal(size=points)
    rows = None
    if samples > 1:
        scatter = np.random.default_rng(7).normal(size=(501, points))  # the same in all runs
        rows = {"x": value + 100 * error * scatter + error * random.normal(size=(501, points))}
    estimate = Estimate(value, np.full(points, error), np.ones(points), np.ones(points, bool))
    axis = Axis("gamma", "Gamma", gamma, "the smallest Gamma")
    space = ss.EdwardsAnderson(ss.chain(3), samples=samples)
    return AtStep(axis, slices, gamma, beta, space, {"x": estimate, "link_overlap": estimate}, rows)


@pytest.mark.parametrize("samples", [1, 50])
def test_the_law_is_fitted(samples: int) -> None:
    scores, alarms = [], 0
    for seed in range(40):
        runs = [made_up(slices, lambda square: 1 + 3 * square, 1e-3, samples, seed) for slices in (8, 12, 16, 24)]
        found = extrapolated(runs)
        assert found.estimates.keys() == {"x"}
        assert found.slices == (8, 12, 16, 24)
        if samples == 1:
            e = found.estimates["x"]
            scores += [*((e.value - 1) / e.error), *((e.slope - 3) / e.slope_error)]
            alarms += bool(found.failing)
            assert ("the law holds" in found.verdict) == (not found.failing)
    if samples == 1:
        assert abs(np.std(scores) - 1) < 4 / np.sqrt(len(scores))
        assert alarms <= 4  # of 40 fits 0.4 are expected


def test_the_law_of_samples_takes_their_covariance() -> None:
    """Samples that scatter widely, but alike in all runs, leave a curve where it is: chi^2 sees it."""
    slices = (8, 12, 16, 24)
    straight = [made_up(n, lambda square: 1 + 3 * square, 1e-3, 50) for n in slices]
    bent = [made_up(n, lambda square: 1 + 3 * square + 0.5 * square**2, 1e-3, 50) for n in slices]
    assert not extrapolated(straight).failing
    assert extrapolated(bent).failing == ["x"]
    error = extrapolated(straight).estimates["x"].error
    np.testing.assert_allclose(error, 0.1, rtol=0.3)  # that of the samples stays


@pytest.mark.parametrize("samples", [2, 3, 4])
def test_few_samples_are_fitted_one_run_at_a_time(samples: int) -> None:
    """Their covariance has no inverse: each run has its own error, and the law is not tested."""
    model = ss.EdwardsAnderson(ss.square(3), samples=samples, seed=1)
    run = partial(ss.quantum, model, gamma=[1.0, 2.0], beta=1.0, sweeps=400, thermalize=50)
    found = ss.extrapolate([run(slices=slices) for slices in (4, 6, 8, 12)])
    for e in found.estimates.values():
        assert (np.isfinite(e.error) == np.isfinite(e.value)).all()
        assert np.isnan(e.probability).all()
    assert np.isfinite(found.estimates["quantum_energy_per_site"].error).all() == (samples == 4)
    assert ("take more of them than the 4 runs" if samples == 4 else "no average has an error") in found.verdict


def test_a_law_that_does_not_hold_is_said() -> None:
    runs = [made_up(slices, lambda square: 1 + square + square**2, 1e-4) for slices in (8, 12, 16, 24)]
    found = extrapolated(runs)
    assert found.failing == ["x"]
    assert found.verdict == ("the law does not hold for x: give more slices, or leave out the run with 8")
    two = extrapolated(runs[:2])
    assert np.isnan(two.estimates["x"].probability).all()
    assert "two runs draw a line and cannot test the law: give a third one" in two.verdict


def test_a_term_of_fourth_order_is_fitted() -> None:
    """Errors are calibrated, and wider than without the term; three runs cannot test it."""
    scores = []
    for seed in range(40):
        runs = [
            made_up(n, lambda square: 1 + 3 * square + 2 * square**2, 1e-3, seed=seed) for n in (4, 6, 8, 12, 16, 24)
        ]
        bent, straight = extrapolated(runs, 4), extrapolated(runs)
        assert straight.failing
        assert bent.order == 4
        e = bent.estimates["x"]
        unwidened = e.error / np.sqrt(np.maximum(1, e.chi_squared / 3))
        scores += [*((e.value - 1) / unwidened)]
        assert ("the law holds" in bent.verdict) == (not bent.failing)
    assert abs(np.std(scores) - 1) < 4 / np.sqrt(2 * len(scores))
    assert abs(np.mean(scores)) < 4 / np.sqrt(len(scores))
    three = extrapolated(runs[:3], 4)
    assert "three runs draw a curve and cannot test the law: give a fourth one" in three.verdict
    with pytest.raises(ss.InputError, match="order 3 is no power"):
        ss.extrapolate([ss.quantum(ss.Ising(ss.chain(4)), gamma=1.0, beta=1.0, slices=4, sweeps=200)] * 2, order=3)


def test_errors_are_wider_where_the_line_is_bent() -> None:
    bent, straight = (
        [made_up(n, lambda square: 1 + square + c * square**2, 1e-3) for n in (8, 12, 16, 24)]  # noqa: B023
        for c in (1.0, 0.0)
    )
    of_bent, of_straight = (extrapolated(runs).estimates["x"] for runs in (bent, straight))
    expected = of_straight.error / np.sqrt(np.maximum(1, of_straight.chi_squared / 2))  # of the runs' errors alone
    np.testing.assert_allclose(of_bent.error, expected * np.sqrt(of_bent.chi_squared / 2))


def test_the_first_slice_is_space() -> None:
    for space in (
        ss.EdwardsAnderson(ss.square(3, 4), samples=2, seed=1, couplings="gaussian"),
        ss.EdwardsAnderson(ss.square(3, periodic=False), seed=1, field=0.25),
        ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]), [1.0, -0.5], [0.1, 0.2, 0.3]),
    ):
        models = [first_slice(trotter(space, slices, by_term=True)) for slices in (2, 4, 6)]
        for model in models:
            np.testing.assert_array_equal(model.graph.edges, models[0].graph.edges)
            np.testing.assert_allclose(model.couplings, models[0].couplings, 1e-12)
            np.testing.assert_allclose(np.sort(model.couplings), np.sort(space.couplings), 1e-12)
            np.testing.assert_allclose(model.fields, space.fields, 1e-12)
        assert sorted(map(tuple, np.sort(models[0].graph.edges))) == sorted(map(tuple, np.sort(space.graph.edges)))


LINE = "quantum --lattice chain --size 4 --gamma 0.8,1.2 --beta 1 --sweeps 4000 --thermalize 20 --quiet"


@pytest.mark.system
def test_analyze_extrapolates(do, capsys, monkeypatch) -> None:
    paths = [do(f"{LINE} --slices {slices}", f"{slices}.h5") for slices in (4, 6, 8)]
    other = do(f"{LINE} --slices 4 --field 0.5", "other.h5")
    said = run(capsys, monkeypatch, "analyze", *paths, "--columns", "quantum_energy_per_site,correlation_in_time_1").out
    assert "3 runs that differ in their slices alone, 4, 6 and 8, at Delta tau = 0:" in said
    assert "the law holds as far as chi^2 shows" in " ".join(said.split())
    assert "equal slices" not in said
    said = run(capsys, monkeypatch, "analyze", paths[0], other).out
    assert "Delta tau" not in said
    said = " ".join(run(capsys, monkeypatch, "analyze", *paths[:2], other).out.split())
    assert "two runs draw a line and cannot test the law" in said
    *_, last = json.loads(run(capsys, monkeypatch, "analyze", *paths[:2], "--json").out)
    (found,) = last["extrapolations"]
    assert found["slices"] == [4, 6]
    np.testing.assert_allclose(
        found["transverse_magnetization"], ss.extrapolate(paths[:2]).columns()["transverse_magnetization"]
    )


def test_runs_that_do_not_belong_together_are_refused() -> None:
    chain, short = ss.Ising(ss.chain(4)), {"sweeps": 160, "thermalize": 0}
    one, other, warm = (
        ss.quantum(chain, slices=slices, gamma=1.0, beta=beta, **short) for slices, beta in ((4, 1), (6, 1), (6, 0.5))
    )
    isotropic = ss.quantum(chain, 0.3, slices=4, **short)
    for runs, message in (
        ([one], "1 run cannot be extrapolated: give two or more"),
        ([one, one], "two runs have equal slices"),
        ([one, warm], "the runs differ in more than their slices"),
        ([one, isotropic], "is of the isotropic form, whose step in time sets gamma"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.extrapolate(runs)
    assert ss.extrapolate([other, one]).slices == (4, 6)
