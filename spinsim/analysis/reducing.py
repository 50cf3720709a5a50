"""Reduced measurements of a run whose series hold all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.from_series import SeriesSource
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Tempered
from spinsim.engine.measuring.correlations import Correlations
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.moves.exchange.ladder import Exchange
from spinsim.engine.protocols import LadderMeasurement
from spinsim.observables.terms import Ladder, reduced_run

_IN_TIME: Final = {
    "in_time": "correlation_in_time",
    "even_in_time": "even_correlation_in_time",
    "link_overlap_in_space": "link_overlap_in_space",
}
"""Series of a quantum run by the names of what measurements have."""
_POWERS: Final = {
    "magnetization_powers": ("slice_magnetization_squared", "slice_magnetization_fourth"),
    "overlap_powers": ("slice_overlap_squared", "slice_overlap_fourth"),
}
"""Likewise of two series that measurements have along a last axis."""


def reduced_of(result: Tempered, by_energy: bool = False) -> ReducedRun:
    """Add up the series of a run: the very bits that it has where its measurements are reduced as they are made.

    Sums over energy come if they are asked for, as series are reweighted directly.
    """
    source = SeriesSource(result)
    reduction = HostReduction(replace(reduced_run(source.facts, _ladder(result)), by_energy=by_energy))
    measurement = _measurements(result)
    for step in range(source.measurements):
        reduction.add_numbers(measurement(step))
    every = source.every if source.measurements > 1 else int(result.sweep[0])
    return ReducedRun(reduction.reduced, reduction.state(), every)


def _ladder(result: Tempered) -> Ladder:
    in_time, places = result.in_time, len(result.temperature)
    if in_time is None:
        return Ladder(places)
    return Ladder(places, tuple(map(int, in_time.times)), in_time.gamma, in_time.k_time, in_time.even is not None)


def _measurements(result: Tempered) -> Callable[[int], LadderMeasurement]:
    """Return what makes a measurement of a step of the series."""
    steps, samples, copies, places = result.energy.shape
    nothing = np.empty((steps, samples, 0, places), np.int64)
    series: dict[str, npt.NDArray[np.generic]] = dict.fromkeys(Correlations._fields, nothing)
    own = ("staggered_magnetization", "overlap", "link_overlap", "overlap_mode", "magnetization_mode")
    series |= {name: whole for name in own if len(whole := getattr(result, name)) == steps}
    staggered = series.pop("staggered_magnetization", nothing)
    if result.in_time is not None:
        series |= {name: getattr(result, own) for name, own in _IN_TIME.items()}
        series |= {name: np.stack([getattr(result, one) for one in both], axis=-1) for name, both in _POWERS.items()}
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
            correlations=Correlations(**{name: values[step] for name, values in series.items()}),
            spins=_no_spins,
            energy_by_term=result.energy[step][..., None],
        )

    return at


def _no_spins(sample: int, replica: int) -> npt.NDArray[np.int8]:
    raise NotImplementedError  # nothing that is reduced takes configurations
