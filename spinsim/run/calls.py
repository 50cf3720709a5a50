"""Runs of Python calls: the plan of a command whose model is given, carried out in memory or into a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from warnings import warn

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.engine import resolve_device
from spinsim.engine.starting import as_spins, name_of
from spinsim.errors import InputError
from spinsim.grids import as_text
from spinsim.model.ising import Ising, check_model
from spinsim.progress import UpdateProgress, counted
from spinsim.result import AnnealResult, TemperResult, TransferResult, load, load_anneal, load_temper, load_transfer
from spinsim.rng import ROUNDS
from spinsim.run.annealing import AnnealPlan, anneal_in_memory, anneal_to_file
from spinsim.run.common import OnUpdates, Plan, Watch, provenance
from spinsim.run.resuming import plan_resume
from spinsim.run.tempering import TemperPlan, temper_in_memory, temper_to_file
from spinsim.run.transferring import OnRows, TransferPlan, transfer_in_memory, transfer_to_file
from spinsim.sampling.annealing import check_fields
from spinsim.settings.anneal import Anneal
from spinsim.settings.config import AnyConfig, Config, build_config
from spinsim.settings.shared import GIVEN_MODEL, ModelSettings
from spinsim.settings.temper import Temper
from spinsim.settings.transfer import Transfer
from spinsim.transfer_matrix.lanczos import MOST_STEPS, TOLERANCE
from spinsim.transfer_matrix.points import positive

Start = str | npt.ArrayLike
OutFile = str | os.PathLike[str]
Tables = dict[str, dict[str, Any]]
Outcome = TypeVar("Outcome")


def anneal(
    model: Ising,
    temperatures: npt.ArrayLike,
    sweeps: int = 10,
    replicas: int = 128,
    seed: int = 1,
    start: Start = "random",
    zero_acceptance: float = ZERO_ACCEPTANCE,
    rng_rounds: int = ROUNDS,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates = lambda updates: None,
    field: npt.ArrayLike | None = None,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: What to anneal.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,).
        sweeps: Sweeps at each temperature; a sweep attempts every spin once.
        replicas: Independent configurations of each sample.
        seed: 64-bit seed. Replica r of sample k depends on (seed, k, r) alone.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.
        field: A uniform field for each temperature, (steps,), which is added to the model's own fields and is part of
            the energies; one temperature alone serves all of them.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    ladder = check_temperatures(temperatures)
    fields = None if field is None else np.atleast_1d(np.asarray(_numbers("field", field)))
    if fields is not None and len(ladder) == 1:
        ladder = np.repeat(ladder, fields.size)
    named, spins = _start(start, model, replicas)
    table = {
        "start": named,
        "temperatures": as_text(ladder),
        "sweeps": sweeps,
        "zero_acceptance": zero_acceptance,
        "field": None if fields is None else as_text(check_fields(fields, len(ladder))),
    }
    run = _run_table(replicas, seed, rng_rounds, device, threads, out, checkpoint_every)
    config = _config(Anneal, model, {"anneal": table, "run": run}).with_temperatures(model.energy_scale)
    plan = AnnealPlan(config, model, resolve_device(device), *_identity(config, model), start=spins)
    return _updates_shown(plan, out, progress, on_updates, anneal_to_file, anneal_in_memory, load_anneal)


def temper(
    model: Ising,
    temperatures: npt.ArrayLike | str,
    sweeps: int,
    thermalize: int,
    replicas: int = 2,
    measure_every: int = 10,
    swap_every: int = 1,
    seed: int = 1,
    start: Start = "random",
    zero_acceptance: float = ZERO_ACCEPTANCE,
    rng_rounds: int = ROUNDS,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates = lambda updates: None,
    correlations: bool = True,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> TemperResult:
    """Parallel tempering in equilibrium.

    Args:
        model: What to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape (temperatures,); or text as
             the command line takes it, such as ``auto:0.7:2.0`` (``sampling/placement.py``).
        sweeps: Sweeps of the measured part; a sweep attempts every spin once.
        thermalize: Sweeps before it.
        replicas: Copies of the ladder in each sample, two or more for overlaps.
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between attempts to exchange temperatures.
        seed: 64-bit seed.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, copies times temperatures, sites), of which number c T + k is copy c at temperature k of T.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.
        correlations: Whether link overlaps and the smallest Fourier modes are measured too, for xi / L.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    text = temperatures if isinstance(temperatures, str) else as_text(check_temperatures(temperatures))
    named, spins = _start(start, model, None)
    table = {
        "start": named,
        "temperatures": text,
        "thermalize": thermalize,
        "sweeps": sweeps,
        "measure_every": measure_every,
        "swap_every": swap_every,
        "correlations": correlations,
        "zero_acceptance": zero_acceptance,
    }
    run = _run_table(replicas, seed, rng_rounds, device, threads, out, checkpoint_every)
    config = _config(Temper, model, {"temper": table, "run": run})
    plan = TemperPlan(config, model, resolve_device(device), *_identity(config, model), start=spins)
    return _updates_shown(plan, out, progress, on_updates, temper_to_file, temper_in_memory, load_temper)


def transfer(
    model: Ising,
    k: npt.ArrayLike | None = None,
    temperature: npt.ArrayLike | None = None,
    k_time: npt.ArrayLike | None = None,
    eigenvalues: int = 2,
    sector: str = "both",
    tolerance: float = TOLERANCE,
    method: str = "auto",
    basis: int | None = None,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    most_steps: int = MOST_STEPS,
    on_rows: OnRows = lambda rows: None,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> TransferResult:
    """Leading eigenvalues of the transfer matrix whose layer is ``model``, for each of its samples.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any graph.
        k: 1 / T, one or many.
        temperature: Instead of k, in the unit of the couplings. Without both, the transition of the ferromagnet.
        k_time: Coupling between layers, a number without unit, one or as many; by default k times the |J| that all
            bonds of the layer share, 1 where they do not.
        eigenvalues: Levels of each sector.
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged.
        method: How T is applied: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Stored vectors, 0 for none (fewest memory, no matrix elements); by default as many as serve and fit.
        seed: Of the start vectors.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; they agree to rounding.
        threads: CPU threads, by default all processors.
        most_steps: Products with T after which levels that have not converged are given up.
        on_rows: Called with the number of samples and points that were finished since the last call.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With ``out``, levels that
        did not converge are NaN, with a warning, and ``resume`` tries them again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not converge where there is
            no ``out``, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    points = {"k": k, "temperature": temperature, "k_time": k_time}
    table: dict[str, Any] = {
        name: None if values is None else as_text(positive(name, values)) for name, values in points.items()
    }
    table |= {"eigenvalues": eigenvalues, "sector": sector, "tolerance": tolerance, "method": method, "basis": basis}
    run = _run_table(1, seed, ROUNDS, device, threads, out, checkpoint_every)
    config = _config(Transfer, model, {"transfer": table | {"most_steps": most_steps}, "run": run})
    plan = TransferPlan(config, model, resolve_device(device), *_identity(config, model))
    return _rows_shown(plan, out, progress, on_rows)


def resume(
    path: OutFile,
    sweeps: int | None = None,
    most_steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    checkpoint_every: float | None = None,
    progress: bool = False,
) -> AnnealResult | TemperResult | TransferResult:
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
    if isinstance(plan, TransferPlan):
        return _rows_shown(plan, path, progress, lambda rows: None)
    to_file: Callable[[Any, Watch], bool] = anneal_to_file if isinstance(plan, AnnealPlan) else temper_to_file
    return _updates_shown(plan, path, progress, lambda updates: None, to_file, None, load)


def _config(job: type[AnyConfig], model: Ising, tables: Tables) -> AnyConfig:
    """The configuration of a call whose model is given; whole numbers of NumPy serve as those of Python."""
    plain = {
        name: {key: value.item() if isinstance(value, np.generic) else value for key, value in table.items()}
        for name, table in tables.items()
    }
    return replace(build_config(job, plain), model=ModelSettings(instance=f"{GIVEN_MODEL}{check_model(model).name}"))


def _identity(config: Config, model: Ising) -> tuple[Path, dict[str, str]]:
    """Path of a run's file, which is none where there is none, and its root attributes."""
    return Path(config.run.out or os.devnull), provenance(config, model)


def _run_table(
    replicas: int,
    seed: int,
    rng_rounds: int,
    device: str,
    threads: int | None,
    out: OutFile | None,
    checkpoint_every: float,
) -> dict[str, Any]:
    return {
        "replicas": replicas,
        "seed": seed,
        "rng_rounds": rng_rounds,
        "device": device,
        "threads": threads,
        "out": None if out is None else os.fspath(out),
        "checkpoint_every": checkpoint_every,
    }


def _start(start: Start, model: Ising, replicas: int | None) -> tuple[str, npt.NDArray[np.int8] | None]:
    """What stands for a start in a configuration, and its spins where they are given."""
    check_model(model)
    if isinstance(start, str):
        return start, None
    spins = as_spins(start, model, replicas)
    return name_of(spins), spins


def _numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {values!r} cannot be read as numbers: give a list of floats") from error


def _updates_shown(
    plan: Plan[Any],
    out: OutFile | None,
    progress: bool,
    on_updates: OnUpdates,
    to_file: Callable[[Any, Watch], bool],
    in_memory: Callable[[Any, Watch], Outcome] | None,
    read: Callable[[Path], Outcome],
) -> Outcome:
    """Carry a plan out, into its file where there is one, and return what it comes to."""
    with UpdateProgress(silent=not progress) as bar:

        def advance(updates: int) -> None:
            bar.advance(updates)
            on_updates(updates)

        watch = Watch(bar.begin, advance, partial(warn, stacklevel=4))
        if out is None and in_memory is not None:
            return in_memory(plan, watch)
        _interruptible(plan, partial(to_file, plan, watch))
    return read(plan.path)


def _rows_shown(plan: TransferPlan, out: OutFile | None, progress: bool, on_rows: OnRows) -> TransferResult:
    """The same of a transfer-matrix run."""
    with counted(plan.work().rows, silent=not progress) as count:

        def advance(rows: int) -> None:
            count(rows)
            on_rows(rows)

        on_warning = partial(warn, stacklevel=4)
        if out is None:
            return transfer_in_memory(plan, advance, on_warning)
        _interruptible(plan, partial(transfer_to_file, plan, advance, on_warning))
    return load_transfer(plan.path)


def _interruptible(plan: Plan[Any], carry_out: Callable[[], bool]) -> None:
    """Carry a plan out into its file; Ctrl-C then says how to go on."""
    try:
        carry_out()
    except KeyboardInterrupt:
        if not plan.path.exists():
            raise
        how = f"ss.resume({str(plan.path)!r}) completes the run from its last checkpoint"
        raise KeyboardInterrupt(f"the run was saved: {how}") from None
