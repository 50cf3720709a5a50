"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.jobs.base import FigureSet
from spinsim.jobs.ladder import LadderJob

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Report
    from spinsim.jobs.quantum.run import QuantumResult


class QuantumJob(LadderJob):
    """The job of quantum runs."""

    name = "quantum"
    a_run = "a quantum run"
    about = (
        "Simulate the transverse-field Ising model or spin glass through slices in imaginary time.\n\n"
        "The isotropic form: bonds in time have the coupling 1, k is the step in time and the transverse field is "
        "-ln tanh(k) / (2 k). The general form, with --gamma and --beta: the step in time is beta / slices, the "
        "coupling in time -ln tanh(gamma step) / 2."
    )
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": "Total number of measured sweeps of a quantum run"}
    figures = FigureSet(("thermodynamics", "order", "time", "gaps", "local"))

    def analysis(self, result: QuantumResult) -> list[str]:
        from spinsim.jobs.quantum.report import in_time_lines

        return in_time_lines(result)

    def together(
        self, runs: list[tuple[QuantumResult, Summary]], choose: Callable[[Mapping[str, Any]], list[str]]
    ) -> Report:
        from spinsim.jobs.quantum.report import extrapolations

        return extrapolations(runs, choose)


JOB = QuantumJob()
