"""Wiring of a parallel tempering run: configuration -> model -> ladder -> engine -> exchanges -> file or memory."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import h5py

from spinsim.acceptance import check_temperatures
from spinsim.analysis.kinds import is_symmetric_glass
from spinsim.engine import check_run
from spinsim.engine.choosing import choose
from spinsim.engine.moves.move import moves_of_run
from spinsim.engine.split.filling import copies_of_search, groups_of_search
from spinsim.engine.update import OfModel, Outline
from spinsim.inputs.texts import count
from spinsim.jobs.ladder.contents import contents_of_run, temperatures_in
from spinsim.jobs.ladder.places import Temperatures
from spinsim.jobs.ladder.running import LadderPlan, LadderRun, with_usual_moves
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.search import Started, TemperSearch, rows_of_search
from spinsim.jobs.temper.settings import Temper, usual_restart
from spinsim.machine.memory import require
from spinsim.machine.threads import available_threads
from spinsim.model.ising import Ising, repeated
from spinsim.parallel.session import others
from spinsim.rng import HALF_SWEEP_BITS
from spinsim.run.common import Watch, build_model, usual_path
from spinsim.run.identity import tables_of_file
from spinsim.run.reducing import Keeping
from spinsim.run.saving import Saving
from spinsim.run.search import Search, seed_of_start, targets_of, with_restarts
from spinsim.sampling import Times
from spinsim.sampling.placement import Placement
from spinsim.sampling.tempering import tempering_in_beta
from spinsim.settings.shared import AUTO

Tables = dict[str, dict[str, Any]]
"""A configuration as its file has it, by tables and settings; empty where no file has been begun."""


class TemperPlan(LadderPlan[Temper]):
    """A tempering run that is ready to begin."""

    @classmethod
    def model_of(cls, config: Temper, device: str) -> Ising:
        return build_model(config.model, (config.run.replicas or 1) * config.temper.places)

    @classmethod
    def filled_in(cls, config: Temper, model: Ising, device: str) -> Temper:
        """A configuration with its ladder, size of a search, moves and choice of modes where they were left out.

        Where its file has been begun already, on whatever device, these, and the ladder of a search, are those of it.
        """
        t, run = config.temper, config.run
        begun: Tables = {}
        if None in (run.replicas, t.groups, t.restart_after, t.magnetization_modes, t.temperatures, t.houdayer):
            begun = tables_of_file(run.out, config.job)
        if begun and t.searches and t.houdayer is None and t.moves is None:
            config = replace(config, temper=replace(t, moves=begun.get(config.job, {}).get("moves")))
        elif t.houdayer == AUTO or (t.searches and t.houdayer is None and model.lattice is None):
            config = replace(config, temper=replace(t, houdayer=AUTO))
            copies = run.replicas
            if copies is None:  # of a search
                copies = 2 if t.temperatures is None else copies_of_search(OfModel(model), device, len(t.ladder))
            config = with_usual_moves(config, model, copies)
        if t.searches and t.temperatures is None:
            given = begun.get(config.job, {}).get("temperatures")
            config = replace(config, temper=replace(config.temper, temperatures=given))
        return _with_modes(_sized(config.with_temperatures(model), model, device, begun), model, begun)

    @property
    def groups(self) -> Ising:
        """The model of all groups of a search, each of which has all samples."""
        return self.model.once(repeated, self.config.temper.number_of_groups)

    @property
    def outline(self) -> Outline:
        """Samples of all groups, which devices share out."""
        return OfModel(self.groups)

    def updates(self, replicas: int) -> int:
        return 0 if self.config.temper.searches else super().updates(replicas)

    def is_done(self, rows: int) -> bool:
        return super().is_done(rows) and not self.config.temper.searches

    def ladder_in(self, file: h5py.File) -> Temperatures:
        return temperatures_in(file)

    def check_ladder(self, ladder: Temperatures) -> None:
        """Refuse temperatures at which the couplings of the model would not be felt, or would overflow."""
        check_temperatures(ladder.values, self.model.energy_scale)

    def result_on(self, ladder: Temperatures, **fields: Any) -> TemperResult:
        return TemperResult(temperature=ladder.values, **fields)

    def run_on(
        self,
        ladder: Temperatures,
        placement: Placement | None,
        saving: Saving,
        watch: Watch,
        stored: Keeping | None = None,
    ) -> LadderRun:
        """The run on a ladder, about to begin, or the search."""
        t, choice = self.config.temper, self.choice
        if not t.searches:
            return super().run_on(ladder, placement, saving, watch, stored)
        target = targets_of(self.model, t.target)
        search = Search(self.model, target, t.time_limit, watch.on_note)
        rows = rows_of_search(self)

        def is_to_pause() -> bool:
            return saving.due() or search.is_late()

        def start(number: int, groups: int) -> Started:
            seed = seed_of_start(self.config.run.seed, number)
            engine = self.engine_on(ladder, seed, groups)
            most = _longest(t.measure_every, engine.colours) if groups == t.number_of_groups else t.sweeps_alone
            times = Times(0, most, t.measure_every, t.swap_every)
            how = copies, watch.on_updates, is_to_pause, choice.wanted, () if number else rows, moves, seed
            return engine, tempering_in_beta(engine, ladder.couplings, times, *how)

        copies, moves = choice.copies, moves_of_run(self.moves, t.moves, "ss.temper")
        self.check_ladder(ladder)
        _check_groups(self, copies * len(ladder))
        contents = contents_of_run(self.model, choice, ladder, placement, self.start)
        contents = with_restarts(contents, target, bool(t.restart_after))
        return TemperSearch(self, saving, watch, start, contents, search)


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


def _check_groups(plan: TemperPlan, replicas: int) -> None:
    """Refuse groups that have no room, before the first of them begins to search."""
    outline, groups = plan.outline, count(plan.config.temper.number_of_groups, "group")
    if plan.device == "cpu":
        what = f"a search of {outline.sites} sites x {plan.model.samples} samples x {replicas} replicas x {groups}"
        require(choose(outline).needed_bytes(outline, replicas), what, "give fewer groups or replicas")
    check_run(plan.groups, replicas, 0, 1)


def _longest(unit: int, colours: int) -> int:
    """As many sweeps as random numbers have room for, a multiple of a unit."""
    most: int = 2**HALF_SWEEP_BITS // colours
    return most // unit * unit
