"""Rows that reports of several jobs share: heads of ``show``, lowest energies, next commands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import lowest as lowest_of_samples
from spinsim.analysis.runs import samples_in_words
from spinsim.analysis.tables import Row, unprinted
from spinsim.errors import InputError
from spinsim.inputs.texts import count, interval, quoted
from spinsim.jobs import job_of
from spinsim.machine.files import is_locked
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count
from spinsim.pooling import pool_of
from spinsim.result import Result, seeds_of
from spinsim.run.identity import history_of, length_in_words
from spinsim.run.plan import Plan

_OF_FILE: Final = (
    "schema job config config_sha256 model_sha256 dynamics spinsim_version command created finished engine devices "
    "history pooled"
)
"""Root attributes in ``--json``; all other attributes are conventions that all files share."""


def facts(path: Path, result: Result) -> list[Row]:
    """Return the rows that ``--json`` prints for a run of any job, at its end and in ``show``."""
    attributes, model = result.attributes, result.model
    numbers: dict[str, Any] = {name: attributes[name] for name in _OF_FILE.split() if name in attributes}
    numbers |= {"file": str(path), "seed": result.config["run"]["seed"]}
    numbers |= {"model": model.name, "sites": model.sites, "samples": model.samples, "quantum": model.quantum}
    numbers |= {"rounded": bool(model.rounded), "rounding_error": model.rounding_error}
    numbers |= {"configurations": len(getattr(result, "configurations", None) or ())}
    return unprinted(numbers)


def printed(rows: Iterable[Row]) -> list[Row]:
    """Return the same rows, but only for the terminal."""
    return [replace(row, key="") for row in rows]


def head(path: Path, result: Result, size: str, run: str, progress: str, state: str) -> list[Row | str]:
    """Return the first rows of ``show``, from words for the sizes of model and run, the progress and the state."""
    attributes, model = result.attributes, result.model
    pool = pool_of(result)
    seed, of_disorder = seeds_of(result.config) if pool is None else pool.seeds
    seeds = [f"{seed}"] * (seed is not None) + [f"{of_disorder} of the disorder"] * (of_disorder is not None)
    rows: list[Row | str] = [
        f"{path}: {attributes['job']} of {model.name}",
        Row("Model", note=size),
        *([Row("Rounded", note=model.caution)] if model.caution else []),
        Row("Run", f"{run}, {attributes['engine']}, spinsim {attributes['spinsim_version']}"),
        *([Row("Pooled", note=": ".join(filter(None, (count(pool.runs, "run"), pool.files))))] if pool else []),
        *([Row("Note", note=pool.difference)] if pool and pool.difference else []),
        Row("Progress", f"{progress}, begun {attributes['created']}"),
        Row("State", state),
        *([Row("Seed" if pool is None else "Seeds", ", ".join(seeds))] if seeds else []),
        *([Row("Command", attributes["command"])] if "command" in attributes else []),
        Row("Identity", attributes["config_sha256"]),
    ]
    history = (f"{entry['date']}  {length_in_words(entry)}: {entry['command']}" for entry in history_of(attributes))
    return [*rows, *(Row("History", line) for line in history), *facts(path, result)]


def head_of_steps(
    path: Path, result: Result, replicas: int, rows: int, planned: int | None, measure_every: int | None = None
) -> list[Row | str]:
    """Return the first rows of ``show`` for a run of replicas; ``planned`` is None if it has no fixed number of rows.

    A row is a step; with ``measure_every``, a row is a measurement after this number of sweeps.
    """
    model, unit = result.model, "measurement" if measure_every else "step"
    state = f"finished {result.attributes['finished']}" if result.finished else f"NOT finished: {completed_by(path)}"
    size = f"{model.size_in_words}, {samples_in_words(result)}, energies are multiples of {model.quantum:g}"
    progress = f"{count(rows, 'row')} recorded"
    if planned is not None:
        sweeps = measure_every or 1
        progress = f"{rows * sweeps} of {count(planned * sweeps, 'sweep' if measure_every else unit)}"
    if (pool := pool_of(result)) is not None and pool.sweeps:
        progress = f"{pool.sweeps} sweeps each"
    lines = head(path, result, size, count(replicas, "replica"), progress, state)
    saved = getattr(result, "configurations", None)
    if saved is None:
        return lines
    each = count(saved.shape[0], "configuration")
    words = f"{each} of each replica, one at {interval(saved.every, unit)}, {len(saved)} in all"
    return [*lines, Row("Saved", words)]


def solution_row(plan: Plan[Any]) -> list[Row]:
    return [] if plan.solution is None else [Row("Solution", plan.solution)]


def of_solution(plan: Plan[Any]) -> list[str]:
    """Return the command that shows the lowest states by the labels of an instance; no command for other models."""
    return [f"spinsim show {quoted(plan.path)} --solution"] if plan.config.model.instance is not None else []


def twice_as_long(plan: Plan[Any], result: Result) -> list[str]:
    """Return the command that doubles the length of a plan's run; no command if the run has no set length."""
    own = result.config[plan.config.job]  # may be longer than the plan
    flags = [f" --{name.replace('_', '-')} {2 * own[name]}" for name in job_of(plan.config.job).lengths(plan.config)]
    return [f"spinsim resume {quoted(plan.path)}{''.join(flags)}"] if flags else []


def completed_by(file: Path) -> str:
    return "another process is at it" if is_locked(file) else "the same command completes it"


def empty_lanes(engine: str, replicas: int, places: int) -> list[Row]:
    """Return a row with the number of replicas per sample that fills the words of a replica-packed run.

    ``engine`` is the attribute of the file. ``places`` is the number of places of a ladder, or 1 without a ladder.
    """
    room = block_count(replicas) * LANES // places
    if Packing.REPLICA not in engine or room * places <= replicas:
        return []
    why = f"the replicas of a sample are updated {LANES} at a time, and these are {replicas}"
    return [Row("Hint", note=f"--replicas {room} takes little longer than --replicas {replicas // places}: {why}")]


def lowest_rows(model: Ising, best_energy: npt.NDArray[np.float64], anneals: int = 1) -> list[Row]:
    """Return rows with the lowest energy met and its cut, or their means over several samples.

    ``best_energy`` (samples, replicas) is the lowest energy that each replica met in ``anneals`` anneals.
    """
    each = f" (each had {anneals} anneals)" if anneals > 1 else ""
    lowest, replicas = float(best_energy.min()), count(best_energy.shape[1], "replica")
    of_site = Row(key="lowest_energy_per_site", value=lowest / model.sites)
    cut = [] if model.maxcut_weight is None else [Row("Best cut", float(model.cut(lowest)), key="cut")]
    offset = [Row(key="lowest_energy_with_offset", value=lowest + model.offset)] if model.offset else []
    if model.samples == 1:
        of_one = f"({of_site.value:.6f} per site)"
        met = f"met by {int((best_energy == lowest).sum())} of {replicas}{each}"
        if model.offset:  # the value of the user's problem comes first
            first = Row("Lowest energy", lowest + model.offset, note=met, key="lowest_energy_with_offset")
            return [first, Row("Without constant", lowest, note=of_one, key="lowest_energy"), of_site, *cut]
        return [Row("Lowest energy", lowest, note=f"{of_one}, {met}", key="lowest_energy"), of_site, *cut]
    averages = lowest_of_samples(model, best_energy)
    name, over = "mean_lowest_energy_per_site", f"per site, mean over {model.samples} samples"
    return [
        Row("Lowest energy", averages.mean, averages.error, over, key=name),
        Row("Hits", f"{_hits_in_words(averages.hits, replicas)}{each}"),
        Row(key="hits_of_sample", value=averages.hits),
        *(replace(row, label="") for row in (Row(key="lowest_energy", value=lowest), of_site, *cut, *offset)),
    ]


def _hits_in_words(hits: npt.NDArray[np.int64], replicas: str) -> str:
    """Say how many replicas of a sample met its lowest energy, from their number in each sample."""
    fewest, most, mean = int(hits.min()), int(hits.max()), float(hits.mean())
    if fewest == most:
        same = f"all {replicas}" if replicas.startswith(f"{most} ") else f"{most} of {replicas}"
        return f"{same} of each sample met its lowest energy"
    number = f"{mean:.3g}" if mean < 100 else f"{mean:.0f}"
    return f"{number} of {replicas} met the lowest energy of their sample, on average ({fewest} to {most})"


def no_table(a_run: str, result: Result) -> InputError:
    return InputError(f"a table of {a_run} of {result.model.name} is its own dataset().to_dataframe(): ask for that")
