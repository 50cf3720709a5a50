"""Wiring of an annealing run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.config import Anneal
from spinsim.engine import Dynamics, Start, create_engine, resolve_device
from spinsim.layout import anneal_layout
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.result import AnnealResult
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
from spinsim.run.identity import open_own
from spinsim.run.saving import Saving
from spinsim.sampling import Best, annealing, temperature_schedule


class AnnealPlan(Plan[Anneal]):
    """An annealing run that is ready to begin."""

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        """The schedule."""
        a = self.config.anneal
        assert a.t_start is not None and a.t_stop is not None  # noqa: S101, PT018  (filled in by plan_anneal)
        return temperature_schedule(a.t_start, a.t_stop, a.steps, a.schedule)

    @property
    def updates(self) -> int:
        """Attempted spin updates of the whole run."""
        a = self.config.anneal
        return self.model.sites * self.model.samples * self.config.run.replicas * a.steps * a.sweeps


def plan_anneal(config: Anneal) -> AnnealPlan:
    """Build the model, fill in the temperatures and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    steps = config.anneal.steps
    require(48 * steps, f"a schedule of {steps} temperatures", "choose fewer steps")
    device = resolve_device(config.run.device)
    model = build_model(config.model, config.run.replicas)
    config = config.with_temperatures(model.energy_scale)
    return AnnealPlan(config, model, device, *identify(config, model))


def anneal_to_file(plan: AnnealPlan, watch: Watch = SILENT) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is completed from its last checkpoint.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """
    return to_file(plan, watch, _carry_out)


def _carry_out(plan: AnnealPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    run, a = plan.config.run, plan.config.anneal
    dynamics = Dynamics(run.seed, a.start, a.zero_acceptance, run.rng_rounds)
    engine = create_engine(plan.model, run.replicas, dynamics, plan.device, run.threads)
    best = Best(engine)

    def state() -> dict[str, npt.NDArray[Any]]:
        return engine.snapshot() | {"best_energy": best.energy, "best_spins": best.spins}

    frames = annealing(engine, plan.temperatures, a.sweeps, watch.on_updates, saving.due)
    if not begun:
        layout = anneal_layout(plan.model.samples, run.replicas)
        check_disk(plan.path, plan.model, run.replicas, layout, a.steps)
        attributes = plan.attributes | engine_attributes(engine)
        store.create(plan.path, plan.model, layout, a.steps, attributes, run.replicas, state())
    with open_own(plan, begun) as file:
        saved, damaged = file.saved(state())
        if damaged:
            watch.on_warning(damaged)
        if saved is not None:
            engine.restore(saved)
            best.energy, best.spins = saved["best_energy"], saved["best_spins"]
        watch.on_stage("", plan.updates, updates_done(engine))
        for frame in frames:
            if frame is None:
                file.save(state())
                if np.isfinite(best.energy).all():
                    file.write_best(best.energy, best.spins)
                saving.saved()
            else:
                best.update(frame.measured.energy, engine.spins)
                row = {"step": frame.step, "temperature": frame.temperature}
                file.write(row | frame.measured._asdict())
        file.write_best(best.energy, best.spins)
        file.finish()


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
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: What to anneal.
        temperatures: In order of use, in the unit of the couplings, shape (steps,).
        sweeps: Sweeps at each temperature; a sweep attempts every spin once.
        replicas: Independent configurations of each sample.
        seed: 64-bit seed. Replica r of sample k depends on (seed, k, r) alone.
        start: Initial spins, ``random`` or ``up``.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met.

    Raises:
        InputError: for bad temperatures, numbers out of range or a run that does not fit in memory.
    """
    ladder = check_temperatures(temperatures)
    dynamics = Dynamics(seed, start, zero_acceptance, rng_rounds)
    engine = create_engine(model, replicas, dynamics, device, threads)
    frames = annealing(engine, ladder, sweeps, on_updates)
    kept = 32 * len(ladder) * model.samples * int(replicas)  # energies and magnetisations, and again when stacked
    require(kept, f"a record of {len(ladder)} steps", "choose fewer steps, samples or replicas")
    numbers = {"temperatures": ladder.tolist(), "sweeps": int(sweeps), "replicas": int(replicas)}
    attributes = python_provenance("anneal", model, dynamics, numbers) | engine_attributes(engine)
    best = Best(engine)
    measured = []
    for frame in frames:
        assert frame is not None  # noqa: S101  (nobody asked for a pause)
        best.update(frame.measured.energy, engine.spins)
        measured.append(frame.measured)
    return AnnealResult(
        model,
        ladder,
        np.stack([m.energy for m in measured]),
        np.stack([m.magnetization for m in measured]),
        best.energy,
        best.spins,
        attributes | {"finished": store.stamp()},
    )
