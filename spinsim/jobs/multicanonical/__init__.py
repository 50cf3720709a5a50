"""Multicanonical sampling: walkers that visit all energies evenly, whose visits give the density of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.inputs.texts import quoted
from spinsim.jobs.base import Draw, Drawing, FigureSet, Job, Reports

if TYPE_CHECKING:
    from pathlib import Path

    from spinsim.analysis.density import DensityOfStates
    from spinsim.jobs.multicanonical.run import MulticanonicalPlan, MulticanonicalResult
    from spinsim.jobs.multicanonical.settings import Multicanonical
    from spinsim.model.ising import Ising
    from spinsim.record import Record


class MulticanonicalJob(Job):
    """The job of multicanonical sampling."""

    name = "multicanonical"
    a_run = "a multicanonical run"
    about = """Sample all energies evenly: density of states, free energy and entropy, first-order transitions.

    A Wang-Landau stage finds weights; production with fixed weights follows. It runs on the CPU.
    """
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": ""}
    figures = FigureSet(("density", "transition"))

    @property
    def config(self) -> type[Multicanonical]:
        from spinsim.jobs.multicanonical.settings import Multicanonical

        return Multicanonical

    @property
    def plan_type(self) -> type[MulticanonicalPlan]:
        from spinsim.jobs.multicanonical.run import MulticanonicalPlan

        return MulticanonicalPlan

    def read(self, record: Record, model: Ising) -> MulticanonicalResult:
        from spinsim.jobs.multicanonical.run import read

        return read(record, model)

    @property
    def report(self) -> Reports:
        from spinsim.jobs.multicanonical import report

        return report

    def lengths(self, config: Any) -> tuple[str, ...]:
        return ("sweeps",)

    def density(self, result: MulticanonicalResult) -> DensityOfStates:
        return result.density

    def draw(self, results: Sequence[MulticanonicalResult], wanted: Drawing) -> Draw:
        from spinsim.analysis.figures.density import density_figures

        return density_figures(results[0].density, wanted.style, wanted.figure)

    def plot(self, result: MulticanonicalResult, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        from spinsim.jobs.plotting import figures_of

        return figures_of([result], names, folder, about)

    def check_averages(self, path: Path, result: Any) -> None:
        from spinsim.errors import InputError

        raise InputError(
            f"{path} holds {self.a_run}, whose averages follow from its density of states: "
            f"'spinsim analyze --density {quoted(path)}' prints them"
        )


JOB = MulticanonicalJob()
