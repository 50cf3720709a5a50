"""Rows and tables that reports of several jobs share: heads of ``show``, lowest energies, averages on a ladder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import lowest as lowest_of_samples
from spinsim.analysis.runs import samples_in_words
from spinsim.analysis.tables import (
    Columns,
    Row,
    columns_of_samples,
    estimate_columns,
    main_columns,
    own_columns,
    printed_table,
    unprinted,
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

MOST_COLUMNS: Final = 4  # averages that fit beside the exchanges in 80 characters; a wider table is cut in two


_OF_FILE: Final = (
    "schema job config config_sha256 model_sha256 dynamics spinsim_version command created finished engine devices "
    "history pooled"
)
"""Root attributes that ``--json`` has; others are the conventions, which all files share."""


def facts(path: Path, result: Result) -> list[Row]:
    """Returns what ``--json`` says of a run of any job, as it ends and by ``show``."""
    attributes, model = result.attributes, result.model
    numbers: dict[str, Any] = {name: attributes[name] for name in _OF_FILE.split() if name in attributes}
    numbers |= {"file": str(path), "seed": result.config["run"]["seed"]}
    numbers |= {"model": model.name, "sites": model.sites, "samples": model.samples, "quantum": model.quantum}
    numbers |= {"rounded": bool(model.rounded), "rounding_error": model.rounding_error}
    numbers |= {"configurations": len(getattr(result, "configurations", None) or ())}
    return unprinted(numbers)


def printed(rows: Iterable[Row]) -> list[Row]:
    """Returns the same rows for a terminal alone."""
    return [replace(row, key="") for row in rows]


def head(path: Path, result: Result, size: str, run: str, progress: str, state: str) -> list[Row | str]:
    """Returns the rows with which ``show`` begins; in words, sizes of model and run, how far it is, and its state."""
    attributes, model = result.attributes, result.model
    run_table, of_model = (result.config.get(table) or {} for table in ("run", "model"))
    seeds = [f"{run_table['seed']}"] if run_table.get("seed") is not None else []
    is_random = of_model.get("couplings") in RANDOM_KINDS or of_model.get("dilution") or of_model.get("random_field")
    if is_random and of_model.get("disorder_seed") is not None:
        seeds.append(f"{of_model['disorder_seed']} of the disorder")
    rows: list[Row | str] = [
        f"{path}: {attributes['job']} of {model.name}",
        Row("Model", size),
        *([Row("Rounded", note=model.caution)] if model.caution else []),
        Row("Run", f"{run}, {attributes['engine']}, spinsim {attributes['spinsim_version']}"),
        Row("Progress", f"{progress}, begun {attributes['created']}"),
        Row("State", state),
        *([Row("Seed", ", ".join(seeds))] if seeds else []),
        *([Row("Pooled", count(len(json.loads(attributes[POOLED])), "run"))] if POOLED in attributes else []),
        Row("Command", attributes["command"]),
        Row("Identity", attributes["config_sha256"]),
    ]
    history = (f"{entry['date']}  {length_in_words(entry)}: {entry['command']}" for entry in history_of(attributes))
    return [*rows, *(Row("History", line) for line in history), *facts(path, result)]


def head_of_steps(
    path: Path, result: Result, replicas: int, rows: int, planned: int | None, measure_every: int | None = None
) -> list[Row | str]:
    """Returns the same of a run of replicas, of whose planned rows some are done; None where it plans none.

    A row is a step, or where ``measure_every`` is given a measurement after so many sweeps.
    """
    model, unit = result.model, "measurement" if measure_every else "step"
    state = f"finished {result.attributes['finished']}" if result.finished else f"NOT finished: {completed_by(path)}"
    size = f"{model.size_in_words}, {samples_in_words(result)}, energies in steps of {model.quantum:g}"
    progress = f"{count(rows, 'row')} recorded"
    if planned is not None:
        sweeps = measure_every or 1
        progress = f"{rows * sweeps} of {count(planned * sweeps, 'sweep' if measure_every else unit)}"
    lines = head(path, result, size, count(replicas, "replica"), progress, state)
    saved = getattr(result, "configurations", None)
    if saved is None:
        return lines
    each = count(saved.shape[0], "configuration")
    words = f"{each} of each replica, one at {interval(saved.every, unit)}, {len(saved)} in all"
    return [*lines, Row("Saved", words)]


def ladder_sentence(plan: LadderPlan[Any], size: str, axis: tuple[str, str], values: Floats, length: str) -> str:
    """Returns a plan in words; of a ladder that is to be placed, ``values`` are both ends."""
    wanted, copies = plan.of_job.to_place, plan.config.run.number_of_replicas
    number = f"{len(values)}" if wanted is None else f"{wanted.count or ''} placed".strip()
    low, high = values.min(), values.max()
    ladder = f"{axis[0]} = {low:.4g}" if number == "1" else f"{number} {axis[1]} from {low:.4g} to {high:.4g}"
    where = "CPU" if plan.device == "cpu" else "GPU"
    moves = moves_in_words(plan.of_job.moves, plan.of_job.houdayer)
    return f"{size}{count(copies, 'copy')} x {ladder}, {length}{moves}, on the {where}"


def table_by_place(
    model: Ising,
    averages: Summary,
    rates: npt.NDArray[np.float64] | None,
    next_place: str,
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Row | str]:
    """Returns the main averages of a run on a ladder, a line for each place, with shares of exchanges if any."""
    names = main_columns(model, averages.estimates)[:MOST_COLUMNS]
    if rates is None or not len(rates):
        return [*printed_table(averages, names, others)]
    swaps = {"swaps": [*(f"{rate:.3f}" for rate in rates), ""]}
    note = f"share of the exchanges tried with {next_place} that were accepted."
    return [*printed_table(averages, names, {**others, **swaps}), *wrapped(note, "swaps: ")]


def solution_row(plan: Plan[Any]) -> list[Row]:
    return [] if plan.solution is None else [Row("Solution", plan.solution)]


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


def round_trip_row(trips: npt.NDArray[np.int64]) -> Row:
    none = f"{int((trips == 0).sum())} of {count(trips.size, 'replica')} made none"
    return Row("Round trips", int(trips.sum()), note=f"in all, {trips.mean():.3g} a replica, {none}", key="round_trips")


def empty_lanes(engine: str, replicas: int, places: int) -> list[Row]:
    """Returns a row on the replicas of each sample that words of a replica-packed run have room for.

    ``engine`` is the attribute of the file; a ladder has so many places, 1 stands for none.
    """
    room = block_count(replicas) * LANES // places
    if Packing.REPLICA not in engine or room * places <= replicas:
        return []
    return [Row("Room", f"--replicas {room} would take as long, {LANES} are updated at a time")]


def lowest_rows(model: Ising, best_energy: npt.NDArray[np.float64], anneals: int = 1) -> list[Row]:
    """Returns what optimisers look for: the lowest energy met and the cut it means; of several samples means.

    ``best_energy`` (samples, replicas) is the lowest that each replica met in so many anneals.
    """
    each = f" (each had {anneals} anneals)" if anneals > 1 else ""
    lowest, replicas = float(best_energy.min()), count(best_energy.shape[1], "replica")
    of_site = Row(key="lowest_energy_per_site", value=lowest / model.sites)
    cut = [] if model.maxcut_weight is None else [Row("Best cut", float(model.cut(lowest)), key="cut")]
    constant = "lowest_energy_with_offset"
    offset = [Row("With offset", lowest + model.offset, key=constant)] if model.offset else []
    if model.samples == 1:
        hits = f"({of_site.value:.6f} per site), met by {int((best_energy == lowest).sum())} of {replicas}{each}"
        return [Row("Lowest energy", lowest, note=hits, key="lowest_energy"), of_site, *cut, *offset]
    averages = lowest_of_samples(model, best_energy)
    mean, ends = float(averages.hits.mean()), f"from {averages.hits.min()} to {averages.hits.max()}"
    met = f"{mean:.3g}" if mean < 100 else f"{mean:.0f}"
    name, over = "mean_lowest_energy_per_site", f"per site, mean over {model.samples} samples"
    return [
        Row("Lowest energy", averages.mean, averages.error, over, key=name),
        Row("Hits", f"met by {met} of {replicas} a sample{each}, {ends}"),
        Row(key="hits_of_sample", value=averages.hits),
        *(replace(row, label="") for row in (Row(key="lowest_energy", value=lowest), of_site, *cut, *offset)),
    ]


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
