"""Plans of quantum runs, and ``ss.quantum``."""

from __future__ import annotations

from typing import Any, Final

from spinsim.acceptance import HOTTEST
from spinsim.engine.measuring.correlations import Wanted
from spinsim.errors import InputError
from spinsim.jobs.calls import call_of, run_of_call
from spinsim.jobs.ladder.result import points_in
from spinsim.jobs.ladder.running import LadderPlan, with_usual_moves
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.settings import Quantum, QuantumSettings
from spinsim.model.ising import Ising, check_model
from spinsim.model.trotter import Points, trotter
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


@call_of(
    Quantum,
    "k slices sweeps thermalize replicas measure_every swap_every correlation_times even_correlations "
    "local_susceptibility seed start zero_acceptance rng_rounds device threads on_updates out checkpoint_every "
    "progress gamma beta measure moves",
)
def quantum(model: Ising, given: dict[str, Any]) -> QuantumResult:  # noqa: D417  (the settings describe themselves)
    """The transverse-field Ising model in slices of imaginary time, tempered in k, Gamma or beta.

    In the isotropic form, the default, the weight is exp(-k A) with A = -(sum over slices of J s s over bonds, h s over
    sites and s(tau) s(tau + 1) over sites); the transverse field is Gamma = -ln tanh(k) / (2 k), the inverse
    temperature k times ``slices``. In the general form, with ``gamma`` and ``beta``, bonds and fields in space have the
    weight k = beta / ``slices``, and bonds in time -ln tanh(gamma k) / 2. Averages then are those of the quantum model
    at this gamma and beta, up to terms of order k^2.

    Args:
        model: Model in space.
        k: Steps in time of the isotropic form, shape (k,), in any order; or text as the command line takes it, such as
            ``auto:0.25:0.31``; by default 0.2:0.3:16.
        correlation_times: Times in slices at which spins are correlated with themselves; 1 is always among them. By
            default 1, 2, 3, ... to half of the slices, 16 at most.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1 in space and time, shape (sites,),
            (samples, sites) or (samples, copies times points, sites). Replica c T + i is copy c at the i-th of T
            points, counted from the end deepest in the ordered phase.
        gamma: Transverse fields of the general form in the unit of the couplings, one or several in any order, or text.
        beta: Inverse temperatures of the general form, likewise. At least one of gamma and beta is a single number.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them.
        moves: Moves in space and time, as ``ss.temper`` takes them.

    Returns:
        Actions, magnetisations, correlations in time and overlaps of every copy at every point, and the rates of
        exchange.

    Raises:
        InputError: for bad points or slices, numbers out of range, too little memory, and a file that holds another
            run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    slices, by_term = given.get("slices", QuantumSettings.slices), given.get("gamma") is not None
    in_time = trotter(check_model(model), slices, by_term=by_term)
    result: QuantumResult = run_of_call(Quantum, in_time, given)
    return result
