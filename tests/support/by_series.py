"""Tests of equilibrium on plain arrays of measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.equilibration import Equilibration, compare_bins, compare_copies
from spinsim.analysis.run_sums import FollowedSeries


def equilibration(series: npt.ArrayLike, *more: Any) -> Equilibration:
    """Compare bins of a series (n,) or (n, samples)."""
    values = np.asarray(series, np.float64)
    return compare_bins(FollowedSeries(values.reshape(len(values), -1, 1)), *more)


def copies_disagree(series: npt.NDArray[np.float64], *more: Any) -> npt.NDArray[np.bool_]:
    """Compare the copies of a series (n, samples, copies)."""
    return compare_copies(FollowedSeries(series), *more)


def link_residual(result: Any) -> npt.NDArray[np.float64]:
    """Energy and link overlap against each other, (steps, samples, temperatures)."""
    sites, bonds = result.model.sites, result.model.bonds
    energy, link = result.energy.mean(axis=2) / sites, result.link_overlap.mean(axis=2) / bonds
    return energy + bonds / sites * (1 - link) / result.temperature
