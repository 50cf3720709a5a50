"""Runs of replicas that exchange the places of a ladder: all that tempering and quantum runs share.

A ladder goes along temperatures, or along k, Gamma or beta of a model in slices of imaginary time (``places.py``). The
folders of both jobs hold what is theirs: settings, the fields of results that the other has not, and what they add to
reports, tables and figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinsim.jobs.base import FigureSet, Job, PlotOption, at


class LadderJob(Job):
    """The record of a job whose runs are on a ladder."""

    recounted = at("spinsim.jobs.ladder.running:recounted")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        columns = {"columns": PlotOption(f"the thermodynamics of {cls.name} runs", ("thermodynamics",))}
        several = {
            "observable": PlotOption(f"the figures of several {cls.name} runs", ("crossings", "thermodynamics")),
            "near": PlotOption(f"the crossings of several {cls.name} runs", ("crossings",)),
        }
        cls.figures = cls.figures._replace(options=columns)
        cls.figures_of_several = FigureSet(("crossings", "thermodynamics"), several | columns)

    def lengths(self, config: Any) -> tuple[str, ...]:
        return ("sweeps",)

    def check_averages(self, path: Path, result: Any) -> None:
        """Take every file: its series can be averaged."""
