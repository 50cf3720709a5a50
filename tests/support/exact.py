"""Exact averages by enumeration, and the table that a failing statistical test prints."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising


class Exact(NamedTuple):
    """Thermal averages per site (link overlap: per bond) of one sample; overlaps are those of two copies.

    Modes are squared, of the smallest wave vector: the magnetisation's along x, the overlap's along y; 0 off lattices.
    """

    energy: float
    magnetization_squared: float
    overlap_squared: float
    magnetization_mode: float
    overlap_mode: float
    link_overlap: float


@lru_cache(maxsize=1)
def _states(sites: int) -> npt.NDArray[np.float64]:
    """Every configuration, (sites, 2^sites)."""
    return 2.0 * (np.arange(2**sites) >> np.arange(sites)[:, None] & 1) - 1


@lru_cache(maxsize=1)
def energies_of_states(model: Ising, sample: int) -> npt.NDArray[np.float64]:
    """Those of all configurations of a sample, which serve all temperatures."""
    one = Ising(model.graph, model.couplings[sample % len(model.couplings)], model.fields[sample % len(model.fields)])
    return np.asarray(one.energy(_states(model.sites).astype(np.int8)[None])[0])


def enumerate_states(model: Ising, temperature: float, sample: int = 0) -> Exact:
    """Averages over all 2^N states of a sample, N at most 20."""
    spins, energy = _states(model.sites), energies_of_states(model, sample)
    weight = np.exp(-(energy - energy.min()) / temperature)
    weight /= weight.sum()
    m = spins.sum(axis=0) / model.sites
    correlation = (spins * weight) @ spins.T  # <s_i s_j>
    ends = model.graph.edges
    of_m, of_q = (_waves(model, axis) for axis in (0, 1))
    return Exact(
        float(weight @ energy) / model.sites,
        float(weight @ m**2),
        float((correlation**2).mean()),
        float((correlation * of_m).mean()),
        float((correlation**2 * of_q).mean()),
        float((correlation[ends[:, 0], ends[:, 1]] ** 2).mean()),
    )


def _waves(model: Ising, axis: int) -> npt.NDArray[np.float64]:
    """cos(k (r_i - r_j)), k the smallest wave vector of an axis, (sites, sites); 0 where there is no such axis."""
    if model.lattice is None or axis >= model.lattice.dimension:
        return np.zeros((model.sites, model.sites))
    lattice = model.lattice
    x = (lattice.site_positions() @ np.linalg.inv(np.array(lattice.cell.vectors)))[:, axis] / lattice.shape[axis]
    return np.asarray(np.cos(2 * np.pi * (x[:, None] - x)))


def assert_agree(
    rows: list[tuple[str, float, float, float]], limit: float = 4.0, largest_error: float = np.inf
) -> None:
    """Compare (name, measured, error, exact) rows: every |z| at most ``limit``; a failure prints the table."""
    table = [f"{'quantity':40}{'measured':>14}{'error':>12}{'exact':>14}{'z':>8}"]
    scores = []
    for name, value, error, exact in rows:
        scores.append((value - exact) / error)
        table.append(f"{name:40}{value:14.8f}{error:12.2e}{exact:14.8f}{scores[-1]:8.2f}")
    good = np.all(np.abs(scores) <= limit) and all(error < largest_error for _, _, error, _ in rows)
    if not good:
        raise AssertionError("\n".join(["", *table]))


def replica_mean(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error of a series (steps, replicas) from the replicas' independent time averages."""
    averages = values.mean(axis=0)
    return float(averages.mean()), float(averages.std(ddof=1) / np.sqrt(len(averages)))
