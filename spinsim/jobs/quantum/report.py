"""Reports on quantum runs: before they begin, when they are done, and by ``show`` and ``analyze``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim import store
from spinsim.analysis.gaps import FEWEST_STEPS as FEWEST_FOR_GAPS
from spinsim.analysis.gaps import Gaps, gaps_by_parity
from spinsim.analysis.sources import measurements_of
from spinsim.analysis.summary import FEWEST_STEPS, Summary, summarize
from spinsim.analysis.tables import as_tables, with_error
from spinsim.inputs.texts import quoted, wrapped
from spinsim.jobs.base import Told
from spinsim.jobs.quantum.extrapolation import OF_SLICES, AtStep, Extrapolation, extrapolated, groups
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.running import QuantumPlan
from spinsim.jobs.quantum.settings import QuantumSettings
from spinsim.jobs.reports import (
    MOST_COLUMNS,
    empty_lanes,
    head_of_steps,
    ladder_sentence,
    numbers_of_plan,
    precision,
    round_trip_line,
    saved_number,
    table_of_places,
)
from spinsim.observables import LABELS
from spinsim.result import load_as
from spinsim.store.contents import MEASUREMENTS
from spinsim.store.schema import CONFIGURATIONS

MOST_BYTES: Final = 2**28
"""Size of the series of a run up to which its averages are found as soon as it is done or shown."""
MOST_SAVED_BYTES: Final = 2**24
"""Size of saved configurations up to which gaps are found from them as soon as the run is done or shown."""
_LEFT_OUT: Final = "Averages are left out, as {}: spinsim analyze finds them."


def describe(plan: QuantumPlan) -> str:
    """Returns what is about to run, in one sentence."""
    q, model = plan.config.quantum, plan.model
    axis, values = q.ends.axis, q.ends.values
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    size = f"Quantum {model.name}: {model.sites // q.slices} sites x {q.slices} slices, {samples}"
    length = f"{_other(q)}{q.thermalize} + {q.sweeps} sweeps"
    return ladder_sentence(plan, size, (axis, axis), (values.min(), values.max(), len(values)), length)


def _other(q: QuantumSettings) -> str:
    """Returns what is the same at all points of the general form."""
    if not q.is_general:
        return ""
    return f"gamma = {q.ends.gamma[0]:.4g}, " if q.ends.axis == "beta" else f"beta = {q.ends.beta[0]:.4g}, "


def outcome(plan: QuantumPlan, rate: float | None) -> Told:
    """Returns what is said of a run when it is done."""
    numbers, lines = _told(plan.path)
    about = numbers_of_plan(plan) | {"slices": plan.model.graph.slices}
    path = quoted(plan.path)
    following = [f"spinsim analyze {path} --all", f"spinsim plot {path}"]
    return Told(about | numbers | {"updates_per_ns": rate}, lines, following)


def show(path: Path) -> Told:
    """Returns what ``spinsim show`` says of a file."""
    result = load_as(QuantumResult, path)
    numbers, lines = _told(path, result)
    about = result.attributes | {"file": str(path), "configurations": saved_number(path)}
    return Told(about | numbers, _head(path, result) + lines)


def _head(path: Path, result: QuantumResult) -> list[str]:
    """Returns the lines with which ``show`` begins."""
    run = result.config.get(result.job, {})
    done = measurements_of(result)
    planned = run["sweeps"] // run["measure_every"] if run else done
    return head_of_steps(path, result, result.round_trips.shape[1], done, planned)


def _told(path: Path, result: QuantumResult | None = None) -> tuple[dict[str, Any], list[str]]:
    """Returns what a file says, as numbers and as lines; it is not read again where its result is given."""
    with store.open_to_read(path) as file:
        rows = store.complete_rows(file)
        size = rows * sum(item.dtype.itemsize * int(np.prod(item.shape[1:])) for item in file[MEASUREMENTS].values())
        bits = file[f"{CONFIGURATIONS}/spins"].size if CONFIGURATIONS in file else 0
    if size > MOST_BYTES:
        return {"steps": rows}, [_LEFT_OUT.format("too many measurements are there")]
    result = load_as(QuantumResult, path) if result is None else result
    steps = measurements_of(result)
    if steps < FEWEST_STEPS:
        return {"steps": steps}, [_LEFT_OUT.format("too few measurements are there so far")]
    found = summarize(result)
    numbers = {"steps": steps, **precision(result.model)}
    numbers |= {name: getattr(result, name).tolist() for name in ("k", "gamma", "beta", "k_time")}
    numbers |= {"swap_rate": result.swap_rate.tolist(), "round_trips": int(result.round_trips.sum())}
    return numbers | {"averages": as_tables(found)}, _report(result, found, bits <= MOST_SAVED_BYTES)


def _report(result: QuantumResult, found: Summary, with_gaps: bool) -> list[str]:
    """Return lines on exchanges, averages at each point, gaps if they are soon found, and equilibrium."""
    exchanges = len(result.swap_rate) > 0  # not of a single point
    lines = [round_trip_line(result.round_trips)] if exchanges else []
    lines += empty_lanes(result.attributes["engine"], result.round_trips.shape[1], len(result.k))
    rates = [f"{rate:.3f}" for rate in result.swap_rate]
    others = {"k": ("Gamma", result.gamma), "gamma": ("beta", result.beta), "beta": ("Gamma", result.gamma)}
    head, values = others[result.axis.name]
    beside = {head: [f"{value:.4f}" for value in values]}
    lines += table_of_places(result.model, found, rates, f"the next {result.axis.symbol}", beside)
    later = "gaps are left out, as many configurations are there: spinsim analyze finds them."
    of_gaps = in_time_lines(result) if with_gaps else wrapped(later, "Gap      ")
    return lines + of_gaps + wrapped(found.verdict, "Verdict  ")


def in_time_lines(result: QuantumResult) -> list[str]:
    """Returns the gaps of both parities from correlations in time, or why there are none."""
    if result.model.fields.any():
        return wrapped("gaps are left out, as a field breaks parity.", "Gap      ")
    if measurements_of(result) < FEWEST_FOR_GAPS:
        return wrapped(f"gaps are left out, as they take {FEWEST_FOR_GAPS} measurements.", "Gap      ")
    found = gaps_by_parity(result)
    lines = _of_one(result, found) if result.model.samples == 1 else _of_samples(result, found)
    if any((of.operators == 1).any() for of in found.values()):
        lines += wrapped(
            "from the average over sites or bonds: levels nearer each other than it tells apart raise the gap. Saved "
            "configurations of a small space tell them apart (--save-configurations 1).", "average: ",
        )  # fmt: skip
    for parity in (parity for parity, of in found.items() if not np.isfinite(of.gap).any()):
        lines += wrapped(
            "C(t) is lost in noise before three times, or no window fits: measure longer, or take smaller steps in "
            "time (more slices at the same gamma and beta).", f"no gap of {parity} parity: ",
        )  # fmt: skip
    if "even" not in found:
        lines += wrapped("take --even-correlations, or saved configurations, and two copies.", "gaps of even parity: ")
    return lines


def _of_one(result: QuantumResult, found: Mapping[str, Gaps]) -> list[str]:
    """Returns the gaps of one sample, a line for each point and parity."""
    head = f"{'parity':>8}{'gap a step':>14}{'gap / k':>13}{'operators':>11}{'window':>8}{'chi^2':>8}{'freedom':>9}"
    lines = ["", f"{result.axis.symbol:>8}{head}"]
    for parity, of in found.items():
        for p, (at, k) in enumerate(zip(result.axis.values, result.k, strict=True)):
            gap, error = float(of.gap[0, p]), float(of.error[0, p])
            window, quality = "-", f"{'-':>8}{'-':>9}"
            if of.first[0, p]:
                window = f"{of.first[0, p]}-{of.last[0, p]}"
                quality = f"{of.chi_squared[0, p]:8.3g}{of.freedom[0, p]:9d}"
            lines.append(
                f"{at:8.5g}{parity:>8}{with_error(gap, error):>14}{with_error(gap / k, error / k):>13}"
                f"{_operators(of, p):>11}{window:>8}{quality}"
            )
    about = (
        "of the lowest level of a parity over the ground state, c cosh(gap (slices / 2 - t)) fitted to C(t) within the "
        "window, times in slices; operators: that C(t) was combined of; k: the step in time."
    )
    return lines + wrapped(about, "gap: ")


def _operators(of: Gaps, place: int) -> str:
    """Returns of what a C(t) was combined, in a word."""
    number = int(of.operators[0, place])
    return "average" if number == 1 else str(number)


def _of_samples(result: QuantumResult, found: Mapping[str, Gaps]) -> list[str]:
    """Returns the middle and the ends of the gaps of several samples, a line for each point and parity."""
    head = (
        f"{'parity':>8}{'median gap':>12}{'smallest':>12}{'largest':>12}{'operators':>11}{'fitted':>8}{'median p':>10}"
    )
    lines = ["", f"{result.axis.symbol:>8}{head}"]
    for parity, of in found.items():
        for p, at in enumerate(result.axis.values):
            there = np.isfinite(of.gap[:, p])
            numbers, probability = f"{'-':>12}{'-':>12}{'-':>12}", "-"
            if there.any():
                gap = of.gap[there, p]
                numbers = f"{np.median(gap):12.5g}{gap.min():12.5g}{gap.max():12.5g}"
                probability = f"{np.median(of.probability[there, p]):.2g}"
            lines.append(f"{at:8.5g}{parity:>8}{numbers}{_operators(of, p):>11}{there.sum():8d}{probability:>10}")
    about = (
        "of the lowest level of a parity in units of 1 / step, from C(t) of each sample; operators: that C(t) was "
        "combined of; fitted: samples with a good window; p: the probability of as large a chi^2. ss.table(file, "
        "by='gap') has every sample with its error."
    )
    return lines + wrapped(about, "gap: ")


def extrapolations(kept: list[AtStep], choose: Callable[[Mapping[str, Any]], list[str]]) -> Told:
    """Returns averages at Delta tau = 0 of runs that differ in their slices alone, and whether they follow its law."""
    found: list[Extrapolation] = []
    lines: list[str] = []
    for group in groups(kept):
        first = {step.slices: step for step in reversed(group)}
        one = extrapolated(list(first.values()))
        found.append(one)
        slices = " and ".join([", ".join(map(str, one.slices[:-1])), str(one.slices[-1])])
        lines += wrapped(f"{len(one.slices)} runs that differ in their slices alone, {slices}, at Delta tau = 0:")
        names = choose({**one.estimates, **dict.fromkeys(OF_SLICES)})
        lines += _at_no_step(one, [name for name in names if name in one.estimates])
        lines += wrapped(f"a + b Delta tau^2 fitted to the averages; {one.verdict}.", "Law      ")
        if len(first) < len(group):
            lines += wrapped("of runs with equal slices the first was taken, others were left out.", "Note     ")
    return Told({"extrapolations": [_as_lists(one) for one in found]} if found else {}, lines)


def _at_no_step(found: Extrapolation, names: list[str]) -> list[str]:
    """Returns a line for each point, with the least probability of chi^2 among its columns."""
    lines = []
    for first in range(0, len(names), MOST_COLUMNS):
        some = names[first : first + MOST_COLUMNS]
        lines.append(f"{found.axis.symbol:>8}" + "".join(f"{LABELS[name]:>15}" for name in some) + f"{'p':>8}")
        for p, at in enumerate(found.axis.values):
            each = [found.estimates[name] for name in some]
            cells = "".join(f"{with_error(float(e.value[p]), float(e.error[p])):>15}" for e in each)
            known = [float(e.probability[p]) for e in each if np.isfinite(e.probability[p])]
            lines.append(f"{at:8.5g}{cells}" + (f"{min(known):8.2g}" if known else f"{'-':>8}"))
    return lines


def _as_lists(found: Extrapolation) -> dict[str, Any]:
    """Returns an extrapolation for ``--json``."""
    lists = {name: values.tolist() for name, values in found.columns().items()}
    return {"slices": list(found.slices), **lists, "verdict": found.verdict}
