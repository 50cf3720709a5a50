"""Wiring of a quantum run: configuration -> model of space and time -> ladder of points -> engine -> file or memory."""

from __future__ import annotations

from typing import Any, Final

import h5py
import numpy as np

from spinsim.acceptance import HOTTEST
from spinsim.errors import InputError
from spinsim.jobs.ladder.contents import points_in
from spinsim.jobs.ladder.running import LadderPlan, with_usual_moves
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.settings import Quantum
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points
from spinsim.run.common import build_model

_MOST_STEP: Final = 1e60  # in time: errors of specific heats hold the fourth power of beta


class QuantumPlan(LadderPlan[Quantum]):
    """A quantum run that is ready to begin; its model is that of space and time."""

    @classmethod
    def model_of(cls, config: Quantum, device: str) -> Ising:
        q = config.quantum
        return build_model(config.model, config.run.number_of_replicas * q.places, q.slices, q.is_general)

    @classmethod
    def filled_in(cls, config: Quantum, model: Ising, device: str) -> Quantum:
        """A configuration with moves, where they were left to the model."""
        return with_usual_moves(config, model, config.run.number_of_replicas)

    def ladder_in(self, file: h5py.File) -> Points:
        return points_in(file)

    def check_ladder(self, ladder: Points) -> None:
        """Refuse steps in time at which space is too hot to mix, or so cold that numbers overflow."""
        scale = self.model.energy_scale
        least, most = 1 / (HOTTEST * scale) if scale else 0.0, _MOST_STEP
        for step in ladder.k[(ladder.k < least) | (ladder.k > most)]:
            what = "the step in time, beta / slices," if ladder.is_general else "k"
            raise InputError(
                f"{what} is {step:.3g}, but couplings of {self.model.name} take {least:.3g} to {most:.3g}: give others"
            )

    def result_on(self, ladder: Points, **fields: Any) -> QuantumResult:
        times = np.array(self.config.quantum.time_list, np.int64)
        return QuantumResult(points=ladder, time=times, **fields)
