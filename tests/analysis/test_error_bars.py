"""Error bars against series whose autocorrelation, means and errors are known in closed form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from exact import assert_agree
from processes import ar1, exact_tau, generator

import spinsim as ss
from spinsim.analysis.autocorrelation import autocovariance, integrated_time
from spinsim.analysis.jackknife import bin_means, bootstrap, jackknife

Array = npt.NDArray[np.float64]
NAN = float("nan")


# autocorrelation


def test_autocorrelation_is_the_sum_over_pairs() -> None:
    series = ar1(0.7, (23, 3, 2), seed=1)
    centred = series - series.mean(axis=(0, 1))
    slow = [np.mean(centred[: 23 - t] * centred[t:], axis=(0, 1)) for t in range(23)]
    np.testing.assert_allclose(autocovariance(centred), np.array(slow), rtol=0, atol=1e-13)
    time, swapped = integrated_time(series, chain_axis=1), integrated_time(series.swapaxes(1, 2), chain_axis=-1)
    np.testing.assert_array_equal(time.tau, swapped.tau)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.98])
def test_integrated_time_of_a_known_process(rho: float) -> None:
    """Each of 8 series within 4 errors, and their mean within 4 of the spread's: the errors have the right size."""
    time = integrated_time(ar1(rho, (60_000, 8), seed=2))
    assert time.trusted.all()
    assert np.all(time.window >= 6 * time.tau * 0.95)
    exact = exact_tau(rho)
    rows = [(f"tau, series {k}", time.tau[k], time.error[k], exact) for k in range(8)]
    rows.append(("mean of tau", time.tau.mean(), time.error.mean() / np.sqrt(8), exact))
    rows += [(f"mean, series {k}", time.mean[k], time.mean_error[k], 0.0) for k in range(8)]
    assert_agree(rows)
    np.testing.assert_allclose(time.error, time.tau * np.sqrt((4 * time.window + 2) / 60_000), rtol=1e-12)


def test_errors_of_tau_have_the_size_they_claim() -> None:
    time = integrated_time(ar1(0.9, (10_000, 1000), seed=3))
    assert 0.7 < time.tau.std() / time.error.mean() < 1  # on the safe side: the formula is for W much above tau


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_error_bars_of_means_cover_the_truth(rho: float) -> None:
    """1,000 series of 200 tau: one standard error covers the mean in 68 %; 5 % is 3.4 binomial deviations."""
    length = int(200 * exact_tau(rho))
    time = integrated_time(ar1(rho, (length, 1000), seed=4))
    covered = np.mean(np.abs(time.mean) <= time.mean_error)
    assert abs(covered - 0.68) <= 0.05
    assert time.trusted.mean() > 0.99


def test_chains_are_combined() -> None:
    """8 chains of 40 tau give a good tau together; 8 of 10 tau are too short however many there are."""
    time = integrated_time(ar1(0.9, (40 * 10, 50, 8), seed=5), chain_axis=2)
    assert time.tau.shape == (50,)
    exact = exact_tau(0.9)
    rows = [(f"tau, set {k}", time.tau[k], time.error[k], exact) for k in range(50)]
    rows.append(("mean of tau", time.tau.mean(), time.tau.std(ddof=1) / np.sqrt(50), exact))
    assert_agree(rows)
    assert time.trusted.mean() > 0.9
    assert not integrated_time(ar1(0.9, (10 * 10, 8), seed=5), chain_axis=1).trusted


def test_chains_that_disagree_are_not_trusted() -> None:
    chains = ar1(0.5, (2000, 4), seed=6)
    assert integrated_time(chains, chain_axis=1).trusted
    assert not integrated_time(chains + 3 * np.arange(4), chain_axis=1).trusted
    assert not integrated_time(np.tile([0.0, 1.0], (2000, 1)), chain_axis=1).trusted


def test_series_that_are_not_to_be_trusted() -> None:
    constant = integrated_time(np.full((100, 2), 0.1))
    np.testing.assert_array_equal(constant.tau, 0.5)
    np.testing.assert_array_equal(constant.mean_error, NAN)
    assert not constant.trusted.any()
    short = integrated_time(ar1(0.98, (15 * 50, 100), seed=7))
    assert not short.trusted[short.tau + short.error > 15 * 50 / 20].any()
    assert integrated_time(ar1(0.98, (5 * 50, 1000), seed=7)).trusted.mean() < 0.06
    assert not integrated_time(np.arange(1000.0)).trusted
    alternating = integrated_time(np.tile([1.0, -1.0], 500))
    assert alternating.tau == 0.5
    assert not alternating.trusted


def test_tau_does_not_depend_on_units() -> None:
    series = ar1(0.9, (5000,), seed=8)
    time, scaled = integrated_time(series), integrated_time(1e9 + 1e-3 * series)
    assert scaled.tau == pytest.approx(float(time.tau), rel=1e-3)
    assert scaled.mean_error == pytest.approx(1e-3 * float(time.mean_error), rel=1e-3)


# jackknife and bootstrap


def test_jackknife_of_a_mean_is_the_standard_error() -> None:
    data = generator(11).standard_normal((5, 40))
    found = jackknife(lambda mean: mean, data.T)
    np.testing.assert_allclose(found.value, data.mean(axis=1))
    np.testing.assert_allclose(found.error, data.std(axis=1, ddof=1) / np.sqrt(40))
    np.testing.assert_allclose(found.bias, 0, atol=1e-14)


def test_jackknife_takes_the_bias_off_a_variance() -> None:
    data = 1e6 + generator(12).standard_normal(30)
    shifted = data - data[0]
    found = jackknife(lambda mean: mean[1] - mean[0] ** 2, np.stack([shifted, shifted**2], axis=1))
    assert found.value - found.bias == pytest.approx(data.var(ddof=1), rel=1e-9)


def test_jackknife_of_a_ratio_of_means() -> None:
    """f = <x>/<y> with x, y of means 1, 2, variances 1 and correlation c: error and bias by the delta method."""
    c, count = 0.6, 400
    noise = generator(13).standard_normal((2, 500, count))
    x, y = 1 + noise[0], 2 + c * noise[0] + np.sqrt(1 - c**2) * noise[1]
    error = np.sqrt((1 - 2 * 0.5 * c + 0.25) / 4 / count)
    bias = (0.5 / 4 - c / 4) / count
    found = [jackknife(lambda mean: mean[0] / mean[1], np.stack([x[k], y[k]], axis=1)) for k in range(500)]
    values = np.array([one.value for one in found])
    errors = np.array([one.error for one in found])
    biases = np.array([one.bias for one in found])

    def row(name: str, numbers: Array, truth: float) -> tuple[str, float, float, float]:
        return name, float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(500)), truth

    assert_agree(
        [row("corrected value", values - biases, 0.5), row("bias", biases, bias), row("error", errors, error)],
    )
    assert abs(np.mean(np.abs(values - 0.5) <= errors) - 0.68) <= 0.07


def test_jackknife_of_bins_of_a_correlated_series() -> None:
    series = ar1(0.9, (100_000,), seed=14)
    found = jackknife(lambda mean: mean, bin_means(series, 100))
    assert found.error == pytest.approx(float(integrated_time(series).mean_error), rel=4 / np.sqrt(200))
    np.testing.assert_allclose(bin_means(np.arange(11.0), 3), [3, 6, 9])


def test_bootstrap_is_reproducible_and_agrees_with_the_jackknife() -> None:
    data = generator(15).standard_normal((200, 2, 3)) + 2

    def ratio(mean: Array) -> Array:
        return np.asarray(mean[0] / mean[1])

    first, again = bootstrap(ratio, data, 1000, seed=5), bootstrap(ratio, data, 1000, seed=5)
    assert first.shape == (1001, 3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[1:], bootstrap(ratio, data, 1000, seed=6)[1:])
    left_out = jackknife(ratio, data)
    np.testing.assert_array_equal(first[0], left_out.value)
    np.testing.assert_allclose(first[1:].std(axis=0, ddof=1), left_out.error, rtol=4 / np.sqrt(2 * 1000) + 2 / 200)


@pytest.mark.parametrize("temperatures", [1, 3])
def test_functions_of_many_means_give_the_same_bits(temperatures: int) -> None:
    """Also of results that follow each other in memory, whose sums NumPy adds up in another order."""
    data = generator(16).standard_normal((200, 2, temperatures)) + 2

    def ratio(mean: Array) -> Array:
        return np.stack([mean[0] / mean[1], mean[0] * mean[1]])

    def ratios(means: Array) -> Array:
        return np.moveaxis(np.stack([means[:, 0] / means[:, 1], means[:, 0] * means[:, 1]]), 0, 1)

    rows = bootstrap(ratios, data, 100, 5, takes_many=True), bootstrap(ratio, data, 100, 5)
    np.testing.assert_array_equal(*rows)
    np.testing.assert_array_equal(*(each.std(axis=0) for each in rows))
    many, one = jackknife(ratios, data, takes_many=True), jackknife(ratio, data)
    for name in ("value", "error", "bias"):
        np.testing.assert_array_equal(getattr(many, name), getattr(one, name))


# refusals


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: integrated_time([1.0]), "at least 2"),
        (lambda: integrated_time([1.0, NAN]), "nan"),
        (lambda: integrated_time([1j, 0]), "series = .* has the wrong type"),
        (lambda: integrated_time([[1.0], [1.0, 2.0]]), "series = .* has the wrong type"),
        (lambda: integrated_time(np.ones((4, 2)), chain_axis=0), "chain_axis 0"),
        (lambda: integrated_time(np.ones((4, 2)), chain_axis=2), "chain_axis 2"),
        (lambda: integrated_time(np.ones((4, 2)), chain_axis=-2), "chain_axis -2"),
        (lambda: bin_means([1, 2, 3], 4), "4 bins"),
        (lambda: jackknife(np.sum, [[1.0, 2.0]]), "at least 2"),
        (lambda: bootstrap(np.sum, [1.0, 2.0], 1, 1), "1 resamples"),
        (lambda: bootstrap(np.sum, [1.0, 2.0], 9, -1), "seed -1"),
    ],
)
def test_refusals(call, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        call()
