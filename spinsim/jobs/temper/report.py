"""Reports of tempering runs: before they begin, when they are done, and by ``show``.

Main numbers come from the file piece by piece, as it may be larger than memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.analysis.tables import as_tables
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted, wrapped
from spinsim.jobs import job_of
from spinsim.jobs.base import Told
from spinsim.jobs.ladder.contents import placement_of, temperatures_in, written_again
from spinsim.jobs.ladder.result import reduced_of_file
from spinsim.jobs.reports import (
    empty_lanes,
    head_of_steps,
    ladder_sentence,
    lowest_lines,
    numbers_of_plan,
    precision,
    round_trip_line,
    saved_number,
    solution_lines,
    table_of_places,
    twice_as_long,
)
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.running import TemperPlan
from spinsim.model.ising import Ising
from spinsim.result import Result, load_as
from spinsim.run.search import Searched, goal, read_search
from spinsim.sampling.placement import Placement

Array = npt.NDArray[np.float64]

PIECE_BYTES: Final = 2**24
"""Size of a series' part that is in memory at a time; at least a row."""


@dataclass(frozen=True)
class TemperOverview(Result):
    """The main numbers of a tempering run, without its series and without errors, which need an analysis."""

    job = "temper"

    model: Ising  # what was simulated
    steps: int  # measurements that were made so far
    rows: int  # those of them that the series have
    temperature: Array  # from the lowest to the highest, in the unit of the couplings, shape (temperatures,)
    energy: Array  # mean energy per site at each temperature, NaN where there are no measurements
    magnetization_squared: Array  # mean m^2, likewise
    overlap_squared: Array | None  # mean q^2, likewise; None where there is one copy
    swap_rate: Array
    """Share of exchanges accepted with the next temperature, (temperatures - 1,); NaN where a run was killed before its
    first checkpoint, with which exchanges and round trips are written."""
    round_trips: npt.NDArray[np.int64]
    """Round trips of each replica from the hottest temperature to the coldest and back, (samples, replicas)."""
    attributes: dict[str, str]  # root attributes of the file
    placement: Placement | None  # how the temperatures were placed, None where they were given
    best_energy: Array | None
    """Lowest energy that each replica had at a measurement, (samples, replicas); None where a run was killed before its
    first checkpoint."""
    search: Searched | None  # how a search went, None of a run that is none


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


MOST_BYTES: Final = 2**28
"""Size of the series of a run up to which its averages get errors as soon as it is done or shown."""
_BYTES_A_REPLICA: Final = 64  # of a measurement, correlations included


def describe(plan: TemperPlan) -> str:
    """Returns what is about to run, in one sentence."""
    t, model, wanted = plan.config.temper, plan.model, plan.config.temper.to_place
    ends = (t.ladder[0], t.ladder[-1], len(t.ladder)) if wanted is None else (wanted.low, wanted.high, 0)
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    groups = f"{t.number_of_groups} groups of " if t.number_of_groups > 1 else ""
    size = f"Tempering {model.name}: {model.sites} sites, {model.bonds} bonds, {samples}{groups}"
    return ladder_sentence(plan, size, ("T", "temperatures"), ends, _length(plan))


def _length(plan: TemperPlan) -> str:
    """Returns how long a run is, in words."""
    t = plan.config.temper
    return goal(t.target, t.time_limit, plan.model) if t.searches else f"{t.thermalize} + {t.sweeps} sweeps"


def outcome(plan: TemperPlan, rate: float | None) -> Told:
    """Returns what is said of a run when it is done."""
    found = overview(plan.path, None if rate is None else plan.model)
    if found.search is not None:
        return _outcome_of_search(plan, found, found.search, rate)
    averages = _averages_of(plan.path, found)
    numbers = numbers_of_plan(plan) | _numbers(found, averages) | {"updates_per_ns": rate}
    return Told(numbers, _report(found, averages) + solution_lines(plan), _following(plan, averages))


def _outcome_of_search(plan: TemperPlan, found: TemperOverview, search: Searched, rate: float | None) -> Told:
    """Returns what is said of a search when it is done: what it found, and whether that is what it was to find."""
    numbers = numbers_of_plan(plan) | _numbers(found, None) | search.numbers | {"updates_per_ns": rate}
    lines = _search_lines(found, search) + solution_lines(plan)
    missed = search.target is not None and not search.is_met
    following = [f"spinsim show {quoted(plan.path)} --solution", *(twice_as_long(plan) if missed else [])]
    return Told(numbers, lines, following, _verdict(found, search), missed)


def _verdict(found: TemperOverview, search: Searched) -> str:
    """Returns whether the targets of a search were met, in a line."""
    return "" if found.best_energy is None else search.verdict(found.model, found.best_energy.min(axis=1))


def _search_lines(found: TemperOverview, search: Searched) -> list[str]:
    """Returns lines on what a search did and found."""
    groups = found.config.get(found.job, {}).get("groups", 1)
    side_by_side = f" of {groups} groups" if groups > 1 else ""
    first = " (first group)" if groups > 1 else ""
    again = "" if search.restarts is None else f", {count(search.restarts, 'restart')}"
    lines = [] if found.best_energy is None else lowest_lines(found.model, found.best_energy)
    lines.append(f"Search         {search.done} sweeps{side_by_side} in {search.elapsed:.3g} s{again}")
    if len(found.temperature) == 1:  # nothing to exchange
        return lines
    low, high = np.nanmin(found.swap_rate), np.nanmax(found.swap_rate)
    return [
        *lines,
        f"Exchanges      {low:.3f} to {high:.3f} of those tried with the next temperature were accepted{first}",
        round_trip_line(found.round_trips) + first,
    ]


def show(path: Path) -> Told:
    """Returns what ``spinsim show`` says of a file."""
    found = overview(path)
    run, replicas = found.config.get(found.job, {}), found.round_trips.shape[1]
    planned = run["sweeps"] // run["measure_every"] if run else found.steps
    about = found.attributes | {"file": str(path), "steps": found.steps, "planned_steps": planned}
    about |= {"configurations": saved_number(path)}
    head = head_of_steps(path, found, replicas, found.steps, planned if found.search is None else None)
    if found.search is not None:
        said = _verdict(found, found.search) if found.finished else ""
        lines = head + _search_lines(found, found.search) + ([f"Target         {said}"] if said else [])
        return Told(about | _numbers(found, None) | found.search.numbers, lines)
    if not found.steps:
        return Told(about | {"round_trips": 0}, head)
    averages = _averages_of(path, found)
    return Told(about | _numbers(found, averages), head + _report(found, averages))


def _averages_of(path: Path, found: TemperOverview) -> Summary | None:
    """Returns averages with errors; None where the series are too short for them, or too long to be read here."""
    size = _BYTES_A_REPLICA * found.rows * found.round_trips.size
    return summarize(load_as(TemperResult, path)) if found.steps >= FEWEST_STEPS and size <= MOST_BYTES else None


def _following(plan: TemperPlan, averages: Summary | None) -> list[str]:
    """Returns commands that go on from here: all averages, figures, and a longer run where this one was too short."""
    path = quoted(plan.path)
    lines = [f"spinsim analyze {path} --all", f"spinsim plot {path}"]
    if averages is not None and (averages.problems or averages.doubts):
        lines += twice_as_long(plan)
    return lines


def _report(found: TemperOverview, averages: Summary | None) -> list[str]:
    """Returns lines on exchanges, on means at each temperature with the errors known, and on equilibrium."""
    known, exchanges = bool(np.isfinite(found.swap_rate).all()), len(found.temperature) > 1
    lines = [round_trip_line(found.round_trips)] if exchanges else []
    if not known:
        lines = ["Exchanges and round trips are known from the first checkpoint on"]
    lines += empty_lanes(found.attributes["engine"], found.round_trips.shape[1], len(found.temperature))
    if found.placement is not None:
        last = found.placement.swap_rate[-1]
        low, high = np.nanmin(last), np.nanmax(last)
        lines.append(f"Temperatures {len(found.temperature)}, placed; exchanges in the pre-run {low:.3f} to {high:.3f}")
    rates = [f"{rate:.3f}" for rate in found.swap_rate] if known and exchanges else None
    if averages is None:
        lines += _without_errors(found, rates)
    else:
        lines += table_of_places(found.model, averages, rates, "the next temperature")
        lines += wrapped(averages.verdict, "Verdict  ")
    return lines if found.best_energy is None else lines + lowest_lines(found.model, found.best_energy)


def _without_errors(found: TemperOverview, rates: list[str] | None) -> list[str]:
    """Returns means without errors, a line each temperature."""
    overlap = found.overlap_squared
    lines = [
        "       T        E/N     <m^2>" + ("" if overlap is None else "     <q^2>") + ("   swaps" if rates else "")
    ]
    for k, temperature in enumerate(found.temperature):
        row = f"{temperature:8.5g} {found.energy[k]:10.6f} {found.magnetization_squared[k]:9.6f}"
        row += "" if overlap is None else f" {overlap[k]:9.6f}"
        lines.append(row + (f"{[*rates, ''][k]:>8}" if rates else ""))
    return [*lines, "Means have no errors here: spinsim analyze finds them."]


def _numbers(found: TemperOverview, averages: Summary | None) -> dict[str, Any]:
    """Returns what ``_report`` says, for ``--json``."""
    lowest = None if found.best_energy is None else float(found.best_energy.min())
    is_cut = lowest is not None and found.model.maxcut_weight is not None
    return {
        "temperatures": found.temperature.tolist(),
        "energy_per_site": found.energy.tolist(),
        "magnetization_squared": found.magnetization_squared.tolist(),
        "overlap_squared": None if found.overlap_squared is None else found.overlap_squared.tolist(),
        "swap_rate": found.swap_rate.tolist(),
        "placed": found.placement is not None,
        **precision(found.model),
        "round_trips": int(found.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(found.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
    }
