"""An annealing run's series, counted again from the configurations that it has saved."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.start.given import set_spins
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.run.recounting import saved_of
from spinsim.sampling import InField
from spinsim.sampling.measure import measure


def recounted(result: AnnealResult, device: str, threads: int | None) -> AnnealResult:
    """Returns the run with the saved steps alone, counted anew by an engine that is given the spins."""
    found, rows = saved_of(result)
    make = partial(create_engine, replicas=found.shape[2], dynamics=Dynamics(), device=device, threads=threads)
    engine, measured = InField(make(result.model), make), []
    for number, row in enumerate(rows):
        if result.field is not None:
            engine.set_field(float(result.field[row]))
        set_spins(engine, found.row(number))
        measured.append(measure(engine))
    energy, magnetization, staggered = (np.stack(each) for each in zip(*measured, strict=True))
    return replace(
        result,
        temperature=result.temperature[rows],
        energy=energy,
        magnetization=magnetization,
        staggered_magnetization=None if result.staggered_magnetization is None else staggered,
        field=None if result.field is None else result.field[rows],
        gamma=None if result.gamma is None else result.gamma[rows],
        mean_slice_energy=None if result.mean_slice_energy is None else result.mean_slice_energy[rows],
        family=None if result.family is None else result.family[rows],
        population_free_energy=(None if result.population_free_energy is None else result.population_free_energy[rows]),
        parents=None if result.parents is None else result.parents[rows],
        configurations=None,
        measured={name: values[rows] for name, values in result.measured.items()},
    )
