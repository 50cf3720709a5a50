"""A quantum run as a table: averages by k or by sample, C(t), gaps."""

from __future__ import annotations

import numpy as np

from spinsim.analysis.gaps import correlation_in_time, gaps
from spinsim.analysis.samples import sample_of
from spinsim.analysis.summary import estimates
from spinsim.analysis.tables import Columns, below_each_other, columns_of_samples, estimate_columns
from spinsim.errors import InputError
from spinsim.jobs.quantum.result import QuantumResult


def columns(result: QuantumResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``.

    Raises:
        InputError: where there is no such table, and for too few measurements.
    """
    if by in ("k", "temperature"):  # the latter is the table's default
        return _by_k(result)
    if by == "sample":
        return columns_of_samples(result, _by_k, lambda one: one.best_energy)
    if by == "time":
        return below_each_other([_by_time(result, k) for k in range(result.model.samples)])
    if by == "gap":
        return _gaps(result)
    raise InputError(f"there is no table by {by!r} of this run: choose k, sample, time or gap")


def _by_k(result: QuantumResult) -> Columns:
    """Returns averages over time, copies and samples, with errors, a row for each k."""
    own = {"k": result.k, "gamma": result.gamma}
    return own | estimate_columns(estimates(result))


def _by_time(result: QuantumResult, sample: int) -> Columns:
    """Returns C(t) of one sample, the times of each k in succession."""
    found = correlation_in_time(sample_of(result, sample))
    places, times = found.value.shape
    return {
        "sample": np.full(places * times, sample),
        "k": np.repeat(result.k, times),
        "time": np.tile(found.time, places),
        "correlation": found.value.ravel(),
        "correlation_error": np.where(found.trusted, found.error, np.nan).ravel(),
    }


def _gaps(result: QuantumResult) -> Columns:
    """Returns the gap of odd parity of each sample, a row for each k, per step in time and per unit of energy."""
    found = gaps(result)
    samples, places = found.gap.shape
    k = np.tile(result.k, samples)
    return {
        "sample": np.repeat(np.arange(samples), places),
        "k": k,
        "gap": found.gap.ravel(),
        "gap_error": found.error.ravel(),
        "energy_gap": found.gap.ravel() / k,
        "energy_gap_error": found.error.ravel() / k,
        "levels": found.levels.ravel(),
        "first_time": found.first.ravel(),
        "last_time": found.last.ravel(),
        "chi_squared": found.chi_squared.ravel(),
        "degrees_of_freedom": found.freedom.ravel(),
        "probability": found.probability.ravel(),
    }
