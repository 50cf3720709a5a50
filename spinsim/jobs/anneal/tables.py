"""An annealing run as a table: averages by step, or by sample and step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.analysis.tables import Columns, columns_of_samples
from spinsim.analysis.thermodynamics import mean_of_replicas, over_samples, thermodynamics
from spinsim.errors import InputError
from spinsim.jobs.anneal.result import AnnealResult

Array = npt.NDArray[np.float64]


def columns(result: AnnealResult, by: str) -> Columns:
    """Returns the columns of ``ss.table``."""
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to tabulate yet")
    if by == "temperature":
        return _by_temperature(result)
    if by == "sample":
        return columns_of_samples(result, _by_temperature, lambda one: one.lowest_energy)
    raise InputError(f"there is no table by {by!r} of this run: choose temperature or sample")


def of_populations(result: AnnealResult) -> Columns:
    """Returns free energies, entropies and families of a population run, of families means over populations."""
    if result.family is None or result.parents is None:
        return {}
    populations, families, sites = result.populations, result.families, result.model.sites
    free, entropy = populations.free_energy(), populations.entropy(result.energy)
    size = result.energy.shape[2] / result.parents.shape[2]
    return {
        **_with_error("free_energy_per_site", *(part / sites for part in over_samples(*free))),
        **_with_error("entropy_per_site", *(part / sites for part in over_samples(*entropy))),
        "families": families.number.mean(axis=(1, 2)),
        "mean_square_family_size": families.mean_square_size.mean(axis=(1, 2)),
        "family_entropy": families.entropy.mean(axis=(1, 2)),
        "share_of_parents": result.parents.mean(axis=(1, 2)) / size,
    }


def _with_error(name: str, mean: Array, error: Array) -> Columns:
    return {name: mean, f"{name}_error": error}


def _by_temperature(result: AnnealResult) -> Columns:
    """Returns averages over replicas and samples, a row for each step."""
    if result.gamma is not None:
        best, mean = quantum_energies(result)
        columns = {"temperature": result.temperature, "gamma": result.gamma, **_with_error("energy_per_site", *best)}
        return columns | _with_error("mean_slice_energy_per_site", *mean)
    averages = thermodynamics(result)
    columns = {"temperature": averages.temperature}
    if result.field is not None:
        columns["field"] = result.field
        columns |= _with_error("magnetization", averages.signed_magnetization, averages.signed_magnetization_error)
    columns |= of_populations(result)
    columns |= _with_error("energy_per_site", averages.energy, averages.energy_error)
    columns |= _with_error("specific_heat", averages.specific_heat, averages.specific_heat_error)
    columns["specific_heat_trusted"] = averages.specific_heat_trusted
    columns |= _with_error("abs_magnetization", averages.magnetization, averages.magnetization_error)
    if result.staggered_magnetization is not None:
        sublattices = averages.staggered_magnetization, averages.staggered_magnetization_error
        columns |= _with_error("abs_staggered_magnetization", *sublattices)
    return columns


def quantum_energies(result: AnnealResult) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Returns energies per site at each step with their errors, of the best slice of each replica and of all slices.

    Means are over replicas and samples, (steps,); errors are NaN where a single replica of a single sample allows none.
    """
    assert result.mean_slice_energy is not None  # noqa: S101  (it is a quantum anneal)
    sites = result.model.sites
    return mean_of_replicas(result.energy / sites), mean_of_replicas(result.mean_slice_energy / sites)
