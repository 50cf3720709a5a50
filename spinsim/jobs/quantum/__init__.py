"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.jobs.base import Draw, Drawing, FigureSet, Reports
from spinsim.jobs.ladder import LadderJob

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Report, Row
    from spinsim.jobs.quantum.run import QuantumPlan, QuantumResult
    from spinsim.jobs.quantum.settings import Quantum
    from spinsim.model.ising import Ising
    from spinsim.record import Record


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
    figures = FigureSet(("thermodynamics", "order", "walks", "time", "gaps", "local"))

    @property
    def config(self) -> type[Quantum]:
        from spinsim.jobs.quantum.settings import Quantum

        return Quantum

    @property
    def plan_type(self) -> type[QuantumPlan]:
        from spinsim.jobs.quantum.run import QuantumPlan

        return QuantumPlan

    def read(self, record: Record, model: Ising) -> QuantumResult:
        from spinsim.jobs.quantum.run import read

        return read(record, model)

    @property
    def report(self) -> Reports:
        from spinsim.jobs.quantum import report

        return report

    def draw(self, results: Sequence[QuantumResult], wanted: Drawing) -> Draw:
        from spinsim.jobs.quantum.figures import draw

        return draw(results, wanted)

    def analysis(self, result: QuantumResult) -> list[Row | str]:
        from spinsim.jobs.quantum.report import in_time_lines

        return [*super().analysis(result), *in_time_lines(result)]

    def together(
        self, runs: list[tuple[QuantumResult, Summary]], choose: Callable[[Mapping[str, Any]], list[str]]
    ) -> Report:
        from spinsim.jobs.quantum.report import extrapolations

        return extrapolations(runs, choose)


JOB = QuantumJob()
