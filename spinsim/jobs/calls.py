"""Calls in Python, of all jobs: the plan of a command whose model is given, carried out in memory or a file.

Each job's own call stands in its folder, in ``run.py``, with the defaults of its settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import resolve_device
from spinsim.engine.given import as_spins, name_of
from spinsim.engine.moves.move import Move, text_of
from spinsim.errors import InputError, warn_caller
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import as_floats, as_text
from spinsim.inputs.texts import RANDOM
from spinsim.jobs import job_of
from spinsim.model.ising import Ising, check_model
from spinsim.result import Result, load
from spinsim.run.execute import in_memory, to_file
from spinsim.run.identity import tables_of_file
from spinsim.run.own_observables import text_of_measure
from spinsim.run.plan import Plan, Watch, plan_resume, provenance
from spinsim.run.progress import Bar, compiling_told
from spinsim.sampling.portions import OnUpdates
from spinsim.settings.config import AnyConfig, Config, build_config, tables_of
from spinsim.settings.shared import GIVEN_MODEL, ModelSettings, RunSettings

Start = str | npt.ArrayLike
OutFile = str | os.PathLike[str]
Tables = dict[str, dict[str, Any]]
Check = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
Given = dict[str, Any]
_NO_FILE: Final = Path(os.devnull)
_NO_SETTINGS: Final = {"model", "on_updates", "on_rows", "progress"}  # arguments of calls that are no settings


@public
def resume(
    path: str | os.PathLike[str],
    sweeps: int | None = None,
    most_steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    checkpoint_every: float | None = None,
    gpus: str | None = None,
    progress: bool = False,
    time_limit: float | None = None,
    anneals: int | None = None,
    on_updates: OnUpdates | None = None,
    moves: Sequence[tuple[Move, int]] = (),
    measure: Mapping[str, Callable[[Any], Any]] | None = None,
    drop_added: bool = False,
) -> Any:
    """Complete the run of a file from its last checkpoint, or make a run or a search longer.

    Args:
        path: File that a command, or a call with ``out``, has written.
        sweeps: Total number of measured sweeps of a longer tempering or quantum run.
        most_steps: Products with T after which levels of a transfer-matrix run are given up.
        device: Device to continue on, if another; the outcome is the same.
        threads: CPU threads, if another number.
        checkpoint_every: Seconds between checkpoints, if another number.
        gpus: GPUs that share the work, if others: ``all``, how many, or numbers such as ``0,2``.
        progress: True shows a progress bar on the terminal or in the notebook, and elsewhere says
            when kernels are compiled.
        time_limit: Largest duration of a search in seconds, from its beginning. A search that has
            met its target stays as it is.
        anneals: Largest number of anneals of a search, from its beginning.
        on_updates: Called now and then with the number of spin updates since the last call.
        moves: Moves of your own that the run was given, each with its number of sweeps, by the
            same names.
        measure: Functions of your own that the run was given in Python, by name.
        drop_added: True goes on where another program has added to the file, without what it added.

    Returns:
        The whole run; one that is finished already is read as it is. A file of ``result.save`` has
        no checkpoint: its run is made longer from the seed on, with the same bits.

    Raises:
        InputError: if the file holds no run that can be continued, or cannot have that length.
        KeyboardInterrupt: on Ctrl-C; the run has saved itself.
    """
    how = {"device": device, "gpus": gpus, "threads": threads, "checkpoint_every": checkpoint_every}
    lengths = {"sweeps": sweeps, "most_steps": most_steps, "time_limit": time_limit, "anneals": anneals}
    plan = plan_resume(Path(path), lengths, how, moves, measure, drop_added)
    return carried_out(plan, path, progress, on_updates)


@public
def recount(run: Result | OutFile, device: str = RunSettings.device, threads: int | None = RunSettings.threads) -> Any:
    """Count everything that a run has measured again, from the configurations that it has saved.

    Args:
        run: A result, or a file of a run with ``save_configurations``.
        device: Where it is counted: ``auto``, ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.

    Returns:
        The run with the rows alone at which configurations were saved; its energies,
        magnetisations, overlaps and modes come from the spins. They are the very numbers that were
        recorded.

    Raises:
        InputError: as ``load``, and for a run that has saved no configurations.
    """
    result = run if isinstance(run, Result) else load(run)
    return job_of(result.job).recounted(result, resolve_device(device), threads)


def run_of_call(
    job: type[Config], model: Ising, given: Given, spins: npt.NDArray[np.int8] | None = None, **checks: Check
) -> Any:
    """Carry out the run of a call whose model is given, in memory or in its file, and return its result.

    Args:
        job: The class of its configurations.
        model: Model that is simulated, which for slices in time is not the one that the call was given.
        given: All arguments of the call, by their names.
        spins: Initial spins in their final shape, where the call has made them.
        checks: Functions that refuse numbers, by the argument, as ``text_of_call`` takes them.
    """
    plan_type: Any = job_of(job.job).plan_type
    given, moves, own = dict(given), given.get("moves"), dict[str, Any]()
    if "start" in given:
        given["start"], given_spins = start_of_call(given["start"], model, None)
        own["start"] = given_spins if spins is None else spins
    if "moves" in given:
        own["moves"] = () if moves is None or isinstance(moves, str) else tuple(moves)
        given["moves"] = moves if isinstance(moves, str) else text_of(own["moves"])
    if "measure" in given:
        own["measure"] = None if isinstance(given["measure"], str) else given["measure"]
        given["measure"] = text_of_measure(given["measure"])
    config = config_of_call(job, model, given, **checks)
    where = resolve_device(config.run.device, config.run.gpus)
    config = plan_type.filled_in(config, model, where)
    path = Path(config.run.out) if config.run.out else _NO_FILE
    attributes: Any = partial(provenance, config, model, tuple(sys.argv))
    plan = plan_type(config, model, where, path, attributes, **own)
    on_done = given.get("on_rows") or given.get("on_updates")
    return carried_out(plan, given.get("out"), bool(given.get("progress")), on_done)


def config_of_call(job: type[AnyConfig], model: Ising, given: Given, **checks: Check) -> AnyConfig:
    """Returns the configuration of a call whose model is given.

    ``given`` has all arguments of the call by their names; None stands for the default, of a seed for a fresh one.
    ``checks`` are those of numbers, as ``text_of_call`` takes them.
    """
    of_run, of_job = (tables_of(job)[table] for table in ("run", job.job))
    tables: Tables = {"run": {}, job.job: {}}
    for key, value in given.items():
        if key in _NO_SETTINGS:
            continue
        if key in of_job and of_job[key].takes_lists:
            value = text_of_call(key, value, checks.get(key, np.asarray))
        if value is None:
            if not (key in of_run and of_run[key].is_seed):
                continue
            value = RANDOM
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        tables[job.job if key in of_job else "run"][key] = value
    return replace(build_config(job, tables, begun=tables_of_file), model=_given_model(check_model(model).name))


@lru_cache(maxsize=32)
def _given_model(name: str) -> ModelSettings:
    return ModelSettings(instance=f"{GIVEN_MODEL}{name}")


def text_of_call(name: str, values: npt.ArrayLike | str | None, check: Check) -> str | None:
    """Returns the text of a configuration for numbers that a call gives as text, one or many.

    ``check`` refuses numbers by a sentence that names the first wrong one; a text would be quoted whole.
    """
    if values is None or isinstance(values, str):
        return values
    numbers = np.atleast_1d(as_floats(values, name))
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"{name} has shape {numbers.shape}: give one number, or a list of them")
    bad = numbers[~np.isfinite(numbers)]
    if bad.size:
        raise InputError(f"{name} {bad[0]} is not finite: give numbers such as 0.5")
    return as_text(check(numbers))


def start_of_call(start: Start, model: Ising, replicas: int | None) -> tuple[str, npt.NDArray[np.int8] | None]:
    """Returns what stands for a start in a configuration, and its spins where they are given."""
    check_model(model)
    if isinstance(start, str):
        return start, None
    spins = as_spins(start, model, replicas)
    return name_of(spins), spins


def carried_out(plan: Plan[Any], out: OutFile | None, progress: bool, on_updates: OnUpdates | None) -> Any:
    rows = job_of(plan.config.job).counts_rows
    with compiling_told(silent=not progress), Bar(not progress, rows) as bar:

        def advance(done: int) -> None:
            bar.advance(done)
            if on_updates is not None:
                on_updates(done)

        watch = Watch(bar.begin, advance, warn_caller, bar.watch_parts, bar.note)
        if out is None:
            if plan.model.caution:
                watch.on_warning(plan.model.caution)
            return in_memory(plan, watch)
        try:
            return to_file(plan, watch)[0]
        except KeyboardInterrupt:
            if not plan.path.exists():
                raise
            how = f"ss.resume({str(plan.path)!r}) completes the run from its last checkpoint"
            raise KeyboardInterrupt(f"the run was saved: {how}") from None
