"""Errors of P(q): their size where q is correlated in time, and where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from made_up import frozen, tempered
from processes import ar1, rho_of

import spinsim as ss
from spinsim.analysis.overlaps import OverlapDistribution, overlap_distribution
from spinsim.jobs.temper.figures import overlap_figure

SITES, BINS = 64, 16


def distributions(tau: float, steps: int, runs: int, samples: int = 1) -> list[OverlapDistribution]:
    """Of runs of two copies whose overlap is tanh of an AR(1) process: with one hump, and with one at either end."""
    model = ss.EdwardsAnderson(ss.cubic(4), samples=samples, seed=1)
    empty = tempered(model, steps=steps, ladder=np.array([1.0, 2.0]))
    series = ar1(rho_of(tau), (steps, runs, samples, 1, 2), seed=int(tau))
    overlap = 2 * np.rint((np.tanh(series * [0.5, 2.0]) + 1) * SITES / 2).astype(np.int64) - SITES
    return [overlap_distribution(replace(empty, overlap=overlap[:, k]), BINS) for k in range(runs)]


def spread_over_error(found: list[OverlapDistribution]) -> npt.NDArray[np.float64]:
    """Of each bin that holds a hundredth or more, at both temperatures."""
    density, error = np.array([one.density for one in found]), np.array([one.error for one in found])
    kept = density.mean(axis=0) * found[0].width > 0.01
    return np.asarray(density.std(axis=0, ddof=1)[kept] / np.sqrt(np.nanmean(error**2, axis=0)[kept]))


@pytest.mark.parametrize(("tau", "samples"), [(1, 1), (16, 1), (16, 12)])
def test_errors_have_the_size_of_the_spread(tau: float, samples: int) -> None:
    """Over 60 seeds a ratio is known to 9 %; the mean of those of some thirty correlated bins to a few.

    Of one sample errors are bounds, up to twice as large: a narrow bin is left sooner than q^2 is forgotten.
    """
    ratios = spread_over_error(distributions(tau, 1000, 60, samples))
    assert (0.85 if samples > 1 else 0.45) < ratios.mean() < 1.2
    assert ratios.max() < 1.5


def test_series_that_are_too_short_are_flagged() -> None:
    long, short = distributions(4, 1000, 20), distributions(200, 1000, 20)
    held = [one.density * one.width > 0.01 for one in long]
    assert np.mean([one.trusted[kept].mean() for one, kept in zip(long, held, strict=True)]) > 0.9
    assert np.mean([one.trusted.mean() for one in short]) < 0.2  # of 5 tau, which cannot know it


def test_bands_are_left_out_where_errors_are_unknown() -> None:
    result = frozen(tempered(ss.EdwardsAnderson(ss.cubic(4), seed=1)))
    found = overlap_distribution(result)
    assert not found.trusted[0].any()
    assert found.trusted[1, found.density[1] > 0].all()
    assert not found.trusted[1, found.density[1] == 0].any()
    bands = overlap_figure(result).axes[0].collections
    assert len([band for band in bands if len(band.get_paths())]) == 4  # five curves, the lowest without
