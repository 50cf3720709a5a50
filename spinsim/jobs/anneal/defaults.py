"""What an anneal has where temperatures or replicas are left out: by its model and device, or as in the file begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spinsim.engine import Dynamics
from spinsim.engine.split.filling import replicas_that_fill
from spinsim.engine.update import OfModel
from spinsim.inputs.grids import as_text
from spinsim.inputs.shared import T_START
from spinsim.jobs.anneal.settings import Anneal
from spinsim.model.ising import Ising
from spinsim.run.identity import tables_of_file
from spinsim.sampling.annealing import automatic_temperatures
from spinsim.sampling.overlaps import overlapping_temperatures
from spinsim.sampling.population import check_populations
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings

_BYTES_A_STEP: Final = 24  # of a replica: energy and sums of spins
POPULATION: Final = 4096
"""Least replicas of a sample of a population run that is not told, as families die out."""
_MOST_REPLICAS: Final = int(settings_of(RunSettings)["replicas"].high or 0)


def filled_in(config: Anneal, model: Ising, device: str) -> Anneal:
    """A configuration with its temperature ends and its replicas, where they were left out.

    Where its file has been begun already, on whatever device, both are as that has them. A quantum anneal has
    the usual number on all devices, as the best slice of each replica is looked for on the host.
    """
    begun = tables_of_file(config.run.out, config.job)
    config, run = _as_begun(_overlapping(config, model, device), begun, model).with_temperatures(model), config.run
    if run.replicas is not None:
        if config.anneal.populations:
            check_populations(config.anneal.populations, run.replicas)
        return config
    if begun:
        many = begun["run"]["replicas"]
    else:
        a, every = config.anneal, run.save_configurations
        saved = a.steps // every * model.sites // 8 if every else 0
        where, searches = "cpu" if a.quantum else device, a.ends_early and not (a.quantum or a.populations)
        many = replicas_that_fill(OfModel(model), where, a.steps * _BYTES_A_STEP + saved, searches)
        if a.populations:
            many = -(-max(many, POPULATION) // a.populations) * a.populations
    return replace(config, run=replace(run, replicas=min(many, _MOST_REPLICAS)))


def _as_begun(config: Anneal, begun: Mapping[str, Mapping[str, Any]], model: Ising) -> Anneal:
    """A configuration with the first temperature with which its file was begun, where it has none of its own."""
    a, first = config.anneal, begun.get(config.job, {}).get("t_start")
    if first is None or a.t_start is not None or a.temperatures is not None or a.quantum or a.populations:
        return config
    before = model.once(automatic_temperatures, T_START)[0]  # what earlier versions filled in for all models
    return replace(config, anneal=replace(a, t_start=before)) if first == before else config


def _overlapping(config: Anneal, model: Ising, device: str) -> Anneal:
    """A configuration with temperatures that overlap as is wanted, found in a pre-run where they are not there yet."""
    a, run = config.anneal, config.run
    if a.overlap is None or a.temperatures is not None:
        return config
    last = automatic_temperatures(model)[1] if a.t_stop is None else a.t_stop
    dynamics = Dynamics(run.seed, "random", a.zero_acceptance, run.rng_rounds)
    found = overlapping_temperatures(model, last, a.overlap, dynamics, device, run.threads)
    return replace(config, anneal=replace(a, temperatures=as_text(found)))
