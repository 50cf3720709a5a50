"""Reduced measurements of a run whose series hold all of them: what runs add up as they go, added up afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Tempered
from spinsim.engine.measuring.correlations import Correlations
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.moves.exchange.ladder import Exchange
from spinsim.engine.protocols import LadderMeasurement
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.observables import Facts
from spinsim.observables.measured import quantities_of
from spinsim.observables.terms import Ladder, reduced_run


def reduced_of(result: Tempered, facts: Facts, by_energy: bool = False) -> ReducedRun:
    """Add up the series of a run: the very bits that it has where its measurements are reduced as they are made.

    Sums over energy come if they are asked for, as series are reweighted directly.

    Raises:
        InputError: where there is no room, and where overlaps cannot be those of the model, as in a damaged file.
    """
    reduced = replace(reduced_run(facts, _ladder(result)), by_energy=by_energy)
    needed = 2.0 * reduced.nbytes + 8.0 * max(result.energy.size, result.overlap.size)  # and a series as numbers
    require(needed, "analysing the run", "measure less often, or run with fewer --replicas")
    for one in reduced.histograms:
        most, series = one.values - 1, getattr(result, one.source)
        if series.min(initial=0) < -most or series.max(initial=0) > most:
            raise InputError(
                f"a value of {one.source} is beyond {most}, the most that the model has: its series are damaged"
            )
    reduction = HostReduction(reduced)
    measurement = _measurements(result)
    for step in range(len(result.energy)):
        reduction.add_numbers(measurement(step))
    return ReducedRun(reduction.reduced, reduction.state(), every(result))


def every(result: Tempered) -> int:
    """Return the sweeps between two measurements, from its series."""
    return int(result.sweep[1] - result.sweep[0] if len(result.sweep) > 1 else result.sweep[0])


def _ladder(result: Tempered) -> Ladder:
    in_time, places = result.in_time, len(result.temperature)
    if in_time is None:
        return Ladder(places)
    return Ladder(places, tuple(map(int, in_time.times)), in_time.gamma, in_time.k_time, in_time.even is not None)


def _measurements(result: Tempered) -> Callable[[int], LadderMeasurement]:
    """Return what makes a measurement of a step of the series."""
    steps, samples, copies, places = result.energy.shape
    series: dict[str, npt.NDArray[np.generic]] = {}
    for one in quantities_of(in_time=result.in_time is not None):
        whole = getattr(result, one.name)
        if len(whole) == steps:
            series[one.field] = np.stack([series[one.field], whole], axis=-1) if one.element else whole
    nothing = np.empty((steps, samples, 0, places), np.int64)
    staggered = series.get("staggered_magnetization", nothing)
    correlations = {name: series.get(name, nothing) for name in Correlations._fields}
    no_trips = np.zeros((samples, copies * places), np.int64)

    def at(step: int) -> LadderMeasurement:
        holder = result.permutation[step].reshape(samples, -1)
        place = (np.argsort(holder, axis=1) % places).astype(np.int32)
        return LadderMeasurement(
            energy=result.energy[step],
            magnetization=result.magnetization[step],
            staggered_magnetization=staggered[step],
            holder=result.permutation[step],
            exchange=Exchange(place, result.attempts, result.accepts, no_trips, no_trips.astype(np.int8)),
            correlations=Correlations(**{name: values[step] for name, values in correlations.items()}),
            spins=_no_spins,
            energy_by_term=result.energy[step][..., None],
        )

    return at


def _no_spins(sample: int, replica: int) -> npt.NDArray[np.int8]:
    raise NotImplementedError  # series have no configurations
