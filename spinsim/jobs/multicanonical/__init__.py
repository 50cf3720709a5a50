"""Multicanonical sampling: walkers that visit all energies evenly, whose visits give the density of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.errors import InputError
from spinsim.jobs.base import Draw, Drawing, FigureSet, Job

if TYPE_CHECKING:
    from spinsim.jobs.multicanonical.run import MulticanonicalResult


class MulticanonicalJob(Job):
    """The job of multicanonical sampling."""

    name = "multicanonical"
    a_run = "a multicanonical run"
    about = "Visit all energies evenly, on the CPU: density of states, free energy, first-order transitions."
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": ""}
    figures = FigureSet(("density",))

    def lengths(self, config: Any) -> tuple[str, ...]:
        return ("sweeps",)

    def density(self, result: MulticanonicalResult) -> Any:
        return result.density

    def draw(self, results: Sequence[MulticanonicalResult], wanted: Drawing) -> Draw:
        from spinsim.analysis.figures.density import density_figure

        return {"density": lambda: density_figure(results[0].density, wanted.style)}

    def check_averages(self, path: Path, result: Any) -> None:
        raise InputError(f"{path} holds {self.a_run}, whose averages follow from g(E): analyze it with --density")


JOB = MulticanonicalJob()
