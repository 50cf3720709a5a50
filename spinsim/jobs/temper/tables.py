"""A tempering run as a table: averages by temperature or by sample, P(q), averages over logarithmic bins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spinsim.analysis.equilibration import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import sample_of
from spinsim.analysis.tables import Columns, below_each_other
from spinsim.jobs.ladder.tables import ladder_columns
from spinsim.jobs.temper.result import TemperResult


def columns(result: TemperResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``, as ``ladder_columns`` does."""
    others: dict[str, Callable[[], Columns]] = {
        "overlap": lambda: below_each_other([_overlaps(result, k) for k in range(result.model.samples)]),
        "bin": lambda: _bins(approach(result)),
    }
    return ladder_columns(result, by, lambda one: {"temperature": one.temperature}, others)


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
