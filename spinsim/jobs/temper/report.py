"""Reports of tempering runs: before the run, at its end and for ``show``; and their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.equilibration import Approach, approach
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import Array, model_of_samples, sample_of, samples_in
from spinsim.analysis.statistics import measurements_of, statistics_of
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.analysis.tables import (
    Columns,
    Report,
    Row,
    as_tables,
    below_each_other,
    in_columns,
    unprinted,
    verdict_rows,
)
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.ladder.report import ladder_columns, ladder_sentence, round_trip_row, table_by_place, walk_rows
from spinsim.jobs.temper.run import TemperPlan, TemperResult
from spinsim.run.search import Searched, goal


def _swap_rate(result: TemperResult) -> Array:
    """Acceptance rate of exchanges; NaN if unknown, because the run was killed before its first checkpoint."""
    return np.where(result.attempts.any(axis=0), result.swap_rate, np.nan)


def _means(result: TemperResult) -> dict[str, Array]:
    """Mean energy, m^2 and q^2 at each temperature; NaN without measurements."""
    if result.reduced is not None:
        statistics = statistics_of(result)
        names = [name for name in ("energy", "m^2", "q^2") if name in statistics.run.names]
        return {name: statistics.mean(name).mean(axis=0) for name in names}
    sites, squares = result.model.sites, {"m^2": result.magnetization, "q^2": result.overlap}
    means = {name: _mean(series, series) / sites**2 for name, series in squares.items() if series.shape[2]}
    return {"energy": _mean(result.energy) / sites, **means}


def _mean(*factors: npt.NDArray[Any]) -> Array:
    """Mean at each temperature of a series (steps, samples, copies, temperatures), or of a product of two series."""
    places = factors[0].shape[-1]
    total = np.einsum(f"{','.join(['abct'] * len(factors))}->t", *factors, dtype=np.float64)
    count = factors[0].size // places
    return np.asarray(total / count) if count else np.full(places, np.nan)


MOST_BYTES: Final = 2**28
"""Largest size of a run's series for which averages get errors at its end and in ``show``."""
_BYTES_A_REPLICA: Final = 64  # for each measurement, with correlations


def describe(plan: TemperPlan) -> str:
    t, model, wanted = plan.config.temper, plan.model, plan.config.temper.to_place
    values = t.ladder if wanted is None else np.array([wanted.low, wanted.high])
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    groups = f"{t.number_of_groups} groups of " if t.number_of_groups > 1 else ""
    size = f"Tempering {model.name}: {model.size_in_words}, {samples}{groups}"
    length = goal(t.target, t.time_limit, model) if t.searches else f"{t.thermalize} + {count(t.sweeps, 'sweep')}"
    return ladder_sentence(plan, size, ("T", "temperatures"), values, length)


def outcome(plan: TemperPlan, result: TemperResult, rate: float | None) -> Report:
    search, path = result.search, quoted(plan.path)
    averages = None if search is not None else _averages_of(result)
    rows = [*_findings(result, averages), *reports.solution_row(plan), *reports.facts(plan.path, result)]
    rows.append(Row(key="updates_per_ns", value=rate))
    if search is None:
        following = [*reports.of_solution(plan), f"spinsim analyze {path} --all", f"spinsim plot {path}"]
        is_short = averages is not None and (averages.problems or averages.doubts)
        following += reports.twice_as_long(plan, result) if is_short else []
        return Report(rows, following)
    missed = search.target is not None and not search.is_met
    following = [f"spinsim show {path} --solution", *(reports.twice_as_long(plan, result) if missed else [])]
    return Report(rows, following, _verdict(result, search), missed)


def show(path: Path, result: TemperResult) -> Report:
    settings, search, steps = result.config[result.job], result.search, measurements_of(result)
    each = settings["measure_every"]
    of_rows = settings["sweeps"] // each if search is None else None
    rows = reports.head_of_steps(path, result, result.round_trips.shape[1], steps, of_rows, each)
    averages = None if search is not None or not steps else _averages_of(result)
    rows += _findings(result, averages)
    verdict = _verdict(result, search) if search is not None and result.finished else ""
    return Report([*rows, *([Row("Target", verdict)] if verdict else [])])


def _verdict(result: TemperResult, search: Searched) -> str:
    return "" if result.best_energy is None else search.verdict(result.model, result.best_energy.min(axis=1))


def _averages_of(result: TemperResult) -> Summary | None:
    """Return averages with errors; None if the series are too short for errors, or too long to read here."""
    size = _BYTES_A_REPLICA * len(result.sweep) * result.round_trips.size
    return summarize(result) if measurements_of(result) >= FEWEST_STEPS and size <= MOST_BYTES else None


def _of_samples(run: TemperResult, best: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the lowest energies of all replicas, one row for each sample, also if several pooled runs share it."""
    if run.disorder is None:
        return best
    rows = [best[run.disorder == sample].ravel() for sample in range(samples_in(run))]
    most = max(map(len, rows))  # samples with fewer runs have fewer replicas
    return np.stack([np.pad(row, (0, most - len(row)), constant_values=np.inf) for row in rows])


def _findings(run: TemperResult, averages: Summary | None) -> list[Row | str]:
    """Return all numbers of a run; the printed ones differ between searches and runs in equilibrium."""
    settings, best, places = run.config[run.job], run.best_energy, len(run.temperature)
    lowest = None if best is None else float(best.min())
    is_cut = lowest is not None and run.model.maxcut_weight is not None
    numbers = {
        "steps": measurements_of(run),
        "planned_steps": settings["sweeps"] // settings["measure_every"],
        "placed": run.placement is not None,
        "lowest_energy": lowest,
        "cut": float(run.model.cut(lowest)) if is_cut and lowest is not None else None,
        "averages": None if averages is None else as_tables(averages),
    }
    found = [] if best is None else reports.printed(reports.lowest_rows(model_of_samples(run), _of_samples(run, best)))
    columns, trips = _columns_without_errors(run), round_trip_row(run.round_trips)
    rows: list[Row | str] = [*unprinted(numbers), *(replace(column, label="") for column in columns)]
    if run.search is not None:
        rows += [*unprinted(run.search.numbers), *found, *_search_rows(run, run.search)]
        return [*rows, trips if places > 1 else replace(trips, label="")]
    known = bool(np.isfinite(columns[-1].value).all())
    rows.append(trips if known and places > 1 else replace(trips, label=""))
    rows += [] if known else ["Exchanges and round trips are known from the first checkpoint on"]
    if not measurements_of(run):
        return rows
    rows += reports.empty_lanes(run.attributes["engine"], run.round_trips.shape[1], places)
    if run.placement is not None:
        last = run.placement.swap_rate[-1]
        ends = f"exchanges in the pre-run {np.nanmin(last):.3f} to {np.nanmax(last):.3f}"
        rows.append(Row("Temperatures", f"{places}, placed; {ends}"))
    if averages is None:
        swaps = [replace(columns[-1], value=np.append(columns[-1].value, np.nan))] if known and places > 1 else []
        rows += in_columns(column.cells for column in [*columns[:-1], *swaps] if column.value is not None)
        return [*rows, "Means have no errors here: spinsim analyze finds them.", *found]
    rates = columns[-1].value if known and places > 1 else None
    rows += table_by_place(run.model, averages, rates, "the next temperature")
    return [*rows, *verdict_rows(averages), *walk_rows(run), *found]


def _search_rows(run: TemperResult, search: Searched) -> list[Row]:
    groups = run.config.get(run.job, {}).get("groups", 1)
    side_by_side = f" of {groups} groups" if groups > 1 else ""
    again = "" if search.restarts is None else f", {count(search.restarts, 'restart')}"
    rows = [Row("Search", f"{count(search.done, 'sweep')}{side_by_side} in {search.elapsed:.3g} s{again}")]
    rate = _swap_rate(run)
    if len(rate):  # a single temperature has no exchanges
        ends = f"{np.nanmin(rate):.3f} to {np.nanmax(rate):.3f} of those tried with the next temperature were accepted"
        rows.append(Row("Exchanges", ends + " (first group)" * (groups > 1)))
    return rows


def _columns_without_errors(run: TemperResult) -> list[Row]:
    """Return means at each temperature, and then the acceptance rates of exchanges."""
    means = _means(run)
    return [
        Row("T", run.temperature, key="temperatures"),
        Row("E/N", means["energy"], key="energy_per_site"),
        Row("<m^2>", means["m^2"], key="magnetization_squared"),
        Row("<q^2>", means.get("q^2"), key="overlap_squared"),
        Row("swaps", _swap_rate(run), key="swap_rate"),
    ]


def columns(result: TemperResult, by: str) -> Columns:
    others: dict[str, Callable[[], Columns]] = {
        "overlap": lambda: below_each_other([_overlaps(result, k) for k in range(samples_in(result))]),
        "bin": lambda: _bins(approach(result)),
    }
    return ladder_columns(result, by, lambda one: {"temperature": one.temperature}, others)


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
