"""``ss.quantum``."""

from __future__ import annotations

from typing import Any

from spinsim.jobs.calls import call_of, run_of_call
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.running import QuantumPlan
from spinsim.jobs.quantum.settings import Quantum, QuantumSettings
from spinsim.model.ising import Ising, check_model
from spinsim.model.trotter import trotter


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
    found: QuantumResult = run_of_call(Quantum, QuantumPlan, in_time, given)
    return found
