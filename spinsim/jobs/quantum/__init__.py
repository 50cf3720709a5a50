"""The transverse-field Ising model through slices in imaginary time, tempered in k, Gamma or beta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spinsim.jobs.base import FigureSet, at
from spinsim.jobs.ladder import LadderJob


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
    kept = at("extrapolation:kept")
    together = at("report:extrapolations")
    resumable: ClassVar[Mapping[str, str]] = {"sweeps": "Total number of measured sweeps of a quantum run"}
    figures = FigureSet(("thermodynamics", "order", "time", "gaps", "local"))


JOB = QuantumJob()
