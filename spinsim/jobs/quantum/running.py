"""Wiring of a quantum run: configuration -> model of space and time -> ladder of points -> engine -> file or memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from spinsim import store
from spinsim.acceptance import HOTTEST
from spinsim.engine import create_engine, resolve_device
from spinsim.engine.measuring.correlations import Wanted
from spinsim.errors import InputError
from spinsim.jobs.quantum.layout import points_of, quantum_layout
from spinsim.jobs.quantum.local import LocalSums
from spinsim.jobs.quantum.result import QuantumResult, unmeasured
from spinsim.jobs.quantum.settings import Quantum
from spinsim.model.ising import Ising
from spinsim.model.transverse import Points
from spinsim.run.common import (
    SILENT,
    Watch,
    build_model,
    check_nameable,
    dynamics_of,
    identify,
    to_file,
)
from spinsim.run.kept import Kept
from spinsim.run.ladder import LadderPlan, LadderRun, placed_ladder
from spinsim.run.ladder_layout import placement_of
from spinsim.run.own import Own, check_series, functions_of, names_of, on_ladder
from spinsim.run.saving import NEVER, Saving
from spinsim.sampling import TemperFrame
from spinsim.sampling.placement import Placement
from spinsim.sampling.tempering import tempering_in_beta
from spinsim.store.layout import Layout

_MOST_STEP: Final = 1e60  # in time: errors of specific heats hold the fourth power of beta


class QuantumPlan(LadderPlan[Quantum]):
    """A quantum run that is ready to begin; its model is that of space and time."""


def plan_quantum(config: Quantum) -> QuantumPlan:
    """Build the model of space and time and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    q = config.quantum
    check_nameable(q.start)
    device = resolve_device(config.run.device, config.run.gpus)
    functions_of(q.measure)
    model = build_model(config.model, config.run.number_of_replicas * q.places, q.slices, q.is_general)
    return QuantumPlan(config, model, device, *identify(config, model))


def row_of(frame: TemperFrame) -> dict[str, Any]:
    """A frame as the file's row."""
    return {
        "step": frame.step,
        "sweep": frame.sweep,
        "action": frame.energy,
        "magnetization": frame.magnetization,
        "correlation_in_time": frame.in_time,
        "even_correlation_in_time": frame.even_in_time,
        "link_overlap_in_space": frame.link_overlap_in_space,
        "slice_magnetization_squared": frame.magnetization_powers[..., 0],
        "slice_magnetization_fourth": frame.magnetization_powers[..., 1],
        "magnetization_mode": frame.magnetization_mode,
        "overlap": frame.overlap,
        "slice_overlap_squared": frame.overlap_powers[..., 0],
        "slice_overlap_fourth": frame.overlap_powers[..., 1],
        "overlap_mode": frame.overlap_mode,
        "link_overlap": frame.link_overlap,
        "permutation": frame.holder,
    }


def quantum_to_file(plan: QuantumPlan, watch: Watch = SILENT) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is completed from its last checkpoint.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """
    return to_file(plan, watch, _carry_out)


def quantum_in_memory(plan: QuantumPlan, watch: Watch = SILENT) -> QuantumResult:
    """Run a plan without a file.

    Raises:
        InputError: for what keeps the run from beginning.
    """
    points, placement = _ladder(plan, NEVER, watch)
    run = _run_of(plan, points, placement, NEVER, watch)
    kept = Kept(run.layout, plan.rows, "measurements", "measure less often")
    nothing = unmeasured(plan.rows, plan.model.samples, plan.config.run.number_of_replicas, len(points))
    found = run.in_memory(kept)
    return QuantumResult(
        measured={name: found.pop(name) for name in names_of(plan.config.quantum.measure)},
        model=plan.model,
        points=points,
        time=np.array(plan.config.quantum.time_list, np.int64),
        placement=placement,
        **(nothing | found),
    )


def _run_of(plan: QuantumPlan, points: Points, placement: Placement | None, saving: Saving, watch: Watch) -> LadderRun:
    """The run of a plan on a ladder, about to begin."""
    run, q = plan.config.run, plan.config.quantum
    _check_steps(points, plan.model)
    dynamics = dynamics_of(plan, q.start, q.zero_acceptance)
    engine = create_engine(
        plan.model,
        run.number_of_replicas * len(points),
        dynamics,
        plan.device,
        run.threads,
        plan.start,
        slabs=False,
        round_sweeps=plan.round_sweeps,
    )
    wanted = Wanted(full=True, times=q.time_list, even=q.even_correlations, magnetization_modes=q.magnetization_modes)
    ladder = points.couplings
    frames = tempering_in_beta(engine, ladder, q.times, run.number_of_replicas, watch.on_updates, saving.due, wanted)
    local = LocalSums(engine, run.number_of_replicas, len(points)) if q.local_susceptibility else None
    own = Own(functions_of(q.measure, plan.measure), engine, on_ladder(points.axis), run.number_of_replicas)

    def with_own(frame: TemperFrame) -> dict[str, Any]:
        return row_of(frame) | own.row(frame.spins, frame.holder)

    layout = own.in_layout(_layout(plan, points, placement))
    return LadderRun(plan, saving, watch, engine, frames, layout, with_own, local)


def _check_steps(points: Points, model: Ising) -> None:
    """Refuse steps in time at which space is too hot to mix, or so cold that numbers overflow.

    Raises:
        InputError: for them.
    """
    scale = model.energy_scale
    least, most = 1 / (HOTTEST * scale) if scale else 0.0, _MOST_STEP
    for step in points.k[(points.k < least) | (points.k > most)]:
        what = "the step in time, beta / slices," if points.is_general else "k"
        raise InputError(
            f"{what} is {step:.3g}, but couplings of {model.name} take {least:.3g} to {most:.3g}: give others"
        )


def _layout(plan: QuantumPlan, points: Points, placement: Placement | None) -> Layout:
    """What the file of a plan holds."""
    q, copies = plan.config.quantum, plan.config.run.number_of_replicas
    wanted = q.even_correlations, q.local_susceptibility, q.magnetization_modes
    return quantum_layout(plan.model, copies, points, q.time_list, placement, plan.start, *wanted)


def _carry_out(plan: QuantumPlan, begun: bool, saving: Saving, watch: Watch) -> None:
    points, placement = _ladder_of_file(plan.path) if begun else _ladder(plan, saving, watch)
    run = _run_of(plan, points, placement, saving, watch)
    if begun and plan.config.quantum.measure:
        check_series(plan.path, run.layout)
    run.complete(begun)


def _ladder_of_file(path: Path) -> tuple[Points, Placement | None]:
    """The ladder that a run has begun with, and how it was placed."""
    with store.open_to_read(path) as file:
        return points_of(file), placement_of(file)


def _ladder(plan: QuantumPlan, saving: Saving, watch: Watch) -> tuple[Points, Placement | None]:
    """The points of a new run, placed where that is asked for."""
    q = plan.config.quantum
    if q.to_place is None:
        return q.points, None
    ladder, placement = placed_ladder(plan, saving, watch, lambda ladder: q.points_of(ladder).couplings)
    return q.points_of(ladder), placement
