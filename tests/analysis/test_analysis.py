"""What follows from averages: reweighting, crossings, cumulants, overlaps, several sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from exact import assert_agree, enumerate_states
from scipy import stats

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.jackknife import bootstrap
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.reweighted import first_guess, joined
from spinsim.analysis.sizes import SizeCrossing, compare_sizes, crossing
from spinsim.analysis.summary import summarize
from spinsim.errors import InputError
from spinsim.jobs.temper.run import TemperResult
from spinsim.model.ising import Ising
from spinsim.observables.table import binder_cumulant, correlation_length

Array = npt.NDArray[np.float64]
NAN = float("nan")


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


# reweighting


def held(states: Array, keep: float, count: int, seed: int) -> Array:
    """A series of independent draws, each kept with probability ``keep``: autocorrelation keep^t."""
    draws = generator(seed)
    fresh = np.concatenate([[True], draws.random(count - 1) >= keep])
    return np.asarray(draws.choice(len(states), p=states, size=int(fresh.sum()))[np.cumsum(fresh) - 1])


def reweight(energy: Array, values: Array, beta: float, new_beta: float) -> tuple[float, float]:
    """An average at another temperature from series (steps, chains) at one, and its error."""
    one = np.array([beta])
    ladder = joined(*np.unique(energy, return_counts=True), one, first_guess(energy[..., None], one))
    weight = np.exp(ladder.log_shares(energy) - new_beta * energy)
    weight /= weight.mean()
    mean = (weight * values).mean()
    return float(mean), float(integrated_time(weight * (values - mean), chain_axis=1).mean_error)


def test_two_levels() -> None:
    """Energies 0 and 1: <E> = 1 / (1 + exp(beta)), here with correlated draws."""
    up = 1 / (1 + np.exp(0.5))
    energy = held(np.array([1 - up, up]), 0.8, 50_000, seed=20).astype(np.float64)[:, None]
    betas = (0.0, 0.3, 0.5, 0.8, 1.2)
    assert_agree([(f"<E> at {b}", *reweight(energy, energy, 0.5, b), 1 / (1 + np.exp(b))) for b in betas])
    assert reweight(energy, energy, 0.5, 0.5)[1] == pytest.approx(float(integrated_time(energy[:, 0]).mean_error))


def square_states(temperature: float) -> tuple[ss.Ising, Array, Array, Array]:
    """The 4 x 4 ferromagnet, its energies and m^2 by state, and their Boltzmann weights."""
    model = ss.Ising(ss.square(4))
    spins = (2 * (np.arange(2**16) >> np.arange(16)[:, None] & 1) - 1).astype(np.int8)
    energy = model.energy(spins[None])[0]
    weight = np.exp(-(energy - energy.min()) / temperature)
    return model, energy, (spins.sum(axis=0, dtype=np.int64) / 16) ** 2, weight / weight.sum()


def test_the_square_ferromagnet_at_nearby_temperatures() -> None:
    model, energy, squared, probability = square_states(2.6)
    states = np.stack([held(probability, 0.7, 20_000, seed) for seed in (21, 22, 23)], axis=1)
    rows = []
    for name, values in (("E", energy), ("m^2", squared)):
        for target in (2.3, 2.45, 2.6, 2.8):
            exact = enumerate_states(model, target)
            truth = 16 * exact.energy if name == "E" else exact.magnetization_squared
            rows.append(
                (f"{name} at T = {target}", *reweight(energy[states], values[states], 1 / 2.6, 1 / target), truth)
            )
    assert_agree(rows)


# crossings


def noisy(x: Array, slope: float, seed: int, noise: float = 0.02, samples: int = 100, resamples: int = 200) -> Array:
    """Bootstrapped curves of tanh(slope (x - 1)) from noisy samples."""
    data = np.tanh(slope * (x - 1)) + noise * np.sqrt(samples) * generator(seed).standard_normal((samples, len(x)))
    return bootstrap(lambda mean: mean, data, resamples, seed)


def test_crossing_of_noisy_curves() -> None:
    """Curves of slopes 1 and 2 cross at 1; the abscissae differ and overlap in part."""
    x1, x2 = np.linspace(0.5, 1.4, 8), np.linspace(0.7, 1.6, 9)
    found = [crossing(x1, noisy(x1, 1, 30 + 2 * k), x2, noisy(x2, 2, 31 + 2 * k)) for k in range(10)]
    assert not any(one.reason for one in found)
    assert_agree([(f"crossing {k}", one.value, one.error, 1.0) for k, one in enumerate(found)])
    spread = np.std([one.value for one in found], ddof=1)
    assert 0.4 < spread / np.mean([one.error for one in found]) < 1.8  # 4 deviations of a spread of 10


def test_crossings_of_cubics_are_exact() -> None:
    x = np.linspace(-2, 2, 7)
    cubic = np.tile(x**3 - x, (3, 1))
    level = np.zeros((3, 4))
    several = crossing(x, cubic, np.linspace(-1.8, 1.9, 4), level)
    np.testing.assert_allclose(several.candidates, [-1, 0, 1], atol=1e-12)
    assert np.isnan(several.value)
    assert "3 times" in several.reason
    chosen = crossing(x, cubic, np.linspace(-1.8, 1.9, 4), level, near=0.8)
    assert chosen.value == pytest.approx(1)
    assert chosen.error == pytest.approx(0, abs=1e-12)
    touching = crossing(x, np.tile(x**2, (3, 1)), x, np.zeros((3, 7)))
    assert not len(touching.candidates)


def test_no_crossing_is_said_in_words() -> None:
    x = np.linspace(0, 1, 5)
    apart = crossing(x, np.tile(x, (4, 1)), x, np.tile(x + 1, (4, 1)))
    assert np.isnan(apart.value)
    assert apart.reason.startswith("the curves do not cross between 0 and 1, which both have: give a wider range, more")
    curves = np.tile(x, (21, 1))
    flat = np.full((21, 5), 0.4)
    flat[1] = NAN
    assert crossing(x, curves, x, flat).value == pytest.approx(0.4)
    flat[2] += 1
    some = crossing(x, curves, x, flat)
    assert some.value == pytest.approx(0.4)
    assert some.caution == "10% of the resampled curves do not cross"
    assert repr(some).startswith("Crossing(value=0.")
    assert len(repr(some)) < 150
    pair = SizeCrossing(("L = 4", "L = 8"), some, 0.5, True)
    assert pair.sentence.endswith(
        "; 10% of the resampled curves do not cross: the error omits them and is too small, so give more samples or "
        "more sweeps"
    )
    flat[3:14] += 1
    lost = crossing(x, curves, x, flat)
    assert np.isnan(lost.value)
    assert lost.reason == "65% of the resampled curves do not cross: give more samples or more sweeps"


# Binder cumulant and correlation length


def test_binder_cumulant() -> None:
    np.testing.assert_allclose(binder_cumulant([1.0, 2.0, 0.0], [1.0, 12.0, 0.0]), [2 / 3, 0, NAN])


def test_correlation_length_of_a_free_field() -> None:
    """chi(k) = 1 / (4 sin^2(k/2) + 1/xi^2) has exactly this second-moment length."""
    side, xi = 12, 3.7
    momentum = ss.chain(side).momentum(0)
    chi = 1 / (4 * np.sin(np.pi / side) ** 2 + 1 / xi**2)
    np.testing.assert_allclose(correlation_length([xi**2, 1.0, 1.0], [chi, 1.0, 0.0], momentum), [xi, NAN, NAN])


# refusals


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: crossing(range(4), np.ones((3, 4)), range(4), np.ones((2, 4))), "rows"),
        (lambda: crossing([0, 1, 1, 2], np.ones((3, 4)), range(4), np.ones((3, 4))), "rise"),
        (lambda: crossing(range(4), np.ones((3, 5)), range(4), np.ones((3, 4))), "curves1"),
        (lambda: crossing(range(4), np.ones((3, 4)), range(9, 13), np.ones((3, 4))), "overlap"),
        (lambda: crossing(range(3), np.ones((3, 3)), range(4), np.ones((3, 4))), "at least 4"),
        (lambda: correlation_length(1, 0.5, 0.0), "momentum 0"),
    ],
)
def test_refusals(call, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        call()


# overlaps and sizes


def made(overlap: np.ndarray, sites: int, temperature: np.ndarray) -> TemperResult:
    """A result of two copies with given overlaps (steps, samples, 1, temperatures)."""
    steps, samples, _, temperatures = overlap.shape
    zeros = np.zeros((steps, samples, 2, temperatures))
    return TemperResult(
        model=Ising(ss.chain(sites), np.ones((samples, sites))), temperature=temperature, sweep=np.arange(1, steps + 1),
        energy=zeros, magnetization=zeros.astype(np.int64), overlap=overlap, permutation=zeros.astype(np.int64),
        attempts=np.ones((samples, 1), np.int64), accepts=np.ones((samples, 1), np.int64),
        round_trips=np.ones((samples, 2), np.int64),
    )  # fmt: skip


@pytest.mark.parametrize("samples", [1, 40])
@pytest.mark.parametrize(("sites", "bins"), [(12, 50), (13, 50), (64, 20), (63, 10)])
def test_the_overlap_distribution_of_free_spins_is_binomial(samples: int, sites: int, bins: int) -> None:
    random = generator(3)
    ups = random.binomial(sites, [0.5, 0.8], size=(6400 // samples, samples, 1, 2))
    found = overlap_distribution(made(2 * ups - sites, sites, np.array([1.0, 2.0])), bins)
    np.testing.assert_allclose((found.density * found.width).sum(axis=1), 1)
    np.testing.assert_allclose(found.q, -found.q[::-1], atol=1e-12)
    np.testing.assert_allclose(found.width, found.width[::-1])
    assert len(found.q) == min(bins, sites + 1) - (sites % 2 == 0 and min(bins, sites + 1) % 2 == 0)
    values = 2 * np.arange(sites + 1) / sites - 1
    nearest = np.abs(values[:, None] - found.q).argmin(axis=1)
    for t, p in enumerate((0.5, 0.8)):
        exact = np.bincount(nearest, stats.binom.pmf(np.arange(sites + 1), sites, p), len(found.q)) / found.width
        certain = exact * found.width * 6400 > 20
        z = (found.density[t] - exact)[certain] / found.error[t][certain]
        assert np.abs(z).max() < 4.5
    both = overlap_distribution(made(2 * ups - sites, sites, np.array([1.0, 2.0])), bins, symmetrize=True)
    np.testing.assert_allclose(both.density, (found.density + found.density[:, ::-1]) / 2)


def test_what_has_no_overlap_distribution() -> None:
    with pytest.raises(InputError, match="one copy"):
        overlap_distribution(made(np.zeros((4, 2, 0, 2), np.int64), 8, np.array([1.0, 2.0])))
    with pytest.raises(InputError, match="1 measurements in 50 bins make no distribution: give at least 16"):
        overlap_distribution(made(np.zeros((1, 2, 1, 2), np.int64), 8, np.array([1.0, 2.0])))


@pytest.fixture(scope="module")
def ferromagnets() -> list[TemperResult]:
    ladder = np.linspace(2.0, 2.6, 7)
    times = {"sweeps": 6000, "thermalize": 500, "measure_every": 5}
    return [ss.temper(Ising(ss.square(side)), ladder, replicas=4, **times) for side in (4, 8)]


def test_sizes_cross_near_the_critical_point(ferromagnets: list[TemperResult]) -> None:
    """Of the square ferromagnet, T_c = 2.269; corrections of L = 4 and 8 are below 0.03."""
    found, again = (compare_sizes(ferromagnets) for _ in range(2))
    assert [curves.name for curves in found] == ["binder_cumulant", "correlation_length_over_L"]
    for curves, others in zip(found, again, strict=True):
        (pair,), (other,) = curves.crossings, others.crossings
        assert pair.crossing.error < 0.05
        assert abs(pair.crossing.value - 2.269185) < 0.03 + 4 * pair.crossing.error
        assert (other.crossing.value, other.crossing.error) == (pair.crossing.value, pair.crossing.error)


def test_correlation_lengths_take_the_longest_axes_and_periodic_ones_alone() -> None:
    wide, open_ends = Ising(ss.square(4, 8)), Ising(ss.square(4, periodic=False))
    result = ss.temper(wide, [2.0, 4.0], sweeps=400, thermalize=100)
    found = summarize(result).estimates
    for name, sums, modes in (
        ("correlation_length_over_L", result.magnetization, result.magnetization_mode),
        ("overlap_correlation_length_over_L", result.overlap, result.overlap_mode),
    ):
        ratio = (sums.astype(float) ** 2).mean(axis=(0, 1, 2)) / modes[..., 1].mean(axis=(0, 1, 2))
        np.testing.assert_allclose(found[name].value, np.sqrt(ratio - 1) / (2 * np.sin(np.pi / 8)) / 8)
    estimates = summarize(ss.temper(open_ends, [2.0, 4.0], sweeps=400, thermalize=100)).estimates
    assert not {name for name in estimates if "length" in name}
    links = result.link_overlap.mean(axis=(0, 1, 2)) / wide.bonds
    np.testing.assert_allclose(found["link_overlap"].value, links)
