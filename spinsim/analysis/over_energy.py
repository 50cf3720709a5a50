"""Cells of reweighting from the sums over energy of a run (``engine/measuring/energies.py``).

A bin that may hold several energies becomes two cells, the standard deviation of evenly spread energies apart on both
sides of their mean, and moments change linearly between neighbouring bins: so weights, moments and their products are
right to the second order of the width. A bin of one energy is a cell, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import BINS
from spinsim.analysis.multihistogram import Cells
from spinsim.analysis.reduced import ReducedRun
from spinsim.engine.measuring.energies import RANGE, Binned, Energies, shift_of, spacing_of
from spinsim.observables.terms import VARIANCES

Array = npt.NDArray[np.float64]

_OF_ENERGY: Final = {"energy": 1, "E^2": 2, "E^4": 4, "(E - <E>)^2": 1}
"""Moments that follow from the energy itself, by the power whose sums they take."""
_WIDEST: Final = 1 / 3
"""Width of bins of several energies, in standard deviations of the energy at a temperature."""


def can_reweight(run: ReducedRun) -> bool:
    """Return whether sums over energy are there, of one sample with stretches of time, in narrow bins."""
    energies = run.reduced.energies
    if energies is None or (run.samples == 1 and energies.blocks == 1):
        return False
    shifts = [shift_of(low, high, energies.bins) for low, high in run.arrays[RANGE].tolist()]
    width, spacing = energies.unit * 2.0 ** max(shifts), spacing_of(run.reduced.model)
    return width <= spacing or width <= _WIDEST * run.reduced.model.sites * _least_spread(run)


def _least_spread(run: ReducedRun) -> float:
    """Return the standard deviation of the energy per site where it is least, the root mean square over samples."""
    variance = (run.mean("E^2") - run.mean("energy") ** 2).mean(axis=0)
    return float(np.sqrt(max(variance.min(), 0.0)))


def cells_of_copies(
    run: ReducedRun, sample: int, names: Sequence[str], middle: Mapping[str, float], spacing: float
) -> Cells:
    """Return sums over the energies of each copy of a sample, as ``multihistogram.add_up`` finds them in series.

    Sums that are not known by copy stand in the cells of the first copy, as only their total counts.

    Args:
        run: The sums of all samples.
        sample: Number of the sample.
        names: Names of moments.
        middle: Numbers near the means of those that are variances; they are taken off.
        spacing: Energies are at least so far apart.
    """
    energies, sites = _energies(run), run.reduced.model.sites
    binned = energies.of_sample(run.arrays, run.measurements, sample, "energy")
    counts, copies = binned.counts, run.reduced.copies
    energy, shares = _apart(binned, spacing)
    found: dict[str, Array] = {}  # (copies, blocks, bins or twice as many)
    count = _dealt(counts, shares)

    def first_alone(total: Array) -> Array:
        return np.concatenate([total[None], np.zeros((copies - 1, *total.shape))])

    def of_term(name: str) -> Array:
        k, term = run.names[name], run.term(name)
        row = energies.row[k]
        if term.by_copy:
            return _split(binned, binned.sums[row : row + copies], counts, shares)
        return first_alone(_split(binned, binned.sums[row : row + 1], counts.sum(axis=0, keepdims=True), shares)[0])

    for name in names:
        if name in _OF_ENERGY:
            found[name] = count * (energy / sites - middle.get(name, 0.0)) ** _OF_ENERGY[name]
            if name in middle:
                found[f"{name} squared"] = count * (energy / sites - middle[name]) ** 2
        elif name in middle:
            number, square = (of_term(term) for term in VARIANCES[name])
            found[name] = number - middle[name] * count
            found[f"{name} squared"] = square - 2 * middle[name] * number + middle[name] ** 2 * count
        else:
            found[name] = of_term(name)
    return _cells(run, energy, count, found)


def cells_of_pairs(run: ReducedRun, sample: int, names: Sequence[str], spacing: float) -> Cells:
    """Return sums over the sums of two copies' energies, of all pairs of a sample together."""
    energies = _energies(run)
    binned = energies.of_sample(run.arrays, run.measurements, sample, "energy_pair")
    energy, shares = _apart(binned, spacing)
    found = {}
    for name in names:
        row = energies.pair_row[run.names[name]]
        found[name] = _split(binned, binned.sums[row : row + 1], binned.counts, shares)
    return _cells(run, energy, _dealt(binned.counts, shares), found)


def _energies(run: ReducedRun) -> Energies:
    assert run.reduced.energies is not None  # noqa: S101  (as ``can_reweight`` has said)
    return run.reduced.energies


def _apart(binned: Binned, spacing: float) -> tuple[Array, Array]:
    """Energies of cells, (cells,), and how far those of a bin are from its mean, (1 or 2,)."""
    mean = _mean_energy(binned)
    spread = np.sqrt(max(binned.width**2 - spacing**2, 0.0) / 12) if binned.width > spacing else 0.0
    shifts = np.array([-spread, spread]) if spread else np.zeros(1)
    return (mean[:, None] + shifts).ravel(), shifts


def _mean_energy(binned: Binned) -> Array:
    return np.asarray(binned.energy.sum(axis=0) / binned.counts.sum(axis=(0, 1)))


def _dealt(counts: Array, shifts: Array) -> Array:
    """Numbers (..., bins) dealt evenly to the cells of each bin, (..., cells)."""
    return np.repeat(counts / len(shifts), len(shifts), axis=-1)


def _split(binned: Binned, sums: Array, counts: Array, shifts: Array) -> Array:
    """Sums (chains, blocks, bins) dealt to the cells of each bin by the slope of the moment over all of the run."""
    dealt = _dealt(sums, shifts)
    if len(shifts) == 1 or sums.shape[-1] < 2:
        return dealt
    mean = sums.sum(axis=(0, 1)) / counts.sum(axis=(0, 1))
    slope = np.gradient(mean, _mean_energy(binned))
    return np.asarray(dealt + _dealt(counts * slope, shifts) * np.tile(shifts, sums.shape[-1]))


def _cells(run: ReducedRun, energy: Array, count: Array, found: Mapping[str, Array]) -> Cells:
    """Cells of arrays (chains, blocks, cells of a chain), with the stretches of time of a run of one sample."""
    chains, blocks, cells = count.shape
    whole = np.array([count, *found.values()]).transpose(0, 2, 1, 3).reshape(-1, blocks, chains * cells)
    every_cell, stretches = np.arange(chains * cells), []
    if blocks > 1:
        full = run.full_blocks
        number = BINS if full >= 2 * BINS else full if run.block_length > 1 else full // 2
        starts = -(-np.arange(number) * full // number)
        of_each = np.add.reduceat(whole[:, :full], starts, axis=1)
        stretches = [(every_cell, of_each[:, k]) for k in range(number)]
    chain = np.repeat(np.arange(chains), cells)
    return Cells(np.tile(energy, chains), chain, tuple(found), whole.sum(axis=1), tuple(stretches))
