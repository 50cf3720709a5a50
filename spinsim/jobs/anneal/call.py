"""``ss.anneal``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine import resolve_device
from spinsim.jobs.anneal.defaults import filled_in
from spinsim.jobs.anneal.many import of_models
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.running import AnnealPlan, anneal_in_memory
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.calls import (
    carried_out,
    config_of_call,
    documented_call,
    identity_of_call,
    start_of_call,
    text_of_call,
)
from spinsim.model.ising import Ising
from spinsim.run.own import Measure, as_functions, text_of_measure
from spinsim.settings.shared import RunSettings


@of_models
@documented_call(Anneal)
def anneal(  # noqa: D417  (the settings describe themselves)
    model: Ising,
    temperatures: npt.ArrayLike | str | None = AnnealSettings.temperatures,
    sweeps: int | None = None,
    replicas: int | None = None,
    seed: int | None = RunSettings.seed,
    start: str | npt.ArrayLike = AnnealSettings.start,
    zero_acceptance: float = AnnealSettings.zero_acceptance,
    rng_rounds: int = RunSettings.rng_rounds,
    device: str = RunSettings.device,
    threads: int | None = RunSettings.threads,
    on_updates: Callable[[int], None] | None = None,
    field: npt.ArrayLike | str | None = AnnealSettings.field,
    target: npt.ArrayLike | str | None = AnnealSettings.target,
    out: str | os.PathLike[str] | None = RunSettings.out,
    checkpoint_every: float = RunSettings.checkpoint_every,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    **settings: Any,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: What to anneal; or a list of models, of which model k has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,); or text as the command
            line takes it, such as ``3:0.1:100g``. Without them the ends, their number and the spacing are settings.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        on_updates: Called now and then with the number of spin updates since the last call.
        field: A uniform field for each temperature, (steps,) or text, which is added to the model's own fields and is
            part of the energies; one temperature alone serves all of them.
        target: Value of the problem that ends the search, one or one for each sample: the cut of a MaxCut instance,
            else the energy, with the constant of the problem.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them; they return floats or whole
            numbers of the shape (samples, replicas), or with more axes behind these.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; of a list of models a list, each
        as a call with that model alone returns it.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    named, spins = start_of_call(start, model, replicas)
    settings |= {"temperatures": text_of_call("temperatures", temperatures, check_temperatures)}
    settings |= {"field": text_of_call("field", field), "target": text_of_call("target", target), "start": named}
    settings |= {"sweeps": sweeps, "zero_acceptance": zero_acceptance, "rng_rounds": rng_rounds}
    if replicas is None and spins is not None and spins.shape[1] > 1:
        replicas = spins.shape[1]
    settings |= {"measure": text_of_measure(measure)}
    settings |= {"replicas": replicas, "seed": seed, "device": device, "threads": threads}
    config = config_of_call(Anneal, model, settings | {"out": out, "checkpoint_every": checkpoint_every})
    where = resolve_device(device, config.run.gpus)
    config = filled_in(config, model, where)
    plan = AnnealPlan(
        config, model, where, *identity_of_call(config, model), start=spins, measure=as_functions(measure)
    )
    result: AnnealResult = carried_out(plan, out, progress, on_updates, anneal_in_memory)
    return result
