"""The main numbers of a tempering file, read piece by piece: the file may be larger than memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.errors import InputError
from spinsim.jobs import job_of
from spinsim.jobs.ladder.contents import placement_of, temperatures_in, written_again
from spinsim.jobs.ladder.result import reduced_of_file
from spinsim.jobs.temper.result import TemperResult
from spinsim.model.ising import Ising
from spinsim.result import Result
from spinsim.run.search import Searched, read_search
from spinsim.sampling.placement import Placement

Array = npt.NDArray[np.float64]

PIECE_BYTES: Final = 2**24
"""Of a series that are in memory at a time; at least a row."""


@dataclass(frozen=True)
class TemperOverview(Result):
    """What a tempering run comes to, without its series and without errors, which need an analysis.

    Attributes:
        model: What was simulated.
        steps: Measurements that were made so far.
        rows: Those of them that the series have.
        temperature: From the lowest to the highest, in the unit of the couplings, shape (temperatures,).
        energy: Mean energy per site at each temperature, NaN where there are no measurements.
        magnetization_squared: Mean m^2, likewise.
        overlap_squared: Mean q^2, likewise; None where there is one copy.
        swap_rate: Share of exchanges accepted with the next temperature, (temperatures - 1,); NaN where a run was
            killed before its first checkpoint, with which exchanges and round trips are written.
        round_trips: Of each replica from the hottest temperature to the coldest and back, (samples, replicas).
        attributes: Root attributes of the file.
        placement: How the temperatures were placed, None where they were given.
        best_energy: Lowest energy that each replica had at a measurement, (samples, replicas); None where a run was
            killed before its first checkpoint.
        search: How a search went, None of a run that is none.
    """

    job = "temper"

    model: Ising
    steps: int
    rows: int
    temperature: Array
    energy: Array
    magnetization_squared: Array
    overlap_squared: Array | None
    swap_rate: Array
    round_trips: npt.NDArray[np.int64]
    attributes: dict[str, str]
    placement: Placement | None
    best_energy: Array | None
    search: Searched | None


def overview(path: str | os.PathLike[str], model: Ising | None = None) -> TemperOverview:
    """Read the main numbers of a tempering file; of an unfinished run, of the steps it has.

    Args:
        path: Of the file.
        model: That it holds, where that is known; by default it is read.

    Raises:
        InputError: for a missing file, one that spinsim did not write and one of another job.
    """
    with store.open_to_read(Path(path)) as file:
        attributes = store.text_attributes(file)
        if attributes["job"] != TemperResult.job:
            raise InputError(f"{path} holds {job_of(attributes['job']).a_run}: give the file of a temper run")
        model, rows = store.read_model(file) if model is None else model, store.complete_rows(file)
        m, again = file["measurements"], written_again(file, attributes)
        attempts, accepts = again["attempts"].sum(axis=0), again["accepts"].sum(axis=0)
        ladder = temperatures_in(file)
        reduced = reduced_of_file(file, model, attributes, ladder)
        means = _means(m, rows, model.sites) if reduced is None else _means_of(reduced)
        return TemperOverview(
            model=model,
            steps=rows if reduced is None else reduced.measurements,
            rows=rows,
            temperature=ladder.values,
            energy=means["energy"],
            magnetization_squared=means["m^2"],
            overlap_squared=means.get("q^2"),
            swap_rate=np.where(attempts > 0, accepts / np.maximum(attempts, 1), np.nan),
            round_trips=again["round_trips"],
            attributes=attributes,
            placement=placement_of(file),
            best_energy=again.get("best_energy"),
            search=read_search(file, {} if "finished" in attributes else store.last_saved(file)),
        )


def _means(group: h5py.Group, rows: int, sites: int) -> dict[str, Array]:
    """Mean energy, m^2 and q^2 at each temperature, of the first rows of the series that there are."""
    powers = {"energy": ("energy", 1), "m^2": ("magnetization", 2), "q^2": ("overlap", 2)}
    return {
        name: _mean(group[series], rows, power) / sites**power
        for name, (series, power) in powers.items()
        if series in group
    }


def _means_of(run: ReducedRun) -> dict[str, Array]:
    """The same from sums over all measurements."""
    with np.errstate(invalid="ignore"):
        return {name: run.mean(name).mean(axis=0) for name in ("energy", "m^2", "q^2") if name in run.names}


def _mean(series: h5py.Dataset, rows: int, power: int) -> Array:
    """Mean power of the first rows of (steps, samples, copies, temperatures) at each temperature."""
    piece = max(1, PIECE_BYTES // (8 * int(np.prod(series.shape[1:]))))
    total = np.zeros(series.shape[-1])
    for first in range(0, rows, piece):
        values = series[first : min(first + piece, rows)].astype(np.float64)
        total += (values**power).sum(axis=(0, 1, 2))
    count = rows * int(np.prod(series.shape[1:-1]))
    return total / count if count else np.full_like(total, np.nan)
