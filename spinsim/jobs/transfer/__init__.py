"""Transfer matrices: the leading levels of a layer at many couplings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from spinsim.errors import InputError
from spinsim.inputs.texts import quoted
from spinsim.jobs.base import Draw, Drawing, FigureSet, Job, PlotOption, Reports

if TYPE_CHECKING:
    from spinsim.jobs.transfer.run import TransferPlan, TransferResult
    from spinsim.jobs.transfer.settings import Transfer
    from spinsim.model.ising import Ising
    from spinsim.record import Record

_AVERAGE = PlotOption("the lengths of transfer runs", ("lengths",))


class TransferJob(Job):
    """The job of transfer matrices."""

    name = "transfer"
    a_run = "a transfer run"
    about = """Find the leading eigenvalues of transfer matrices: correlation lengths, free energies, gaps.

    All layers of a sample are equal, with ferromagnetic bonds --k-time between them: random couplings make a
    McCoy-Wu model, random within a layer alone.
    """
    resumable: ClassVar[Mapping[str, str]] = {"most_steps": ""}
    counts_rows = True
    figures = FigureSet(("lengths",), {"average": _AVERAGE})
    figures_of_several = FigureSet(
        ("lengths",), {"average": _AVERAGE, "near": PlotOption("the crossings of several widths", ("lengths",))}
    )

    @property
    def config(self) -> type[Transfer]:
        from spinsim.jobs.transfer.settings import Transfer

        return Transfer

    @property
    def plan_type(self) -> type[TransferPlan]:
        from spinsim.jobs.transfer.run import TransferPlan

        return TransferPlan

    def read(self, record: Record, model: Ising) -> TransferResult:
        from spinsim.jobs.transfer.run import read

        return read(record, model)

    @property
    def report(self) -> Reports:
        from spinsim.jobs.transfer import report

        return report

    def draw(self, results: Sequence[TransferResult], wanted: Drawing) -> Draw:
        from spinsim.jobs.transfer.figures import draw

        return draw(results, wanted)

    def check_averages(self, path: Path, result: Any) -> None:
        raise InputError(
            f"{path} holds {self.a_run}, whose levels are no averages: 'spinsim show {quoted(path)}' prints them and "
            f"'spinsim plot {quoted(path)}' draws the correlation length over the width"
        )


JOB = TransferJob()
