"""A quantum run as a table: averages by point of the ladder or by sample, C(t), gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spinsim.analysis.gaps import Gaps, InTimeCurve, correlation_in_time, gaps_by_parity, has_connected
from spinsim.analysis.runs import sample_of
from spinsim.analysis.tables import Columns, below_each_other
from spinsim.jobs.ladder.tables import ladder_columns
from spinsim.jobs.quantum.result import QuantumResult


def columns(result: QuantumResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``, as ``ladder_columns`` does."""
    others: dict[str, Callable[[], Columns]] = {
        "time": lambda: below_each_other([_by_time(result, k) for k in range(result.model.samples)]),
        "gap": lambda: _gaps(result),
        "site": lambda: _sites(result),
    }
    return ladder_columns(result, by, _where, others, ("k", "temperature"))  # the latter is the table's default


def _sites(result: QuantumResult) -> Columns:
    """Returns the local susceptibility of each sample, point and site of space, with its error from the copies."""
    found = result.local_susceptibility
    samples, copies, places, sites = found.shape
    spread = found.std(axis=1, ddof=1) if copies > 1 else np.full((samples, places, sites), np.nan)
    return {
        "sample": np.repeat(np.arange(samples), places * sites),
        **{name: np.tile(np.repeat(values, sites), samples) for name, values in _where(result).items()},
        "site": np.tile(np.arange(sites), samples * places),
        "local_susceptibility": found.mean(axis=1).ravel(),
        "local_susceptibility_error": spread.ravel() / np.sqrt(copies),
    }


def _where(result: QuantumResult) -> Columns:
    """Returns the columns that say which point a row is of, that of the ladder first."""
    names = dict.fromkeys((result.axis.name, "k", "gamma", "beta", "k_time"))
    return {name: getattr(result, name) for name in names}


def _by_time(result: QuantumResult, sample: int) -> Columns:
    """Returns C(t) of one sample, the times of each point in succession."""
    one = sample_of(result, sample)
    found = correlation_in_time(one)
    places, times = found.value.shape
    even = {"even_correlation": correlation_in_time(one, "even")} if has_connected(one) else {}
    return {
        "sample": np.full(places * times, sample),
        **{name: np.repeat(values, times) for name, values in _where(result).items()},
        "time": np.tile(found.time, places),
        **_with_errors({"correlation": found} | even),
    }


def _with_errors(curves: dict[str, InTimeCurve]) -> Columns:
    """Returns columns of curves, each with its errors."""
    columns: Columns = {}
    for name, found in curves.items():
        columns[name] = found.value.ravel()
        columns[f"{name}_error"] = np.where(found.trusted, found.error, np.nan).ravel()
    return columns


def _gaps(result: QuantumResult) -> Columns:
    """Returns the gaps of each sample, a row for each point, per step in time and per unit of energy.

    Columns of even parity are there where it was measured; those of odd parity have no prefix.
    """
    samples = result.model.samples
    found: Columns = {
        "sample": np.repeat(np.arange(samples), len(result.k)),
        **{name: np.tile(values, samples) for name, values in _where(result).items()},
    }
    for parity, of in gaps_by_parity(result).items():
        prefix = "" if parity == "odd" else "even_"
        found |= {prefix + name: values for name, values in _of_parity(result, of).items()}
    return found


def _of_parity(result: QuantumResult, found: Gaps) -> Columns:
    """Returns the columns of the gaps of one parity."""
    k = np.tile(result.k, len(found.gap))
    return {
        "gap": found.gap.ravel(),
        "gap_error": found.error.ravel(),
        "energy_gap": found.gap.ravel() / k,
        "energy_gap_error": found.error.ravel() / k,
        "operators": found.operators.ravel(),
        "levels": found.levels.ravel(),
        "first_time": found.first.ravel(),
        "last_time": found.last.ravel(),
        "chi_squared": found.chi_squared.ravel(),
        "degrees_of_freedom": found.freedom.ravel(),
        "probability": found.probability.ravel(),
    }
