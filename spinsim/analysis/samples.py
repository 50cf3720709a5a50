"""Disorder samples one by one: each sample's averages, autocorrelation times, lowest energy and P(q)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Run
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]
AnyRun = TypeVar("AnyRun", bound=Run)

_SAMPLES_FIRST: Final = (
    "attempts",
    "accepts",
    "round_trips",
    "best_energy",
    "best_spins",
    "best_states",
    "local_squares",
    "local_measurements",
)
_SAMPLES_SECOND: Final = (
    "energy",
    "magnetization",
    "staggered_magnetization",
    "mean_slice_energy",
    "family",
    "population_free_energy",
    "parents",
    "overlap",
    "permutation",
    "link_overlap",
    "overlap_mode",
    "magnetization_mode",
    "action",
    "correlation_in_time",
    "slice_magnetization_squared",
    "slice_magnetization_fourth",
    "slice_overlap_squared",
    "slice_overlap_fourth",
    "even_correlation_in_time",
    "link_overlap_in_space",
)

FEWEST_FOR_ERRORS: Final = 4
"""Independent numbers from which on their scatter gives an error; of two it covers 50 % in place of 68, of three 58."""
COPY_SERIES: Final = ("energy", "magnetization", "staggered_magnetization", "magnetization_mode")
"""Series of each copy of a tempering run, (steps, samples, copies, ...)."""
PAIR_SERIES: Final = ("overlap", "link_overlap", "overlap_mode")
"""Series of each pair of copies, (steps, samples, pairs of copies, ...)."""


def sample_of(result: AnyRun, sample: int) -> AnyRun:
    """The run of one of the samples alone."""
    return samples_of(result, slice(sample, sample + 1))


def samples_of(result: AnyRun, chosen: slice) -> AnyRun:
    """The run of some of the samples, two or more of which need couplings or fields of their own."""
    model = result.model
    couplings, fields = (rows[chosen] if len(rows) > 1 else rows[0] for rows in (model.couplings, model.fields))
    parts: dict[str, Any] = {
        "model": Ising(
            model.graph,
            couplings,
            fields,
            name=model.name,
            offset=model.offset,
            maxcut_weight=model.maxcut_weight,
            terms=model.terms,
        )
    }
    for name, value in vars(result).items():
        if name in _SAMPLES_FIRST and value is not None:
            parts[name] = value[chosen]
        elif name in _SAMPLES_SECOND and value is not None:
            parts[name] = value[:, chosen]
        elif name == "measured":
            parts[name] = {own: series[:, chosen] for own, series in value.items()}
        elif name == "configurations":
            parts[name] = None  # which are of all samples
    return replace(result, **parts)


class Lowest(NamedTuple):
    """The lowest energies that replicas met.

    Attributes:
        per_site: Of each sample, (samples,).
        hits: How many of a sample's replicas met it, (samples,).
        mean: Over the samples, per site.
        error: Its standard error over samples, NaN for fewer than four.
    """

    per_site: Array
    hits: npt.NDArray[np.int64]
    mean: float
    error: float


def lowest(model: Ising, best_energy: Array) -> Lowest:
    """What ``best_energy`` (samples, replicas), total energies, comes to in each sample."""
    least = best_energy.min(axis=1)
    per_site, samples = least / model.sites, len(least)
    error = float(per_site.std(ddof=1) / np.sqrt(samples)) if samples >= FEWEST_FOR_ERRORS else np.nan
    return Lowest(per_site, (best_energy == least[:, None]).sum(axis=1), float(per_site.mean()), error)
