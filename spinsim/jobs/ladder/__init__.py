"""Runs whose replicas exchange places on a ladder: the common part of tempering and quantum runs.

A ladder runs along temperatures, or along k, Gamma or beta of a model in slices of imaginary time (``places.py``). The
folders of the two jobs hold the differences: settings, additional fields of results, and additions to reports, tables
and figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinsim.jobs.base import FigureSet, Job, PlotOption


class LadderJob(Job):
    """Base class of jobs whose runs are on a ladder."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        alone = {
            "columns": PlotOption(f"the thermodynamics of {cls.name} runs", ("thermodynamics",)),
            "mark": PlotOption(f"the thermodynamics of {cls.name} runs", ("thermodynamics",)),
        }
        both = PlotOption(f"the figures of several {cls.name} runs", ("crossings", "thermodynamics"))
        several = {
            "observable": both,
            "columns": both,
            "mark": both,
            "near": PlotOption(f"the crossings of several {cls.name} runs", ("crossings",)),
        }
        cls.figures = cls.figures._replace(options=alone)
        cls.figures_of_several = FigureSet(("crossings", "thermodynamics"), several)

    def recounted(self, result: Any, device: str, threads: int | None) -> Any:
        from spinsim.jobs.ladder.run import recounted

        return recounted(result, device, threads)

    def plot(self, result: Any, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        from spinsim.jobs.plotting import figures_of

        return figures_of([result], names, folder, about)

    def lengths(self, config: Any) -> tuple[str, ...]:
        return ("sweeps",)

    def check_averages(self, path: Path, result: Any) -> None:
        """Accept every file, because its series can be averaged."""
