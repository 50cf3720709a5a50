"""What Python calls of all jobs share: the plan of a command whose model is given, carried out in memory or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt

from spinsim.engine.starting import as_spins, name_of
from spinsim.jobs import job_of
from spinsim.model.ising import Ising, check_model
from spinsim.result import load
from spinsim.run.common import OnUpdates, Plan, Watch, provenance
from spinsim.run.resuming import plan_resume
from spinsim.settings.config import AnyConfig, Config, build_config
from spinsim.settings.shared import GIVEN_MODEL, ModelSettings

Start = str | npt.ArrayLike
OutFile = str | os.PathLike[str]
Tables = dict[str, dict[str, Any]]


def resume(
    path: OutFile,
    sweeps: int | None = None,
    most_steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    checkpoint_every: float | None = None,
    progress: bool = False,
) -> Any:
    """Complete the run of a file from its last checkpoint, or make a tempering run longer.

    Args:
        path: Of a file that a run with ``out``, or the command line, has written.
        sweeps: Measured sweeps that a tempering run shall have in all.
        most_steps: Products with T after which levels of a transfer-matrix run are given up.
        device: Where it goes on, if elsewhere; it does not change the outcome.
        threads: CPU threads, if another number.
        checkpoint_every: Seconds between checkpoints, if others.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        The whole run; one that is finished already is read as it is.

    Raises:
        InputError: for a file that holds no run to go on with, and for sweeps that it cannot have.
        KeyboardInterrupt: on Ctrl-C; the run has saved itself.
    """
    how = {"device": device, "threads": threads, "checkpoint_every": checkpoint_every}
    plan = plan_resume(Path(path), sweeps, how, most_steps)
    return carried_out(plan, path, progress, lambda done: None, None)


def config_of_call(job: type[AnyConfig], model: Ising, tables: Tables) -> AnyConfig:
    """Returns the configuration of a call whose model is given; whole numbers of NumPy serve as those of Python."""
    plain = {
        name: {key: value.item() if isinstance(value, np.generic) else value for key, value in table.items()}
        for name, table in tables.items()
    }
    return replace(build_config(job, plain), model=ModelSettings(instance=f"{GIVEN_MODEL}{check_model(model).name}"))


def identity_of_call(config: Config, model: Ising) -> tuple[Path, dict[str, str]]:
    """Returns the path of a run's file, which is none where there is none, and its root attributes."""
    return Path(config.run.out or os.devnull), provenance(config, model)


def run_table(
    replicas: int,
    seed: int,
    rng_rounds: int,
    device: str,
    threads: int | None,
    out: OutFile | None,
    checkpoint_every: float,
) -> dict[str, Any]:
    """Returns the table of a call's settings that are no physics but how it runs."""
    return {
        "replicas": replicas,
        "seed": seed,
        "rng_rounds": rng_rounds,
        "device": device,
        "threads": threads,
        "out": None if out is None else os.fspath(out),
        "checkpoint_every": checkpoint_every,
    }


def start_of_call(start: Start, model: Ising, replicas: int | None) -> tuple[str, npt.NDArray[np.int8] | None]:
    """Returns what stands for a start in a configuration, and its spins where they are given."""
    check_model(model)
    if isinstance(start, str):
        return start, None
    spins = as_spins(start, model, replicas)
    return name_of(spins), spins


def carried_out(
    plan: Plan[Any],
    out: OutFile | None,
    progress: bool,
    on_updates: OnUpdates,
    in_memory: Callable[[Any, Watch], Any] | None,
) -> Any:
    """Carry a plan out, into its file where there is one, and return what it comes to.

    Args:
        plan: Of the run.
        out: The file, if any.
        progress: Whether a bar is shown.
        on_updates: Called now and then with what was done since the last call.
        in_memory: Runs a plan without a file; None where it has one in any case.
    """
    job = job_of(plan.config.job)
    with job.progress(silent=not progress) as bar:

        def advance(done: int) -> None:
            bar.advance(done)
            on_updates(done)

        watch = Watch(bar.begin, advance, partial(warn, stacklevel=4))
        if out is None and in_memory is not None:
            return in_memory(plan, watch)
        _interruptible(plan, partial(job.to_file, plan, watch))
    return load(plan.path)


def _interruptible(plan: Plan[Any], carry_out: Callable[[], bool]) -> None:
    """Carry a plan out into its file; Ctrl-C then says how to go on."""
    try:
        carry_out()
    except KeyboardInterrupt:
        if not plan.path.exists():
            raise
        how = f"ss.resume({str(plan.path)!r}) completes the run from its last checkpoint"
        raise KeyboardInterrupt(f"the run was saved: {how}") from None
