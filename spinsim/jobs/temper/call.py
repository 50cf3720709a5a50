"""``ss.temper``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine import resolve_device
from spinsim.engine.moves.move import Move, text_of
from spinsim.jobs.calls import carried_out, config_of_call, documented_call, identity_of_call, start_of_call
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.running import TemperPlan, filled_in
from spinsim.jobs.temper.settings import Temper, TemperSettings
from spinsim.model.ising import Ising
from spinsim.run.own import Measure, as_functions, text_of_measure
from spinsim.settings.shared import RunSettings


@documented_call(Temper)
def temper(  # noqa: D417  (the settings describe themselves)
    model: Ising,
    temperatures: npt.ArrayLike | str | None = TemperSettings.temperatures,
    sweeps: int = TemperSettings.sweeps,
    thermalize: int = TemperSettings.thermalize,
    replicas: int | None = None,
    measure_every: int = TemperSettings.measure_every,
    swap_every: int = TemperSettings.swap_every,
    seed: int | None = RunSettings.seed,
    start: str | npt.ArrayLike = TemperSettings.start,
    zero_acceptance: float = TemperSettings.zero_acceptance,
    rng_rounds: int = RunSettings.rng_rounds,
    device: str = RunSettings.device,
    threads: int | None = RunSettings.threads,
    on_updates: Callable[[int], None] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = TemperSettings.moves,
    correlations: bool | None = None,
    target: npt.ArrayLike | str | None = TemperSettings.target,
    out: str | os.PathLike[str] | None = RunSettings.out,
    checkpoint_every: float = RunSettings.checkpoint_every,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    **settings: Any,
) -> TemperResult:
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
        on_updates: Called now and then with the number of spin updates since the last call.
        target: Value of the problem that ends the search, one or one for each sample: the cut of a MaxCut instance,
            else the energy, with the constant of the problem.
        moves: Moves, such as ``Houdayer`` or objects of your own with a ``name`` and ``apply(batch)``, each with the
            number of sweeps after which it is applied: ``[(Houdayer(), 16)]``, also ``"houdayer:16"``. Names of your
            own moves as text are refused.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
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
    given = locals()
    named, spins = start_of_call(start, model, None)
    own_moves = () if moves is None or isinstance(moves, str) else tuple(moves)
    given |= {"start": named, "moves": moves if isinstance(moves, str) else text_of(own_moves)}
    given |= {"measure": text_of_measure(measure)}
    config = config_of_call(Temper, model, given, temperatures=check_temperatures)
    where = resolve_device(device, config.run.gpus)
    config = filled_in(config, model, where)
    functions = as_functions(measure)
    named_by = identity_of_call(config, model)
    plan = TemperPlan(config, model, where, *named_by, start=spins, moves=own_moves, measure=functions)
    result: TemperResult = carried_out(plan, out, progress, on_updates)
    return result
