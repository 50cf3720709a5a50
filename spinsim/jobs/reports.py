"""Lines and tables that reports of several jobs share: heads of ``show``, lowest energies, averages on a ladder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import lowest as of_samples
from spinsim.analysis.tables import (
    Columns,
    columns_of_samples,
    estimate_columns,
    main_columns,
    own_columns,
    printed_table,
    with_error,
)
from spinsim.errors import InputError
from spinsim.inputs.texts import count, either, interval, quoted, wrapped
from spinsim.jobs import job_of
from spinsim.jobs.ladder.result import Floats, LadderResult
from spinsim.jobs.ladder.run import LadderPlan, moves_in_words
from spinsim.machine.files import is_locked
from spinsim.model.disorder import RANDOM_KINDS
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count
from spinsim.result import POOLED, Result
from spinsim.run.identity import history_of, length_in_words
from spinsim.run.plan import Plan

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary

MOST_COLUMNS: Final = 4  # averages that fit beside the exchanges


def head(path: Path, result: Result, model: str, run: str, progress: str, state: str) -> list[str]:
    """Returns the lines with which ``show`` begins: how large model and run are, how far, and its state, in words."""
    attributes = result.attributes
    run_table, of_model = (result.config.get(table) or {} for table in ("run", "model"))
    seeds = [f"{run_table['seed']}"] if run_table.get("seed") is not None else []
    is_random = of_model.get("couplings") in RANDOM_KINDS or of_model.get("dilution") or of_model.get("random_field")
    if is_random and of_model.get("disorder_seed") is not None:
        seeds.append(f"{of_model['disorder_seed']} of the disorder")
    history = [f"{entry['date']}  {length_in_words(entry)}: {entry['command']}" for entry in history_of(attributes)]
    return [
        f"{path}: {attributes['job']} of {result.model.name}",
        f"Model      {model}",
        *(wrapped(result.model.caution, "Rounded    ") if result.model.caution else []),
        f"Run        {run}, {attributes['engine']}, spinsim {attributes['spinsim_version']}",
        f"Progress   {progress}, begun {attributes['created']}",
        f"           {state}",
        *([f"Seed       {', '.join(seeds)}"] if seeds else []),
        *([f"Pooled     {count(len(json.loads(attributes[POOLED])), 'run')}"] if POOLED in attributes else []),
        f"Command    {attributes['command']}",
        f"Identity   {attributes['config_sha256']}",
        *(f"{'' if number else 'History':11}{line}" for number, line in enumerate(history)),
    ]


def head_of_steps(
    path: Path, result: Result, replicas: int, rows: int, planned: int | None, measure_every: int | None = None
) -> list[str]:
    """Returns the same of a run of replicas, of whose planned rows some are done; None where it plans none.

    A row is a step, or where ``measure_every`` is given a measurement after so many sweeps.
    """
    model, unit = result.model, "measurement" if measure_every else "step"
    state = f"finished {result.attributes['finished']}" if result.finished else f"NOT finished: {completed_by(path)}"
    size = f"{model.size_in_words}, {count(model.samples, 'sample')}, energies in steps of {model.quantum:g}"
    progress = f"{count(rows, 'row')} recorded"
    if planned is not None:
        sweeps = measure_every or 1
        progress = f"{rows * sweeps} of {count(planned * sweeps, 'sweep' if measure_every else unit)}"
    lines = head(path, result, size, count(replicas, "replica"), progress, state)
    saved = getattr(result, "configurations", None)
    if saved is None:
        return lines
    each = count(saved.shape[0], "configuration")
    return [*lines, f"Saved      {each} of each replica, one at {interval(saved.every, unit)}, {len(saved)} in all"]


_OF_FILE: Final = (
    "schema job config config_sha256 model_sha256 dynamics spinsim_version command created finished engine devices "
    "history pooled"
)
"""Root attributes that reports print; others are the conventions, which all files share."""


def about(path: Path, result: Result) -> dict[str, Any]:
    """Returns what ``--json`` says of a run of any job, as it ends and by ``show``."""
    attributes, run = result.attributes, result.config["run"]
    origin = {name: attributes[name] for name in _OF_FILE.split() if name in attributes}
    model = result.model
    size = {"model": model.name, "sites": model.sites, "samples": model.samples}
    saved = len(getattr(result, "configurations", None) or ())
    return origin | {"file": str(path), "seed": run["seed"], **size, **precision(model), "configurations": saved}


def ladder_sentence(plan: LadderPlan[Any], size: str, axis: tuple[str, str], values: Floats, length: str) -> str:
    """Returns a plan in words; of a ladder that is to be placed, ``values`` are both ends."""
    wanted, copies = plan.of_job.to_place, plan.config.run.number_of_replicas
    number = f"{len(values)}" if wanted is None else f"{wanted.count or ''} placed".strip()
    low, high = values.min(), values.max()
    ladder = f"{axis[0]} = {low:.4g}" if number == "1" else f"{number} {axis[1]} from {low:.4g} to {high:.4g}"
    where = "CPU" if plan.device == "cpu" else "GPU"
    moves = moves_in_words(plan.of_job.moves, plan.of_job.houdayer)
    return f"{size}{count(copies, 'copy')} x {ladder}, {length}{moves}, on the {where}"


def table_of_places(
    model: Ising,
    averages: Summary,
    rates: list[str] | None,
    next_place: str,
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[str]:
    """Returns the main averages of a run on a ladder, a line for each place."""
    names = main_columns(model, averages.estimates)[:MOST_COLUMNS]
    lines = printed_table(averages, names, {**others, **({"swaps": [*rates, ""]} if rates else {})} or None)
    if rates:
        lines += wrapped(f"share of the exchanges tried with {next_place} that were accepted.", "swaps: ")
    return lines


def solution_lines(plan: Plan[Any]) -> list[str]:
    return [] if plan.solution is None else [f"Solution       {plan.solution}"]


def of_solution(plan: Plan[Any]) -> list[str]:
    """Returns the command that shows the lowest states by the labels of an instance; none of other models."""
    return [f"spinsim show {quoted(plan.path)} --solution"] if plan.config.model.instance is not None else []


def twice_as_long(plan: Plan[Any], result: Result) -> list[str]:
    """Returns the command that makes the run of a plan's file twice as long; none where nothing says how long it is."""
    own = result.config[plan.config.job]  # which may be longer than the plan
    flags = [f" --{name.replace('_', '-')} {2 * own[name]}" for name in job_of(plan.config.job).lengths(plan.config)]
    return [f"spinsim resume {quoted(plan.path)}{''.join(flags)}"] if flags else []


def completed_by(file: Path) -> str:
    return "another process is at it" if is_locked(file) else "the same command completes it"


def precision(model: Ising) -> dict[str, Any]:
    return {"quantum": model.quantum, "rounded": bool(model.rounded), "rounding_error": model.rounding_error}


def round_trip_line(trips: npt.NDArray[np.int64]) -> str:
    none = f"{int((trips == 0).sum())} of {count(trips.size, 'replica')} made none"
    return f"Round trips  {trips.mean():.3g} a replica, {none}"


def empty_lanes(engine: str, replicas: int, places: int) -> list[str]:
    """Returns a line on the replicas of each sample that words of a replica-packed run have room for.

    ``engine`` is the attribute of the file; a ladder has so many places, 1 stands for none.
    """
    room = block_count(replicas) * LANES // places
    if Packing.REPLICA not in engine or room * places <= replicas:
        return []
    return [f"Room           --replicas {room} would take as long, {LANES} are updated at a time"]


def lowest_lines(model: Ising, best_energy: npt.NDArray[np.float64], anneals: int = 1) -> list[str]:
    """Returns what optimisers look for, a line each: the lowest energy met, the cut it means; of samples means.

    ``best_energy`` (samples, replicas) is the lowest that each replica met in so many anneals.
    """
    each = f" (each had {anneals} anneals)" if anneals > 1 else ""
    if model.samples > 1:
        averages, replicas = of_samples(model, best_energy), best_energy.shape[1]
        mean = float(averages.hits.mean())
        met = f"{mean:.3g}" if mean < 100 else f"{mean:.0f}"
        return [
            f"Lowest energy  {with_error(averages.mean, averages.error)} per site, mean over {model.samples} samples",
            f"               met by {met} of {count(replicas, 'replica')} a sample{each}, "
            f"from {averages.hits.min()} to {averages.hits.max()}",
        ]
    lowest = float(best_energy.min())
    hits = int((best_energy == lowest).sum())
    lines = [
        f"Lowest energy  {lowest:.10g}  ({lowest / model.sites:.6f} per site), "
        f"met by {hits} of {count(best_energy.size, 'replica')}{each}"
    ]
    if model.maxcut_weight is not None:
        lines.append(f"Best cut       {float(model.cut(lowest)):.10g}")
    if model.offset:
        lines.append(f"With offset    {lowest + model.offset:.10g}")
    return lines


def ladder_columns(
    result: LadderResult,
    by: str,
    where: Callable[[Any], Columns],
    others: Mapping[str, Callable[[], Columns]],
    same: tuple[str, ...] = (),
) -> Columns:
    """Returns the columns of ``ss.table``.

    ``where`` returns those that say which place a row is of, ``others`` has the other tables of the job by name, and
    ``same`` other names of the table by place.
    """
    from spinsim.analysis.summary import estimates  # which loads SciPy

    def by_place(one: LadderResult) -> Columns:
        return where(one) | estimate_columns(estimates(one))

    if by in (result.axis.name, *same):
        return by_place(result)
    if by == "sample":
        return columns_of_samples(result, by_place, lambda one: one.best_energy)
    if by in others:
        return others[by]()
    if by in result.measured:
        return own_columns(result, by)
    choices = either((result.axis.name, "sample", *others))
    raise InputError(f"there is no table by {by!r} of this run: choose {choices}")
