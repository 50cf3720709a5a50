"""Wiring of a parallel tempering run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.engine import create_engine, resolve_device
from spinsim.engine.ladder.ladder import Exchange
from spinsim.errors import InputError
from spinsim.layout import TEMPERING, Placement, temper_layout
from spinsim.result import TemperResult, placement_of, unmeasured
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
from spinsim.run.identity import check_stored, open_own
from spinsim.run.kept import Kept
from spinsim.run.saving import NEVER, Saving
from spinsim.sampling import Best, TemperFrame, place, tempering
from spinsim.settings.temper import Temper, TemperSettings
from spinsim.store import RunFile


class TemperPlan(Plan[Temper]):
    """A tempering run that is ready to begin."""

    def updates(self, temperatures: int) -> int:
        """Attempted spin updates of the whole run with this many temperatures."""
        replicas = self.config.run.replicas * temperatures
        return self.model.sites * self.model.samples * replicas * self.config.temper.times.total


def plan_temper(config: Temper) -> TemperPlan:
    """Build the model, fill in the ladder and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    check_nameable(config.temper.start)
    device = resolve_device(config.run.device)
    model = build_model(config.model, config.run.replicas * _temperatures(config.temper))
    config = config.with_temperatures(model.energy_scale)
    return TemperPlan(config, model, device, *identify(config, model))


def _temperatures(t: TemperSettings) -> int:
    """How many there will be, as far as the configuration tells."""
    if t.temperatures is None:
        return 1
    wanted = t.to_place
    return len(t.ladder) if wanted is None else wanted.count or 2


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


def temper_in_memory(plan: TemperPlan, watch: Watch = SILENT) -> TemperResult:
    """Run a plan without a file.

    Raises:
        InputError: for what keeps the run from beginning.
    """
    run, rows = _Tempering(plan, *_ladder(plan, NEVER, watch), NEVER, watch), plan.config.temper.times.measurements
    kept = Kept(run.layout, rows, "measurements", "measure less often")
    run.go_on(kept)
    shape = rows, plan.model.samples, plan.config.run.replicas, len(run.ladder)
    series = {name: values for name, values in kept.series.items() if name != "step"}
    sums = {path.rpartition("/")[2]: values for path, values in kept.sums.items() if path.startswith(TEMPERING)}
    attributes = plan.attributes | engine_attributes(run.engine) | {"finished": store.stamp()}
    return TemperResult(
        model=plan.model,
        temperature=run.ladder,
        **(unmeasured(*shape) | series),
        **sums,
        placement=run.placement,
        best_energy=run.best.energy,
        best_spins=run.best.spins,
        attributes=attributes,
    )


class _Tempering:
    """A tempering run under way.

    Attributes:
        engine: Its replicas.
        best: The lowest states met.
        ladder: Its temperatures.
        placement: How they were placed, if they were.
        layout: Of its file.
    """

    def __init__(
        self,
        plan: TemperPlan,
        ladder: npt.NDArray[np.float64],
        placement: Placement | None,
        saving: Saving,
        watch: Watch,
    ) -> None:
        self._plan, self._saving, self._watch, self.ladder, self.placement = plan, saving, watch, ladder, placement
        run, t = plan.config.run, plan.config.temper
        dynamics = dynamics_of(plan, t.start, t.zero_acceptance)
        replicas = run.replicas * len(ladder)
        self.engine = create_engine(plan.model, replicas, dynamics, plan.device, run.threads, plan.start)
        self.best = Best(self.engine)
        self._frames = tempering(
            self.engine, ladder, t.times, run.replicas, watch.on_updates, saving.due, t.correlations
        )
        self.layout = temper_layout(plan.model, run.replicas, ladder, t.correlations, placement, plan.start)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """From which the run goes on."""
        return self.engine.snapshot() | {"best_energy": self.best.energy, "best_spins": self.best.spins}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        self.engine.restore(saved)
        self.best.energy, self.best.spins = saved["best_energy"], saved["best_spins"]

    def go_on(self, file: RunFile | Kept) -> None:
        """Write all rows that are to come, and a state from which the run can be extended."""
        self._watch.on_stage("", self._plan.updates(len(self.ladder)), updates_done(self.engine))
        for frame in self._frames:
            if frame is None:
                self._save(file)
                self._saving.saved()
            else:
                self.best.update(frame.replica_energy, frame.spins)
                file.write(_row(frame))
        self._save(file)

    def _save(self, file: RunFile | Kept) -> None:
        """Write what is written again and again, the checkpoint last."""
        file.write_again(_sums(self.engine.begin_exchange()()))
        if np.isfinite(self.best.energy).all():
            file.write_best(self.best.energy, self.best.spins)
        file.save(self.state())


def _carry_out(plan: TemperPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    ladder, placement = _ladder_of_file(plan.path) if begun else _ladder(plan, saving, watch)
    run, rows = _Tempering(plan, ladder, placement, saving, watch), plan.config.temper.times.measurements
    if not begun:
        check_disk(plan.path, plan.model, run.engine.replicas, run.layout, rows)
        attributes = plan.attributes | engine_attributes(run.engine)
        store.create(plan.path, plan.model, run.layout, rows, attributes, run.engine.replicas, run.state())
    elif plan.extends:
        _extend(plan, ladder, placement)
    with open_own(plan, begun) as file:
        saved, damaged = file.saved(run.state())
        if damaged:
            watch.on_warning(damaged)
        file.forget_summary()
        if saved is not None:
            run.restore(saved)
        run.go_on(file)
        file.finish(keep_checkpoint=True)


def _ladder_of_file(path: Path) -> tuple[npt.NDArray[np.float64], Placement | None]:
    """The temperatures that a run has begun with, and how they were placed."""
    with store.open_to_read(path) as file:
        return file["measurements/temperature"][...], placement_of(file)


def _ladder(plan: TemperPlan, saving: Saving, watch: Watch) -> tuple[npt.NDArray[np.float64], Placement | None]:
    """The temperatures of a new run, placed where that is asked for: by replicas of any start."""
    t, threads = plan.config.temper, plan.config.run.threads
    wanted = t.to_place
    if wanted is None:
        return t.ladder, None

    def stop() -> bool:
        return saving.asked_to_stop

    dynamics = dynamics_of(plan, t.start, t.zero_acceptance)
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

    layout = temper_layout(model, config.run.replicas, ladder, config.temper.correlations, placement, plan.start)
    rows = config.temper.times.measurements
    check_disk(plan.path, model, config.run.replicas * len(ladder), layout, rows)
    named = {name: plan.attributes[name] for name in ("config", "config_sha256", "history")}
    store.extend(plan.path, layout, rows, check, named)
