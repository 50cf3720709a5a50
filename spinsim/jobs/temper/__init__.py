"""Parallel tempering: replicas of a model in equilibrium exchange temperatures on a ladder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.analysis.space import ANALYSES
from spinsim.errors import InputError, argument
from spinsim.jobs.base import FigureSet
from spinsim.jobs.ladder import LadderJob

if TYPE_CHECKING:
    from spinsim.analysis.density import DensityOfStates
    from spinsim.jobs.temper.run import TemperResult
    from spinsim.jobs.temper.settings import Temper


class TemperJob(LadderJob):
    """The job of parallel tempering."""

    name = "temper"
    a_run = "a temper run"
    about = "Simulate an Ising model or spin glass in equilibrium at many temperatures that exchange configurations."
    resumable: ClassVar[Mapping[str, str]] = {
        "sweeps": "Total number of measured sweeps of a tempering or quantum run",
        "time_limit": "Longest duration of a search from its beginning",
    }
    has_slow_samples = True
    figures = FigureSet(
        ("thermodynamics", "order", "walks", "cut", "overlap", "exchange", "equilibration", "density", *ANALYSES)
    )
    figures_of_several = FigureSet(tuple(name for name, one in ANALYSES.items() if one.most_runs > 1))

    def density(self, result: TemperResult) -> DensityOfStates:
        from spinsim.analysis.density import of_ladder

        return of_ladder(result)

    def changed(self, config: Temper, settings: Mapping[str, Any], path: Path) -> Any:
        if config.temper.searches and "sweeps" in settings:
            raise InputError(
                f"{path} holds a search, which its target or its time ends: "
                f"leave {argument('sweeps')} out, or give {argument('time_limit')}"
            )
        return super().changed(config, settings, path)

    def lengths(self, config: Temper) -> tuple[str, ...]:
        t = config.temper
        return ("sweeps",) if not t.searches else () if t.time_limit is None else ("time_limit",)


JOB = TemperJob()
