"""Simulated annealing: Metropolis sweeps at a sequence of temperatures, or of transverse fields.

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220, 671 (1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine.choosing import check_run
from spinsim.engine.moves.move import Move, Moves
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import geometric
from spinsim.inputs.texts import count
from spinsim.sampling.measure import BestSlices, InField, Measurement, measure
from spinsim.sampling.population import Population
from spinsim.sampling.portions import OnUpdates, Pause, Portions, ignore, never, updates_a_sweep

Schedule = Literal["linear", "geometric"]
SCHEDULES: Final[tuple[Schedule, ...]] = ("linear", "geometric")


class AnnealFrame(NamedTuple):
    """A measurement of annealing, after each temperature."""

    step: int  # index of the temperature, from 0
    temperature: float  # in the unit of the couplings
    measured: Measurement  # energies and magnetisations at the end of the step
    field: float = 0.0  # uniform field that was added to the model's own; ``measured`` includes its energy
    gamma: float | None = None  # transverse field of a quantum anneal
    mean_slice_energy: npt.NDArray[np.float64] | None = None
    """Mean energy over the slices of each replica, (samples, replicas)."""


@public
def temperature_schedule(start: float, stop: float, steps: int, schedule: str) -> npt.NDArray[np.float64]:
    """Return ``steps`` temperatures from ``start`` to ``stop``, equally spaced in T (linear) or log T (geometric).

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


@public
def annealing(
    engine: Engine | InField | BestSlices,
    temperatures: npt.ArrayLike,
    sweeps: int = 100,
    on_updates: OnUpdates | None = None,
    pause: Pause | None = None,
    fields: npt.ArrayLike | None = None,
    gammas: npt.ArrayLike | None = None,
    population: Population | None = None,
    moves: Sequence[tuple[Move, int]] | None = None,
    seed: int = 1,
) -> Iterator[AnnealFrame | None]:
    """Sweep through the temperatures in order and yield a measurement after each.

    When a measurement is yielded, the engine may already have the next temperature, which is set while a GPU sweeps.

    Args:
        engine: Replicas in their initial state, or restored to a state of such a run; changed in place.
        temperatures: In order of use, in the unit of the couplings.
        sweeps: Sweeps at each temperature.
        on_updates: Called at intervals with the number of spin updates since the last call; first with 0.
        pause: Called at intervals; if it returns True, None is yielded, and the engine may then be saved.
        fields: A uniform field for each temperature, added to the model's own. The engine must be an ``InField``, or
            ``BestSlices`` of one.
        gammas: A transverse field for each temperature. The engine must be ``BestSlices``, which require ``gammas``.
        population: Population of the engine, resampled before each step; in the same state as the engine.
        moves: User-defined moves, each with its interval in sweeps. A move comes before a measurement that is due at
            the same time.
        seed: Seed of the random numbers of moves.

    Raises:
        InputError: for bad temperatures, fields or sweep numbers, before the first sweep.
    """
    ladder = check_temperatures(temperatures, engine.model.energy_scale)
    if not isinstance(sweeps, int | np.integer) or sweeps < 1:
        raise InputError(f"{sweeps} sweeps a step cannot be done: give a whole number, at least 1")
    slices = engine if isinstance(engine, BestSlices) else None
    swept = engine.model if slices is None else slices.engine.model
    check_run(swept, engine.replicas, len(ladder) * sweeps, engine.colours)
    if slices is not None and population is not None:
        raise InputError("a quantum anneal begins at no infinite temperature: its replicas make no population")
    if slices is not None and moves:
        raise InputError("moves change configurations, which slices in time are not: give no moves with gammas")
    if (slices is None) != (gammas is None):
        raise InputError("a transverse field and slices in time go together: give gammas and BestSlices, or neither")
    changing: list[Changing] = []
    if fields is not None:
        in_field = engine if slices is None else slices.engine
        if not isinstance(in_field, InField):
            raise InputError("fields that change take an engine whose field can be set: give an InField")
        values = check_fields(fields, len(ladder)).tolist()
        in_field.check(max(values, key=abs))
        changing.append(Changing("field", cast("Any", engine).set_field, values))
    if slices is not None:
        values = check_fields(cast("npt.ArrayLike", gammas), len(ladder), "gamma").tolist()
        for gamma, temperature in zip(values, ladder.tolist(), strict=True):
            slices.check(gamma, temperature)
        changing.append(Changing("gamma", slices.set_gamma, values))
    steps = _Steps(cast("Engine", engine), ladder, changing)  # ``InField`` and ``BestSlices`` act as engines
    return _anneal(
        steps, sweeps, on_updates or ignore, pause or never, population, Moves(() if moves is None else moves, seed)
    )


def check_fields(fields: npt.ArrayLike, steps: int, name: str = "field") -> npt.NDArray[np.float64]:
    """Return a field for each step as float64 (steps,); messages call it ``name``."""
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


class Changing(NamedTuple):
    """A condition other than the temperature that changes from step to step."""

    name: str  # field of ``AnnealFrame`` that holds it
    set: Callable[[float], None]  # sets it; called before the temperature is set
    values: Sequence[float]  # value at each step


class _Steps:
    """Conditions of each step of an anneal: its temperature, and uniform and transverse fields that change."""

    def __init__(self, engine: Engine, ladder: npt.NDArray[np.float64], changing: Sequence[Changing] = ()) -> None:
        self.engine, self.ladder, self.changing = engine, ladder, changing

    def _change(self, step: int) -> None:
        for one in self.changing:
            one.set(one.values[step])

    def set(self, step: int) -> None:
        self._change(step)
        self.engine.set_beta(1.0 / self.ladder[step])

    def resample(self, population: Population, step: int) -> None:
        """Set the conditions of a step, and resample a population in equilibrium at those of the step before."""
        if step:  # the previous step may have been done before a restart
            self._change(step - 1)
        before = measure(self.engine).energy
        self.set(step)
        after = measure(self.engine).energy if self.changing else before
        population.resample(step, (before / self.ladder[step - 1] if step else 0.0) - after / self.ladder[step])

    def frame(self, step: int) -> AnnealFrame:
        measured, values = measure(self.engine), {one.name: one.values[step] for one in self.changing}
        mean = self.engine.mean_energy.copy() if isinstance(self.engine, BestSlices) else None
        return AnnealFrame(step, float(self.ladder[step]), measured, mean_slice_energy=mean, **values)


def _anneal(
    steps: _Steps, sweeps: int, on_updates: OnUpdates, pause: Pause, population: Population | None, moves: Moves
) -> Iterator[AnnealFrame | None]:
    engine, last = steps.engine, len(steps.ladder) - 1
    updates, portions = updates_a_sweep(engine), Portions(engine)
    first, begun = divmod(engine.half_sweep // engine.colours, sweeps)
    on_updates(0)
    for step in range(first, last + 1):
        if population is not None and not begun:
            steps.resample(population, step)
        elif step == first or steps.changing:  # otherwise it was set ahead
            steps.set(step)
        while begun < sweeps:
            done = step * sweeps + begun
            count = moves.until_next(done, min(portions.sweeps, sweeps - begun))
            if begun + count < sweeps:
                portions.begin()
            engine.sweep(count)
            begun += count
            if begun < sweeps:
                engine.wait()  # so that reports and pauses do not run far ahead of a GPU
                portions.end()
            on_updates(count * updates)
            moves.apply(engine, done + count, 1.0 / steps.ladder[step])
            if begun < sweeps and pause():
                yield None
        if step < last and not steps.changing:
            steps.set(step + 1)  # done while a GPU sweeps
        yield steps.frame(step)
        begun = 0
        if pause():
            yield None
