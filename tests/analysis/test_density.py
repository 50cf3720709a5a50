"""Densities of states against exact ones, from flat histograms and from ladders of temperatures; phase transitions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, t

import spinsim as ss
from spinsim.analysis.density import DensityOfStates, from_counts
from spinsim.analysis.reweighted import free_energies
from spinsim.errors import InputError

MOST = 4  # standard errors


@cache
def exact(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Energies of the periodic square ferromagnet and ln of their exact numbers of states.

    Rows are added one by one to polynomials in the number of unsatisfied bonds, as in P. D. Beale, Phys. Rev. Lett. 76,
    78 (1996).
    """
    states = 2**side
    bits = np.arange(states)[:, None] >> np.arange(side) & 1
    within = (bits != np.roll(bits, 1, axis=1)).sum(axis=1)
    between = (bits[:, None] != bits).sum(axis=2)
    count = np.zeros((states, states, 2 * side**2 + 1), np.int64)  # (first row, last row, unsatisfied bonds)
    count[np.arange(states), np.arange(states), within] = 1
    for row in range(side):
        added = np.zeros_like(count)
        for last in range(states):
            for before in range(states):
                bonds = between[before, last] + within[last] * (row < side - 1)
                length = count.shape[2] - bonds
                if row < side - 1:
                    added[:, last, bonds:] += count[:, before, :length]
                elif last == before:  # bonds from the last row to the first one
                    for first in range(states):
                        around = between[first, last]
                        added[first, last, around:] += count[first, last, : count.shape[2] - around]
        count = added
    whole = count.sum(axis=(0, 1))
    there = np.flatnonzero(whole)
    assert whole.sum() == 2 ** (side**2)
    return 2.0 * there - 2 * side**2, np.log(whole[there])


def enumerated(model: ss.Ising, sample: int) -> tuple[np.ndarray, np.ndarray]:
    """Energies of one sample and ln of their numbers of states, from all its states."""
    spins = 2 * (np.arange(2**model.sites) >> np.arange(model.sites)[:, None] & 1) - 1
    all_samples = np.broadcast_to(spins, (model.samples, *spins.shape))
    energies, counts = np.unique(model.energy(all_samples)[sample], return_counts=True)
    return energies, np.log(counts)


def check(density: DensityOfStates, energies: np.ndarray, logs: np.ndarray, sample: int = 0) -> None:
    """All energies that were met exist, and ln g agrees within errors."""
    there = np.isfinite(density.log_density[sample])
    met = density.energy[there]
    assert np.isin(met, energies).all()
    wanted = logs[np.searchsorted(energies, met)]
    off, error = density.log_density[sample, there] - wanted, density.error[sample, there]
    known = np.isfinite(error) & (error > 0)
    assert known.mean() > 0.8
    table = np.column_stack([met, wanted, off, error])[known]
    assert (np.abs(off[known]) <= MOST * error[known]).all(), table


def test_g_of_the_smallest_square_is_that_of_enumeration() -> None:
    energies, counts = enumerated(ss.Ising(ss.square(4)), 0)
    beale, logs = exact(4)
    assert (energies == beale).all()
    np.testing.assert_allclose(counts, logs, atol=1e-12)


def flat() -> ss.MulticanonicalResult:
    return ss.multicanonical(ss.Ising(ss.square(6)), 4000, 4000, 64, seed=6)


def test_flat_histogram_of_negative_energies_and_its_averages() -> None:
    density, (energies, logs) = flat().density, exact(6)
    assert density.energy[0] == -72
    assert np.isin(energies[energies <= 0], density.energy).all()
    check(density, energies, logs)
    temperatures = np.array([0.5, 1.5, 2.0, 2.3, 3.0, 10.0])
    averages = density.averages(temperatures)
    for k, temperature in enumerate(temperatures):
        weight = logs - energies / temperature
        share = np.exp(weight - logsumexp(weight))
        mean, free = share @ energies, -temperature * logsumexp(weight)
        wanted = {
            "energy_per_site": mean / 36,
            "specific_heat": share @ (energies - mean) ** 2 / temperature**2 / 36,
            "free_energy_per_site": free / 36,
            "entropy_per_site": (mean - free) / temperature / 36,
        }
        for name, value in wanted.items():
            off, error = averages[name][k] - value, averages[f"{name}_error"][k]
            assert abs(off) <= MOST * error + 1e-12, (name, temperature, value, off, error)


@pytest.mark.parametrize("hottest", [40.0, 2.4])
def test_ladder_of_temperatures(hottest: float) -> None:
    """Absolute where the ladder reaches infinite temperature, otherwise relative to the ground states."""
    ladder = np.geomspace(1.5, hottest, 14)
    run = ss.temper(ss.Ising(ss.square(6)), ladder, 6000, 600, replicas=4, measure_every=2, seed=7)
    density, (energies, logs) = ss.density_of_states(run), exact(6)
    assert np.isinf(density.hottest) == (hottest == 40)
    check(density, energies, logs if hottest == 40 else logs - logs[0])
    if hottest < 40:
        assert "entropy_per_site" not in density.averages(2.0)
        with pytest.raises(InputError, match=r"at most 2.4"):
            density.averages([1.0, 5.0])


def test_ladder_above_the_transition_says_nothing_below() -> None:
    """Its lowest energies are met too rarely, so that averages at lower temperatures would be wrong."""
    run = ss.temper(ss.Ising(ss.square(8)), np.geomspace(4.0, 60.0, 6), 2000, 200, seed=7)
    density = ss.density_of_states(run)
    assert density.coldest == 4
    assert density.peak == density.transition == {}
    assert density.averages()["temperature"][0] == 4
    with pytest.raises(InputError, match=r"at least 4 .* a run that reaches them"):
        density.averages(2.0)


def test_ladder_of_frozen_samples_does_not_reach_infinite_temperature() -> None:
    run = ss.temper(ss.Ising(ss.square(4)), [0.05, 0.07, 0.1], 400, 40, seed=7, start="up")
    density = ss.density_of_states(run)
    assert (density.coldest, density.hottest, density.peak) == (0, 0.1, {})
    np.testing.assert_allclose(density.averages()["energy_per_site"], -2)
    with pytest.raises(InputError, match="infinite temperature cannot be reached"):
        free_energies(run)


def test_samples_in_a_field_have_their_own_densities() -> None:
    model = ss.EdwardsAnderson(ss.square(3, 4), samples=3, seed=8, field=0.5)
    density = ss.multicanonical(model, 4000, 2000, 64, seed=8).density
    for sample in range(3):
        check(density, *enumerated(model, sample), sample)
    averages = density.averages([1.0])
    each = density.probability(1.0) @ density.energy / model.sites
    np.testing.assert_allclose(averages["energy_per_site"], each.mean())
    np.testing.assert_allclose(averages["energy_per_site_error"], each.std(ddof=1) / np.sqrt(3))


def test_errors_are_calibrated() -> None:
    """Groups of 16 walkers give deviations from the exact ln g over errors that follow Student's t."""
    run = ss.multicanonical(ss.Ising(ss.square(4)), 600, 3000, 16 * 40, seed=9)
    (energies, logs), z = exact(4), []
    for group in range(40):
        some = run.record.copy()
        visits = some["histogram/visits"][:, 16 * group : 16 * (group + 1)]
        density = ss.MulticanonicalResult(run.model, some.replaced({"histogram/visits": visits})).density
        z.append(((density.log_density[0] - logs[np.searchsorted(energies, density.energy)]) / density.error[0])[:7])
    for level in (0, 3, 6):
        assert (density.energy[:7] == energies[:7]).all()
        assert kstest(np.array(z)[:, level], t(15).cdf).pvalue > 1e-3


def two_phases(sites: int = 100) -> tuple[DensityOfStates, float, float]:
    """A density of two Gaussians in E, with the temperature at which both weigh the same, and its latent heat."""
    energy = np.arange(-200.0, 1.0)
    (low, wide, few), (high, broad, many) = (-150.0, 4.0, 0.0), (-60.0, 5.0, 20.0)
    logs = np.logaddexp(few - (energy - low) ** 2 / 2 / wide**2, many - (energy - high) ** 2 / 2 / broad**2)
    # ln Z of a Gaussian is ln g - beta mean + beta^2 width^2 / 2 + ln width
    difference = (broad**2 - wide**2) / 2, low - high, many - few + np.log(broad / wide)
    beta = float(np.roots(difference).min())
    model = ss.Ising(ss.chain(sites))
    heat = (high - beta * broad**2 - low + beta * wide**2) / sites
    return from_counts(model, [(energy, np.array([logs] * 3))]), 1 / beta, heat


def test_transition_between_two_gaussians() -> None:
    density, temperature, heat = two_phases()
    found = density.transition
    np.testing.assert_allclose(found["transition_temperature"], temperature, rtol=1e-4)
    np.testing.assert_allclose(found["latent_heat_per_site"], heat, rtol=1e-2)
    assert found["ordered"] < found["valley"] < found["disordered"]
    assert found["barrier"] > 2
    assert found["transition_temperature_error"] < 1e-9


def test_a_continuous_transition_has_no_two_phases() -> None:
    density = ss.multicanonical(ss.Ising(ss.square(8)), 2000, 2000, 16, seed=3).density
    assert density.transition == {}


def refusals() -> list[tuple[Any, str]]:
    model = ss.Ising(ss.square(4))
    return [
        (
            lambda: ss.density_of_states(ss.anneal(model, [3.0, 2.0], sweeps=2, replicas=4)),
            "gives no density of states",
        ),
        (lambda: ss.multicanonical(ss.EdwardsAnderson(ss.square(8), couplings="gaussian")), "levels"),
        (lambda: ss.multicanonical(model, device="cuda"), "no code for device cuda: give device cpu"),
        (lambda: ss.multicanonical(model, replicas=1), "give 2 replicas or more"),
        (lambda: ss.multicanonical(model, sweeps=15), "multiples of measure_every = 10"),
        (lambda: flat().density.averages([0.0]), "above 0"),
    ]


@pytest.mark.parametrize("case", range(6))
def test_refusals(case: int) -> None:
    call, words = refusals()[case]
    with pytest.raises(InputError, match=words):
        call()
