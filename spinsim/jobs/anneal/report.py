"""Reports of annealing runs, before they begin, when they are done and by ``show``; their tables; success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import FEWEST_FOR_ERRORS
from spinsim.analysis.runs import lowest as of_samples
from spinsim.analysis.tables import Columns, columns_of_samples, with_error
from spinsim.analysis.thermodynamics import ENOUGH, FEWEST, MANY, mean_of_replicas, over_samples, thermodynamics
from spinsim.analysis.time_to_solution import (
    Estimate,
    in_words,
    seconds_in_words,
    side_by_side,
    success_probability,
    time_to_solution,
)
from spinsim.errors import InputError
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.anneal.result import AnnealResult, Anneals, with_rows
from spinsim.jobs.anneal.run import AnnealPlan
from spinsim.jobs.base import Told
from spinsim.model.ising import Ising
from spinsim.run.search import goal


def describe(plan: AnnealPlan) -> str:
    a, model = plan.config.anneal, plan.model
    samples = f"{model.samples} samples x " if model.samples > 1 else ""
    replicas = count(plan.config.run.number_of_replicas, "replica")
    if a.populations:
        replicas += f" in {count(a.populations, 'population')}"
    changes = f"T = {a.t_start:.4g}" + f" to {a.t_stop:.4g}" * (not a.quantum or a.t_stop != a.t_start)
    if a.quantum:
        changes = f"{count(a.slices_in_time, 'slice')} at {changes}, Gamma = {a.gamma_start:.4g} to {a.gamma_stop:.4g}"
    length = f"{count(a.steps, 'step')} of {count(a.sweeps, 'sweep')}"
    if a.growing:
        length = f"{a.of_anneal(0).length}, {a.of_anneal(1).length}, ... sweeps up to {length}"
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Annealing {model.name}: {model.size_in_words}, {samples}{replicas}, "
        f"{changes} in {length}{_search(plan)}, on the {where}"
    )


def _search(plan: AnnealPlan) -> str:
    """Returns how often it is annealed, in words that follow how once; empty where that is once."""
    a = plan.config.anneal
    most = "" if a.anneals in (None, 1) else f"at most {a.anneals} times" if a.ends_early else f"{a.anneals} times"
    ends = goal(a.target, a.time_limit, plan.model)
    again = ", again and again" if a.ends_early and a.anneals is None else ""
    return "".join(f", {words}" for words in (most, ends) if words) if most else again + f" {ends}" * bool(ends)


def outcome(plan: AnnealPlan, result: AnnealResult, rate: float | None) -> Told:
    rows, anneals = len(result.energy), result.anneals
    lanes = reports.empty_lanes(result.attributes["engine"], plan.config.run.number_of_replicas, 1)
    lines = reports.lowest_lines(result.model, result.best_energy, 1 if anneals is None else anneals.done)
    lines += lanes + reports.solution_lines(plan)
    following = [*reports.of_solution(plan), *([f"spinsim plot {quoted(plan.path)}"] if rows else [])]
    if result.family is not None and rows:
        lines += _last_step(result)[1]
    numbers = reports.about(plan.path, result) | _numbers(result) | {"updates_per_ns": rate}
    if anneals is None:
        return Told(numbers, lines, following)
    verdict = anneals.verdict(plan.model, result.best_energy.min(axis=1))
    missed = anneals.target is not None and not anneals.is_met
    following += reports.twice_as_long(plan, result) if missed else []
    return Told(numbers, [*lines, anneals.line], following, verdict, missed)


def _numbers(result: AnnealResult) -> dict[str, Any]:
    """Main numbers of a run, the same as it ends and by ``show``."""
    model, anneals, lowest, rows = result.model, result.anneals, result.lowest_energy, len(result.energy)
    settings = result.config[result.job]
    numbers: dict[str, Any] = {"steps": rows, "planned_steps": rows if settings["growing"] else settings["steps"]}
    numbers |= {"lowest_energy": float(lowest.min()) if lowest.size else None, "last_energy_per_site": None}
    if lowest.size:
        numbers["lowest_energy_per_site"] = float(lowest.min()) / model.sites
        if model.samples > 1:
            averages = of_samples(model, lowest)
            numbers |= {
                "mean_lowest_energy_per_site": averages.mean,
                "mean_lowest_energy_per_site_error": averages.error,
                "hits_of_sample": averages.hits.tolist(),
            }
        if model.maxcut_weight is not None:
            numbers["cut"] = float(model.cut(lowest.min()))
        if model.offset:
            numbers["lowest_energy_with_offset"] = float(lowest.min()) + model.offset
    if anneals is not None:
        numbers |= anneals.numbers
        success = success_of(model, anneals, independent=result.family is None)
        numbers |= {} if success is None else {"success": success.numbers}
    if rows:
        numbers["last_energy_per_site"] = float(result.energy[-1].mean()) / model.sites
        numbers["averages"] = {name: column.tolist() for name, column in _averages_by_step(result).items()}
        numbers |= {} if result.family is None else _last_step(result)[0]
    return numbers


def show(path: Path, result: AnnealResult) -> Told:
    anneals, rows, replicas = result.anneals, len(result.energy), result.energy.shape[2]
    numbers = _numbers(result)
    planned = numbers["planned_steps"] if anneals is None else None
    head = reports.head_of_steps(path, result, replicas, rows, planned)
    if anneals is not None:  # of which the steps are those of the first anneal
        verdict = anneals.verdict(result.model, result.lowest_energy.min(axis=1)) if result.finished else ""
        head += [anneals.line, *([f"Target         {verdict}"] if verdict else [])]
        success = success_of(result.model, anneals, independent=result.family is None)
        head += [] if success is None else [f"Success        {success.line}"]
    lines = head + reports.empty_lanes(result.attributes["engine"], replicas, 1) + _main(result)
    return Told(reports.about(path, result) | numbers, lines)


def _ten(steps: int) -> list[int]:
    return sorted({round(k * (steps - 1) / 9) for k in range(10)})


def _text(number: float) -> str:
    return f"{number:.6f}" if np.isfinite(number) else "-"


def _line(first: float, *texts: str) -> str:
    begin = f"{first:.6f}" if abs(first) < 10 else f"{first:.6g}"
    return " ".join(f"{text:>10}" for text in (begin, *texts)).removeprefix("  ")


def _by_gamma(result: AnnealResult, gamma: npt.NDArray[np.float64]) -> list[str]:
    lines = ["  Gamma  E/N of best slices      error  of all slices      error"]
    (best, best_error), (mean, mean_error) = quantum_energies(result)
    for k in _ten(len(gamma)):
        texts = map(_text, (gamma[k], best[k], best_error[k], mean[k], mean_error[k]))
        lines.append("{:>10} {:>15} {:>10} {:>14} {:>10}".format(*texts))
    return lines


def _main(result: AnnealResult) -> list[str]:
    lowest, anneals = result.lowest_energy, result.anneals
    if not lowest.size:
        return []
    lines = reports.lowest_lines(result.model, lowest, 1 if anneals is None else anneals.done)
    if not len(result.temperature):
        return lines
    if anneals is not None and len(anneals.planned):
        lines.append(f"Series         of the first anneal, {count(int(anneals.planned[0]), 'sweep')}")
    if result.gamma is not None:
        return lines + _by_gamma(result, result.gamma)
    table = thermodynamics(result)
    order = table.order_parameter(result.model)
    first, last = ("T", order.symbol) if result.field is None else ("h", "<m>")
    lines.append(f"{first:>8}        E/N      error        C/N      error {last:>10}      error")
    axis, means = table.temperature, order.value
    if result.field is not None:
        axis, means = result.field, table.signed_magnetization
    columns = *table.energy, *table.specific_heat, *means
    lines += [_line(axis[k], *(_text(column[k]) for column in columns)) for k in _ten(len(axis))]
    if np.isnan(table.energy.error).any() and len(result.energy[0].ravel()) >= FEWEST_FOR_ERRORS:
        lines.append("-: no error, as replicas or samples do not differ, or are fewer than four")
    if not np.isfinite(table.specific_heat.mean).all() and result.energy.shape[2] > 1:
        lines.append(
            "-: C/N from the scatter of energies is not their slope dE/dT: the replicas were out of equilibrium"
        )
    if result.family is None:
        return lines
    return [*lines, *_by_temperature(result), *_last_step(result)[1]]


def _last_step(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    last = with_rows(result, slice(-1, None))
    averages = {name: float(column[0]) for name, column in of_populations(last).items()}
    number, size, entropy = last.families
    whole = result.energy.shape[2] // number.shape[2]
    few = bool(np.exp(entropy.min()) < ENOUGH)
    few_families = {"fewest_families": int(number.min()), "family_entropy_least": float(entropy.min())}
    means = ", means over samples" if last.energy.shape[1] > 1 else ""
    free, disorder = (_with_error(averages, name) for name in ("free_energy_per_site", "entropy_per_site"))
    lines = [
        f"Free energy    {free} per site at T = {last.temperature[0]:.4g}, entropy {disorder}{means}",
        f"Families       {_span(number)} of {whole}, mean square size {_span(size)}, entropy {_span(entropy)}",
    ]
    if np.isnan(averages["free_energy_per_site_error"]):
        lines.append(f"               {_no_errors(number.shape[2])}")
    if few:
        lines.append(
            f"               an entropy below ln {ENOUGH} is too low to trust averages: "
            "take more replicas, more sweeps or more steps"
        )
    return averages | few_families | {"families_trusted": not few}, lines


def _with_error(averages: Mapping[str, float], name: str) -> str:
    value, error = averages[name], averages[f"{name}_error"]
    return with_error(value, error) if np.isfinite(error) else f"{value:.7g}"


def _no_errors(populations: int) -> str:
    groups = "populations" if populations >= MANY else "families"
    return f"there are no errors, as too few {groups} are left to know them (by their shares in Z fewer than {FEWEST})"


def _span(values: np.typing.NDArray[Any]) -> str:
    least, most = f"{values.min():.4g}", f"{values.max():.4g}"
    return least if least == most else f"{least} to {most}"


def _by_temperature(result: AnnealResult) -> list[str]:
    lines = ["       T        F/N      error        S/N      error   families      rho_t"]
    columns = of_populations(result)
    names = ("free_energy_per_site", "free_energy_per_site_error", "entropy_per_site", "entropy_per_site_error")
    for k in _ten(len(result.temperature)):
        texts = [_text(columns[name][k]) for name in names]
        texts += [f"{columns['families'][k]:.6g}", f"{columns['mean_square_family_size'][k]:.4g}"]
        lines.append(_line(result.temperature[k], *texts))
    missing = np.isnan(columns[names[1]])
    if missing.any() and not missing[-1]:  # else the lines of the last step say so
        lines.append(f"-: {_no_errors(result.families.number.shape[2])}")
    return lines


@dataclass(frozen=True)
class Success:
    """Success of anneals of one length with one target."""

    sweeps: int  # sweeps of an anneal
    replicas: int  # replicas side by side
    anneals: int  # how many there were
    of_replica: Estimate | None
    """Probability that a replica meets the target in an anneal; None of populations, whose replicas are not
    independent, and of a search that stopped at its first success, which tells nothing of it."""
    of_anneal: Estimate | None  # probability that any of its replicas succeeds; None of such a search
    seconds: float  # mean time of a whole anneal; of such a search, of those that missed the target
    tts: Estimate | None  # time in which anneals, one after the other, meet the target with 99 %; None of such a search

    @property
    def numbers(self) -> dict[str, Any]:
        """The same for JSON, which knows no infinity: None stands for it."""
        named = {"p_of_replica": self.of_replica, "p_of_anneal": self.of_anneal, "time_to_solution": self.tts}
        counts = {"anneals": self.anneals, "sweeps": self.sweeps, "replicas": self.replicas}
        return (
            counts
            | {"seconds_of_anneal": self.seconds}
            | {
                name: None if one is None else [number if np.isfinite(number) else None for number in one]
                for name, one in named.items()
            }
        )

    @property
    def line(self) -> str:
        anneals = f"of {count(self.anneals, 'anneal')} of {count(self.sweeps, 'sweep')}"
        if self.of_anneal is None or self.tts is None:
            return f"{anneals} the last met the target, and the search stopped at this first success: p is not known"
        of_one = f"a replica meets it with p = {in_words(self.of_replica, '{:.3g}')}, " if self.of_replica else ""
        return (
            f"{anneals}: {of_one}any of {self.replicas} with p = {in_words(self.of_anneal, '{:.3g}')}; "
            f"time to solution at 99 %: {in_words(self.tts, seconds_in_words)}"
        )


def success_of(
    model: Ising, anneals: Anneals | None, target: float | None = None, independent: bool = True
) -> Success | None:
    """Success of the longest anneals of a search, with its own target by default; None without one, or of many samples.

    A search that ended with its target stopped at its first success, so that the share of its anneals that met it is no
    probability, nor is that of any other target: it is told how many there were, if there was a whole one of that
    length before.

    Replicas of populations are not ``independent``, so that their anneals count as a whole.
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


Array = npt.NDArray[np.float64]


def columns(result: AnnealResult, by: str) -> Columns:
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to tabulate yet")
    if by == "temperature":
        return _averages_by_step(result)
    if by == "sample":
        return columns_of_samples(result, _averages_by_step, lambda one: one.lowest_energy)
    raise InputError(f"there is no table by {by!r} of this run: choose temperature or sample")


def of_populations(result: AnnealResult) -> Columns:
    if result.family is None or result.parents is None:
        return {}
    populations, families, sites = result.populations, result.families, result.model.sites
    free, entropy = populations.free_energy(), populations.entropy(result.energy)
    size = result.energy.shape[2] / result.parents.shape[2]
    return {
        **_with_bars("free_energy_per_site", over_samples(*(part / sites for part in free))),
        **_with_bars("entropy_per_site", over_samples(*(part / sites for part in entropy))),
        "families": families.number.mean(axis=(1, 2)),
        "mean_square_family_size": families.mean_square_size.mean(axis=(1, 2)),
        "family_entropy": families.entropy.mean(axis=(1, 2)),
        "share_of_parents": result.parents.mean(axis=(1, 2)) / size,
    }


def _with_bars(name: str, average: tuple[Array, Array]) -> Columns:
    return {name: average[0], f"{name}_error": average[1]}


def _averages_by_step(result: AnnealResult) -> Columns:
    if result.gamma is not None:
        best, mean = quantum_energies(result)
        columns = {"temperature": result.temperature, "gamma": result.gamma, **_with_bars("energy_per_site", best)}
        return columns | _with_bars("mean_slice_energy_per_site", mean)
    averages = thermodynamics(result)
    columns = {"temperature": averages.temperature}
    if result.field is not None:
        columns["field"] = result.field
        columns |= _with_bars("magnetization", averages.signed_magnetization)
    columns |= of_populations(result)
    columns |= _with_bars("energy_per_site", averages.energy)
    columns |= _with_bars("specific_heat", averages.specific_heat)
    columns["specific_heat_trusted"] = averages.specific_heat_trusted
    columns |= _with_bars("abs_magnetization", averages.magnetization)
    if result.staggered_magnetization is not None:
        columns |= _with_bars("abs_staggered_magnetization", averages.staggered_magnetization)
    return columns


def quantum_energies(result: AnnealResult) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Returns energies per site at each step with their errors, of the best slice of each replica and of all slices.

    Means are over replicas and samples, (steps,); errors are NaN where a single replica of a single sample allows none.
    """
    assert result.mean_slice_energy is not None  # noqa: S101  (it is a quantum anneal)
    sites = result.model.sites
    return mean_of_replicas(result.energy / sites), mean_of_replicas(result.mean_slice_energy / sites)
