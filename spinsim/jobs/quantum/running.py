"""Plans of quantum runs."""

from __future__ import annotations

from typing import Final

from spinsim.acceptance import HOTTEST
from spinsim.engine.measuring.correlations import Wanted
from spinsim.errors import InputError
from spinsim.jobs.ladder.result import points_in
from spinsim.jobs.ladder.running import LadderPlan, with_usual_moves
from spinsim.jobs.quantum.settings import Quantum
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points
from spinsim.run.common import build_model

_MOST_STEP: Final = 1e60  # in time: errors of specific heats hold the fourth power of beta


class QuantumPlan(LadderPlan[Quantum]):
    """A quantum run that is ready to begin; its model is that of space and time."""

    ladder_in = staticmethod(points_in)

    @classmethod
    def model_of(cls, config: Quantum, device: str) -> Ising:
        q = config.quantum
        return build_model(config.model, config.run.number_of_replicas * q.places, q.slices, q.is_general)

    @classmethod
    def filled_in(cls, config: Quantum, model: Ising, device: str) -> Quantum:
        return with_usual_moves(config, model, config.run.number_of_replicas)

    @property
    def wanted(self) -> Wanted:
        q = self.config.quantum
        return Wanted(True, q.time_list, q.even_correlations, magnetization_modes=q.magnetization_modes)

    def check_ladder(self, ladder: Points) -> None:
        """Refuse steps in time at which space is too hot to mix, or so cold that numbers overflow."""
        scale = self.model.energy_scale
        least, most = 1 / (HOTTEST * scale) if scale else 0.0, _MOST_STEP
        for step in ladder.k[(ladder.k < least) | (ladder.k > most)]:
            name = "the step in time, beta / slices," if ladder.is_general else "k"
            raise InputError(
                f"{name} is {step:.3g}, but couplings of {self.model.name} take {least:.3g} to {most:.3g}: give others"
            )
