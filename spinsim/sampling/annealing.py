"""Simulated annealing: Metropolis sweeps at a sequence of temperatures.

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220, 671 (1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine.base import Engine, check_run
from spinsim.errors import InputError
from spinsim.grids import geometric
from spinsim.measure import Measurement, measure
from spinsim.sampling.portions import sweeps_a_portion

Schedule = Literal["linear", "geometric"]
SCHEDULES: Final[tuple[Schedule, ...]] = ("linear", "geometric")


@dataclass(frozen=True)
class AnnealFrame:
    """What annealing yields after each temperature.

    Attributes:
        step: Index of the temperature, from 0.
        temperature: In the unit of the couplings.
        measured: Energies and magnetisations at the end of the step.
    """

    step: int
    temperature: float
    measured: Measurement


def temperature_schedule(start: float, stop: float, steps: int, schedule: Schedule) -> npt.NDArray[np.float64]:
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


def annealing(
    engine: Engine,
    temperatures: npt.ArrayLike,
    sweeps: int = 10,
    on_updates: Callable[[int], None] = lambda updates: None,
    pause: Callable[[], bool] = lambda: False,
) -> Iterator[AnnealFrame | None]:
    """Sweep through the temperatures in order and yield a measurement after each.

    Args:
        engine: Replicas in their initial state, or restored to where such a run stood; changed in place.
        temperatures: In order of use, in the unit of the couplings.
        sweeps: Sweeps at each temperature.
        on_updates: Called now and then with the number of spin updates since the last call; first with 0.
        pause: Asked now and then; where it says yes, None is yielded, when the engine may be saved.

    Raises:
        InputError: for bad temperatures or sweep numbers, before the first sweep.
    """
    ladder = check_temperatures(temperatures, engine.model.energy_scale)
    if not isinstance(sweeps, int | np.integer) or sweeps < 1:
        raise InputError(f"{sweeps} sweeps a step cannot be done: give a whole number, at least 1")
    check_run(engine.model, engine.replicas, len(ladder) * sweeps, engine.colours)
    return _anneal(engine, ladder, sweeps, on_updates, pause)


def _anneal(
    engine: Engine,
    ladder: npt.NDArray[np.float64],
    sweeps: int,
    on_updates: Callable[[int], None],
    pause: Callable[[], bool],
) -> Iterator[AnnealFrame | None]:
    updates_a_sweep = engine.model.sites * engine.model.samples * engine.replicas
    portion = sweeps_a_portion(engine)
    first, begun = divmod(engine.half_sweep // engine.colours, sweeps)
    on_updates(0)
    for step in range(first, len(ladder)):
        engine.set_beta(1.0 / ladder[step])
        while begun < sweeps:
            count = min(portion, sweeps - begun)
            engine.sweep(count)
            begun += count
            if begun < sweeps:
                engine.wait()  # reports and pauses are not to run far ahead of a GPU
            on_updates(count * updates_a_sweep)
            if begun < sweeps and pause():
                yield None
        yield AnnealFrame(step, float(ladder[step]), measure(engine))
        begun = 0
        if pause():
            yield None
