"""Annealing: many replicas of a model are cooled through a schedule of temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.errors import InputError, argument
from spinsim.jobs.base import Drawing, FigureSet, Job, PlotOption, Told

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from spinsim.analysis.tables import Columns
    from spinsim.jobs.anneal.result import AnnealResult
    from spinsim.jobs.anneal.running import AnnealPlan
    from spinsim.jobs.anneal.settings import Anneal
    from spinsim.jobs.base import Draw
    from spinsim.run import Watch
    from spinsim.run.progress import Bar
    from spinsim.store.forms import Form


class AnnealJob(Job):
    """What the rest of the program knows of annealing."""

    name = "anneal"
    a_run = "an anneal run"
    about = "Cool replicas of an Ising model or spin glass through a temperature schedule."
    resumable: ClassVar[Mapping[str, str]] = {
        "time_limit": "Seconds that a search shall last in all at most",
        "anneals": "Anneals that a search shall have in all at most",
    }
    figures = FigureSet(
        ("thermodynamics", "cut", "configuration"),
        {"sample": PlotOption("the configuration of an anneal run", ("configuration",))},
    )

    @property
    def config(self) -> type[Anneal]:
        """The class of its configurations."""
        from spinsim.jobs.anneal.settings import Anneal

        return Anneal

    @property
    def plan_type(self) -> type[AnnealPlan]:
        """The class of runs that are ready to begin."""
        from spinsim.jobs.anneal.running import AnnealPlan

        return AnnealPlan

    @property
    def form(self) -> Form:
        """What the store must know of its files."""
        from spinsim.jobs.anneal.layout import FORM

        return FORM

    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> AnnealResult:
        """Returns the result that the first rows of an open file come to."""
        from spinsim.jobs.anneal.result import read

        return read(file, rows, attributes)

    def plan(self, config: Anneal) -> AnnealPlan:
        """Returns the run of a configuration, ready to begin."""
        from spinsim.jobs.anneal.running import plan_anneal

        return plan_anneal(config)

    def to_file(self, plan: AnnealPlan, watch: Watch) -> bool:
        """Run a plan into its file; False where the file already holds the finished run."""
        from spinsim.jobs.anneal.running import anneal_to_file

        return anneal_to_file(plan, watch)

    def progress(self, silent: bool) -> Bar:
        """Returns a bar of spin updates."""
        from spinsim.run.progress import UpdateProgress

        return UpdateProgress(silent)

    def describe(self, plan: AnnealPlan) -> str:
        """Returns what is about to run, in one sentence."""
        from spinsim.jobs.anneal.report import describe

        return describe(plan)

    def outcome(self, plan: AnnealPlan, rate: float | None) -> Told:
        """Returns what is said of a run when it is done."""
        from spinsim.jobs.anneal.report import outcome

        return outcome(plan, rate)

    def show(self, path: Path) -> Told:
        """Returns what ``spinsim show`` says of a file."""
        from spinsim.jobs.anneal.report import show

        return show(path)

    def changed(self, config: Anneal, settings: Mapping[str, Any], path: Path) -> Anneal:
        """Returns the configuration of a file's search with more time or more anneals."""
        from spinsim.settings.searches import check_limited

        a = config.anneal
        check_limited(a.target, a.time_limit, settings, path)
        if "anneals" in settings and (a.anneals is None or not a.is_search):
            what = "a search of any number of anneals" if a.is_search else "a single anneal"
            raise InputError(f"{path} holds {what}: leave {argument('anneals')} out")
        changed: Anneal = super().changed(config, settings, path)
        return changed

    def check_averages(self, path: Path) -> None:
        """Refuse a file, saying of a population run where its averages are."""
        import json

        from spinsim.inputs.texts import quoted
        from spinsim.store import read_attributes

        if not json.loads(read_attributes(path)["config"])[self.name].get("populations"):
            super().check_averages(path)
        raise InputError(
            f"{path} holds a population run: 'spinsim show {quoted(path)}' has its averages, ss.table in Python those "
            "of all steps; give the file of a temper run or of a quantum run here"
        )

    def lengths(self, config: Anneal) -> tuple[str, ...]:
        """Returns the names of the settings that say how long a search is, its time and its anneals as far as given."""
        from spinsim.run.search import LENGTHS

        a = config.anneal
        return tuple(name for name in LENGTHS if a.is_search and getattr(a, name) is not None)

    def recounted(self, result: AnnealResult, device: str, threads: int | None) -> AnnealResult:
        """Returns a run with series that are counted anew from the configurations that it has saved."""
        from spinsim.jobs.anneal.recounting import recounted

        return recounted(result, device, threads)

    def columns(self, result: AnnealResult, by: str) -> Columns:
        """Returns the columns of ``ss.table``, by temperature or by sample."""
        from spinsim.jobs.anneal.tables import columns

        return columns(result, by)

    def draw(self, results: Sequence[AnnealResult], wanted: Drawing) -> Draw:
        """Returns functions that draw the figures that can be drawn of a run."""
        from spinsim.jobs.anneal.figures import draw

        return draw(results[0], wanted)


JOB = AnnealJob()
