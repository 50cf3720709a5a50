"""Reports of tempering runs, before they begin, when they are done and by ``show``, and their tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.equilibration import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import sample_of
from spinsim.analysis.sources import measurements_of
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.analysis.tables import Columns, as_tables, below_each_other
from spinsim.inputs.texts import count, quoted, wrapped
from spinsim.jobs import reports
from spinsim.jobs.base import Told
from spinsim.jobs.temper.run import TemperPlan, TemperResult
from spinsim.run.search import Searched, goal

Array = npt.NDArray[np.float64]

PIECE_BYTES: Final = 2**24  # size of a series' part that is in memory at a time; at least a row


def _swap_rate(result: TemperResult) -> Array:
    """Share of exchanges accepted; NaN where none are known, of a run that was killed before its first checkpoint."""
    return np.where(result.attempts.any(axis=0), result.swap_rate, np.nan)


def _means(result: TemperResult) -> dict[str, Array]:
    """Mean energy, m^2 and q^2 at each temperature, NaN without measurements."""
    if result.reduced is not None:
        with np.errstate(invalid="ignore"):
            return {
                name: result.reduced.mean(name).mean(axis=0)
                for name in ("energy", "m^2", "q^2")
                if name in result.reduced.names
            }
    sites = result.model.sites
    powers = {"energy": (result.energy, 1), "m^2": (result.magnetization, 2), "q^2": (result.overlap, 2)}
    return {name: _mean(series, power) / sites**power for name, (series, power) in powers.items() if series.shape[2]}


def _mean(series: npt.NDArray[Any], power: int) -> Array:
    places, piece = series.shape[-1], max(1, PIECE_BYTES // (8 * max(1, int(np.prod(series.shape[1:])))))
    total = np.zeros(places)
    for first in range(0, len(series), piece):
        total += (series[first : first + piece].astype(np.float64) ** power).sum(axis=(0, 1, 2))
    count = series.size // places
    return total / count if count else np.full(places, np.nan)


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


def outcome(plan: TemperPlan, result: TemperResult, rate: float | None) -> Told:
    search, path, written = result.search, quoted(plan.path), reports.solution_lines(plan)
    averages = None if search is not None else _averages_of(result)
    numbers, updates = reports.about(plan.path, result) | _numbers(result, averages), {"updates_per_ns": rate}
    if search is None:
        following = [*reports.of_solution(plan), f"spinsim analyze {path} --all", f"spinsim plot {path}"]
        is_short = averages is not None and (averages.problems or averages.doubts)
        following += reports.twice_as_long(plan, result) if is_short else []
        return Told(numbers | updates, _report(result, averages) + written, following)
    missed = search.target is not None and not search.is_met
    following = [f"spinsim show {path} --solution", *(reports.twice_as_long(plan, result) if missed else [])]
    lines = _search_lines(result, search) + written
    return Told(numbers | updates, lines, following, _verdict(result, search), missed)


def _verdict(result: TemperResult, search: Searched) -> str:
    return "" if result.best_energy is None else search.verdict(result.model, result.best_energy.min(axis=1))


def _search_lines(run: TemperResult, search: Searched) -> list[str]:
    groups = run.config.get(run.job, {}).get("groups", 1)
    side_by_side = f" of {groups} groups" if groups > 1 else ""
    first = " (first group)" if groups > 1 else ""
    again = "" if search.restarts is None else f", {count(search.restarts, 'restart')}"
    lines = [] if run.best_energy is None else reports.lowest_lines(run.model, run.best_energy)
    lines.append(f"Search         {count(search.done, 'sweep')}{side_by_side} in {search.elapsed:.3g} s{again}")
    if len(run.temperature) == 1:  # nothing to exchange
        return lines
    rate = _swap_rate(run)
    low, high = np.nanmin(rate), np.nanmax(rate)
    return [
        *lines,
        f"Exchanges      {low:.3f} to {high:.3f} of those tried with the next temperature were accepted{first}",
        reports.round_trip_line(run.round_trips) + first,
    ]


def show(path: Path, result: TemperResult) -> Told:
    settings, search, steps = result.config[result.job], result.search, measurements_of(result)
    each = settings["measure_every"]
    of_rows = settings["sweeps"] // each if search is None else None
    head = reports.head_of_steps(path, result, result.round_trips.shape[1], steps, of_rows, each)
    averages = None if search is not None or not steps else _averages_of(result)
    numbers = reports.about(path, result) | _numbers(result, averages)
    if search is not None:
        said = _verdict(result, search) if result.finished else ""
        return Told(numbers, head + _search_lines(result, search) + ([f"Target         {said}"] if said else []))
    return Told(numbers, head + _report(result, averages) if steps else head)


def _averages_of(result: TemperResult) -> Summary | None:
    """Returns averages with errors; None where the series are too short for them, or too long to be read here."""
    size = _BYTES_A_REPLICA * len(result.sweep) * result.round_trips.size
    return summarize(result) if measurements_of(result) >= FEWEST_STEPS and size <= MOST_BYTES else None


def _report(run: TemperResult, averages: Summary | None) -> list[str]:
    rate = _swap_rate(run)
    known, exchanges = bool(np.isfinite(rate).all()), len(run.temperature) > 1
    lines = [reports.round_trip_line(run.round_trips)] if exchanges else []
    if not known:
        lines = ["Exchanges and round trips are known from the first checkpoint on"]
    lines += reports.empty_lanes(run.attributes["engine"], run.round_trips.shape[1], len(run.temperature))
    if run.placement is not None:
        last = run.placement.swap_rate[-1]
        low, high = np.nanmin(last), np.nanmax(last)
        lines.append(f"Temperatures {len(run.temperature)}, placed; exchanges in the pre-run {low:.3f} to {high:.3f}")
    rates = [f"{one:.3f}" for one in rate] if known and exchanges else None
    if averages is None:
        lines += _without_errors(run, rates)
    else:
        lines += reports.table_of_places(run.model, averages, rates, "the next temperature")
        lines += wrapped(averages.verdict, "Verdict  ")
    return lines if run.best_energy is None else lines + reports.lowest_lines(run.model, run.best_energy)


def _without_errors(run: TemperResult, rates: list[str] | None) -> list[str]:
    means = _means(run)
    overlap = means.get("q^2")
    head = "       T        E/N     <m^2>" + ("" if overlap is None else "     <q^2>")
    lines = [head + ("   swaps" if rates else "")]
    for k, temperature in enumerate(run.temperature):
        row = f"{temperature:8.5g} {means['energy'][k]:10.6f} {means['m^2'][k]:9.6f}"
        row += "" if overlap is None else f" {overlap[k]:9.6f}"
        lines.append(row + (f"{[*rates, ''][k]:>8}" if rates else ""))
    return [*lines, "Means have no errors here: spinsim analyze finds them."]


def _numbers(run: TemperResult, averages: Summary | None) -> dict[str, Any]:
    means, settings = _means(run), run.config[run.job]
    lowest = None if run.best_energy is None else float(run.best_energy.min())
    is_cut = lowest is not None and run.model.maxcut_weight is not None
    return {
        "steps": measurements_of(run),
        "planned_steps": settings["sweeps"] // settings["measure_every"],
        "temperatures": run.temperature.tolist(),
        "energy_per_site": means["energy"].tolist(),
        "magnetization_squared": means["m^2"].tolist(),
        "overlap_squared": means["q^2"].tolist() if "q^2" in means else None,
        "swap_rate": _swap_rate(run).tolist(),
        "placed": run.placement is not None,
        "round_trips": int(run.round_trips.sum()),
        "lowest_energy": lowest,
        "cut": float(run.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
        **({} if run.search is None else run.search.numbers),
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
