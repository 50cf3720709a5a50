"""What is said of tempering runs: before they begin, when they are done, and by ``show``."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.printed import as_tables
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.inputs.texts import count, quoted, wrapped
from spinsim.jobs.base import Told
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
from spinsim.jobs.temper.overview import TemperOverview, overview
from spinsim.jobs.temper.result import load_temper
from spinsim.jobs.temper.running import TemperPlan
from spinsim.run.search import Searched, goal

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
    return summarize(load_temper(path)) if found.steps >= FEWEST_STEPS and size <= MOST_BYTES else None


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
        lines += _means(found, rates)
    else:
        lines += table_of_places(found.model, averages, rates, "the next temperature")
        lines += wrapped(averages.verdict, "Verdict  ")
    return lines if found.best_energy is None else lines + lowest_lines(found.model, found.best_energy)


def _means(found: TemperOverview, rates: list[str] | None) -> list[str]:
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
        "energy_per_site": _finite(found.energy),
        "magnetization_squared": _finite(found.magnetization_squared),
        "overlap_squared": None if found.overlap_squared is None else _finite(found.overlap_squared),
        "swap_rate": _finite(found.swap_rate),
        "placed": found.placement is not None,
        **precision(found.model),
        "round_trips": int(found.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(found.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
    }


def _finite(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Returns numbers as JSON has them, None for NaN."""
    return [value if isfinite(value) else None for value in values.tolist()]
