"""Wiring of a parallel tempering run: configuration -> model -> ladder -> engine -> exchanges -> file or memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.engine import create_engine, resolve_device
from spinsim.jobs.temper.layout import temper_layout
from spinsim.jobs.temper.result import TemperResult, unmeasured
from spinsim.jobs.temper.settings import Temper, TemperSettings
from spinsim.run.common import (
    SILENT,
    Plan,
    Watch,
    build_model,
    check_nameable,
    dynamics_of,
    identify,
    to_file,
)
from spinsim.run.kept import Kept
from spinsim.run.ladder import LadderRun
from spinsim.run.ladder_layout import placement_of
from spinsim.run.saving import NEVER, Saving
from spinsim.sampling import TemperFrame, place, tempering
from spinsim.sampling.placement import Placement
from spinsim.store.layout import Layout


class TemperPlan(Plan[Temper]):
    """A tempering run that is ready to begin."""

    @property
    def rows(self) -> int:
        """Rows of the finished file, one for each measurement."""
        return self.config.temper.times.measurements

    @property
    def replicas(self) -> int | None:
        """Replicas of each sample at all temperatures; None where these are yet to be placed."""
        wanted = self.config.temper.to_place
        placed = wanted is None or wanted.count is not None
        return self.config.run.number_of_replicas * _temperatures(self.config.temper) if placed else None

    @property
    def round_sweeps(self) -> int | None:
        """Sweeps between exchanges."""
        return self.config.temper.times.swap_every

    def updates(self, replicas: int) -> int:
        """Attempted spin updates of the whole run with this many replicas of each sample, at all temperatures."""
        return self.model.sites * self.model.samples * replicas * self.config.temper.times.total


def plan_temper(config: Temper) -> TemperPlan:
    """Build the model, fill in the ladder and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    check_nameable(config.temper.start)
    device = resolve_device(config.run.device, config.run.gpus)
    model = build_model(config.model, config.run.number_of_replicas * _temperatures(config.temper))
    config = config.with_temperatures(model.energy_scale)
    return TemperPlan(config, model, device, *identify(config, model))


def _temperatures(t: TemperSettings) -> int:
    """How many there will be, as far as the configuration tells."""
    if t.temperatures is None:
        return 1
    wanted = t.to_place
    return len(t.ladder) if wanted is None else wanted.count or 2


def row_of(frame: TemperFrame) -> dict[str, Any]:
    """A frame as the file's row."""
    return {
        "step": frame.step,
        "sweep": frame.sweep,
        "energy": frame.energy,
        "magnetization": frame.magnetization,
        "staggered_magnetization": frame.staggered_magnetization,
        "overlap": frame.overlap,
        "link_overlap": frame.link_overlap,
        "overlap_mode": frame.overlap_mode,
        "magnetization_mode": frame.magnetization_mode,
        "permutation": frame.holder,
    }


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
    ladder, placement = _ladder(plan, NEVER, watch)
    run = _run_of(plan, ladder, placement, NEVER, watch)
    kept = Kept(run.layout, plan.rows, "measurements", "measure less often")
    nothing = unmeasured(plan.rows, plan.model.samples, plan.config.run.number_of_replicas, len(ladder))
    return TemperResult(model=plan.model, temperature=ladder, placement=placement, **(nothing | run.in_memory(kept)))


def _run_of(
    plan: TemperPlan, ladder: npt.NDArray[np.float64], placement: Placement | None, saving: Saving, watch: Watch
) -> LadderRun:
    """The run of a plan on a ladder, about to begin."""
    run, t = plan.config.run, plan.config.temper
    dynamics = dynamics_of(plan, t.start, t.zero_acceptance)
    engine = create_engine(
        plan.model,
        run.number_of_replicas * len(ladder),
        dynamics,
        plan.device,
        run.threads,
        plan.start,
        slabs=False,
        round_sweeps=plan.round_sweeps,
    )
    frames = tempering(engine, ladder, t.times, run.number_of_replicas, watch.on_updates, saving.due, t.correlations)
    return LadderRun(plan, saving, watch, engine, frames, _layout(plan, ladder, placement), row_of)


def _layout(plan: TemperPlan, ladder: npt.NDArray[np.float64], placement: Placement | None) -> Layout:
    """What the file of a plan holds."""
    copies, correlations = plan.config.run.number_of_replicas, plan.config.temper.correlations
    return temper_layout(plan.model, copies, ladder, correlations, placement, plan.start)


def _carry_out(plan: TemperPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    ladder, placement = _ladder_of_file(plan.path) if begun else _ladder(plan, saving, watch)
    _run_of(plan, ladder, placement, saving, watch).carry_out(begun)


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
