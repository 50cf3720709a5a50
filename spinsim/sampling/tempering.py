"""Parallel tempering: Metropolis sweeps at a ladder of temperatures that replicas exchange.

Source: K. Hukushima, K. Nemoto, J. Phys. Soc. Jpn. 65, 1604 (1996).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.engine.choosing import check_run
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Quantities
from spinsim.engine.moves.move import Move, Moves
from spinsim.engine.protocols import Engine, LadderMeasurement, Reduction
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.sampling.portions import OnUpdates, Pause, Portions, ignore, never, sweeps_a_portion

BEHIND: Final = 2  # measurements that are requested before the first of them is read


@dataclass(frozen=True)
class TemperFrame:
    """A measurement that tempering yields after every few sweeps, replicas sorted by copy and temperature.

    The fields of ``LadderMeasurement`` and ``Correlations`` are attributes too: ``frame.energy``,
    ``frame.link_overlap``, ``frame.spins(k, r)`` and so on.

    Attributes:
        step: Number of the measurement, from 0.
        sweep: Sweeps done since thermalisation.
        measurement: All measurements; without ``correlations`` link overlaps have no pairs and modes no axes.
    """

    step: int
    sweep: int
    measurement: LadderMeasurement

    def __getattr__(self, name: str) -> Any:
        if name == "measurement":  # while a frame is being copied
            raise AttributeError(name)
        of_copies = self.measurement.correlations
        return getattr(of_copies if name in of_copies._fields else self.measurement, name)


class TemperFrames(NamedTuple):
    """Consecutive measurements of a small problem, stacked along the first axis."""

    first: int  # number of the first measurement
    several: int  # number of measurements
    every: int  # sweeps between measurements
    measurement: LadderMeasurement  # arrays (measurements, samples, ...); exchange and spins belong to the last one


@public
@dataclass(frozen=True)
class Times:
    """Length of a run and its intervals, in sweeps."""

    thermalize: int  # sweeps before the first measurement
    sweeps: int  # sweeps of the measured part
    measure_every: int = 10  # sweeps between measurements
    swap_every: int = 1  # sweeps between exchange attempts; divides ``measure_every`` and ``thermalize``

    def __post_init__(self) -> None:
        least = {"thermalize": 0, "sweeps": 1, "measure_every": 1, "swap_every": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < low:
                raise InputError(f"{name} {value!r} is not allowed: give a whole number, at least {low}")
        for name, unit in (("thermalize", "swap_every"), ("measure_every", "swap_every"), ("sweeps", "measure_every")):
            value, divisor = getattr(self, name), getattr(self, unit)
            if value % divisor:
                raise InputError(f"{name} {value} is not a multiple of {unit} {divisor}: choose one that is")

    @property
    def measurements(self) -> int:
        return self.sweeps // self.measure_every

    @property
    def total(self) -> int:
        return self.thermalize + self.sweeps


class Adding(NamedTuple):
    """How measurements are added up, and which of them are also yielded."""

    reduction: Reduction | None  # adds them up
    is_yielded: Callable[[int], bool]  # takes the number of a measurement
    together: bool = False  # True to yield several as ``TemperFrames`` if the engine makes them together


Reduce = Callable[[Engine], Adding]  # makes the object that adds up the measurements of an engine on its ladder


@public
def tempering(
    engine: Engine,
    temperatures: npt.ArrayLike,
    times: Times,
    copies: int = 2,
    on_updates: OnUpdates | None = None,
    pause: Pause | None = None,
    correlations: bool = True,
    compared: Container[int] | None = None,
    magnetization_modes: bool = True,
    moves: Sequence[tuple[Move, int]] = (),
    seed: int = 1,
    reduce: Reduce | None = None,
) -> Iterator[TemperFrame | None]:
    """Thermalise, then yield a measurement after every ``times.measure_every`` sweeps.

    Args:
        engine: Replicas in their initial state, copies times temperatures of them; changed in place. To continue a
            run, restore the engine after this call and before the first frame.
        temperatures: In the unit of the couplings, from the lowest to the highest.
        times: Length and intervals of the run.
        copies: Independent ladders of each sample.
        on_updates: Called at intervals with the number of spin updates since the last call; first with 0.
        pause: Called at intervals; if it returns True, None is yielded, and the engine may then be saved.
        correlations: True to measure link overlaps and modes too.
        compared: Numbers of the measurements with overlaps, by default all. Without correlations, a CPU saves the
            time for the other overlaps, and their ``overlap`` has no pairs.
        magnetization_modes: True to include modes of the spins in the correlations, besides those of overlaps.
        moves: Moves, each with its interval in sweeps, also during thermalisation. A measurement that is due at the
            same time comes before a move.
        seed: Seed of the random numbers of moves.
        reduce: Makes the object that adds up measurements and selects those that are yielded; arrays of a frame then
            remain valid until the next frame is requested.

    Raises:
        InputError: for a bad ladder, a ladder that does not fit the engine, and measurements that do not fit in
            memory, before the first sweep.
    """
    ladder = check_temperatures(temperatures, engine.model.energy_scale)
    wanted = Quantities(correlations, magnetization_modes=magnetization_modes)
    how = on_updates, pause, wanted, compared, moves, seed, reduce
    return tempering_in_beta(engine, 1.0 / ladder, times, copies, *how)


@public
def tempering_in_beta(
    engine: Engine,
    beta: npt.NDArray[np.float64],
    times: Times,
    copies: int = 2,
    on_updates: OnUpdates | None = None,
    pause: Pause | None = None,
    wanted: Quantities = WITHOUT_TIMES,
    compared: Container[int] | None = None,
    moves: Sequence[tuple[Move, int]] = (),
    seed: int = 1,
    reduce: Reduce | None = None,
) -> Iterator[TemperFrame | None]:
    """Temper like ``tempering``, at inverse temperatures from the largest to the smallest, which are used to the bit.

    If the model has two terms, inverse temperatures may be given for each term, (temperatures, 2), in any order in
    which neighbours differ.

    Raises:
        InputError: as ``tempering``, for correlations in time at times that the model lacks, and for products of
            neighbours of a model without bonds in space.
    """
    how = on_updates, pause, wanted, compared, moves, seed, reduce
    return cast("Iterator[TemperFrame | None]", frames_in_beta(engine, beta, times, copies, *how))


def frames_in_beta(
    engine: Engine,
    beta: npt.NDArray[np.float64],
    times: Times,
    copies: int,
    on_updates: OnUpdates | None,
    pause: Pause | None,
    wanted: Quantities,
    compared: Container[int] | None,
    moves: Sequence[tuple[Move, int]],
    seed: int,
    reduce: Reduce | None,
) -> Iterator[TemperFrame | TemperFrames | None]:
    """Temper like ``tempering_in_beta``, but yield several measurements at once if ``reduce`` asks for that."""
    check_run(engine.model, engine.replicas, times.total, engine.colours)
    slices = engine.model.graph.slices
    outside = [time for time in wanted.times if not 0 < time < slices]
    if outside:
        raise InputError(
            f"correlation time {outside[0]} is outside of {engine.model.name}, which has {slices} slices: "
            f"give times from 1 to {slices - 1}"
        )
    if wanted.even and not (wanted.times and len(engine.model.graph.bonds_in_space())):
        raise InputError(f"{engine.model.name} has no bonds in space to correlate in time: leave even_correlations out")
    between = Moves(moves, seed, times.swap_every)
    engine.set_ladder(beta, copies)
    # this includes the next measurement and the frame that the caller holds; other engines measure when no frame waits
    engine.prepare_measurements(1 if _measures_when_asked(engine) else min(BEHIND + 2, times.measurements), wanted)
    adding = None if reduce is None else reduce(engine)
    return _temper(engine, beta, times, on_updates, pause, wanted, compared, between, adding)


def _measures_when_asked(engine: Engine) -> bool:
    return engine.device_name == "cpu" and engine.devices == 1


def _frame(number: int, every: int, later: Callable[[], LadderMeasurement]) -> TemperFrame:
    return TemperFrame(number, (number + 1) * every, later())


def _frames(first: int, several: int, every: int, later: Callable[[], LadderMeasurement]) -> TemperFrames:
    return TemperFrames(first, several, every, later())


def _temper(
    engine: Engine,
    beta: npt.NDArray[np.float64],
    times: Times,
    on_updates: OnUpdates | None,
    pause: Pause | None,
    wanted: Quantities,
    compared: Container[int] | None,
    moves: Moves,
    adding: Adding | None,
) -> Iterator[TemperFrame | TemperFrames | None]:
    on_cpu = engine.device_name == "cpu"
    energies = wanted._replace(overlaps=False) if on_cpu and compared is not None else wanted
    updates_a_sweep = engine.model.sites * engine.model.samples * engine.replicas
    portions, most = Portions(engine, times.swap_every), sweeps_a_portion(engine, times.swap_every)
    every = times.measure_every
    at_once = _measures_when_asked(engine)
    waiting: deque[Callable[[], TemperFrame | TemperFrames]] = deque()
    on_updates, pause = on_updates or ignore, pause or never
    reduction, is_yielded, together = adding or Adding(None, lambda number: True)
    on_updates(0)
    done = engine.half_sweep // engine.colours
    while done < times.total:
        step, begun = divmod(done - times.thermalize, every)  # ``step`` is below 0 during thermalisation
        portion = portions.sweeps
        portions.begin()
        to_move = moves.until_next(done, times.total - done)
        count = min(portion, to_move, every - begun if step >= 0 else times.thermalize - done)
        enough = min(most, to_move) // every
        several = min(engine.at_once, enough, times.measurements - step) if step >= 0 == begun else 0
        several = several if energies is wanted else 0  # measurements with different overlaps are requested one by one
        frames = several  # number of frames that hold them
        if several > 1:
            count = several * every
            rounds = every // times.swap_every
            how = several, rounds, times.swap_every, wanted, reduction
            of_all = engine.temper_together(*how) if together else None
            if of_all is not None:
                waiting.append(partial(_frames, step, several, every, of_all))
                frames = 1
            else:
                fetched = [is_yielded(number) for number in range(step, step + several)]
                asked = engine.temper_measured(*how, fetched)
                waiting.extend(partial(_frame, k, every, later) for k, later in enumerate(asked, step) if later)
        else:
            engine.temper(count // times.swap_every, times.swap_every)
            if step >= 0 and begun + count == every:
                own = wanted if compared is None or step in compared else energies
                later = engine.begin_measurement(own, reduction, is_yielded(step))
                if later is not None:
                    waiting.append(partial(_frame, step, every, later))
        if count == portion:
            engine.wait()  # so that reports and pauses do not run far ahead of a GPU
            portions.end()
        on_updates(count * updates_a_sweep)
        done += count
        moves.apply(engine, done, beta)
        stop = pause()
        behind = 0 if at_once or stop or done == times.total else max(BEHIND, 2 * frames)  # a GPU continues meanwhile
        while len(waiting) > behind:
            yield waiting.popleft()()
        if stop:
            yield None
