"""Reports of tempering runs, before they begin, when they are done and by ``show``, and their tables.

Main numbers come from the file piece by piece, as it may be larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.equilibration import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.analysis.tables import Columns, as_tables, below_each_other
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted, wrapped
from spinsim.jobs import job_of, reports
from spinsim.jobs.base import Told
from spinsim.jobs.temper.result import TemperResult, read
from spinsim.jobs.temper.running import TemperPlan
from spinsim.model.ising import Ising
from spinsim.result import load_as
from spinsim.run.search import Searched, goal

Array = npt.NDArray[np.float64]

PIECE_BYTES: Final = 2**24  # size of a series' part that is in memory at a time; at least a row


class TemperOverview(NamedTuple):
    """The main numbers of a tempering run, without its series and without errors, which need an analysis."""

    run: TemperResult  # with none of its rows
    steps: int  # measurements that were made so far
    rows: int  # those of them that the series have
    energy: Array  # mean energy per site at each temperature, NaN where there are no measurements
    magnetization_squared: Array  # mean m^2, likewise
    overlap_squared: Array | None  # mean q^2, likewise; None where there is one copy

    @property
    def swap_rate(self) -> Array:
        """That of the run; NaN where it was killed before its first checkpoint, with which exchanges are written."""
        return np.where(self.run.attempts.any(axis=0), self.run.swap_rate, np.nan)


def overview(path: str | os.PathLike[str], model: Ising | None = None) -> TemperOverview:
    """Read the main numbers of a tempering file; of an unfinished run, of the steps it has."""
    with store.open_to_read(Path(path)) as file:
        attributes = store.text_attributes(file)
        if attributes["job"] != TemperResult.job:
            raise InputError(f"{path} holds {job_of(attributes['job']).a_run}: give the file of a temper run")
        run, rows = read(file, 0, attributes, model), store.complete_rows(file)
        if run.reduced is None:
            steps, means = rows, _means(file["measurements"], rows, run.model.sites)
        else:
            steps, means = run.reduced.measurements, _means_of(run.reduced)
        return TemperOverview(run, steps, rows, means["energy"], means["m^2"], means.get("q^2"))


def _means(group: h5py.Group, rows: int, sites: int) -> dict[str, Array]:
    """Mean energy, m^2 and q^2 at each temperature, of the first rows of the series that there are."""
    powers = {"energy": ("energy", 1), "m^2": ("magnetization", 2), "q^2": ("overlap", 2)}
    return {
        name: _mean(group[series], rows, power) / sites**power
        for name, (series, power) in powers.items()
        if series in group
    }


def _means_of(run: ReducedRun) -> dict[str, Array]:
    with np.errstate(invalid="ignore"):
        return {name: run.mean(name).mean(axis=0) for name in ("energy", "m^2", "q^2") if name in run.names}


def _mean(series: h5py.Dataset, rows: int, power: int) -> Array:
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
    t, model, wanted = plan.config.temper, plan.model, plan.config.temper.to_place
    values = t.ladder if wanted is None else np.array([wanted.low, wanted.high])
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    groups = f"{t.number_of_groups} groups of " if t.number_of_groups > 1 else ""
    size = f"Tempering {model.name}: {model.size_in_words}, {samples}{groups}"
    length = goal(t.target, t.time_limit, model) if t.searches else f"{t.thermalize} + {count(t.sweeps, 'sweep')}"
    return reports.ladder_sentence(plan, size, ("T", "temperatures"), values, length)


def outcome(plan: TemperPlan, rate: float | None) -> Told:
    main = overview(plan.path, None if rate is None else plan.model)
    averages = None if main.run.search is not None else _averages_of(plan.path, main)
    numbers, updates = reports.numbers_of_plan(plan) | _numbers(main, averages), {"updates_per_ns": rate}
    path, written, search = quoted(plan.path), reports.solution_lines(plan), main.run.search
    if search is None:
        following = [*reports.of_solution(plan), f"spinsim analyze {path} --all", f"spinsim plot {path}"]
        is_short = averages is not None and (averages.problems or averages.doubts)
        following += reports.twice_as_long(plan) if is_short else []
        return Told(numbers | updates, _report(main, averages) + written, following)
    missed = search.target is not None and not search.is_met
    following = [f"spinsim show {path} --solution", *(reports.twice_as_long(plan) if missed else [])]
    lines = _search_lines(main, search) + written
    return Told(numbers | search.numbers | updates, lines, following, _verdict(main, search), missed)


def _verdict(main: TemperOverview, search: Searched) -> str:
    return "" if main.run.best_energy is None else search.verdict(main.run.model, main.run.best_energy.min(axis=1))


def _search_lines(main: TemperOverview, search: Searched) -> list[str]:
    run = main.run
    groups = run.config.get(run.job, {}).get("groups", 1)
    side_by_side = f" of {groups} groups" if groups > 1 else ""
    first = " (first group)" if groups > 1 else ""
    again = "" if search.restarts is None else f", {count(search.restarts, 'restart')}"
    lines = [] if run.best_energy is None else reports.lowest_lines(run.model, run.best_energy)
    lines.append(f"Search         {count(search.done, 'sweep')}{side_by_side} in {search.elapsed:.3g} s{again}")
    if len(run.temperature) == 1:  # nothing to exchange
        return lines
    low, high = np.nanmin(main.swap_rate), np.nanmax(main.swap_rate)
    return [
        *lines,
        f"Exchanges      {low:.3f} to {high:.3f} of those tried with the next temperature were accepted{first}",
        reports.round_trip_line(run.round_trips) + first,
    ]


def show(path: Path) -> Told:
    main = overview(path)
    run, search = main.run, main.run.search
    settings, replicas = run.config.get(run.job, {}), run.round_trips.shape[1]
    each = settings.get("measure_every", 1)
    planned = settings["sweeps"] // each if settings else main.steps
    about = run.attributes | {"file": str(path), "steps": main.steps, "planned_steps": planned}
    about |= {"configurations": len(reports.saved_in(path) or ())}
    head = reports.head_of_steps(path, run, replicas, main.steps, planned if search is None else None, each)
    if search is not None:
        said = _verdict(main, search) if run.finished else ""
        lines = head + _search_lines(main, search) + ([f"Target         {said}"] if said else [])
        return Told(about | _numbers(main, None) | search.numbers, lines)
    if not main.steps:
        return Told(about | {"round_trips": 0}, head)
    averages = _averages_of(path, main)
    return Told(about | _numbers(main, averages), head + _report(main, averages))


def _averages_of(path: Path, main: TemperOverview) -> Summary | None:
    """Returns averages with errors; None where the series are too short for them, or too long to be read here."""
    size = _BYTES_A_REPLICA * main.rows * main.run.round_trips.size
    return summarize(load_as(TemperResult, path)) if main.steps >= FEWEST_STEPS and size <= MOST_BYTES else None


def _report(main: TemperOverview, averages: Summary | None) -> list[str]:
    run = main.run
    known, exchanges = bool(np.isfinite(main.swap_rate).all()), len(run.temperature) > 1
    lines = [reports.round_trip_line(run.round_trips)] if exchanges else []
    if not known:
        lines = ["Exchanges and round trips are known from the first checkpoint on"]
    lines += reports.empty_lanes(run.attributes["engine"], run.round_trips.shape[1], len(run.temperature))
    if run.placement is not None:
        last = run.placement.swap_rate[-1]
        low, high = np.nanmin(last), np.nanmax(last)
        lines.append(f"Temperatures {len(run.temperature)}, placed; exchanges in the pre-run {low:.3f} to {high:.3f}")
    rates = [f"{rate:.3f}" for rate in main.swap_rate] if known and exchanges else None
    if averages is None:
        lines += _without_errors(main, rates)
    else:
        lines += reports.table_of_places(run.model, averages, rates, "the next temperature")
        lines += wrapped(averages.verdict, "Verdict  ")
    return lines if run.best_energy is None else lines + reports.lowest_lines(run.model, run.best_energy)


def _without_errors(main: TemperOverview, rates: list[str] | None) -> list[str]:
    overlap = main.overlap_squared
    head = "       T        E/N     <m^2>" + ("" if overlap is None else "     <q^2>")
    lines = [head + ("   swaps" if rates else "")]
    for k, temperature in enumerate(main.run.temperature):
        row = f"{temperature:8.5g} {main.energy[k]:10.6f} {main.magnetization_squared[k]:9.6f}"
        row += "" if overlap is None else f" {overlap[k]:9.6f}"
        lines.append(row + (f"{[*rates, ''][k]:>8}" if rates else ""))
    return [*lines, "Means have no errors here: spinsim analyze finds them."]


def _numbers(main: TemperOverview, averages: Summary | None) -> dict[str, Any]:
    run = main.run
    lowest = None if run.best_energy is None else float(run.best_energy.min())
    is_cut = lowest is not None and run.model.maxcut_weight is not None
    return {
        "temperatures": run.temperature.tolist(),
        "energy_per_site": main.energy.tolist(),
        "magnetization_squared": main.magnetization_squared.tolist(),
        "overlap_squared": None if main.overlap_squared is None else main.overlap_squared.tolist(),
        "swap_rate": main.swap_rate.tolist(),
        "placed": run.placement is not None,
        **reports.precision(run.model),
        "round_trips": int(run.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(run.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
    }


def columns(result: TemperResult, by: str) -> Columns:
    others: dict[str, Callable[[], Columns]] = {
        "overlap": lambda: below_each_other([_overlaps(result, k) for k in range(result.model.samples)]),
        "bin": lambda: _bins(approach(result)),
    }
    return reports.ladder_columns(result, by, lambda one: {"temperature": one.temperature}, others)


def _overlaps(result: TemperResult, sample: int) -> Columns:
    main = overlap_distribution(sample_of(result, sample))
    temperatures, bins = main.density.shape
    return {
        "sample": np.full(main.density.size, sample),
        "temperature": np.repeat(result.temperature, bins),
        "q": np.tile(main.q, temperatures),
        "width": np.tile(main.width, temperatures),
        "probability_density": main.density.ravel(),
        "probability_density_error": np.where(main.trusted, main.error, np.nan).ravel(),
    }


def _bins(main: Approach) -> Columns:
    bins, temperatures = len(main.start), len(main.temperature)
    columns: Columns = {
        "temperature": np.repeat(main.temperature, bins),
        "first_sweep": np.tile(main.first_sweep, temperatures),
        "last_sweep": np.tile(main.last_sweep, temperatures),
        "measurements": np.tile(main.stop - main.start, temperatures),
    }
    for name, mean in main.mean.items():
        columns |= {name: mean.T.ravel(), f"{name}_error": main.error[name].T.ravel()}
        columns[f"{name}_verdict"] = np.repeat(main.verdict[name], bins)
    return columns
