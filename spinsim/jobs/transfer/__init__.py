"""Transfer matrices: the leading levels of a layer at many couplings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from spinsim.errors import InputError
from spinsim.inputs.texts import quoted
from spinsim.jobs.base import FigureSet, Job, PlotOption

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

    def plot(self, result: Any, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        from spinsim.jobs.plotting import figures_of

        return figures_of([result], names, folder, about)

    def check_averages(self, path: Path, result: Any) -> None:
        raise InputError(
            f"{path} holds {self.a_run}, whose levels are no averages: 'spinsim show {quoted(path)}' prints them and "
            f"'spinsim plot {quoted(path)}' draws the correlation length over the width"
        )


JOB = TransferJob()
