"""Solving: the best state of a problem in the time there is, by a portfolio of methods, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.jobs.base import Draw, Drawing, FigureSet, Job

if TYPE_CHECKING:
    from spinsim.jobs.solve.result import SolveResult


class SolveJob(Job):
    """The job of solving."""

    name = "solve"
    a_run = "a solve run"
    reads_in = "result"
    about = "Find the best state of a problem in the given time, and estimate or prove how good it is."
    resumable: ClassVar[Mapping[str, str]] = {"time_limit": "Longest duration of a search from its beginning"}
    figures = FigureSet(("progress",))

    def lengths(self, config: Any) -> tuple[str, ...]:
        return ("time_limit",) if config.solve.time_limit is not None else ()

    def draw(self, results: Sequence[SolveResult], wanted: Drawing) -> Draw:
        from spinsim.jobs.solve.figures import progress_figure

        return {"progress": lambda: progress_figure(results[0], wanted.style)}


JOB = SolveJob()
