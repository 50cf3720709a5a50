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
        model: What to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape (temperatures,); or text as
            the command line takes it, such as ``auto:0.7:2.0``. By default 16 in a geometric row from 0.3 to 0.8 times
            the root mean square local field; in a search and where there is no lattice 32 (64 beyond 4000 sites) from
            twice the last to 2/3 of the first temperature of an anneal; in a search beyond 4000 sites 128 in equal
            steps from three times the last to half of the first.
        replicas: Copies at each temperature, 2 by default. A search has by default as many as make 128 replicas, 1 to 8
            (1 of dense problems on a CPU), in several ``groups``; given a number it has one group.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, copies times temperatures, sites), of which number c T + k is copy c at temperature k of T.
        target: Value of the problem that ends the search, one or one for each sample: the cut of a MaxCut instance,
            else the energy, with the constant of the problem.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or objects of your own with
            a ``name`` and ``apply(batch)``, each with the number of sweeps after which it is applied:
            ``[(Houdayer(), 16)]``, also ``"houdayer:16"``. Names of your own moves as text are refused.
        measure: Observables of your own, functions by name: ``{"parity": parity}``. Each takes a batch of spins
            (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns floats or whole numbers of the shape
            (samples, copies, temperatures), or with more axes behind these. Text names them as ``module:function``.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    found: TemperResult = run_of_call(Temper, TemperPlan, model, given, temperatures=check_temperatures)
    return found
