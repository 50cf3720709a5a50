"""``ss.temper``."""

from __future__ import annotations

from typing import Any

from spinsim.acceptance import check_temperatures
from spinsim.jobs.calls import call_of, run_of_call
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.running import TemperPlan
from spinsim.jobs.temper.settings import Temper
from spinsim.model.ising import Ising


@call_of(
    Temper,
    "temperatures sweeps thermalize replicas measure_every swap_every seed start zero_acceptance rng_rounds "
    "device threads on_updates moves correlations? target out checkpoint_every progress measure",
)
def temper(model: Ising, given: dict[str, Any]) -> TemperResult:  # noqa: D417  (the settings describe themselves)
    """Parallel tempering in equilibrium.

    Args:
        model: Model to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape (temperatures,); or text as
            the command line takes it, such as ``auto:0.7:2.0``. By default 16 in equal ratios from 0.3 to 0.8 times
            the root mean square local field. Searches and graphs take 32 (64 beyond 4000 sites) from twice the last to
            2/3 of the first temperature of an anneal; searches beyond 4000 sites 128 in equal steps from three times
            the last to half of the first.
        replicas: Copies at each temperature, 2 by default. A search takes 1 to 8, so that a group has 128 replicas (1
            for dense problems on a CPU), and several ``groups``; with a number given it has one group.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, copies times temperatures, sites). Replica c T + k is copy c at temperature k of T.
        target: Search until this value is met, one for all samples or one for each: the cut of a MaxCut instance,
            else the energy with the constant of the problem.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or objects of your own with
            a ``name`` and ``apply(batch)``, each with the number of sweeps between two moves:
            ``[(Houdayer(), 16)]`` or ``"houdayer:16"``. Moves of your own are given as objects.
        measure: Observables of your own, functions by name: ``{"parity": parity}``. Each takes a batch of spins
            (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns floats or whole numbers of the shape
            (samples, copies, temperatures), with further axes if you like. As text: ``module:function``.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and the rates of exchange.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    found: TemperResult = run_of_call(Temper, TemperPlan, model, given, temperatures=check_temperatures)
    return found
