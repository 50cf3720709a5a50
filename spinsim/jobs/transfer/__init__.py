"""Transfer matrices: the leading levels of a layer at many couplings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from spinsim.errors import InputError
from spinsim.inputs.texts import quoted
from spinsim.jobs.base import Drawing, FigureSet, Job, PlotOption, Told

if TYPE_CHECKING:
    from pathlib import Path

    import h5py

    from spinsim.jobs.base import Draw
    from spinsim.jobs.transfer.result import TransferResult
    from spinsim.jobs.transfer.running import TransferPlan
    from spinsim.jobs.transfer.settings import Transfer
    from spinsim.run import Watch
    from spinsim.run.progress import Bar
    from spinsim.store.forms import Form


_AVERAGE = PlotOption("the lengths of transfer runs", ("lengths",))


class TransferJob(Job):
    """What the rest of the program knows of transfer matrices."""

    name = "transfer"
    a_run = "a transfer run"
    about = """Find the leading eigenvalues of transfer matrices: correlation lengths, free energies, gaps.

    All layers of a sample are equal, with ferromagnetic bonds --k-time between them: random couplings make a
    McCoy-Wu model, random within a layer alone.
    """
    resumable: ClassVar[Mapping[str, str]] = {"most_steps": ""}
    figures = FigureSet(("lengths",), {"average": _AVERAGE})
    figures_of_several = FigureSet(
        ("lengths",), {"average": _AVERAGE, "near": PlotOption("the crossings of several widths", ("lengths",))}
    )

    @property
    def config(self) -> type[Transfer]:
        """The class of its configurations."""
        from spinsim.jobs.transfer.settings import Transfer

        return Transfer

    @property
    def plan_type(self) -> type[TransferPlan]:
        """The class of runs that are ready to begin."""
        from spinsim.jobs.transfer.running import TransferPlan

        return TransferPlan

    @property
    def form(self) -> Form:
        """What the store must know of its files."""
        from spinsim.jobs.transfer.layout import FORM

        return FORM

    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> TransferResult:
        """Returns the result that the first rows of an open file come to."""
        from spinsim.jobs.transfer.result import read

        return read(file, rows, attributes)

    def plan(self, config: Transfer) -> TransferPlan:
        """Returns the run of a configuration, ready to begin."""
        from spinsim.jobs.transfer.running import plan_transfer

        return plan_transfer(config)

    def to_file(self, plan: TransferPlan, watch: Watch) -> bool:
        """Run a plan into its file; False where the file already holds the finished run."""
        from spinsim.jobs.transfer.running import transfer_to_file

        return transfer_to_file(plan, watch)

    def progress(self, silent: bool) -> Bar:
        """Returns a bar of rows, each a sample at a coupling."""
        from spinsim.run.progress import RowProgress

        return RowProgress(silent)

    def describe(self, plan: TransferPlan) -> str:
        """Returns what is about to run, in one sentence."""
        from spinsim.jobs.transfer.report import describe

        return describe(plan)

    def outcome(self, plan: TransferPlan, rate: float | None) -> Told:
        """Returns what is said of a run when it is done."""
        from spinsim.jobs.transfer.report import outcome

        return outcome(plan)

    def show(self, path: Path) -> Told:
        """Returns what ``spinsim show`` says of a file."""
        from spinsim.jobs.transfer.report import show

        return show(path)

    def check_averages(self, path: Path) -> None:
        """Refuse every file: levels are no averages."""
        raise InputError(
            f"{path} holds {self.a_run}, whose levels are no averages: 'spinsim show {quoted(path)}' prints them and "
            f"'spinsim plot {quoted(path)}' draws the correlation length over the width"
        )

    def draw(self, results: Sequence[TransferResult], wanted: Drawing) -> Draw:
        """Returns functions that draw xi / L of one width or more."""
        from spinsim.jobs.transfer.figures import draw

        return draw(results, wanted)


JOB = TransferJob()
