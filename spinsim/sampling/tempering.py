"""Parallel tempering: Metropolis sweeps of a ladder of temperatures that replicas exchange.

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

BEHIND: Final = 2  # measurements that are asked for before the first of them is read


@dataclass(frozen=True)
class TemperFrame:
    """A measurement that tempering yields after every few sweeps, replicas sorted by copy and temperature.

    Whatever the measurement and its correlations have is an attribute too: ``frame.energy``, ``frame.link_overlap``,
    ``frame.spins(k, r)`` and so on, as ``LadderMeasurement`` and ``Correlations`` say.

    Attributes:
        step: Number of the measurement, from 0.
        sweep: Sweeps done since thermalisation.
        measurement: All that was measured; without ``correlations`` link overlaps have no pairs and modes no axes.
    """

    step: int
    sweep: int
    measurement: LadderMeasurement

    def __getattr__(self, name: str) -> Any:
        if name == "measurement":  # of a frame that is being copied
            raise AttributeError(name)
        of_copies = self.measurement.correlations
        return getattr(of_copies if name in of_copies._fields else self.measurement, name)


class TemperFrames(NamedTuple):
    """Measurements in succession of a small problem, whose arrays stand one behind the other."""

    first: int  # number of the first measurement
    several: int  # measurements
    every: int  # sweeps between them
    measurement: LadderMeasurement  # with arrays (measurements, samples, ...); exchange and spins are the last one's


@public
@dataclass(frozen=True)
class Times:
    """How long and how often, in sweeps."""

    thermalize: int  # before the first measurement
    sweeps: int  # sweeps of the measured part
    measure_every: int = 10  # between measurements
    swap_every: int = 1  # between attempts to exchange; ``measure_every`` and ``thermalize`` are multiples of it

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
    """Measurements that are added up, and which of them are yielded too."""

    reduction: Reduction | None  # adds them up
    is_yielded: Callable[[int], bool]  # takes the number of a measurement
    together: bool = False  # True to yield several at once where the engine makes them so, in a ``TemperFrames``


Reduce = Callable[[Engine], Adding]  # makes what adds up the measurements of an engine on its ladder


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
        engine: Replicas in their initial state, copies times temperatures of them; changed in place. To go on with
            a run, restore it after this call and before the first frame.
        temperatures: In the unit of the couplings, from the lowest to the highest.
        times: How long and how often.
        copies: Independent ladders of each sample.
        on_updates: Called now and then with the number of spin updates since the last call; first with 0.
        pause: Asked now and then; where it says yes, None is yielded, when the engine may be saved.
        correlations: True to measure link overlaps and modes too.
        compared: Numbers of the measurements whose overlaps are wanted, by default all; of others a CPU saves the time
            of counting them, where correlations are not measured, and ``overlap`` has no pairs.
        magnetization_modes: True if modes of the spins are among the correlations, beside those of overlaps.
        moves: Each is applied after every so many sweeps, thermalisation included, where measurements come before it.
        seed: Seed of the random numbers of moves.
        reduce: Makes what adds measurements up, and says which of them are yielded all the same; arrays of a frame then
            hold until the next one is asked for.

    Raises:
        InputError: for a bad ladder, one that does not fit the engine and measurements that have no room, before the
            first sweep.
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
    """The same of inverse temperatures, from the largest to the smallest, which are used to the bit.

    Where the model has two terms they may be those of each term, (temperatures, 2), in any order in which neighbours
    differ.

    Raises:
        InputError: as ``tempering``, for correlations in time at times that the model does not have, and for products
            of neighbours of a model that has no bonds in space.
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
    """``tempering_in_beta``, which yields several measurements at once where ``reduce`` asks for that."""
    check_run(engine.model, engine.replicas, times.total, engine.colours)
    slices = engine.model.graph.slices
    outside = [time for time in wanted.times if not 0 < time < slices]
    if outside:
        raise InputError(
            f"correlation time {outside[0]} is outside of {engine.model.name}, which has {slices} slices: "
            f"give times from 1 to {slices - 1}"
        )
    if wanted.even and not (wanted.times and len(engine.model.graph.bonds_in_space())):
        raise InputError(
            f"{engine.model.name} has no bonds in space whose products could be correlated in time: leave "
            "even_correlations out"
        )
    between = Moves(moves, seed, times.swap_every)
    engine.set_ladder(beta, copies)
    # the next one and the frame that the caller has are among them; others measure when no frame waits
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
        step, begun = divmod(done - times.thermalize, every)  # of the thermalisation, below 0
        portion = portions.sweeps
        portions.begin()
        to_move = moves.until_next(done, times.total - done)
        count = min(portion, to_move, every - begun if step >= 0 else times.thermalize - done)
        enough = min(most, to_move) // every
        several = min(engine.at_once, enough, times.measurements - step) if step >= 0 == begun else 0
        several = several if energies is wanted else 0  # each of these is asked for what it is to compare
        frames = several  # that they are yielded in
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
            engine.wait()  # reports and pauses are not to run far ahead of a GPU
            portions.end()
        on_updates(count * updates_a_sweep)
        done += count
        moves.apply(engine, done, beta)
        stop = pause()
        behind = 0 if at_once or stop or done == times.total else max(BEHIND, 2 * frames)  # a GPU goes on meanwhile
        while len(waiting) > behind:
            yield waiting.popleft()()
        if stop:
            yield None
