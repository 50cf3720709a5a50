"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.jobs.base import Drawing, FigureSet, Job, Told, ladder_options

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns
    from spinsim.jobs.base import Draw
    from spinsim.jobs.quantum.extrapolation import AtStep
    from spinsim.jobs.quantum.result import QuantumResult
    from spinsim.jobs.quantum.running import QuantumPlan
    from spinsim.jobs.quantum.settings import Quantum
    from spinsim.run import Watch
    from spinsim.run.progress import Bar
    from spinsim.store.forms import Form

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
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": "Measured sweeps that a quantum run shall have in all"}
    figures = FigureSet(("thermodynamics", "order", "time", "gaps", "local"), _OF_ONE)
    figures_of_several = FigureSet(("crossings", "thermodynamics"), _OF_SEVERAL)

    @property
    def config(self) -> type[Quantum]:
        """The class of its configurations."""
        from spinsim.jobs.quantum.settings import Quantum

        return Quantum

    @property
    def plan_type(self) -> type[QuantumPlan]:
        """The class of runs that are ready to begin."""
        from spinsim.jobs.quantum.running import QuantumPlan

        return QuantumPlan

    @property
    def form(self) -> Form:
        """What the store must know of its files."""
        from spinsim.jobs.quantum.layout import FORM

        return FORM

    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> QuantumResult:
        """Returns the result that the first rows of an open file come to."""
        from spinsim.jobs.quantum.result import read

        return read(file, rows, attributes)

    def plan(self, config: Quantum) -> QuantumPlan:
        """Returns the run of a configuration, ready to begin."""
        from spinsim.jobs.quantum.running import plan_quantum

        return plan_quantum(config)

    def to_file(self, plan: QuantumPlan, watch: Watch) -> bool:
        """Run a plan into its file; False where the file already holds the finished run."""
        from spinsim.jobs.quantum.running import quantum_to_file

        return quantum_to_file(plan, watch)

    def progress(self, silent: bool) -> Bar:
        """Returns a bar of spin updates."""
        from spinsim.run.progress import UpdateProgress

        return UpdateProgress(silent)

    def describe(self, plan: QuantumPlan) -> str:
        """Returns what is about to run, in one sentence."""
        from spinsim.jobs.quantum.report import describe

        return describe(plan)

    def outcome(self, plan: QuantumPlan, rate: float | None) -> Told:
        """Returns what is said of a run when it is done."""
        from spinsim.jobs.quantum.report import outcome

        return outcome(plan, rate)

    def show(self, path: Path) -> Told:
        """Returns what ``spinsim show`` says of a file."""
        from spinsim.jobs.quantum.report import show

        return show(path)

    def lengths(self, config: Quantum) -> tuple[str, ...]:
        """Returns the names of the settings that say how long a run is."""
        return ("sweeps",)

    def check_averages(self, path: Path) -> None:
        """Take every file: its series can be averaged."""

    def analysis(self, result: QuantumResult) -> list[str]:
        """Returns lines on C(t) and on gaps."""
        from spinsim.jobs.quantum.report import in_time_lines

        return in_time_lines(result)

    def kept(self, result: QuantumResult, found: Summary) -> AtStep | None:
        """Returns the averages of a run of the general form."""
        from spinsim.jobs.quantum.extrapolation import at_step

        return at_step(result, found.estimates) if result.points.is_general else None

    def together(self, kept: list[AtStep], choose: Callable[[Mapping[str, Any]], list[str]]) -> Told:
        """Returns averages of runs that differ in their slices alone at infinitely many slices."""
        from spinsim.jobs.quantum.report import extrapolations

        return extrapolations(kept, choose)

    def recounted(self, result: QuantumResult, device: str, threads: int | None) -> QuantumResult:
        """Returns a run with series that are counted anew from the configurations that it has saved."""
        from dataclasses import replace

        from spinsim.engine.measuring.correlations import Wanted
        from spinsim.jobs.quantum.running import row_of
        from spinsim.run.recounting import recounted_on_ladder

        even = result.even_correlation_in_time.shape[-1] > 0
        wanted = Wanted(
            times=tuple(map(int, result.time)), even=even, magnetization_modes=result.has_magnetization_modes
        )
        ladder = result.points.couplings
        again: QuantumResult = recounted_on_ladder(result, ladder, row_of, device, threads, wanted)
        return replace(again, local_squares=None, local_measurements=None)  # which are of all measurements

    def columns(self, result: QuantumResult, by: str) -> Columns:
        """Returns the columns of ``ss.table``, by point of the ladder, sample, time, gap or site."""
        from spinsim.jobs.quantum.tables import columns

        return columns(result, by)

    def draw(self, results: Sequence[QuantumResult], wanted: Drawing) -> Draw:
        """Returns functions that draw the figures that can be drawn of one run or several."""
        from spinsim.jobs.quantum.figures import draw

        return draw(results, wanted)


JOB = QuantumJob()
