"""The verdict on equilibrium: how often it is a false alarm, how often it misses a drift."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from by_series import equilibration
from processes import ar1, rho_of

from spinsim.analysis.equilibration import FALSE_ALARMS

LENGTH = 1000


def verdicts(series: npt.NDArray[np.float64]) -> dict[str, float]:
    """Shares of the verdicts on series (length, runs, ...)."""
    found = [equilibration(series[:, k]).verdict.split(":")[0] for k in range(series.shape[1])]
    return {word: found.count(word) / len(found) for word in ("equilibrated", "not equilibrated", "undecided")}


def drift(height: float, length: int = LENGTH) -> npt.NDArray[np.float64]:
    """An approach to equilibrium within a quarter of the run."""
    return height * np.exp(-np.arange(length) / (length / 4))


def most(share: float, runs: int) -> float:
    """What a count of independent runs with this probability exceeds at 4 of its deviations."""
    return share + 4 * np.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize("samples", [1, 3, 20])
@pytest.mark.parametrize("tau", [1, 7, 15])
def test_false_alarms_are_as_rare_as_promised(tau: int, samples: int) -> None:
    runs = 200 if samples < 20 else 100
    series = ar1(rho_of(tau), (LENGTH, runs, samples), seed=100 * tau + samples)
    assert verdicts(series)["not equilibrated"] <= most(FALSE_ALARMS, runs)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 2, 3, 5, 20, 100])
@pytest.mark.parametrize("tau", [1, 7, 15])
def test_false_alarms_of_many_series(tau: int, samples: int) -> None:
    """Also of two time scales, of which the window of tau knows less."""
    runs = 2000 if samples < 20 else 500
    fast, late = (ar1(rho_of(t), (LENGTH, runs, samples), seed=1000 * t + samples) for t in (1, tau))
    for series in (late, fast + late):
        assert verdicts(series)["not equilibrated"] <= most(FALSE_ALARMS, runs)


@pytest.mark.parametrize(
    ("tau", "samples", "height", "least"),
    [(1, 1, 1, 0.6), (1, 1, 2, 0.95), (7, 1, 4, 0.6), (15, 1, 4, 0.25), (1, 3, 2, 0.95), (7, 3, 4, 0.7),
     (15, 20, 1, 0.7), (15, 20, 2, 0.98)],
)  # fmt: skip
def test_drifts_are_noticed(tau: int, samples: int, height: float, least: float) -> None:
    """By how many standard deviations the first measurement is off, and how often the verdict says so."""
    series = ar1(rho_of(tau), (LENGTH, 100, samples), seed=200 * tau + samples) + drift(height)[:, None, None]
    assert verdicts(series)["not equilibrated"] >= least


@pytest.mark.parametrize(("samples", "least"), [(1, 0.8), (20, 0.98)])
def test_long_runs_miss_few_drifts(samples: int, least: float) -> None:
    """The last half is 270 tau long; one of 33 tau shows such a drift in one series of ten."""
    series = ar1(rho_of(15), (8 * LENGTH, 50, samples), seed=samples) + drift(2, 8 * LENGTH)[:, None, None]
    assert verdicts(series)["not equilibrated"] >= least


def test_a_share_of_the_false_alarms_can_be_asked_for() -> None:
    series = ar1(0.0, (LENGTH, 600), seed=1)
    failed = [np.mean([equilibration(series[:, k], share).drifts for k in range(600)]) for share in (0.3, 0.1, 0.001)]
    assert 0.15 < failed[0] <= most(0.3, 600)  # three pairs of three bins are not independent
    assert 0.04 < failed[1] <= most(0.1, 600)
    assert failed[2] <= most(0.001, 600)


def test_the_table_of_bins() -> None:
    series = np.arange(1000.0)[:, None] + np.array([0.0, 10.0, 5.0])
    found = equilibration(series)
    np.testing.assert_array_equal(found.start[-4:], [62, 125, 250, 500])
    np.testing.assert_array_equal(found.stop[-4:], [125, 250, 500, 1000])
    assert found.start[0] == 1
    np.testing.assert_allclose(found.mean[-1], 749.5 + 5)
    np.testing.assert_allclose(found.error[-1], 5 / np.sqrt(3))
    assert "measurements [125, 250) and [250, 500)" in found.verdict  # no scatter: inf standard errors
    assert found.verdict.startswith("not equilibrated")
    assert found.drifts


def test_pairing_takes_the_scatter_of_samples_off() -> None:
    """Samples differ by far more than the drift: only sample-wise differences see it."""
    series = ar1(0.0, (1024, 20), seed=18) + 100 * np.arange(20)
    assert equilibration(series).equilibrated
    assert not equilibration(series + drift(1, 1024)[:, None]).equilibrated


def test_short_and_constant_runs_are_undecided() -> None:
    one, other = ar1(0.98, (500,), seed=19), ar1(0.0, (500,), seed=20)
    for series in (one, np.ones(1000), np.ones((1000, 1)), np.stack([one, other], axis=1)):
        found = equilibration(series)
        assert not found.equilibrated
        assert not found.drifts
        assert found.verdict.startswith("undecided")
