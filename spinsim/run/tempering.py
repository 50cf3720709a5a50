"""Wiring of a parallel tempering run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.config import Temper, TemperConfig
from spinsim.engine import Dynamics, Engine, Start, create_engine, resolve_device
from spinsim.engine.exchange import Exchange
from spinsim.errors import InputError
from spinsim.layout import Placement, temper_layout
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.result import TemperResult, placement_of
from spinsim.rng import ROUNDS
from spinsim.run.common import (
    SILENT,
    OnUpdates,
    Plan,
    Watch,
    build_model,
    check_disk,
    engine_attributes,
    identify,
    python_provenance,
    to_file,
    updates_done,
)
from spinsim.run.identity import check_stored, open_own
from spinsim.run.saving import Saving
from spinsim.sampling import Best, Placed, Range, TemperFrame, Times, place, tempering


class TemperPlan(Plan[Temper]):
    """A tempering run that is ready to begin."""

    def updates(self, temperatures: int) -> int:
        """Attempted spin updates of the whole run with this many temperatures."""
        replicas = self.config.run.replicas * temperatures
        return self.model.sites * self.model.samples * replicas * self.config.temper.times().total


def plan_temper(config: Temper) -> TemperPlan:
    """Build the model, fill in the ladder and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    device = resolve_device(config.run.device)
    model = build_model(config.model, config.run.replicas * _temperatures(config.temper))
    config = config.with_temperatures(model.energy_scale)
    return TemperPlan(config, model, device, *identify(config, model))


def _temperatures(t: TemperConfig) -> int:
    """How many there will be, as far as the configuration tells."""
    if t.temperatures is None:
        return 1
    wanted = t.to_place()
    return len(t.ladder()) if wanted is None else wanted.count or 2


def _row(frame: TemperFrame) -> dict[str, Any]:
    """A frame as the file's row."""
    return {
        "step": frame.step,
        "sweep": frame.sweep,
        "energy": frame.energy,
        "magnetization": frame.magnetization,
        "overlap": frame.overlap,
        "link_overlap": frame.link_overlap,
        "overlap_mode": frame.overlap_mode,
        "magnetization_mode": frame.magnetization_mode,
        "permutation": frame.holder,
    }


def _sums(e: Exchange) -> dict[str, npt.NDArray[np.int64]]:
    """What the file holds of the exchange."""
    return {"tempering/attempts": e.attempts, "tempering/accepts": e.accepts, "tempering/round_trips": e.trips}


def temper_to_file(plan: TemperPlan, watch: Watch = SILENT) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is completed from its last checkpoint.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """
    return to_file(plan, watch, _carry_out)


def _carry_out(plan: TemperPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    run, t, times = plan.config.run, plan.config.temper, plan.config.temper.times()
    dynamics = Dynamics(run.seed, t.start, t.zero_acceptance, run.rng_rounds)
    ladder, placement = _ladder_of_file(plan.path) if begun else _ladder(plan, dynamics, saving, watch)
    replicas = run.replicas * len(ladder)
    engine = create_engine(plan.model, replicas, dynamics, plan.device, run.threads)
    best = Best(engine)

    def state() -> dict[str, npt.NDArray[Any]]:
        return engine.snapshot() | {"best_energy": best.energy, "best_spins": best.spins}

    frames = tempering(engine, ladder, times, run.replicas, watch.on_updates, saving.due, t.correlations)
    if not begun:
        layout = temper_layout(plan.model, run.replicas, ladder, t.correlations, placement)
        check_disk(plan.path, plan.model, replicas, layout, times.measurements)
        attributes = plan.attributes | engine_attributes(engine)
        store.create(plan.path, plan.model, layout, times.measurements, attributes, replicas, state())
    elif plan.extends:
        _extend(plan, ladder, placement)
    with open_own(plan, begun) as file:
        saved, damaged = file.saved(state())
        if damaged:
            watch.on_warning(damaged)
        file.forget_summary()
        if saved is not None:
            engine.restore(saved)
            best.energy, best.spins = saved["best_energy"], saved["best_spins"]
        watch.on_stage("", plan.updates(len(ladder)), updates_done(engine))
        for frame in frames:
            if frame is None:
                _save(file, engine, best, state())
                saving.saved()
            else:
                best.update(frame.replica_energy, frame.spins)
                file.write(_row(frame))
        _save(file, engine, best, state())  # from which the run can be extended
        file.finish(keep_checkpoint=True)


def _save(file: store.RunFile, engine: Engine, best: Best, state: dict[str, npt.NDArray[Any]]) -> None:
    """Write what is written again and again, the checkpoint last."""
    file.write_again(_sums(engine.begin_exchange()()))
    if np.isfinite(best.energy).all():
        file.write_best(best.energy, best.spins)
    file.save(state)


def _ladder_of_file(path: Path) -> tuple[npt.NDArray[np.float64], Placement | None]:
    """The temperatures that a run has begun with, and how they were placed."""
    with store.open_to_read(path) as file:
        return file["measurements/temperature"][...], placement_of(file)


def _ladder(
    plan: TemperPlan, dynamics: Dynamics, saving: Saving, watch: Watch
) -> tuple[npt.NDArray[np.float64], Placement | None]:
    """The temperatures of a new run, placed where that is asked for."""
    t, threads = plan.config.temper, plan.config.run.threads
    wanted = t.to_place()
    if wanted is None:
        return t.ladder(), None

    def stop() -> bool:
        return saving.asked_to_stop

    return place(plan.model, wanted, dynamics, plan.device, threads, watch.on_updates, watch.on_stage, stop)


def _extend(plan: TemperPlan, ladder: npt.NDArray[np.float64], placement: Placement | None) -> None:
    """Make room in the file of a plan for all rows of its configuration.

    Raises:
        InputError: where the file cannot be extended, or is not the one that the plan was made for.
    """
    model, config = plan.model, plan.config

    def check(found: Mapping[str, str], model_sha256: str) -> None:
        check_stored(plan.path, found, model_sha256)
        if found["config_sha256"] != plan.extends or model_sha256 != plan.attributes["model_sha256"]:
            raise InputError(
                f"{plan.path} was changed by another process meanwhile: look at it with 'spinsim show' and begin again"
            )

    layout = temper_layout(model, config.run.replicas, ladder, config.temper.correlations, placement)
    rows = config.temper.times().measurements
    check_disk(plan.path, model, config.run.replicas * len(ladder), layout, rows)
    named = {name: plan.attributes[name] for name in ("config", "config_sha256", "history")}
    store.extend(plan.path, layout, rows, check, named)


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
        start: Initial spins, ``random`` or ``up``.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.
        correlations: Whether link overlaps and the smallest Fourier modes are measured too, for xi / L.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range or a run that does not fit in memory.
    """
    times = Times(thermalize, sweeps, measure_every, swap_every)
    dynamics = Dynamics(seed, start, zero_acceptance, rng_rounds)
    placed = partial(place, model, dynamics=dynamics, device=device, threads=threads, on_updates=on_updates)
    ladder, placement = _given_ladder(temperatures, placed)
    engine = create_engine(model, replicas * len(ladder), dynamics, device, threads)
    best, frames = Best(engine), tempering(engine, ladder, times, replicas, on_updates, correlations=correlations)
    row_bytes = temper_layout(model, replicas, ladder, correlations).row_bytes
    kept = 2 * row_bytes * times.measurements  # integers are wider than in a file
    require(kept, f"a record of {times.measurements} measurements", "measure less often")
    numbers = {name: int(value) for name, value in asdict(times).items()} | {"replicas": int(replicas)}
    others = {"temperatures": temperatures if isinstance(temperatures, str) else ladder.tolist()}
    others |= {"correlations": True} if correlations else {}  # without, the identity that such runs always had
    attributes = python_provenance("temper", model, dynamics, numbers | others) | engine_attributes(engine)
    series: dict[str, npt.NDArray[Any]] = {}
    for frame in frames:
        assert frame is not None  # noqa: S101  (nobody asked for a pause)
        best.update(frame.replica_energy, frame.spins)
        _keep(frame, series, times.measurements)
        exchange = frame.exchange
    return _result(model, ladder, placement, series, exchange.copied(), best, attributes)


def _keep(frame: TemperFrame, series: dict[str, npt.NDArray[Any]], rows: int) -> None:
    """Take a frame into arrays of ``rows`` rows, which the first one makes."""
    for name, value in _row(frame).items():
        row = np.asarray(value)
        if name not in series:
            series[name] = np.empty((rows, *row.shape), row.dtype)
        series[name][frame.step] = row


def _given_ladder(
    temperatures: npt.ArrayLike | str, placed: Callable[[Range], Placed]
) -> tuple[npt.NDArray[np.float64], Placement | None]:
    """The temperatures of a Python call: a list, or text as the command line takes it."""
    if not isinstance(temperatures, str):
        return check_temperatures(temperatures), None
    config = TemperConfig(temperatures=temperatures)
    wanted = config.to_place()
    return (config.ladder(), None) if wanted is None else placed(wanted)


def _result(
    model: Ising,
    ladder: npt.NDArray[np.float64],
    placement: Placement | None,
    series: dict[str, npt.NDArray[Any]],
    exchange: Exchange,
    best: Best,
    attributes: dict[str, str],
) -> TemperResult:
    """What a finished run gives back; ``exchange`` is its last state."""
    return TemperResult(
        model=model,
        temperature=ladder,
        sweep=series["sweep"],
        energy=series["energy"],
        magnetization=series["magnetization"],
        overlap=series["overlap"],
        link_overlap=series["link_overlap"],
        overlap_mode=series["overlap_mode"],
        magnetization_mode=series["magnetization_mode"],
        permutation=series["permutation"],
        attempts=exchange.attempts,
        accepts=exchange.accepts,
        round_trips=exchange.trips,
        placement=placement,
        best_energy=best.energy,
        best_spins=best.spins,
        attributes=attributes | {"finished": store.stamp()},
    )
