"""Dynamics out of equilibrium: replicas go through a protocol of temperatures and fields and are compared in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinsim.jobs.base import Draw, Drawing, FigureSet, Job, Reports

if TYPE_CHECKING:
    from spinsim.jobs.evolve.result import EvolveResult
    from spinsim.jobs.evolve.run import EvolvePlan
    from spinsim.jobs.evolve.settings import Evolve
    from spinsim.model.ising import Ising
    from spinsim.record import Record


class EvolveJob(Job):
    """The job of protocols out of equilibrium."""

    name = "evolve"
    a_run = "an evolve run"
    about = "Take replicas through a protocol out of equilibrium: quench, aging, memory, response to a field."
    figures = FigureSet(("correlation", "length", "protocol"))

    @property
    def config(self) -> type[Evolve]:
        from spinsim.jobs.evolve.settings import Evolve

        return Evolve

    @property
    def plan_type(self) -> type[EvolvePlan]:
        from spinsim.jobs.evolve.run import EvolvePlan

        return EvolvePlan

    def read(self, record: Record, model: Ising) -> EvolveResult:
        from spinsim.jobs.evolve.result import read

        return read(record, model)

    @property
    def report(self) -> Reports:
        from spinsim.jobs.evolve import report

        return report

    def recounted(self, result: EvolveResult, device: str, threads: int | None) -> Any:
        from spinsim.jobs.steps import recounted

        return recounted(result, device, threads)

    def draw(self, results: Sequence[EvolveResult], wanted: Drawing) -> Draw:
        from spinsim.jobs.evolve.figures import draw

        return draw(results[0], wanted)

    def plot(self, result: EvolveResult, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        from spinsim.jobs.plotting import figures_of

        return figures_of([result], names, folder, about)


JOB = EvolveJob()
