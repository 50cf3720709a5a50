"""Wiring of a quantum run: configuration -> model of space and time -> ladder of points -> engine -> file or memory."""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np

from spinsim.acceptance import HOTTEST
from spinsim.engine import create_engine, resolve_device
from spinsim.engine.measuring.correlations import Wanted
from spinsim.errors import InputError
from spinsim.jobs.quantum.layout import MEASURED, points_of, quantum_layout, reduced_of_run
from spinsim.jobs.quantum.local import LocalSums
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.settings import Quantum
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points
from spinsim.run.common import (
    Watch,
    build_model,
    check_nameable,
    dynamics_of,
    identify,
)
from spinsim.run.ladder import LadderPlan, LadderRun, placed_ladder
from spinsim.run.ladder_layout import in_result
from spinsim.run.own import Own, functions_of, on_ladder
from spinsim.run.reducing import Keeping, MeasurementSums, with_names, with_sums
from spinsim.run.saving import Saving
from spinsim.sampling.placement import Placement
from spinsim.sampling.tempering import tempering_in_beta

_MOST_STEP: Final = 1e60  # in time: errors of specific heats hold the fourth power of beta


class QuantumPlan(LadderPlan[Quantum]):
    """A quantum run that is ready to begin; its model is that of space and time."""

    def new_ladder(self, saving: Saving, watch: Watch) -> tuple[Points, Placement | None]:
        q = self.config.quantum
        if q.to_place is None:
            return q.points, None
        ladder, placement = placed_ladder(self, saving, watch, lambda ladder: q.points_of(ladder).couplings)
        return q.points_of(ladder), placement

    def ladder_in(self, file: h5py.File) -> Points:
        return points_of(file)

    def run_on(
        self,
        ladder: Points,
        placement: Placement | None,
        saving: Saving,
        watch: Watch,
        stored: Keeping | None = None,
    ) -> LadderRun:
        run, q, copies = self.config.run, self.config.quantum, self.config.run.number_of_replicas
        _check_steps(ladder, self.model)
        engine = create_engine(
            self.model,
            copies * len(ladder),
            dynamics_of(self, q.start, q.zero_acceptance),
            self.device,
            run.threads,
            self.start,
            slabs=False,
            round_sweeps=self.round_sweeps,
        )
        wanted = Wanted(True, q.time_list, q.even_correlations, magnetization_modes=q.magnetization_modes)
        measured = q.even_correlations, q.local_susceptibility, q.magnetization_modes
        layout = quantum_layout(self.model, copies, ladder, q.time_list, placement, self.start, *measured)
        keeping, sums = self.keeping(layout, stored), None
        if keeping.is_reduced:
            modes = q.magnetization_modes
            reduced = reduced_of_run(self.model, copies, ladder, q.time_list, q.even_correlations, modes)
            sums = MeasurementSums(reduced, keeping, q.local_susceptibility)
            layout = with_sums(with_names(layout, keeping.names), sums.reduced, keeping.stride, ladder.axis)
        how = copies, watch.on_updates, saving.due, wanted, None, (), 1, sums
        frames = tempering_in_beta(engine, ladder.couplings, q.times, *how)
        local = LocalSums(engine, copies, len(ladder)) if q.local_susceptibility else None
        own = Own(functions_of(q.measure, self.measure), engine, on_ladder(ladder.axis), copies)
        kept = keeping, sums, stored
        return LadderRun(self, saving, watch, engine, frames, layout, MEASURED, own, local, *kept)

    def result_of(self, ladder: Points, placement: Placement | None, found: dict[str, Any]) -> QuantumResult:
        shape = self.model.samples, self.config.run.number_of_replicas, len(ladder)
        times = np.array(self.config.quantum.time_list, np.int64)
        series = in_result(MEASURED, found, len(found["sweep"]), shape)
        return QuantumResult(model=self.model, points=ladder, time=times, placement=placement, **(found | series))


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
