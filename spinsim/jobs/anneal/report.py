"""Reports of annealing runs: before the run, at its end and for ``show``; tables; success probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import FEWEST_FOR_ERRORS
from spinsim.analysis.tables import Columns, Report, Row, columns_of, columns_of_samples, in_columns, unprinted
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
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import count, quoted
from spinsim.jobs import reports
from spinsim.jobs.anneal.result import AnnealResult, Anneals
from spinsim.jobs.anneal.run import AnnealPlan
from spinsim.jobs.steps import with_rows
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
    """Return the number of anneals in words, to follow the description of a single anneal; empty for one anneal."""
    a = plan.config.anneal
    most = "" if a.anneals in (None, 1) else f"at most {a.anneals} times" if a.ends_early else f"{a.anneals} times"
    ends = goal(a.target, a.time_limit, plan.model)
    again = ", again and again" if a.ends_early and a.anneals is None else ""
    return "".join(f", {words}" for words in (most, ends) if words) if most else again + f" {ends}" * bool(ends)


def outcome(plan: AnnealPlan, result: AnnealResult, rate: float | None) -> Report:
    has_steps, anneals, model = len(result.energy) > 0, result.anneals, result.model
    rows: list[Row | str] = [*_lowest(result), *_room(result), *reports.solution_row(plan)]
    rows += _last_step(result) if result.family is not None and has_steps else []
    following = [*reports.of_solution(plan), *([f"spinsim plot {quoted(plan.path)}"] if has_steps else [])]
    averages = columns_of(averages_by_step(result)) if has_steps else None
    rows += [*reports.facts(plan.path, result), *_numbers(result, averages), Row(key="updates_per_ns", value=rate)]
    if anneals is None:
        return Report(rows, following)
    rows += [Row("Anneals", f"{anneals.done} in {anneals.elapsed:.3g} s"), *_success(result)]
    missed = anneals.target is not None and not anneals.is_met
    following += reports.twice_as_long(plan, result) if missed else []
    return Report(rows, following, anneals.verdict(model, result.best_energy.min(axis=1)), missed)


def show(path: Path, result: AnnealResult) -> Report:
    anneals, steps = result.anneals, len(result.energy)
    planned = _planned(result) if anneals is None else None
    rows = reports.head_of_steps(path, result, result.energy.shape[2], steps, planned)
    if anneals is not None:  # the steps are those of the first anneal
        verdict = anneals.verdict(result.model, result.lowest_energy.min(axis=1)) if result.finished else ""
        rows.append(Row("Anneals", f"{anneals.done} in {anneals.elapsed:.3g} s"))
        rows += [Row("Target", verdict)] if verdict else []
        rows += _success(result)
    rows += [*_room(result), *_lowest(result)]
    if not steps:
        return Report([*rows, *_numbers(result, None)])
    if anneals is not None and len(anneals.planned):
        rows.append(Row("Series", f"of the first anneal, {count(int(anneals.planned[0]), 'sweep')}"))
    averages = averages_by_step(result)
    some = np.unique(np.linspace(0, steps - 1, 10).round().astype(int))
    rows += in_columns(row.at(some).cells for row in averages if row.label)
    rows += _omissions(result, averages)
    rows += _last_step(result) if result.family is not None else []
    return Report([*rows, *_numbers(result, columns_of(averages))])


def _room(result: AnnealResult) -> list[Row]:
    return reports.empty_lanes(result.attributes["engine"], result.energy.shape[2], 1)


def _lowest(result: AnnealResult) -> list[Row]:
    lowest, anneals = result.lowest_energy, 1 if result.anneals is None else result.anneals.done
    return reports.lowest_rows(result.model, lowest, anneals) if lowest.size else [Row(key="lowest_energy")]


def _planned(result: AnnealResult) -> int:
    settings = result.config[result.job]
    return int(len(result.energy) if settings["growing"] else settings["steps"])


def _numbers(result: AnnealResult, averages: Columns | None) -> list[Row]:
    """Return rows that only ``--json`` prints."""
    last = None if averages is None else float(result.energy[-1].mean()) / result.model.sites
    numbers: dict[str, Any] = {
        "steps": len(result.energy),
        "planned_steps": _planned(result),
        "last_energy_per_site": last,
    }
    numbers |= {} if averages is None else {"averages": averages}
    return unprinted(numbers | ({} if result.anneals is None else result.anneals.numbers))


def _success(result: AnnealResult) -> list[Row]:
    success = success_of(result.model, result.anneals, independent=result.family is None)
    return [] if success is None else [Row("Success", success.line), Row(key="success", value=success.numbers)]


def _omissions(result: AnnealResult, averages: list[Row]) -> list[str]:
    """Return the reasons why some columns of the averages have no value or no error."""
    columns, lines = columns_of(averages), []
    of_replicas = np.isnan(columns["energy_per_site_error"]).any() and result.family is None
    if of_replicas and len(result.energy[0].ravel()) >= FEWEST_FOR_ERRORS:
        lines += ["(?): no error, as replicas or samples do not differ, or are fewer than four"]
    if not np.isfinite(columns.get("specific_heat", 0)).all() and result.energy.shape[2] > 1:
        lines.append("-: C/N from the scatter of energies is not their slope dE/dT: replicas were out of equilibrium")
    missing = np.isnan(columns.get("free_energy_per_site_error", [0.0]))
    if missing.any() and not missing[-1]:  # otherwise the rows of the last step report it
        lines += [f"(?): {_no_errors(result.families.number.shape[2])}"]
    return lines


def _last_step(result: AnnealResult) -> list[Row]:
    """Return free energy, entropy and families of a population run after its last step."""
    last = with_rows(result, slice(-1, None))
    averages = _of_populations(last)
    free, disorder = (replace(row.at(0), unit="per site") for row in averages[:2])
    number, size, entropy = last.families
    whole, means = result.energy.shape[2] // number.shape[2], ", mean over samples" * (last.energy.shape[1] > 1)
    left = f"{_span(number)} of {whole}, mean square size {_span(size)}, entropy {_span(entropy)}"
    few = bool(np.exp(entropy.min()) < ENOUGH)
    low = f"an entropy below ln {ENOUGH} is too low to trust averages: take more replicas, more sweeps or more steps"
    rows = [
        replace(free, label="Free energy", note=f"at T = {last.temperature[0]:.4g}{means}"),
        replace(disorder, label="Entropy", note=means.removeprefix(", ")),
        *(replace(row.at(0), label="") for row in averages[2:]),
        Row("Families", left),
        *([Row("Errors", note=_no_errors(number.shape[2]))] if np.isnan(free.error) else []),
        *([Row("Trust", note=low)] if few else []),
    ]
    of_families = {"fewest_families": int(number.min()), "family_entropy_least": float(entropy.min())}
    return rows + unprinted({**of_families, "families_trusted": not few})


def _no_errors(populations: int) -> str:
    groups = "populations" if populations >= MANY else "families"
    return f"there are no errors, as too few {groups} are left to know them (by their shares in Z fewer than {FEWEST})"


def _span(values: npt.NDArray[Any]) -> str:
    least, most = f"{values.min():.4g}", f"{values.max():.4g}"
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class Success:
    """Success of anneals of one length for one target."""

    sweeps: int  # sweeps of an anneal
    replicas: int  # replicas side by side
    anneals: int  # number of anneals
    of_replica: Estimate | None
    """Probability that a replica meets the target in an anneal. None for populations, whose replicas are not
    independent, and for a search that stopped at its first success, which does not determine the probability."""
    of_anneal: Estimate | None  # probability that at least one replica succeeds; None for such a search
    seconds: float  # mean time of a whole anneal; for such a search, of the anneals that missed the target
    tts: Estimate | None  # time in which repeated anneals meet the target with probability 99 %; None for such a search

    @property
    def numbers(self) -> dict[str, Any]:
        """All numbers for JSON, with None instead of infinity, which JSON lacks."""
        named = {"p_of_replica": self.of_replica, "p_of_anneal": self.of_anneal, "time_to_solution": self.tts}
        counts = {"anneals": self.anneals, "sweeps": self.sweeps, "replicas": self.replicas}
        finite = {
            name: one and [number if np.isfinite(number) else None for number in one] for name, one in named.items()
        }
        return counts | {"seconds_of_anneal": self.seconds} | finite

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


@public
@judges("model", "anneals")
def success_of(
    model: Ising, anneals: Anneals | None, target: float | None = None, independent: bool = True
) -> Success | None:
    """Return the success of the longest anneals of a search, by default for its own target.

    None without a target, for several samples, and without a whole anneal of this length.

    A search that stopped at its first success has no success probability: its share of successful anneals is biased,
    for any target. Only the number of its anneals is then reported, if a whole one of this length came before.

    If replicas are not ``independent``, as in populations, each anneal counts as one trial.
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


def columns(result: AnnealResult, by: str) -> Columns:
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to tabulate yet")
    if by == "temperature":
        return columns_of(averages_by_step(result))
    if by == "sample":
        return columns_of_samples(result, lambda one: columns_of(averages_by_step(one)), lambda one: one.lowest_energy)
    raise InputError(f"there is no table by {by!r} of this run: choose temperature or sample")


def averages_by_step(result: AnnealResult) -> list[Row]:
    """Return the averages after each step as columns of a table; only columns with a label are printed."""
    temperature = Row("T", result.temperature, key="temperature")
    if result.gamma is not None:
        assert result.mean_slice_energy is not None  # noqa: S101  (set in quantum anneals)
        best, mean = (mean_of_replicas(one / result.model.sites) for one in (result.energy, result.mean_slice_energy))
        return [
            Row("Gamma", result.gamma, key="gamma"),
            replace(temperature, label=""),
            Row("E/N of best slices", *best, key="energy_per_site"),
            Row("of all slices", *mean, key="mean_slice_energy_per_site"),
        ]
    averages = thermodynamics(result)
    order, in_field = averages.order_parameter(result.model), result.field is not None
    magnet, staggered = "abs_magnetization", "abs_staggered_magnetization"
    rows = [temperature]
    if in_field:
        rows = [Row("h", result.field, key="field"), replace(temperature, label="")]
    rows += [Row("E/N", *averages.energy, key="energy_per_site")]
    rows += [Row("C/N", *averages.specific_heat, key="specific_heat")]
    rows += [Row("<m>", *averages.signed_magnetization, key="magnetization")] if in_field else []
    rows += [Row("<|m|>" * (order == magnet and not in_field), *averages.magnetization, key=magnet)]
    if result.staggered_magnetization is not None:
        label = "<|m_s|>" * (order == staggered and not in_field)
        rows += [Row(label, *averages.staggered_magnetization, key=staggered)]
    return [*rows, Row(value=averages.specific_heat_trusted, key="specific_heat_trusted"), *_of_populations(result)]


def _of_populations(result: AnnealResult) -> list[Row]:
    if result.family is None or result.parents is None:
        return []
    populations, families, sites = result.populations, result.families, result.model.sites
    free, entropy = populations.free_energy(), populations.entropy(result.energy)
    size = result.energy.shape[2] / result.parents.shape[2]
    return [
        Row("F/N", *over_samples(*(part / sites for part in free)), key="free_energy_per_site"),
        Row("S/N", *over_samples(*(part / sites for part in entropy)), key="entropy_per_site"),
        Row("families", families.number.mean(axis=(1, 2)), key="families"),
        Row("rho_t", families.mean_square_size.mean(axis=(1, 2)), key="mean_square_family_size"),
        Row(value=families.entropy.mean(axis=(1, 2)), key="family_entropy"),
        Row(value=result.parents.mean(axis=(1, 2)) / size, key="share_of_parents"),
    ]
