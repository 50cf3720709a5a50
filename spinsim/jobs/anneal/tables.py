"""An annealing run as a table: averages by step, or by sample and step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.tables import Columns, columns_of_samples
from spinsim.analysis.thermodynamics import mean_of_replicas, over_samples, thermodynamics
from spinsim.errors import InputError
from spinsim.jobs.anneal.result import AnnealResult


def columns(result: AnnealResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``.

    Raises:
        InputError: where there is no such table, or no step is done yet.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to tabulate yet")
    if by == "temperature":
        return _by_temperature(result)
    if by == "sample":
        return columns_of_samples(result, _by_temperature, lambda one: one.lowest_energy)
    raise InputError(f"there is no table by {by!r} of this run: choose temperature or sample")


def _by_gamma(result: AnnealResult, gamma: npt.NDArray[np.float64]) -> Columns:
    """Returns the energies of best slices, and of all slices, of a quantum anneal."""
    best, mean = quantum_energies(result)
    return {
        "temperature": result.temperature,
        "gamma": gamma,
        "energy_per_site": best.mean,
        "energy_per_site_error": best.error,
        "mean_slice_energy_per_site": mean.mean,
        "mean_slice_energy_per_site_error": mean.error,
    }


def of_populations(result: AnnealResult) -> Columns:
    """Returns free energies, entropies and families of a population run, of families means over populations."""
    if result.family is None or result.parents is None:
        return {}
    populations, families, sites = result.populations, result.families, result.model.sites
    free = over_samples(*populations.free_energy())
    entropy = over_samples(*populations.entropy(result.energy))
    size = result.energy.shape[2] / result.parents.shape[2]
    return {
        "free_energy_per_site": free[0] / sites,
        "free_energy_per_site_error": free[1] / sites,
        "entropy_per_site": entropy[0] / sites,
        "entropy_per_site_error": entropy[1] / sites,
        "families": families.number.mean(axis=(1, 2)),
        "mean_square_family_size": families.mean_square_size.mean(axis=(1, 2)),
        "family_entropy": families.entropy.mean(axis=(1, 2)),
        "share_of_parents": result.parents.mean(axis=(1, 2)) / size,
    }


def _by_temperature(result: AnnealResult) -> Columns:
    """Returns averages over replicas and samples, a row for each step."""
    if result.gamma is not None:
        return _by_gamma(result, result.gamma)
    found = thermodynamics(result)
    in_field: Columns = {}
    if result.field is not None:
        in_field = {
            "field": result.field,
            "magnetization": found.signed_magnetization,
            "magnetization_error": found.signed_magnetization_error,
        }
    staggered: Columns = {}
    if result.staggered_magnetization is not None:
        staggered = {
            "abs_staggered_magnetization": found.staggered_magnetization,
            "abs_staggered_magnetization_error": found.staggered_magnetization_error,
        }
    return {
        "temperature": found.temperature,
        **in_field,
        **of_populations(result),
        "energy_per_site": found.energy,
        "energy_per_site_error": found.energy_error,
        "specific_heat": found.specific_heat,
        "specific_heat_error": found.specific_heat_error,
        "specific_heat_trusted": found.specific_heat_trusted,
        "abs_magnetization": found.magnetization,
        "abs_magnetization_error": found.magnetization_error,
        **staggered,
    }


Array = npt.NDArray[np.float64]


class Means(NamedTuple):
    """An energy per site at each step, (steps,).

    Attributes:
        mean: Over replicas and samples.
        error: Its standard error; NaN where a single replica of a single sample allows none.
    """

    mean: Array
    error: Array


def quantum_energies(result: AnnealResult) -> tuple[Means, Means]:
    """Returns the energies of the best slice of each replica, and those of the mean over its slices."""
    assert result.mean_slice_energy is not None  # noqa: S101  (it is a quantum anneal)
    sites = result.model.sites
    best, mean = (Means(*mean_of_replicas(e / sites)) for e in (result.energy, result.mean_slice_energy))
    return best, mean
