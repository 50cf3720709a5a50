"""What quantum anneals show: the energies of best slices, and of all slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.thermodynamics import mean_of_replicas
from spinsim.jobs.anneal.result import AnnealResult

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
