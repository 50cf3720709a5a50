"""What is said of annealing runs: before they begin, when they are done, and by ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import FEWEST_FOR_ERRORS
from spinsim.analysis.runs import lowest as of_samples
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.inputs.texts import count, quoted
from spinsim.jobs.anneal.population import by_temperature, last_step, short
from spinsim.jobs.anneal.result import AnnealResult, load_anneal
from spinsim.jobs.anneal.running import AnnealPlan
from spinsim.jobs.anneal.search import Anneals, read_anneals
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.jobs.anneal.tables import quantum_energies
from spinsim.jobs.base import Told
from spinsim.jobs.reports import (
    empty_lanes,
    head_of_steps,
    lowest_lines,
    precision,
    saved_number,
    solution_lines,
    twice_as_long,
)
from spinsim.run.search import goal
from spinsim.store import open_to_read

if TYPE_CHECKING:
    from spinsim.jobs.anneal.success import Success


def describe(plan: AnnealPlan) -> str:
    """Returns what is about to run, in one sentence."""
    a, r, model = plan.config.anneal, plan.config.run, plan.model
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    replicas = count(r.number_of_replicas, "replica")
    if a.populations:
        replicas += f" in {count(a.populations, 'population')}"
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Annealing {model.name}: {model.sites} sites, {model.bonds} bonds, {samples}{replicas}, "
        f"{_schedule(a)} in {_length(a)}{_search(plan)}, on the {where}"
    )


def _length(a: AnnealSettings) -> str:
    """Returns how many steps and sweeps there are, of growing anneals how many they may have."""
    steps = f"{a.steps} steps of {a.sweeps} sweeps"
    return f"{a.of_anneal(0).length}, {a.of_anneal(1).length}, ... sweeps up to {steps}" if a.growing else steps


def _search(plan: AnnealPlan) -> str:
    """Returns how often it is annealed, in words that follow how once; empty where that is once."""
    a = plan.config.anneal
    most = "" if a.anneals in (None, 1) else f"at most {a.anneals} times" if a.ends_early else f"{a.anneals} times"
    ends = goal(a.target, a.time_limit, plan.model)
    again = ", again and again" if a.ends_early and a.anneals is None else ""
    return "".join(f", {words}" for words in (most, ends) if words) if most else again + f" {ends}" * bool(ends)


def _schedule(a: AnnealSettings) -> str:
    """Returns what changes from where to where, in words."""
    if a.quantum:
        return f"{a.slices} slices at T = {a.t_start:.4g}, Gamma = {a.gamma_start:.4g} to {a.gamma_stop:.4g}"
    return f"T = {a.t_start:.4g} to {a.t_stop:.4g}"


def outcome(plan: AnnealPlan, rate: float | None) -> Told:
    """Returns what is said of a run when it is done, of its lowest energies and of its last step alone."""
    with open_to_read(plan.path) as file:
        best_energy, rows = file["best/energy"][...], len(file["measurements/energy"])
        last_energy = file["measurements/energy"][-1] if rows else None
        lanes = empty_lanes(str(file.attrs["engine"]), plan.config.run.number_of_replicas, 1)
        anneals = read_anneals(file, {})
    numbers = _summary(plan, best_energy, last_energy) | {"updates_per_ns": rate}
    lines = lowest_lines(plan.model, best_energy, 1 if anneals is None else anneals.done) + lanes + solution_lines(plan)
    following = [f"spinsim plot {quoted(plan.path)}"] if rows else []
    if plan.config.anneal.populations and rows:
        of_last, about_last = last_step(load_anneal(plan.path))
        numbers, lines = numbers | of_last, lines + about_last
    if anneals is None:
        return Told(numbers, lines, following)
    numbers |= anneals.numbers
    verdict = anneals.verdict(plan.model, best_energy.min(axis=1))
    missed = anneals.target is not None and not anneals.is_met
    following += twice_as_long(plan) if missed else []
    return Told(numbers, lines + _anneals_line(anneals), following, verdict, missed)


def _anneals_line(anneals: Anneals) -> list[str]:
    """Returns how many anneals a search made."""
    return [f"Anneals        {anneals.done} in {anneals.elapsed:.3g} s"]


def _summary(
    plan: AnnealPlan, best_energy: npt.NDArray[np.float64], last_energy: npt.NDArray[np.float64] | None
) -> dict[str, Any]:
    """Returns the main numbers of a finished run; energies (samples, replicas), None where no step was done."""
    model, lowest = plan.model, float(best_energy.min())
    numbers: dict[str, Any] = {
        "job": plan.config.job,
        "file": str(plan.path),
        "config_sha256": plan.attributes["config_sha256"],
        "seed": plan.config.run.seed,
        "model": model.name,
        "sites": model.sites,
        "lowest_energy": lowest,
        "lowest_energy_per_site": lowest / model.sites,
        "last_energy_per_site": None if last_energy is None else float(last_energy.mean()) / model.sites,
        **precision(model),
    }
    if model.samples > 1:
        found = of_samples(model, best_energy)
        numbers |= {
            "mean_lowest_energy_per_site": found.mean,
            "mean_lowest_energy_per_site_error": found.error,
            "hits_of_sample": found.hits.tolist(),
        }
    if model.maxcut_weight is not None:
        numbers["cut"] = float(model.cut(lowest))
    if model.offset:
        numbers["lowest_energy_with_offset"] = lowest + model.offset
    return numbers


def show(path: Path) -> Told:
    """Returns what ``spinsim show`` says of a file."""
    result = load_anneal(path)
    rows, replicas = len(result.energy), result.energy.shape[2]
    settings = result.config.get(result.job, {})
    planned = rows if settings.get("growing") else settings.get("steps", rows)
    numbers, lines = _main(result)
    about = result.attributes | {"file": str(path), "steps": rows, "planned_steps": planned}
    found = _success(result)
    success = {} if found is None else {"success": found.numbers}
    searched = {} if result.anneals is None else result.anneals.numbers
    about |= {"configurations": saved_number(path)} | searched | success
    head = head_of_steps(path, result, replicas, rows, planned if result.anneals is None else None)
    head += _head_of_anneals(result)
    return Told(about | numbers, head + empty_lanes(result.attributes["engine"], replicas, 1) + lines)


def _head_of_anneals(result: AnnealResult) -> list[str]:
    """Returns what ``show`` says of a search, of which the steps above are those of the first anneal."""
    if result.anneals is None:
        return []
    lowest = result.lowest_energy
    verdict = result.anneals.verdict(result.model, lowest.min(axis=1)) if result.finished else ""
    found = _success(result)
    success = [f"Success        {found.line}"] if found is not None else []
    return _anneals_line(result.anneals) + ([f"Target         {verdict}"] if verdict else []) + success


def _success(result: AnnealResult) -> Success | None:
    """Returns how often the anneals of a search met its target, None where that is not known."""
    from spinsim.jobs.anneal.success import success_of  # which takes SciPy, as a run does not

    return success_of(result.model, result.anneals, independent=result.family is None)


def _by_gamma(result: AnnealResult, gamma: npt.NDArray[np.float64]) -> list[str]:
    """Returns a table of the energies of best slices, and of all slices, in steps of a quantum anneal."""
    lines = ["  Gamma  E/N of best slices      error  of all slices      error"]
    best, mean = quantum_energies(result)
    for k in sorted({round(k * (len(gamma) - 1) / 9) for k in range(10)}):
        numbers = (gamma[k], best.mean[k], best.error[k], mean.mean[k], mean.error[k])
        texts = [f"{number:.6f}" if np.isfinite(number) else "-" for number in numbers]
        lines.append(f"{texts[0]:>10} {texts[1]:>15} {texts[2]:>10} {texts[3]:>14} {texts[4]:>10}")
    return lines


def _main(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    """Returns the main numbers of a run, for ``--json`` and as lines."""
    lowest, anneals = result.lowest_energy, result.anneals
    if not lowest.size:
        return {"lowest_energy": None}, []
    numbers = {"lowest_energy": float(lowest.min()), **precision(result.model)}
    lines = lowest_lines(result.model, lowest, 1 if anneals is None else anneals.done)
    if not len(result.temperature):
        return numbers, lines
    if anneals is not None and len(anneals.planned):
        lines.append(f"Series         of the first anneal, {count(int(anneals.planned[0]), 'sweep')}")
    if result.gamma is not None:
        return numbers, lines + _by_gamma(result, result.gamma)
    table = thermodynamics(result)
    order = table.order_parameter(result.model)
    first, last = ("T", order.symbol) if result.field is None else ("h", "<m>")
    lines.append(f"{first:>8}        E/N      error        C/N      error {last:>10}      error")
    means = (order.mean, order.error)
    if result.field is not None:
        means = (table.signed_magnetization, table.signed_magnetization_error)
    for k in sorted({round(k * (len(table.temperature) - 1) / 9) for k in range(10)}):
        row = (table.temperature if result.field is None else result.field, table.energy, table.energy_error,
               table.specific_heat, table.specific_heat_error, *means)  # fmt: skip
        texts = [f"{column[k]:.6f}" if np.isfinite(column[k]) else "-" for column in row]
        texts[0] = short(row[0][k])
        lines.append(" ".join(f"{text:>10}" for text in texts).removeprefix("  "))
    if np.isnan(table.energy_error).any() and len(result.energy[0].ravel()) >= FEWEST_FOR_ERRORS:
        lines.append("-: no error, as replicas or samples do not differ, or are fewer than four")
    if not np.isfinite(table.specific_heat).all() and result.energy.shape[2] > 1:
        lines.append("-: the replicas' energies scatter by another amount than their mean's slope: out of equilibrium")
    if result.family is None:
        return numbers, lines
    of_last, about_last = last_step(result)
    return numbers | of_last, [*lines, *by_temperature(result), *about_last]
