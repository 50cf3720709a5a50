"""Fits of cosh to many correlations at once against SciPy's, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from cosh_by_scipy import fit
from processes import generator

from spinsim.analysis.cosh_fits import decay, fit_all


def correlations(count: int, slices: int, times: np.ndarray, entries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy C(t) (count, times) of one to three levels with their covariances; noise is correlated in time."""
    random = generator(seed)
    mean, covariance = np.empty((count, len(times))), np.empty((count, len(times), len(times)))
    for k in range(count):
        gaps = np.exp(random.uniform(-3, 0)) * np.array([1, random.uniform(1.2, 4), 8])
        shares = random.dirichlet([3, 1, 1])[: random.integers(1, 4)]
        value = sum(c * decay(gap, times, slices / 2) for c, gap in zip(shares, gaps, strict=False))
        size = 10 ** random.uniform(-3, -1) * value[0]
        shape = size * (0.3 * np.eye(len(times)) + np.tril(0.7 ** np.abs(np.subtract.outer(times, times))))
        series = value + random.normal(size=(entries, len(times))) @ shape.T * np.sqrt(entries) / 4
        mean[k], covariance[k] = series.mean(axis=0), np.cov(series.T) / entries
    return mean, covariance


@pytest.mark.parametrize("most_levels", [1, 2])
@pytest.mark.parametrize(("entries", "many"), [(96, 14), (40, 14), (192, 5), (40, 3)])
def test_fits_are_those_of_scipy(most_levels: int, entries: int, many: int) -> None:
    """Gaps, errors, windows, chi^2 and probabilities of 30 series, of which some show no gap."""
    slices, times = 40, np.arange(1, many + 1)
    mean, covariance = correlations(30, slices, times, entries, seed=entries + many)
    found = fit_all(mean, covariance, entries, times, slices, most_levels)
    levels = set()
    for k, (c, errors) in enumerate(zip(mean, covariance, strict=True)):
        one = fit(c, errors, entries, times, slices, most_levels)
        levels.add(one.get("levels", 0))
        assert found.levels[k] == one.get("levels", 0)
        for name, value in one.items():
            np.testing.assert_allclose(
                getattr(found, name)[k], value, 1e-6 if name == "error" else 1e-7, err_msg=f"{name} of {k}"
            )
        if not one:
            assert np.isnan(found.gap[k])
    assert len(levels) > (1 if many > 3 else 0)


def test_what_cannot_be_fitted() -> None:
    """C(t) that does not change, that is lost at once and that rises, and windows without a degree of freedom."""
    times, flat = np.arange(1, 9), np.ones(8)
    mean = np.stack([flat, -flat, flat + 0.01 * times])
    covariance = np.stack([np.zeros((8, 8)), np.eye(8), 1e-8 * np.eye(8)])
    found = fit_all(mean, covariance, 96, times, 32, 2)
    assert np.isnan(found.gap).all()
    assert not found.levels.any()
    falling = decay(0.3, times, 16)[None]
    assert fit_all(falling, 1e-6 * np.eye(8)[None], 96, times, 32, 2).gap == pytest.approx(0.3, rel=1e-6)
    assert not fit_all(falling, 1e-6 * np.eye(8)[None], 8, times, 32, 2).levels.any()
    assert len(fit_all(np.empty((0, 8)), np.empty((0, 8, 8)), 96, times, 32, 2).gap) == 0
