"""Wiring of a parallel tempering run: configuration -> model -> ladder -> engine -> exchanges -> file or memory."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.analysis.kinds import is_symmetric_glass
from spinsim.engine import Engine, check_run, create_engine, resolve_device
from spinsim.engine.choosing import choose
from spinsim.engine.moves.move import moves_of_run
from spinsim.engine.split.filling import copies_of_search, groups_of_search
from spinsim.engine.update import OfModel, Outline
from spinsim.inputs.texts import count
from spinsim.jobs.temper.layout import MEASURED, reduced_of_run, temper_layout
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.search import Started, TemperSearch, rows_of_search
from spinsim.jobs.temper.settings import Temper, usual_restart
from spinsim.machine.memory import require
from spinsim.machine.threads import available_threads
from spinsim.model.ising import Ising, repeated
from spinsim.parallel.session import others
from spinsim.rng import HALF_SWEEP_BITS
from spinsim.run.common import (
    Watch,
    build_model,
    check_nameable,
    dynamics_of,
    identify,
    usual_path,
)
from spinsim.run.identity import tables_of_file
from spinsim.run.ladder import LadderPlan, LadderRun, placed_ladder
from spinsim.run.ladder_layout import in_result
from spinsim.run.own import Own, functions_of, on_ladder
from spinsim.run.reducing import Keeping, MeasurementSums, with_names, with_sums
from spinsim.run.saving import Saving
from spinsim.run.search import Search, seed_of_start, targets_of, with_restarts
from spinsim.sampling import Times, tempering
from spinsim.sampling.placement import Placement

Tables = dict[str, dict[str, Any]]
"""A configuration as its file has it, by tables and settings; empty where no file has been begun."""


class TemperPlan(LadderPlan[Temper]):
    """A tempering run that is ready to begin."""

    @property
    def groups(self) -> Ising:
        """The model of all groups of a search, each of which has all samples."""
        return self.model.once(repeated, self.config.temper.number_of_groups)

    @property
    def outline(self) -> Outline:
        """What devices share out: the samples of all groups."""
        return OfModel(self.groups)

    def updates(self, replicas: int) -> int:
        """Attempted spin updates of the whole run with this many replicas of each sample; 0 of a search."""
        return 0 if self.config.temper.searches else super().updates(replicas)

    def is_done(self, rows: int) -> bool:
        """Whether so many rows are all there is to do, which nobody knows of a search."""
        return super().is_done(rows) and not self.config.temper.searches

    def new_ladder(self, saving: Saving, watch: Watch) -> tuple[npt.NDArray[np.float64], Placement | None]:
        t = self.config.temper
        return (t.ladder, None) if t.to_place is None else placed_ladder(self, saving, watch)

    def ladder_in(self, file: h5py.File) -> npt.NDArray[np.float64]:
        return np.asarray(file["measurements/temperature"][...])

    def run_on(
        self,
        ladder: npt.NDArray[np.float64],
        placement: Placement | None,
        saving: Saving,
        watch: Watch,
        stored: Keeping | None = None,
    ) -> LadderRun:
        t, copies = self.config.temper, self.config.run.number_of_replicas
        modes = bool(t.magnetization_modes)
        given = placement, self.start
        layout = temper_layout(self.model, copies, ladder, t.correlations, *given, magnetization_modes=modes)
        if not t.searches:
            engine = _engine_of(self, ladder, self.config.run.seed, 1)
            own = Own(functions_of(t.measure, self.measure), engine, on_ladder("temperature"), copies)
            keeping, sums = self.keeping(layout, stored), None
            if keeping.is_reduced:
                reduced = reduced_of_run(self.model, copies, len(ladder), t.correlations, modes)
                sums = MeasurementSums(reduced, keeping)
                layout = with_sums(with_names(layout, keeping.names), reduced, keeping.stride, "temperature")
            moves = moves_of_run(self.moves, t.moves, "ss.temper")
            how = copies, watch.on_updates, saving.due, t.correlations, None, modes, moves
            frames = tempering(engine, ladder, t.times, *how, self.config.run.seed, sums)
            kept = keeping, sums, stored
            return LadderRun(self, saving, watch, engine, frames, layout, MEASURED, own, None, *kept)
        target = targets_of(self.model, t.target)
        search = Search(self.model, target, t.time_limit, watch.on_note)
        rows = rows_of_search(self)

        def is_to_pause() -> bool:
            return saving.due() or search.is_late()

        def start(number: int, groups: int) -> Started:
            engine = _engine_of(self, ladder, seed_of_start(self.config.run.seed, number), groups)
            most = _longest(t.measure_every, engine.colours) if groups == t.number_of_groups else t.sweeps_alone
            times = Times(0, most, t.measure_every, t.swap_every)
            how = copies, watch.on_updates, is_to_pause, t.correlations, () if number else rows, modes
            return engine, tempering(engine, ladder, times, *how)

        _check_groups(self, copies * len(ladder))
        layout = with_restarts(layout, target, bool(t.restart_after))
        return TemperSearch(self, saving, watch, start, layout, MEASURED, search)

    def result_of(
        self, ladder: npt.NDArray[np.float64], placement: Placement | None, found: dict[str, Any]
    ) -> TemperResult:
        shape = self.model.samples, self.config.run.number_of_replicas, len(ladder)
        series = in_result(MEASURED, found, len(found["sweep"]), shape)
        result = TemperResult(model=self.model, temperature=ladder, placement=placement, **(found | series))
        self.write_solution(result)
        return result


def plan_temper(config: Temper) -> TemperPlan:
    """Build the model, fill in the ladder and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    check_nameable(config.temper.start)
    device = resolve_device(config.run.device, config.run.gpus)
    model = build_model(config.model, (config.run.replicas or 1) * config.temper.places)
    config = filled_in(config, model, device)
    targets_of(model, config.temper.target)
    functions_of(config.temper.measure)
    return TemperPlan(config, model, device, *identify(config, model))


def filled_in(config: Temper, model: Ising, device: str) -> Temper:
    """A configuration with its ladder, and with the size of a search and the choice of modes where they were left out.

    Where its file has been begun already, on whatever device, these, and the ladder of a search, are as that has them.
    """
    t, run = config.temper, config.run
    begun: Tables = {}
    if None in (run.replicas, t.groups, t.restart_after, t.magnetization_modes, t.temperatures):
        begun = tables_of_file(run.out, config.job)
    if t.searches and t.temperatures is None:
        config = replace(config, temper=replace(t, temperatures=begun.get(config.job, {}).get("temperatures")))
    return _with_modes(_sized(config.with_temperatures(model), model, device, begun), model, begun)


def _sized(config: Temper, model: Ising, device: str, begun: Tables) -> Temper:
    """A configuration with the size of a search where it was left out."""
    run, t = config.run, config.temper
    if None not in (run.replicas, t.groups, t.restart_after):
        return config
    outline, of_run, of_job = OfModel(model), begun.get("run", {}), begun.get(config.job, {})
    copies, groups, after = run.replicas, t.groups, t.restart_after
    if copies is None:
        copies = of_run["replicas"] if begun else copies_of_search(outline, device, len(t.ladder))
    if groups is None:
        threads = (run.threads or available_threads()) * (1 + len(others()))
        usual = groups_of_search(outline, device, copies * len(t.ladder), threads)
        groups = of_job.get("groups", 1) if begun else usual
    if after is None:
        after = of_job.get("restart_after", 0) if begun else usual_restart(model.sites)
    return replace(config, run=replace(run, replicas=copies), temper=replace(t, groups=groups, restart_after=after))


def _with_modes(config: Temper, model: Ising, begun: Tables) -> Temper:
    """A configuration that says whether modes of the magnetisation are measured."""
    t, out = config.temper, config.run.out
    if t.magnetization_modes is not None:
        return config
    having, lacking = (replace(config, temper=replace(t, magnetization_modes=choice)) for choice in (True, False))
    if begun:
        return having if begun[config.job].get("magnetization_modes", True) else lacking
    if not t.correlations or model.lattice is None or not is_symmetric_glass(model):
        return having
    if out is None and config.model.instance is None:  # a command, whose file is named by its identity
        paths = [usual_path(one, model.name, one.sha256(None)) for one in (having, lacking)]
        if [os.path.lexists(path) for path in paths] == [True, False]:
            return having
    return lacking


def _engine_of(plan: TemperPlan, ladder: npt.NDArray[np.float64], seed: int, groups: int) -> Engine:
    """The replicas of so many groups of a plan in their initial state."""
    run, t, start = plan.config.run, plan.config.temper, plan.start
    if start is not None and len(start) > 1:
        start = np.tile(start, (groups, 1, 1))
    return create_engine(
        plan.model.once(repeated, groups),
        run.number_of_replicas * len(ladder),
        replace(dynamics_of(plan, t.start, t.zero_acceptance), seed=seed),
        plan.device,
        run.threads,
        start,
        slabs=False,
        round_sweeps=plan.round_sweeps,
    )


def _check_groups(plan: TemperPlan, replicas: int) -> None:
    """Refuse groups that have no room, before the first of them begins to search.

    Raises:
        InputError: for these.
    """
    outline, groups = plan.outline, count(plan.config.temper.number_of_groups, "group")
    if plan.device == "cpu":
        what = f"a search of {outline.sites} sites x {plan.model.samples} samples x {replicas} replicas x {groups}"
        require(choose(outline).needed_bytes(outline, replicas), what, "give fewer groups or replicas")
    check_run(plan.groups, replicas, 0, 1)


def _longest(unit: int, colours: int) -> int:
    """As many sweeps as random numbers have room for, a multiple of a unit."""
    most: int = 2**HALF_SWEEP_BITS // colours
    return most // unit * unit
