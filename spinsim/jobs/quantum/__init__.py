"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from spinsim.jobs.base import FigureSet, Job, at, ladder_options

if TYPE_CHECKING:
    from pathlib import Path

    from spinsim.analysis.summary import Summary
    from spinsim.jobs.quantum.extrapolation import AtStep
    from spinsim.jobs.quantum.result import QuantumResult
    from spinsim.jobs.quantum.settings import Quantum

_OF_ONE, _OF_SEVERAL = ladder_options("quantum")


class QuantumJob(Job):
    """What the rest of the program knows of quantum runs."""

    name = "quantum"
    a_run = "a quantum run"
    about = (
        "Simulate the transverse-field Ising model or spin glass through slices in imaginary time.\n\n"
        "The isotropic form: bonds in time have the coupling 1, k is the step in time and the transverse field is "
        "-ln tanh(k) / (2 k). The general form, with --gamma and --beta: the step in time is beta / slices, the "
        "coupling in time -ln tanh(gamma step) / 2."
    )
    columns = at("tables:columns")
    draw = at("figures:draw")
    analysis = at("report:in_time_lines")
    together = at("report:extrapolations")
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": "Measured sweeps that a quantum run shall have in all"}
    figures = FigureSet(("thermodynamics", "order", "time", "gaps", "local"), _OF_ONE)
    figures_of_several = FigureSet(("crossings", "thermodynamics"), _OF_SEVERAL)

    def lengths(self, config: Quantum) -> tuple[str, ...]:
        """Returns the names of the settings that say how long a run is."""
        return ("sweeps",)

    def check_averages(self, path: Path) -> None:
        """Take every file: its series can be averaged."""

    def kept(self, result: QuantumResult, found: Summary) -> AtStep | None:
        """Returns the averages of a run of the general form."""
        from spinsim.jobs.quantum.extrapolation import at_step

        return at_step(result, found.estimates) if result.points.is_general else None

    def recounted(self, result: QuantumResult, device: str, threads: int | None) -> QuantumResult:
        """Returns a run with series that are counted anew from the configurations that it has saved."""
        from dataclasses import replace

        from spinsim.engine.measuring.correlations import Wanted
        from spinsim.jobs.quantum.layout import MEASURED
        from spinsim.run.recounting import recounted_on_ladder

        even = result.even_correlation_in_time.shape[-1] > 0
        wanted = Wanted(
            times=tuple(map(int, result.time)), even=even, magnetization_modes=result.has_magnetization_modes
        )
        ladder = result.points.couplings
        series = replace(result, reduced=None)  # which is of all measurements
        again: QuantumResult = recounted_on_ladder(series, ladder, MEASURED, device, threads, wanted)
        return replace(again, local_squares=None, local_measurements=None)  # which are of all measurements


JOB = QuantumJob()
