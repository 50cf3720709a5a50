"""Averages over saved configurations of each disorder sample or, for one sample, over blocks of time.

Functions of these averages have jackknife errors (``Entries.estimate``). For one sample, blocks are as long as
``chains.py`` asks for by the autocorrelation of ``guides``, and errors are widened as there. Errors are NaN where fewer
than four samples, or too few blocks of that length, were saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.chains import BLOCKS, chain_of, merged
from spinsim.analysis.jackknife import Jackknife, jackknife
from spinsim.analysis.runs import FEWEST_FOR_ERRORS, FEWEST_STEPS, Array, Tempered
from spinsim.analysis.statistics import statistics_of
from spinsim.engine.measuring.reduction import block_length
from spinsim.errors import InputError, argument
from spinsim.inputs.texts import count
from spinsim.model.lattice import Lattice
from spinsim.result import Run, as_result
from spinsim.saved import Configurations, configurations

Measured = Mapping[str, Array]  # of one sample at one moment, (places, ...) each, by name


@dataclass(frozen=True)
class Entries:
    """Averages of independent entries: disorder samples, runs of one sample, or blocks of time."""

    arrays: dict[str, Array]  # (entries, places, ...), by name
    wider: Array  # factor of jackknife errors at each place, NaN where no error is known, (places,)

    def estimate(self, function: Callable[..., Array], *names: str) -> Jackknife:
        """Return a function of the means of these arrays, each (places, ...), with its error and bias.

        The function returns an array whose first axis is that of the places.
        """
        parts = [self.arrays[name] for name in names]
        number, shapes = len(parts[0]), [part.shape[1:] for part in parts]
        flat = np.concatenate([part.reshape(number, -1) for part in parts], axis=1)
        ends = np.cumsum([part[0].size for part in parts])[:-1]

        def of_means(means: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                split = zip(np.split(means, ends), shapes, strict=True)
                return function(*(part.reshape(shape) for part, shape in split))

        if number < FEWEST_FOR_ERRORS:
            value = np.asarray(of_means(flat.mean(axis=0)))
            return Jackknife(value, np.full(value.shape, np.nan), np.full(value.shape, np.nan))
        found = jackknife(of_means, flat)
        return replace(found, error=found.error * self.wider.reshape(-1, *[1] * (found.error.ndim - 1)))

    def mean(self, name: str) -> Jackknife:
        return self.estimate(np.asarray, name)


def in_quantiles(number: Array, sums: Array, quantiles: int) -> Array:
    """Means in quantiles of equal shares, (places, quantiles, ...), from sums in bins, (places, bins, ...).

    ``number`` is the share of each bin, (places, bins). Bins at the ends of quantiles are divided.
    """
    above, ends = np.cumsum(number, axis=1)[:, None], np.arange(quantiles)[:, None] / quantiles
    part = np.minimum(above, ends + 1 / quantiles) - np.maximum(above - number[:, None], ends)
    share = np.where(number[:, None] > 0, np.maximum(part, 0) / number[:, None], 0)
    return np.asarray(share @ sums * quantiles)


def bins_of(x: Array, bins: int) -> npt.NDArray[np.intp]:
    """Numbers of the bins of equal width from -1 to 1."""
    return np.minimum((x + 1) / 2 * bins, bins - 1).astype(np.intp)


def saved_run(run: Run, copies: int = 1) -> tuple[Any, Configurations]:
    """Return a tempering run with saved configurations of so many copies, or refuse the run."""
    result = as_result(run)
    saved = configurations(result)
    if list(saved.axes) != ["step", "sample", "copy", "temperature"]:
        raise InputError(
            f"configurations of {result.model.name} are not those of a ladder of temperatures: give a run of temper"
        )
    if not len(saved):
        raise InputError(f"the run of {result.model.name} has saved no configuration yet: go on with it")
    if saved.shape[2] < copies:
        raise InputError(
            f"the run has {count(saved.shape[2], 'copy')} at each temperature and this takes {copies}: run it with "
            f"{argument('replicas', copies)} or more"
        )
    return result, saved


def periodic_grid(result: Tempered) -> Lattice:
    """Return the lattice of a run, or refuse one that is open or has several sites a cell."""
    lattice = result.model.embedding
    if lattice is None or not lattice.periodic or lattice.cell.sites > 1 or max(lattice.shape) < 2:
        raise InputError(
            f"{result.model.name} does not lie on a periodic lattice of one site a cell and of a side above 1: its "
            "configurations have no momenta"
        )
    return lattice


def entries_of(
    result: Tempered, saved: Sequence[Configurations], measure: Callable[..., Measured], guides: tuple[str, ...]
) -> Entries:
    """Return averages of what ``measure`` makes of each sample of each saved row, from the rows of one run or several.

    It takes the spins (copies, temperatures, sites) of each run. ``guides`` are the arrays whose first two numbers at a
    place decide how long blocks of one sample are.
    """
    number = min(one.shape[0] for one in saved)
    sweep = saved[0].sweep.reshape(saved[0].shape[0], -1)[:, 0]
    apart = float(np.diff(sweep).mean()) / statistics_of(result).every if len(sweep) > 1 else 1.0
    rows = (zip(*(one.samples_of_row(k) for one in saved), strict=True) for k in range(number))
    return averaged(result, ((measure(*spins) for spins in row) for row in rows), guides, number, apart)


def averaged(
    result: Tempered, rows: Iterable[Iterable[Measured]], guides: tuple[str, ...], number: int, apart: float
) -> Entries:
    """Return averages over ``number`` rows, ``apart`` measurements each, that measure each sample."""
    samples = result.model.samples
    disorder = np.arange(samples) if result.disorder is None else result.disorder
    is_one = samples == 1
    if len(np.unique(disorder)) == 1:  # independent runs of one sample are entries themselves
        disorder = np.arange(samples)
    length = block_length(BLOCKS, number) if is_one else number
    entries = -(-number // length) if is_one else int(disorder.max()) + 1
    sums: dict[str, Array] = {}
    series: list[Array] = []
    for k, row in enumerate(rows):
        for sample, measured in enumerate(row):
            sums = sums or {name: np.zeros((entries, *value.shape)) for name, value in measured.items()}
            for name, value in measured.items():
                sums[name][k // length if is_one else disorder[sample]] += value
            if is_one:
                firsts = [measured[name].reshape(len(measured[name]), -1)[:, :2] for name in guides]
                series.append(np.concatenate(firsts, axis=1))
    if is_one:
        walk = statistics_of(result).walk_times()[1] / apart if len(result.temperature) > 1 else np.zeros(1)
        return _of_blocks(sums, np.array(series), length, walk)
    runs = np.bincount(disorder) * number
    means = {name: one / runs.reshape(-1, *[1] * (one.ndim - 1)) for name, one in sums.items()}
    return Entries(means, np.ones(len(result.temperature)))


def _of_blocks(sums: dict[str, Array], guides: Array, length: int, walk: Array) -> Entries:
    """Return entries of one sample from sums over blocks of ``length`` rows, the last of which may not be full."""
    rows, places, _ = guides.shape
    whole = {name: one.sum(axis=0) / rows for name, one in sums.items()}
    if rows < FEWEST_STEPS:
        return Entries({name: one[None] for name, one in whole.items()}, np.full(places, np.nan))
    chains = [chain_of(guides[:, None, :, k], walk) for k in range(guides.shape[2])]
    merge = max(int(chain.merge.max()) for chain in chains)
    trusted = np.all([chain.time.trusted[0] for chain in chains], axis=0)
    wider = np.max([chain.factor_at(merge)[0] for chain in chains], axis=0)
    arrays = {}
    for name, one in sums.items():
        parts = merged(one[: rows // length] / length, merge)
        arrays[name] = parts + (whole[name] - parts.mean(axis=0))  # the mean is that of all rows
    return Entries(arrays, np.where(trusted, wider, np.nan))
