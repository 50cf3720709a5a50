"""Calls in Python, for all jobs: they plan a run of a given model and carry it out in memory or into a file.

Each job's own call is in the module ``run.py`` of its folder, with the default settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
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
from spinsim.pooling import pool
from spinsim.result import Result, load
from spinsim.run.alone import plans_of_slow, plans_until_equilibrated
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
_NO_SETTINGS: Final = {"model", "on_updates", "on_rows", "progress", "until_equilibrated", "feasible"}  # but arguments


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
    slow_samples: bool = False,
) -> Any:
    """Complete the run of a file from its last checkpoint, or extend a run or a search.

    Args:
        path: File that a command, or a call with ``out``, has written.
        sweeps: New total number of measured sweeps of a tempering or quantum run.
        most_steps: Largest number of products with T for the levels of a transfer-matrix run.
        device: New device; by default unchanged. The outcome does not depend on it.
        threads: New number of CPU threads; by default unchanged.
        checkpoint_every: New number of seconds between checkpoints; by default unchanged.
        gpus: New GPUs: ``all``, a count, or numbers such as ``0,2``; by default unchanged.
        progress: True shows a progress bar on the terminal or in the notebook, and elsewhere
            reports when kernels are compiled.
        time_limit: Largest duration of a search in seconds, counted from its beginning. A search
            that has met its target is left unchanged.
        anneals: Largest number of anneals of a search, counted from its beginning.
        on_updates: Called at intervals with the number of spin updates since the last call.
        moves: User-defined moves of the run, each with its number of sweeps, under the same names.
        measure: User-defined functions that the run was given in Python, by name.
        drop_added: True drops data that another program added to the file, and continues.
        slow_samples: True extends the slow samples of a finished run on a ladder alone, into files
            ``<stem>-slow-<sweeps>.h5``. The sweeps double from file to file, up to ``sweeps``,
            until no sample is slow. Trajectories are those of a run of all samples.

    Returns:
        The whole run; for slow samples all samples, each from its longest run. A finished run is
        only read. A file of ``result.save`` has no checkpoint: a longer run then starts again
        from its seed, with the same bits.

    Raises:
        InputError: if the run of the file cannot be continued, or cannot have that length,
            and if no sample is slow.
        KeyboardInterrupt: on Ctrl-C; the run is saved first.
    """
    how = {"device": device, "gpus": gpus, "threads": threads, "checkpoint_every": checkpoint_every}
    lengths = {"sweeps": sweeps, "most_steps": most_steps, "time_limit": time_limit, "anneals": anneals}
    if slow_samples:
        if moves or drop_added or any(value is not None for name, value in lengths.items() if name != "sweeps"):
            raise InputError("slow_samples=True goes with sweeps, their largest number, alone: leave other changes out")
        runs = [carried_out(one, path, progress, on_updates) for one in plans_of_slow(Path(path), sweeps, how, measure)]
        return pool([path, *runs])
    plan = plan_resume(Path(path), lengths, how, moves, measure, drop_added)
    return carried_out(plan, path, progress, on_updates)


@public
def recount(run: Result | OutFile, device: str = RunSettings.device, threads: int | None = RunSettings.threads) -> Any:
    """Recount all measurements of a run from its saved configurations.

    Args:
        run: A result, or a file of a run with ``save_configurations``.
        device: Device for the counting: ``auto``, ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.

    Returns:
        The run restricted to rows with saved configurations. Its energies, magnetisations,
        overlaps and modes are computed from the spins, and equal the recorded numbers exactly.

    Raises:
        InputError: as ``load``, and for a run that has saved no configurations.
    """
    result = run if isinstance(run, Result) else load(run)
    return job_of(result.job).recounted(result, resolve_device(device), threads)


def run_of_call(
    job: type[Config], model: Ising, given: Given, spins: npt.NDArray[np.int8] | None = None, **checks: Check
) -> Any:
    """Carry out the run of a call with a given model, in memory or into its file, and return its result.

    Args:
        job: The class of its configurations.
        model: Model that is simulated; for slices in time it differs from the model of the call.
        given: All arguments of the call, by name.
        spins: Initial spins in their final shape, if the call has made them.
        checks: Functions that check numbers, by argument, in the form for ``text_of_call``.
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
    if "feasible" in given:
        own["feasible"] = given["feasible"]
    config = config_of_call(job, model, given, **checks)
    where = resolve_device(config.run.device, config.run.gpus)
    config = plan_type.filled_in(config, model, where)
    path = Path(config.run.out) if config.run.out else _NO_FILE
    attributes: Any = partial(provenance, config, model, tuple(sys.argv))
    plan = plan_type(config, model, where, path, attributes, **own)
    following: Iterable[Plan[Any]] = ()
    if given.get("until_equilibrated"):
        if not config.run.out:
            raise InputError("until_equilibrated=True extends samples in files beside that of the run: give out")
        following = plans_until_equilibrated(plan)
    how = given.get("out"), bool(given.get("progress")), given.get("on_rows") or given.get("on_updates")
    result, *others = [carried_out(one, *how) for one in chain([plan], following)]
    return pool([result, *others]) if others else result


def config_of_call(job: type[AnyConfig], model: Ising, given: Given, **checks: Check) -> AnyConfig:
    """Return the configuration of a call with a given model.

    ``given`` has all arguments of the call by name. None stands for the default; for a seed it draws a fresh one.
    ``checks`` are functions that check numbers, in the form for ``text_of_call``.
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
    """Return the configuration text of one or several numbers, or a text unchanged.

    ``check`` refuses wrong numbers with a message that names the first one; a text would be quoted as a whole.
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
    """Return the name of a start in a configuration, and its spins if they are given."""
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
