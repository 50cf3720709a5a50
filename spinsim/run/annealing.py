"""Wiring of an annealing run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.engine import Engine, create_engine, resolve_device
from spinsim.layout import anneal_layout
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.result import AnnealResult
from spinsim.run.common import (
    SILENT,
    Plan,
    Watch,
    build_model,
    check_disk,
    check_nameable,
    dynamics_of,
    engine_attributes,
    identify,
    to_file,
    updates_done,
)
from spinsim.run.identity import open_own
from spinsim.run.kept import Kept
from spinsim.run.saving import NEVER, Saving
from spinsim.sampling import Best, InField, annealing
from spinsim.settings.anneal import Anneal
from spinsim.store import RunFile


class AnnealPlan(Plan[Anneal]):
    """An annealing run that is ready to begin."""

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        """The schedule."""
        return self.config.anneal.ladder

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
    check_nameable(config.anneal.start)
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


def anneal_in_memory(plan: AnnealPlan, watch: Watch = SILENT) -> AnnealResult:
    """Run a plan without a file.

    Raises:
        InputError: for what keeps the run from beginning.
    """
    run = _Annealing(plan, NEVER, watch)
    kept = Kept(run.layout, plan.config.anneal.steps, "steps", "choose fewer steps, samples or replicas")
    run.go_on(kept)
    series = {name: values for name, values in kept.series.items() if name != "step"}
    attributes = plan.attributes | engine_attributes(run.engine) | {"finished": store.stamp()}
    best = run.best
    return AnnealResult(plan.model, **series, best_energy=best.energy, best_spins=best.spins, attributes=attributes)


class _Annealing:
    """An annealing run under way.

    Attributes:
        engine: Its replicas.
        best: The lowest states met, without the energy of a field that changes.
        layout: Of its file.
    """

    def __init__(self, plan: AnnealPlan, saving: Saving, watch: Watch) -> None:
        self._plan, self._saving, self._watch = plan, saving, watch
        run, a = plan.config.run, plan.config.anneal
        dynamics = dynamics_of(plan, a.start, a.zero_acceptance)
        make = partial(create_engine, replicas=run.replicas, device=plan.device, threads=run.threads)
        engine = make(plan.model, dynamics=dynamics, start=plan.start)
        fields = a.fields
        self.engine: Engine | InField = engine
        if fields is not None:
            self.engine = InField(engine, partial(make, dynamics=replace(dynamics, start="up")))
            del engine  # its room is free for those that come after
        self.best = Best(self.engine)
        on_updates = watch.on_updates
        self._frames = annealing(self.engine, plan.temperatures, a.sweeps, on_updates, saving.due, fields)
        self.layout = anneal_layout(plan.model.samples, run.replicas, fields is not None, plan.start)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """From which the run goes on."""
        return self.engine.snapshot() | {"best_energy": self.best.energy, "best_spins": self.best.spins}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        self.engine.restore(saved)
        self.best.energy, self.best.spins = saved["best_energy"], saved["best_spins"]

    def go_on(self, file: RunFile | Kept) -> None:
        """Write all rows that are to come."""
        best = self.best
        self._watch.on_stage("", self._plan.updates, updates_done(self.engine))
        for frame in self._frames:
            if frame is None:
                file.save(self.state())
                if np.isfinite(best.energy).all():
                    file.write_best(best.energy, best.spins)
                self._saving.saved()
                continue
            energy, magnetization = frame.measured
            best.update(energy + _rounded(frame.field, self.engine.model) * magnetization, self.engine.spins)
            row = {"step": frame.step, "temperature": frame.temperature, "field": frame.field}
            file.write(row | frame.measured._asdict())
        file.write_best(best.energy, best.spins)


def _rounded(field: float, model: Ising) -> float:
    """A field as the model holds it, a multiple of its quantum."""
    return float(np.rint(field / model.quantum) * model.quantum)


def _carry_out(plan: AnnealPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    run = _Annealing(plan, saving, watch)
    steps, replicas = plan.config.anneal.steps, plan.config.run.replicas
    if not begun:
        check_disk(plan.path, plan.model, replicas, run.layout, steps)
        attributes = plan.attributes | engine_attributes(run.engine)
        store.create(plan.path, plan.model, run.layout, steps, attributes, replicas, run.state())
    with open_own(plan, begun) as file:
        saved, damaged = file.saved(run.state())
        if damaged:
            watch.on_warning(damaged)
        if saved is not None:
            run.restore(saved)
        run.go_on(file)
        file.finish()
