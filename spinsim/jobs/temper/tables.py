"""A tempering run as a table: averages by temperature or by sample, P(q), averages over logarithmic bins."""

from __future__ import annotations

import numpy as np

from spinsim.analysis.equilibration import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import estimates
from spinsim.analysis.tables import Columns, below_each_other, columns_of_samples, estimate_columns, own_columns
from spinsim.errors import InputError
from spinsim.jobs.temper.result import TemperResult


def columns(result: TemperResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``.

    Raises:
        InputError: where there is no such table, and for too few measurements.
    """
    if by == "temperature":
        return _by_temperature(result)
    if by == "sample":
        return columns_of_samples(result, _by_temperature, lambda one: one.best_energy)
    if by == "overlap":
        return below_each_other([_overlaps(result, k) for k in range(result.model.samples)])
    if by == "bin":
        return _bins(approach(result))
    if by in result.measured:
        return own_columns(result, by)
    raise InputError(f"there is no table by {by!r} of this run: choose temperature, sample, overlap or bin")


def _by_temperature(result: TemperResult) -> Columns:
    """Returns averages over time, copies and samples, with errors, a row for each temperature."""
    return {"temperature": result.temperature} | estimate_columns(estimates(result))


def _overlaps(result: TemperResult, sample: int) -> Columns:
    """Returns P(q) of one sample."""
    found = overlap_distribution(sample_of(result, sample))
    temperatures, bins = found.density.shape
    return {
        "sample": np.full(found.density.size, sample),
        "temperature": np.repeat(result.temperature, bins),
        "q": np.tile(found.q, temperatures),
        "width": np.tile(found.width, temperatures),
        "probability_density": found.density.ravel(),
        "probability_density_error": np.where(found.trusted, found.error, np.nan).ravel(),
    }


def _bins(found: Approach) -> Columns:
    """Returns averages over logarithmic bins, those of a temperature in succession."""
    bins, temperatures = len(found.start), len(found.temperature)
    columns: Columns = {
        "temperature": np.repeat(found.temperature, bins),
        "first_sweep": np.tile(found.first_sweep, temperatures),
        "last_sweep": np.tile(found.last_sweep, temperatures),
        "measurements": np.tile(found.stop - found.start, temperatures),
    }
    for name, mean in found.mean.items():
        columns |= {name: mean.T.ravel(), f"{name}_error": found.error[name].T.ravel()}
        columns[f"{name}_verdict"] = np.repeat(found.verdict[name], bins)
    return columns
