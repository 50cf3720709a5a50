"""Reports of solve runs: before the run, at its end and for ``show``."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from spinsim.analysis.tables import Columns, Report, Row, unprinted
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.solve.methods import METHODS
from spinsim.jobs.solve.result import FIXED_WORDS, SolveResult, time_in_words
from spinsim.jobs.solve.run import SolvePlan
from spinsim.model.targets import value_name, value_of
from spinsim.run.search import GROUP, goal


def describe(plan: SolvePlan) -> str:
    s, where = plan.of_job, "CPU" if plan.device == "cpu" else "GPU"
    limits = [goal(s.target, s.time_limit, plan.model)]
    limits += [f"for at most {count(s.sweeps_limit, 'sweep')} of each method"] * (s.sweeps_limit is not None)
    ends = " or ".join(filter(None, limits))
    names = ", ".join(name for name in s.methods.split(",") if METHODS[name].applies(plan.model)) or s.methods
    return f"Solving {plan.model.name}: {plan.model.size_in_words}, by {names}, {ends}, on the {where}"


def outcome(plan: SolvePlan, result: SolveResult, rate: float | None) -> Report:
    rows = [*_findings(result), *reports.solution_row(plan), *reports.facts(plan.path, result)]
    rows.append(Row(key="updates_per_ns", value=rate))
    following = reports.of_solution(plan)
    following += [f"spinsim plot {quoted(plan.path)}"] if len(result.search.improved_seconds) else []
    missed = result.search.target is not None and not result.search.is_met
    following += reports.twice_as_long(plan, result) if missed and not result.quality.is_proven else []
    return Report(rows, following, result.search.verdict(result.model, result.best_energy[:, 0]), missed)


def show(path: Path, result: SolveResult) -> Report:
    state = f"finished {result.attributes['finished']}" if result.finished else reports.completed_by(path)
    size = f"{result.model.size_in_words}, energies are multiples of {result.model.quantum:g}"
    turns = f"{count(result.search.done, 'turn')} in {result.search.elapsed:.3g} s"
    head = reports.head(path, result, size, ", ".join(result.methods) or "exact", turns, state)
    if not np.isfinite(result.best_energy).all():
        return Report([*head, "no state has been met yet"])
    return Report([*head, *_findings(result), *_methods(result), *_states(result)])


def _findings(result: SolveResult) -> list[Row]:
    quality, model = result.quality, result.model
    best = float(value_of(model, result.best_energy[0, 0]))
    rows = [Row(f"Best {value_name(model)}", best, key="best")]
    if quality.is_proven:
        rows.append(Row("Optimal", note=quality.proof))
    else:
        of = f"of {count(quality.starts, 'independent start')}"
        rows += [
            Row("Met by", quality.hits, note=of, key="hits"),
            Row("Missed", f"{quality.missed:.2g}", note="largest probability that a better state exists; no proof"),
            Row("TTS 99 %", time_in_words(quality)),
        ]
        if quality.bound is not None:
            rows.append(Row("Bound", quality.bound, note=f"{100 * (quality.gap or 0):.3g} % away", key="bound"))
    if 0 < result.search.sites < model.sites:
        rows.append(Row("Searched", f"{result.search.sites} of {model.sites} sites"))
    if words := result.record.groups[GROUP].attributes.get(FIXED_WORDS):
        rows.append(Row("Exact", note=words))
    tested, feasible = result.search.tested.tolist()
    if tested:
        rows.append(Row("Feasible", f"{feasible} of {count(tested, 'state')}"))
        if result.search.state_failed[:1].any():
            rows.append(Row("Note", note="no state that was met is feasible: raise the penalties"))
    numbers = {
        "proof": quality.proof,
        "missed": quality.missed,
        "starts": quality.starts,
        "search_seconds": result.search.elapsed,
    }
    numbers |= {"time_to_solution": list(quality.time_to_solution), "methods": _columns(result)}
    numbers |= {"lowest_energy": float(result.best_energy[0, 0])}
    return rows + unprinted(numbers)


def _columns(result: SolveResult) -> Columns:
    s = result.search
    names = ("seconds", "sweeps", "lowest", "starts", "hits")
    return {"method": np.array(result.methods), **{name: getattr(s, name) for name in names}}


def _methods(result: SolveResult) -> list[Row]:
    s, rows = result.search, []
    for k, name in enumerate(result.methods):
        value = float(value_of(result.model, s.lowest[k])) if math.isfinite(s.lowest[k]) else math.nan
        met = f"{s.hits[k]} of {count(int(s.starts[k]), 'start')} met the best"
        rows.append(Row(name, value, note=f"{s.seconds[k]:.3g} s, {count(int(s.sweeps[k]), 'sweep')}, {met}"))
    return rows


def _states(result: SolveResult) -> list[Row]:
    if len(result.search.state_energy) < 2:
        return []
    rows = []
    for one in result.states:
        value = one.solution.energy if one.solution.cut is None else one.solution.cut
        sizes = ", ".join(map(str, one.droplets[:4])) + ", ..." * (len(one.droplets) > 4)
        refused = "" if one.is_feasible else ", not feasible"
        rows.append(Row("State", value, note=f"{count(one.distance, 'spin')} away, droplets {sizes or 0}{refused}"))
    return rows


def columns(result: SolveResult, by: str) -> Columns:
    if by != "method":
        raise InputError(f"a solve run has no table by {by}: give by='method', for a line for each method")
    return _columns(result)
