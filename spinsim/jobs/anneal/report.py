"""What is said of annealing runs: before they begin, when they are done, and by ``show``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.population import ENOUGH, FEWEST, MANY
from spinsim.analysis.printed import with_error
from spinsim.analysis.samples import FEWEST_FOR_ERRORS
from spinsim.analysis.samples import lowest as of_samples
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.analysis.time_to_solution import (
    Estimate,
    in_words,
    seconds_in_words,
    side_by_side,
    success_probability,
    time_to_solution,
)
from spinsim.inputs.texts import count, quoted
from spinsim.jobs.anneal.result import AnnealResult, load_anneal
from spinsim.jobs.anneal.running import AnnealPlan
from spinsim.jobs.anneal.search import Anneals, read_anneals
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.jobs.anneal.tables import of_populations, quantum_energies
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
from spinsim.model.ising import Ising
from spinsim.run.search import goal
from spinsim.store import open_to_read


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
    from spinsim.jobs.anneal.report import success_of  # which takes SciPy, as a run does not

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


def last_step(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    """Returns the main numbers of the last step of a population run, for ``--json`` and as lines."""
    last = replace(
        result,
        temperature=result.temperature[-1:],
        energy=result.energy[-1:],
        **{name: getattr(result, name)[-1:] for name in ("family", "population_free_energy", "parents")},
    )
    found = {name: float(column[0]) for name, column in of_populations(last).items()}
    number, size, entropy = last.families
    whole = result.energy.shape[2] // number.shape[2]
    few = bool(np.exp(entropy.min()) < ENOUGH)
    numbers = {name: value if np.isfinite(value) else None for name, value in found.items()}
    numbers |= {"fewest_families": int(number.min()), "family_entropy_least": float(entropy.min())}
    lines = [
        f"Free energy    {_with_error(found, 'free_energy_per_site')} per site at "
        f"T = {last.temperature[0]:.4g}, "
        + f"entropy {_with_error(found, 'entropy_per_site')}"
        + (", means over samples" if last.energy.shape[1] > 1 else ""),
        f"Families       {_span(number)} of {whole}, mean square size {_span(size)}, entropy {_span(entropy)}",
    ]
    if np.isnan(found["free_energy_per_site_error"]):
        lines.append(f"               {_no_errors(number.shape[2])}")
    if few:
        lines.append(
            f"               an entropy below ln {ENOUGH} is too low to trust averages: "
            "take more replicas, more sweeps or more steps"
        )
    return numbers | {"families_trusted": not few}, lines


def _with_error(found: Mapping[str, float], name: str) -> str:
    """Returns a number of a table with its error, or alone where it has none."""
    value, error = found[name], found[f"{name}_error"]
    return with_error(value, error) if np.isfinite(error) else f"{value:.7g}"


def _no_errors(populations: int) -> str:
    """Returns why errors are left out."""
    groups = "populations" if populations >= MANY else "families"
    return f"there are no errors, as too few {groups} are left to know them (by their shares in Z fewer than {FEWEST})"


def _span(values: np.typing.NDArray[Any]) -> str:
    """Returns numbers as the one, or the least and the largest of them."""
    least, most = f"{values.min():.4g}", f"{values.max():.4g}"
    return least if least == most else f"{least} to {most}"


def short(number: float) -> str:
    """Returns a temperature or field in eight characters or so, as a column begins with it."""
    return f"{number:.6f}" if abs(number) < 10 else f"{number:.6g}"


def by_temperature(result: AnnealResult) -> list[str]:
    """Returns a table of free energies, entropies and families, means over samples."""
    lines = ["       T        F/N      error        S/N      error   families      rho_t"]
    columns = of_populations(result)
    names = ("free_energy_per_site", "free_energy_per_site_error", "entropy_per_site", "entropy_per_site_error")
    for k in sorted({round(k * (len(result.temperature) - 1) / 9) for k in range(10)}):
        values = [result.temperature[k], *(columns[name][k] for name in names)]
        texts = [f"{value:.6f}" if np.isfinite(value) else "-" for value in values]
        texts[0] = short(values[0])
        texts += [f"{columns['families'][k]:.6g}", f"{columns['mean_square_family_size'][k]:.4g}"]
        lines.append(" ".join(f"{text:>10}" for text in texts).removeprefix("  "))
    missing = np.isnan(columns[names[1]])
    if missing.any() and not missing[-1]:  # else the lines of the last step say so
        lines.append(f"-: {_no_errors(result.families.number.shape[2])}")
    return lines


@dataclass(frozen=True)
class Success:
    """What anneals of one length say of one target.

    Attributes:
        sweeps: Of an anneal.
        replicas: That it has side by side.
        anneals: How many there were.
        of_replica: Probability that a replica meets the target in an anneal; None of populations, whose replicas are
            not independent, and of a search that stopped at its first success, which tells nothing of it.
        of_anneal: That any of its replicas does; None of such a search.
        seconds: Mean time of a whole anneal; of such a search, of those that missed the target.
        tts: Time in which anneals, one after the other, meet the target with 99 %; None of such a search.
    """

    sweeps: int
    replicas: int
    anneals: int
    of_replica: Estimate | None
    of_anneal: Estimate | None
    seconds: float
    tts: Estimate | None

    @property
    def numbers(self) -> dict[str, Any]:
        """The same for JSON, which knows no infinity: None stands for it."""
        named = {"p_of_replica": self.of_replica, "p_of_anneal": self.of_anneal, "time_to_solution": self.tts}
        estimates = {
            name: None if one is None else [number if np.isfinite(number) else None for number in one]
            for name, one in named.items()
        }
        counts = {"anneals": self.anneals, "sweeps": self.sweeps, "replicas": self.replicas}
        return counts | {"seconds_of_anneal": self.seconds} | estimates

    @property
    def line(self) -> str:
        """The same in a line."""
        anneals = f"of {count(self.anneals, 'anneal')} of {self.sweeps} sweeps"
        if self.of_anneal is None or self.tts is None:
            return f"{anneals} the last met the target, and the search stopped at this first success: p is not known"
        of_one = (
            "" if self.of_replica is None else f"a replica meets it with p = {in_words(self.of_replica, '{:.3g}')}, "
        )
        return (
            f"{anneals}: {of_one}any of {self.replicas} with p = {in_words(self.of_anneal, '{:.3g}')}; "
            f"time to solution at 99 %: {in_words(self.tts, seconds_in_words)}"
        )


def success_of(
    model: Ising, anneals: Anneals | None, target: float | None = None, independent: bool = True
) -> Success | None:
    """What the longest anneals of a search say of a target, its own by default; None without one, or of many samples.

    A search that ended with its target stopped at its first success, so that the share of its anneals that met it is no
    probability, nor is that of any other target: it is told how many there were, if there was a whole one of that
    length before.

    Args:
        model: What was annealed.
        anneals: Of the search, None where there was none.
        target: In the problem's own terms.
        independent: Whether replicas are; those of populations are not, so that their anneals count as a whole.
    """
    if anneals is None or (target is None and anneals.target is None) or model.samples > 1 or not len(anneals.sweeps):
        return None
    hits, longest = anneals.hits(model, target)[:, 0], anneals.planned == np.max(anneals.planned)
    sweeps, replicas = int(np.max(anneals.planned)), anneals.energy.shape[2]
    used = longest & anneals.whole
    if anneals.is_met:
        failed = anneals.seconds[used & (anneals.hits(model)[:, 0] == 0)]
        trials = int(longest.sum()) + anneals.done - len(anneals.sweeps)
        return Success(sweeps, replicas, trials, None, None, float(failed.mean()), None) if failed.size else None
    if not used.any():
        return None
    trials, of_replica = int(used.sum()), None
    if independent:
        of_replica = success_probability(int(hits[used].sum()), trials * replicas)
        of_anneal = side_by_side(of_replica, replicas)
    else:
        of_anneal = success_probability(int((hits[used] > 0).sum()), trials)
    times = anneals.seconds[used]
    tts = time_to_solution(times, of_anneal)
    return Success(sweeps, replicas, trials, of_replica, of_anneal, float(times.mean()), tts)
