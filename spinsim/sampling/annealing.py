"""Simulated annealing: Metropolis sweeps at a sequence of temperatures, or of transverse fields.

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220, 671 (1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine.choosing import check_run, update_of
from spinsim.engine.protocols import Counting, Sweeps
from spinsim.errors import InputError
from spinsim.inputs.grids import geometric
from spinsim.inputs.shared import T_START, T_STOP
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.sampling.in_field import BestSlices, InField
from spinsim.sampling.measure import Measurement, measure
from spinsim.sampling.population import Population
from spinsim.sampling.portions import Portions, ignore, never, updates_a_sweep

Schedule = Literal["linear", "geometric"]
SCHEDULES: Final[tuple[Schedule, ...]] = ("linear", "geometric")
_OF_LARGEST: Final = 1 / 4
_OF_SMALLEST: Final = 1 / 3
# Where SK freezes, in the same unit: above there are more flips, which take most of the time of dense models.
_DENSE_START: Final = 1.0
_LOWEST: Final = 1e-4  # of the root mean square field of all sites: below are roundings


class AnnealFrame(NamedTuple):
    """A measurement of annealing, after each temperature.

    Attributes:
        step: Index of the temperature, from 0.
        temperature: In the unit of the couplings.
        measured: Energies and magnetisations at the end of the step.
        field: Uniform field that was added to the model's own; its energy is among those measured.
        gamma: Transverse field of a quantum anneal.
        mean_slice_energy: Its mean energy of the slices of each replica, (samples, replicas).
    """

    step: int
    temperature: float
    measured: Measurement
    field: float = 0.0
    gamma: float | None = None
    mean_slice_energy: npt.NDArray[np.float64] | None = None


def temperature_schedule(start: float, stop: float, steps: int, schedule: str) -> npt.NDArray[np.float64]:
    """``steps`` temperatures from ``start`` to ``stop``, equally spaced in T (linear) or in log T (geometric).

    Raises:
        InputError: for temperatures that are not positive, fewer than one step or an unknown schedule.
    """
    ends = check_temperatures([start, stop])
    if steps < 1:
        raise InputError(f"{steps} steps are too few: give at least 1")
    if schedule not in SCHEDULES:
        raise InputError(f"schedule {schedule!r} is unknown: choose linear or geometric")
    if schedule == "linear" or steps == 1:
        return np.linspace(ends[0], ends[1], steps)
    return geometric(ends[0], ends[1], steps)


def automatic_temperatures(model: Ising, start: float | None = None) -> tuple[float, float]:
    """Where an anneal begins and ends that is not told, from the fields of the problem.

    On a lattice multiples of the root mean square local field of all sites. On other graphs, whose sites may differ
    widely, the first temperature is at least a quarter of the largest root mean square field of a site, and the last at
    most a third of the smallest that is not 0, where a flip against it succeeds with probability exp(-6).

    ``start`` is the first temperature as a multiple of the field of all sites, by default ``T_START``, of dense models
    ``_DENSE_START``.
    """
    scale, stop = model.energy_scale or 1.0, T_STOP
    if start is None:
        start = _DENSE_START if update_of(model).one_by_one else T_START
    if model.lattice is None:
        squares, bonds = (
            np.square(rows / scale).mean(axis=0) if len(rows) > 1 else np.square(rows[0] / scale)
            for rows in (model.fields, model.couplings)
        )
        for end in (0, 1):
            squares = squares + np.bincount(model.graph.edges[:, end], bonds, model.sites)
        sizes = np.sqrt(squares[squares > 0])
        start = max(start, _OF_LARGEST * float(sizes.max(initial=0.0)))
        stop = max(_LOWEST, min(stop, _OF_SMALLEST * float(sizes.min(initial=np.inf))))
    return start * scale, stop * scale


class Annealed(Sweeps, Counting, Protocol):
    """The engine of an anneal."""


def annealing(
    engine: Annealed | InField | BestSlices,
    temperatures: npt.ArrayLike,
    sweeps: int = 100,
    on_updates: Callable[[int], None] | None = None,
    pause: Callable[[], bool] | None = None,
    fields: npt.ArrayLike | None = None,
    gammas: npt.ArrayLike | None = None,
    population: Population | None = None,
) -> Iterator[AnnealFrame | None]:
    """Sweep through the temperatures in order and yield a measurement after each.

    When a measurement is yielded the engine may have the next temperature already, which is set while a GPU sweeps.

    Args:
        engine: Replicas in their initial state, or restored to where such a run stood; changed in place.
        temperatures: In order of use, in the unit of the couplings.
        sweeps: Sweeps at each temperature.
        on_updates: Called now and then with the number of spin updates since the last call; first with 0.
        pause: Asked now and then; where it says yes, None is yielded, when the engine may be saved.
        fields: A uniform field for each temperature, added to the model's own; it takes an ``InField`` for an engine.
        gammas: A transverse field for each temperature; it takes ``BestSlices`` for an engine, and these take it.
        population: Of the engine, which is resampled before each step; where such a run stood, if the engine does.

    Raises:
        InputError: for bad temperatures, fields or sweep numbers, before the first sweep.
    """
    ladder = check_temperatures(temperatures, engine.model.energy_scale)
    if not isinstance(sweeps, int | np.integer) or sweeps < 1:
        raise InputError(f"{sweeps} sweeps a step cannot be done: give a whole number, at least 1")
    swept = engine.engine.model if isinstance(engine, BestSlices) else engine.model
    check_run(swept, engine.replicas, len(ladder) * sweeps, engine.colours)
    acting = cast("Annealed", engine)  # the others do what one does
    if isinstance(engine, BestSlices):
        if population is not None:
            raise InputError("a quantum anneal begins at no infinite temperature: its replicas make no population")
        if gammas is None or fields is not None:
            raise InputError("slices in time are annealed in a transverse field alone: give gammas and no fields")
        transverse = check_fields(gammas, len(ladder), "gamma")
        for gamma, temperature in zip(transverse.tolist(), ladder.tolist(), strict=True):
            engine.check(gamma, temperature)
        return _anneal(acting, transverse, ladder, sweeps, on_updates, pause, None)
    if gammas is not None:
        raise InputError("a transverse field takes an engine of slices in time: give BestSlices")
    if fields is None:
        return _anneal(acting, np.zeros(len(ladder)), ladder, sweeps, on_updates, pause, population)
    if not isinstance(engine, InField):
        raise InputError("fields that change take an engine whose field can be set: give an InField")
    series = check_fields(fields, len(ladder))
    engine.check(float(series[np.abs(series).argmax()]))
    return _anneal(acting, series, ladder, sweeps, on_updates, pause, population)


def check_fields(fields: npt.ArrayLike, steps: int, name: str = "field") -> npt.NDArray[np.float64]:
    """Returns a field for each step as float64 (steps,), which a refusal calls by its name."""
    try:
        values = np.atleast_1d(np.asarray(fields, np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {fields!r} cannot be read as numbers: give a list of floats") from error
    if values.ndim > 1:
        raise InputError(f"{name} is an array of {values.ndim} axes: give a list of numbers, one for each temperature")
    if len(values) != steps:
        numbers = count(values.size, "number")
        raise InputError(f"{name} has {numbers} for {count(steps, 'temperature')}: give one for each")
    bad = values[~np.isfinite(values)]
    if bad.size:
        raise InputError(f"{name} {bad[0]} is not finite: give numbers such as 0.5")
    return values


def _anneal(
    engine: Annealed,
    fields: npt.NDArray[np.float64],
    ladder: npt.NDArray[np.float64],
    sweeps: int,
    on_updates: Callable[[int], None] | None,
    pause: Callable[[], bool] | None,
    population: Population | None,
) -> Iterator[AnnealFrame | None]:
    updates, portions = updates_a_sweep(engine), Portions(engine)
    first, begun = divmod(engine.half_sweep // engine.colours, sweeps)
    in_turn = isinstance(engine, InField | BestSlices)  # whose field comes first
    on_updates, pause = on_updates or ignore, pause or never
    on_updates(0)
    if isinstance(engine, InField) and first and not begun:
        engine.set_field(float(fields[first - 1]))  # a population is weighted by energies in the field before
    for step in range(first, len(ladder)):
        if population is not None and not begun:
            before = measure(engine).energy
        if isinstance(engine, InField):
            engine.set_field(float(fields[step]))
        elif isinstance(engine, BestSlices):
            engine.set_gamma(float(fields[step]))
        if population is not None and not begun:
            after = measure(engine).energy if isinstance(engine, InField) else before
            population.resample(step, (before / ladder[step - 1] if step else 0.0) - after / ladder[step])
        if step == first or in_turn:
            engine.set_beta(1.0 / ladder[step])
        while begun < sweeps:
            count = min(portions.sweeps, sweeps - begun)
            if begun + count < sweeps:
                portions.begin()
            engine.sweep(count)
            begun += count
            if begun < sweeps:
                engine.wait()  # reports and pauses are not to run far ahead of a GPU
                portions.end()
            on_updates(count * updates)
            if begun < sweeps and pause():
                yield None
        if step + 1 < len(ladder) and not in_turn:
            engine.set_beta(1.0 / ladder[step + 1])  # while a GPU sweeps
        yield _frame(engine, step, float(ladder[step]), float(fields[step]))
        begun = 0
        if pause():
            yield None


def _frame(engine: Annealed, step: int, temperature: float, field: float) -> AnnealFrame:
    """Returns what is measured at the end of a step in a field, a uniform one or a transverse one."""
    measured = measure(engine)
    if isinstance(engine, BestSlices):
        return AnnealFrame(step, temperature, measured, gamma=field, mean_slice_energy=engine.mean_energy.copy())
    return AnnealFrame(step, temperature, measured, field)
