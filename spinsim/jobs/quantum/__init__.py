"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from spinsim.jobs.base import FigureSet, at
from spinsim.jobs.ladder import LadderJob

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.jobs.quantum.extrapolation import AtStep
    from spinsim.jobs.quantum.result import QuantumResult


class QuantumJob(LadderJob):
    """The record by which the rest of the program knows quantum runs."""

    name = "quantum"
    a_run = "a quantum run"
    about = (
        "Simulate the transverse-field Ising model or spin glass through slices in imaginary time.\n\n"
        "The isotropic form: bonds in time have the coupling 1, k is the step in time and the transverse field is "
        "-ln tanh(k) / (2 k). The general form, with --gamma and --beta: the step in time is beta / slices, the "
        "coupling in time -ln tanh(gamma step) / 2."
    )
    columns = at("report:columns")
    draw = at("figures:draw")
    analysis = at("report:in_time_lines")
    together = at("report:extrapolations")
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": "Total number of measured sweeps of a quantum run"}
    figures = FigureSet(("thermodynamics", "order", "time", "gaps", "local"))
    form = at("spinsim.jobs.ladder.contents:QUANTUM_FORM")

    def kept(self, result: QuantumResult, summary: Summary) -> AtStep | None:
        from spinsim.jobs.quantum.extrapolation import at_step

        return at_step(result, summary.estimates) if result.points.is_general else None

    def recounted(self, result: QuantumResult, device: str, threads: int | None) -> QuantumResult:
        from dataclasses import replace

        again: QuantumResult = super().recounted(result, device, threads)
        return replace(again, local_squares=None, local_measurements=None)  # which are of all measurements


JOB = QuantumJob()
