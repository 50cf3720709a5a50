"""Parallel tempering: replicas of a model in equilibrium exchange the temperatures of a ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.errors import InputError, argument
from spinsim.jobs.base import Drawing, FigureSet, Job, Told, ladder_options

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from spinsim.analysis.tables import Columns
    from spinsim.jobs.base import Draw
    from spinsim.jobs.temper.result import TemperResult
    from spinsim.jobs.temper.running import TemperPlan
    from spinsim.jobs.temper.settings import Temper
    from spinsim.run import Watch
    from spinsim.run.progress import Bar
    from spinsim.store.forms import Form

_OF_ONE, _OF_SEVERAL = ladder_options("temper")


class TemperJob(Job):
    """What the rest of the program knows of parallel tempering."""

    name = "temper"
    a_run = "a temper run"
    about = "Simulate an Ising model or spin glass in equilibrium at many temperatures that exchange configurations."
    resumable: ClassVar[Mapping[str, str]] = {
        "sweeps": "Measured sweeps that a tempering or quantum run shall have in all",
        "time_limit": "Seconds that a search shall last in all at most",
    }
    figures = FigureSet(("thermodynamics", "order", "cut", "overlap", "exchange", "equilibration"), _OF_ONE)
    figures_of_several = FigureSet(("crossings", "thermodynamics"), _OF_SEVERAL)

    @property
    def config(self) -> type[Temper]:
        """The class of its configurations."""
        from spinsim.jobs.temper.settings import Temper

        return Temper

    @property
    def plan_type(self) -> type[TemperPlan]:
        """The class of runs that are ready to begin."""
        from spinsim.jobs.temper.running import TemperPlan

        return TemperPlan

    @property
    def form(self) -> Form:
        """What the store must know of its files."""
        from spinsim.jobs.temper.layout import FORM

        return FORM

    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> TemperResult:
        """Returns the result that the first rows of an open file come to."""
        from spinsim.jobs.temper.result import read

        return read(file, rows, attributes)

    def plan(self, config: Temper) -> TemperPlan:
        """Returns the run of a configuration, ready to begin."""
        from spinsim.jobs.temper.running import plan_temper

        return plan_temper(config)

    def to_file(self, plan: TemperPlan, watch: Watch) -> bool:
        """Run a plan into its file; False where the file already holds the finished run."""
        from spinsim.jobs.temper.running import temper_to_file

        return temper_to_file(plan, watch)

    def progress(self, silent: bool) -> Bar:
        """Returns a bar of spin updates."""
        from spinsim.run.progress import UpdateProgress

        return UpdateProgress(silent)

    def describe(self, plan: TemperPlan) -> str:
        """Returns what is about to run, in one sentence."""
        from spinsim.jobs.temper.report import describe

        return describe(plan)

    def outcome(self, plan: TemperPlan, rate: float | None) -> Told:
        """Returns what is said of a run when it is done."""
        from spinsim.jobs.temper.report import outcome

        return outcome(plan, rate)

    def show(self, path: Path) -> Told:
        """Returns what ``spinsim show`` says of a file."""
        from spinsim.jobs.temper.report import show

        return show(path)

    def changed(self, config: Temper, settings: Mapping[str, Any], path: Path) -> Temper:
        """Returns the configuration of a file's run with more sweeps, of a search with more time."""
        from spinsim.settings.searches import check_limited

        t = config.temper
        if t.searches and "sweeps" in settings:
            raise InputError(
                f"{path} holds a search, which its target or its time ends: "
                f"leave {argument('sweeps')} out, or give {argument('time_limit')}"
            )
        check_limited(t.target, t.time_limit, settings, path)
        changed: Temper = super().changed(config, settings, path)
        return changed

    def lengths(self, config: Temper) -> tuple[str, ...]:
        """Returns the names of the settings that say how long a run is, of a search the time if it has a limit."""
        t = config.temper
        return ("sweeps",) if not t.searches else () if t.time_limit is None else ("time_limit",)

    def as_once_meant(self, tables: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the tables with a g after a grid, which early development versions took as geometric."""
        from spinsim.inputs.grids import is_grid

        grid = tables["temper"].get("temperatures") or ""
        return tables | {"temper": tables["temper"] | {"temperatures": f"{grid}g"}} if is_grid(grid) else None

    def check_averages(self, path: Path) -> None:
        """Take every file: its series can be averaged."""

    def recounted(self, result: TemperResult, device: str, threads: int | None) -> TemperResult:
        """Returns a run with series that are counted anew from the configurations that it has saved."""
        from spinsim.engine.measuring.correlations import Wanted
        from spinsim.jobs.temper.running import row_of
        from spinsim.run.recounting import recounted_on_ladder

        beta, modes = 1 / result.temperature, result.has_magnetization_modes
        wanted = Wanted(result.has_correlations, magnetization_modes=modes)
        again: TemperResult = recounted_on_ladder(result, beta, row_of, device, threads, wanted)
        return again

    def columns(self, result: TemperResult, by: str) -> Columns:
        """Returns the columns of ``ss.table``, by temperature, sample, overlap or logarithmic bin."""
        from spinsim.jobs.temper.tables import columns

        return columns(result, by)

    def draw(self, results: Sequence[TemperResult], wanted: Drawing) -> Draw:
        """Returns functions that draw the figures that can be drawn of one run or several."""
        from spinsim.jobs.temper.figures import draw

        return draw(results, wanted)


JOB = TemperJob()
