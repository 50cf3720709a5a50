"""Reports on quantum runs: before the run, at its end, for ``show`` and for ``analyze``; and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim.analysis.gaps import FEWEST_STEPS as FEWEST_FOR_GAPS
from spinsim.analysis.gaps import LEAST, Gaps, correlation_in_time, gaps_by_parity, has_connected
from spinsim.analysis.runs import sample_of, samples_in
from spinsim.analysis.statistics import measurements_of
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
    with_error,
)
from spinsim.inputs.texts import count, quoted, wrapped
from spinsim.jobs import reports
from spinsim.jobs.ladder.report import (
    MOST_COLUMNS,
    ladder_columns,
    ladder_sentence,
    round_trip_row,
    table_by_place,
    walk_rows,
)
from spinsim.jobs.quantum.extrapolation import (
    LAWS,
    OF_SLICES,
    Extrapolation,
    at_step,
    coefficients,
    extrapolated,
    groups,
)
from spinsim.jobs.quantum.run import QuantumPlan, QuantumResult
from spinsim.observables.table import LABELS
from spinsim.store.contents import MEASUREMENTS
from spinsim.store.files import CONFIGURATIONS

MOST_BYTES: Final = 2**28
"""Largest size of a run's series for which averages are computed at its end and by ``show``."""
MOST_SAVED_BYTES: Final = 2**24
"""Largest size of saved configurations for which gaps are computed at the end of a run and by ``show``."""


def describe(plan: QuantumPlan) -> str:
    q, model = plan.config.quantum, plan.model
    axis, values = q.ends.axis, q.ends.values
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    sites, slices = count(model.sites // q.slices, "site"), count(q.slices, "slice")
    size = f"Quantum {model.name}: {sites} x {slices}, {samples}"
    length = f"{q.thermalize} + {count(q.sweeps, 'sweep')}"
    if q.is_general:  # quantities that are equal at all points
        same = f"gamma = {q.ends.gamma[0]:.4g}" if axis == "beta" else f"beta = {q.ends.beta[0]:.4g}"
        length = f"{same}, {length}"
    return ladder_sentence(plan, size, (axis, axis), values, length)


def outcome(plan: QuantumPlan, result: QuantumResult, rate: float | None) -> Report:
    rows = [*_findings(result), *reports.facts(plan.path, result), Row(key="updates_per_ns", value=rate)]
    path = quoted(plan.path)
    return Report(rows, [f"spinsim analyze {path} --all", f"spinsim plot {path}"])


def show(path: Path, result: QuantumResult) -> Report:
    run, done = result.config[result.job], measurements_of(result)
    each = run["measure_every"]
    head = reports.head_of_steps(path, result, result.round_trips.shape[1], done, run["sweeps"] // each, each)
    return Report([*head, *_findings(result)])


def _findings(result: QuantumResult) -> list[Row | str]:
    steps, run = measurements_of(result), result.config[result.job]
    numbers: dict[str, Any] = {"steps": steps, "planned_steps": run["sweeps"] // run["measure_every"]}
    numbers |= {name: getattr(result, name) for name in ("slices", "k", "gamma", "beta", "k_time", "swap_rate")}
    trips = round_trip_row(result.round_trips)
    why = ""
    if result.record.group(MEASUREMENTS).nbytes > MOST_BYTES:
        why = "too many measurements are there"
    elif steps < FEWEST_STEPS:
        why = "too few measurements are there so far"
    if why:
        told = f"Averages are left out, as {why}: spinsim analyze finds them."
        return [*unprinted(numbers | {"averages": None}), replace(trips, label=""), told]
    summary = summarize(result)
    rows: list[Row | str] = [*unprinted(numbers | {"averages": as_tables(summary)})]
    rows.append(trips if len(result.swap_rate) else replace(trips, label=""))  # a single point has no exchanges
    rows += reports.empty_lanes(result.attributes["engine"], result.round_trips.shape[1], len(result.k))
    others = {"k": ("Gamma", result.gamma), "gamma": ("beta", result.beta), "beta": ("Gamma", result.gamma)}
    head, values = others[result.axis.name]
    other = {head: [f"{value:.4f}" for value in values]}
    next_place = f"the next {result.axis.symbol}"
    rows += table_by_place(result.model, summary, result.swap_rate, next_place, other)
    if result.record.group(CONFIGURATIONS).nbytes <= MOST_SAVED_BYTES:
        rows += in_time_lines(result)
    else:
        later = "gaps are left out, as many configurations are there: spinsim analyze finds them."
        rows.append(Row("Gap", note=later))
    return [*rows, *verdict_rows(summary), *walk_rows(result)]


def in_time_lines(result: QuantumResult) -> list[str]:
    if result.model.fields.any():
        return wrapped("gaps are left out, as a field breaks parity.", "Gap      ")
    if measurements_of(result) < FEWEST_FOR_GAPS:
        return wrapped(f"gaps are left out, as they take {FEWEST_FOR_GAPS} measurements.", "Gap      ")
    gaps = gaps_by_parity(result)
    lines = _of_one(result, gaps) if samples_in(result) == 1 else _of_samples(result, gaps)
    if any((of.operators == 1).any() for of in gaps.values()):
        lines += wrapped(
            "from the average over sites or bonds, an upper bound: levels nearer each other than it tells apart raise "
            "it. Saved configurations of a small space tell them apart (--save-configurations 1).", "average: ",
        )  # fmt: skip
    if (np.isfinite(gaps["odd"].gap) | gaps["odd"].is_hot).any():
        lines += wrapped(_length_in_time(result, gaps["odd"]), "length in time: ")
    if "even" in gaps and gaps["even"].is_hot.any():
        lines += wrapped(f"left out where no odd gap above {LEAST:g} / beta is known.", "gaps of even parity: ")
    for parity in (parity for parity, of in gaps.items() if not (np.isfinite(of.gap) | of.is_hot).any()):
        lines += wrapped(
            "C(t) is lost in noise before three times, or no window fits: measure longer, or take smaller steps in "
            "time (more slices at the same gamma and beta).", f"no gap of {parity} parity: ",
        )  # fmt: skip
    if "even" not in gaps:
        lines += wrapped("take --even-correlations, or saved configurations, and two copies.", "gaps of even parity: ")
    return lines


def _length_in_time(result: QuantumResult, odd: Gaps) -> str:
    """Sentence on beta times the gap of odd parity, which must be large for averages of the ground state."""
    spans = np.where(odd.is_hot, LEAST, odd.gap * result.slices)
    known, hot = spans[np.isfinite(spans) & ~odd.is_hot], int(odd.is_hot.sum())
    where = "samples and points" if len(spans) > 1 else "points"
    longest = f"beta is {known.min():.3g} to {known.max():.3g} inverse gaps" if len(known) else "beta"
    if not hot:
        return f"{longest}: weights of excited states are below about exp(-{known.min():.3g})."
    also = ", and" if len(known) else " is"
    return (
        f"{longest}{also} below {LEAST:g} in {hot} of {spans.size} {where}, where excited states take part in results "
        "and C(t): take a larger beta, with more slices of the same step."
    )


def _of_one(result: QuantumResult, gaps: Mapping[str, Gaps]) -> list[str]:
    of_energy = "energy_gap" if result.points.is_general else "gap / k"
    head = "parity", "gap a step", of_energy, "operators", "levels", "window", "chi^2", "freedom"
    rows: list[tuple[str, ...]] = [(result.axis.symbol, *head)]
    for parity, of in gaps.items():
        for p, (at, k) in enumerate(zip(result.axis.values, result.k, strict=True)):
            fitted = ("-", "-", "-", "-")
            if of.first[0, p] and not of.is_hot[0, p]:
                window = f"{of.first[0, p]}-{of.last[0, p]}"
                fitted = str(of.levels[0, p]), window, f"{of.chi_squared[0, p]:.3g}", str(of.freedom[0, p])
            rows.append((f"{at:.5g}", parity, _gap_text(of, p), _gap_text(of, p, k), _operators(of, p), *fitted))
    scale = "energy_gap: in the unit of the couplings" if result.points.is_general else "k: the step in time"
    about = (
        "of the lowest level of a parity over the ground state, c cosh(gap (slices / 2 - t)) fitted to C(t) within the "
        f"window, times in slices; operators: that C(t) was combined of; levels: of the fit; {scale}."
    )
    return ["", *in_columns(zip(*rows, strict=True), width=None), *wrapped(about, "gap: ")]


def _gap_text(of: Gaps, place: int, unit: float = 1.0) -> str:
    """Return the gap of the first sample with its error, in units of ``unit``; an upper bound begins with <."""
    gap, error, bound = (float(values[0, place]) / unit for values in (of.gap, of.error, of.bound))
    if np.isnan(bound):
        return with_error(gap, error)
    return f"<{bound:.4g}" if of.is_hot[0, place] else f"<{with_error(gap, error)}"


def _operators(of: Gaps, place: int) -> str:
    number = int(of.operators[0, place])
    return "average" if number == 1 else str(number)


def _of_samples(result: QuantumResult, gaps: Mapping[str, Gaps]) -> list[str]:
    """Return median, smallest and largest gap of several samples, one line for each point and parity."""
    head = "parity", "median gap", "smallest", "largest", "operators", "fitted", "median p"
    rows: list[tuple[str, ...]] = [(result.axis.symbol, *head)]
    for parity, of in gaps.items():
        for p, at in enumerate(result.axis.values):
            there, known = np.isfinite(of.gap[:, p]), np.fmin(of.gap[:, p], of.bound[:, p])
            numbers, probability, values = ["-", "-", "-"], "-", known[np.isfinite(known)]
            if len(values):
                hot, bounded = int(of.is_hot[:, p].sum()), (of.operators[:, p] == 1).any()  # hot gaps are the smallest
                ends = (
                    (np.median(values), 2 * hot >= len(values)),
                    (values.min(), hot),
                    (values.max(), hot == len(values)),
                )
                numbers = [f"{'<' if bounded or is_bound else ''}{number:.5g}" for number, is_bound in ends]
            if there.any():
                probability = f"{np.median(of.probability[there, p]):.2g}"
            rows.append((f"{at:.5g}", parity, *numbers, _operators(of, p), str(there.sum()), probability))
    about = (
        "of the lowest level of a parity in units of 1 / step, from C(t) of each sample; operators: that C(t) was "
        "combined of; fitted: samples with a good window; p: the probability of as large a chi^2. ss.table(file, "
        "by='gap') has every sample with its error."
    )
    return ["", *in_columns(zip(*rows, strict=True), width=None), *wrapped(about, "gap: ")]


def extrapolations(
    runs: Sequence[tuple[QuantumResult, Summary]], choose: Callable[[Mapping[str, Any]], list[str]]
) -> Report:
    """Return averages at Delta tau = 0 of runs that differ only in their slices, with a verdict on the law."""
    rows: list[Row | str] = []
    numbers: list[dict[str, Any]] = []
    general = [(result, summary) for result, summary in runs if result.points.is_general]
    steps = [at_step(result, summary.estimates) for result, summary in general] if len(general) > 1 else []
    for group in groups(steps):
        first = {step.slices: step for step in reversed(group)}
        one = extrapolated(list(first.values()))
        if one.failing and len(first) > coefficients(4):
            one = extrapolated(list(first.values()), 4)
        numbers.append({"slices": list(one.slices), "order": one.order, **one.columns(), "verdict": one.verdict})
        slices = " and ".join([", ".join(map(str, one.slices[:-1])), str(one.slices[-1])])
        rows += wrapped(f"{len(one.slices)} runs that differ in their slices alone, {slices}, at Delta tau = 0:")
        names = choose({**one.estimates, **dict.fromkeys(OF_SLICES)})
        rows += _at_no_step(one, [name for name in names if name in one.estimates])
        bent = ", as a + b Delta tau^2 does not hold" if one.order == 4 else ""
        rows.append(Row("Law", note=f"{LAWS[one.order]} fitted to the averages{bent}; {one.verdict}."))
        if len(first) < len(group):
            rows.append(Row("Note", note="of runs with equal slices the first was taken, others were left out."))
    return Report([*rows, Row(key="extrapolations", value=numbers)] if numbers else [])


def _at_no_step(extrapolation: Extrapolation, names: list[str]) -> list[str]:
    place = Row(extrapolation.axis.symbol, extrapolation.axis.values)
    lines = []
    for first in range(0, len(names), MOST_COLUMNS):
        each = {name: extrapolation.estimates[name] for name in names[first : first + MOST_COLUMNS]}
        least = np.fmin.reduce([e.probability for e in each.values()])
        columns = [Row(LABELS[name], e.value, e.error) for name, e in each.items()]
        lines += in_columns(row.cells for row in (place, *columns, Row("p", least)))
    return lines


def columns(result: QuantumResult, by: str) -> Columns:
    others: dict[str, Callable[[], Columns]] = {
        "time": lambda: below_each_other([_by_time(result, k) for k in range(samples_in(result))]),
        "gap": lambda: _gaps(result),
        "site": lambda: _sites(result),
    }
    return ladder_columns(result, by, _where, others, ("k", "temperature"))  # the latter is the default of ``ss.table``


def _sites(result: QuantumResult) -> Columns:
    local = result.local_susceptibility
    samples, copies, places, sites = local.shape
    spread = local.std(axis=1, ddof=1) if copies > 1 else np.full((samples, places, sites), np.nan)
    return {
        **_rows(result, range(samples) if result.disorder is None else result.disorder.tolist(), sites),
        "site": np.tile(np.arange(sites), samples * places),
        "local_susceptibility": local.mean(axis=1).ravel(),
        "local_susceptibility_error": spread.ravel() / np.sqrt(copies),
    }


def _where(result: QuantumResult) -> Columns:
    names = dict.fromkeys((result.axis.name, "k", "gamma", "beta", "k_time"))
    return {name: getattr(result, name) for name in names}


def _rows(result: QuantumResult, samples: Sequence[int], each: int = 1) -> Columns:
    """Return columns with the sample and the point of each row; each pair is repeated ``each`` times."""
    where = {name: np.tile(np.repeat(values, each), len(samples)) for name, values in _where(result).items()}
    return {"sample": np.repeat(samples, len(result.k) * each), **where}


def _by_time(result: QuantumResult, sample: int) -> Columns:
    one = sample_of(result, sample)
    curves = {"correlation": correlation_in_time(one)}
    if has_connected(one):
        curves["even_correlation"] = correlation_in_time(one, "even")
    places, times = curves["correlation"].value.shape
    columns = _rows(result, [sample], times) | {"time": np.tile(curves["correlation"].time, places)}
    for name, curve in curves.items():
        columns[name] = curve.value.ravel()
        columns[f"{name}_error"] = np.where(curve.trusted, curve.error, np.nan).ravel()
    return columns


def _gaps(result: QuantumResult) -> Columns:
    """Return gaps of each sample and point, NaN where excited states contribute, and bounds where these are known."""
    columns = _rows(result, range(samples_in(result)))
    for parity, of in gaps_by_parity(result).items():
        prefix = "" if parity == "odd" else "even_"
        columns |= {prefix + name: values for name, values in _of_parity(result, of).items()}
    return columns


def _of_parity(result: QuantumResult, gaps: Gaps) -> Columns:
    k = np.tile(result.k, len(gaps.gap))
    parts = {"gap": gaps.gap.ravel(), "gap_error": gaps.error.ravel(), "gap_bound": gaps.bound.ravel()}
    columns: Columns = {**parts, **{f"energy_{name}": values / k for name, values in parts.items()}}
    others = {"first": "first_time", "last": "last_time", "freedom": "degrees_of_freedom"}
    for name in ("operators", "levels", "first", "last", "chi_squared", "freedom", "probability"):
        columns[others.get(name, name)] = getattr(gaps, name).ravel()
    return columns
