"""Annealing: many replicas of a model are cooled through a schedule of temperatures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.errors import InputError, argument
from spinsim.jobs.base import FigureSet, Job, PlotOption

if TYPE_CHECKING:
    from spinsim.jobs.anneal.result import AnnealResult
    from spinsim.jobs.anneal.settings import Anneal
    from spinsim.model.ising import Ising
    from spinsim.record import Record


class AnnealJob(Job):
    """The job of annealing."""

    name = "anneal"
    a_run = "an anneal run"
    about = "Cool replicas of an Ising model or spin glass through a temperature schedule."
    resumable: ClassVar[Mapping[str, str]] = {
        "time_limit": "Longest duration of a search from its beginning",
        "anneals": "Largest number of anneals of a search from its beginning",
    }
    figures = FigureSet(
        ("thermodynamics", "cut", "configuration", "landscape"),
        {"sample": PlotOption("the configuration or landscape of an anneal run", ("configuration", "landscape"))},
    )

    def read(self, record: Record, model: Ising) -> AnnealResult:
        from spinsim.jobs.anneal.result import read

        return read(record, model)

    def recounted(self, result: AnnealResult, device: str, threads: int | None) -> AnnealResult:
        from spinsim.jobs.anneal.run import recounted

        return recounted(result, device, threads)

    def plot(self, result: Any, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        from spinsim.jobs.plotting import figures_of

        return figures_of([result], names, folder, about)

    def changed(self, config: Anneal, settings: Mapping[str, Any], path: Path) -> Any:
        a = config.anneal
        if "anneals" in settings and (a.anneals is None or not a.is_search):
            run = "a search of any number of anneals" if a.is_search else "a single anneal"
            raise InputError(f"{path} holds {run}: leave {argument('anneals')} out")
        return super().changed(config, settings, path)

    def check_averages(self, path: Path, result: AnnealResult) -> None:
        from spinsim.inputs.texts import quoted

        if result.family is None:
            super().check_averages(path, result)
        raise InputError(
            f"{path} holds a population run: 'spinsim show {quoted(path)}' has its averages, ss.table in Python those "
            "of all steps; give the file of a temper run or of a quantum run here"
        )

    def lengths(self, config: Anneal) -> tuple[str, ...]:
        from spinsim.run.search import LENGTHS

        a = config.anneal
        return tuple(name for name in LENGTHS if a.is_search and getattr(a, name) is not None)


JOB = AnnealJob()
