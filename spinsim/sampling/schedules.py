"""Annealing of independent reads through a schedule of inverse temperatures, with an optional time limit.

The lowest state of each read is kept where energies are evaluated: ``LOOKS`` times, evenly spaced, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine import Dynamics, create_engine, resolve_device
from spinsim.engine.moves.metropolis.by_replica import Annealer, suits
from spinsim.engine.protocols import Engine
from spinsim.machine.compiled import seconds_without_compiling
from spinsim.model.ising import Ising
from spinsim.sampling.measure import BestOfEach, measure, present_configurations
from spinsim.sampling.portions import Portions, sweeps_a_portion

LOOKS: Final = 32
_WAITED: Final = 2 / 3  # fraction of the time that is left when estimates are first trusted
_MISSING: Final = 3  # until then, the schedule is kept if it needs at most this multiple of the sweeps that fit
_PROBE: Final = 1 / 50  # fraction of the time for the unchanged schedule, to measure how fast sweeps are
_OF_REST: Final = 8  # inverse fraction of the fitting sweeps that are done before their number is estimated again
_USED: Final = 0.95  # fraction of the time left; the rest is for later work
_GROWTH: Final = 4

Betas = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class EngineReads:
    """Reads of one problem on an engine of any kind. Each read is a replica, whose lowest state is kept."""

    def __init__(self, engine: Engine) -> None:
        self.model, self.replicas = engine.model, engine.replicas
        self.device_name, self.devices = engine.device_name, engine.devices
        self._engine, self._best = engine, BestOfEach(engine)

    def anneal(self, betas: Betas, sweeps: Counts, looks: Marks) -> None:
        """Sweep at each inverse temperature in turn, and evaluate energies after the steps that ``looks`` marks."""
        for beta, count, marked in zip(betas.tolist(), sweeps.tolist(), looks.tolist(), strict=True):
            self._engine.set_beta(beta)
            self._engine.sweep(count)
            if marked:
                self.look()
        self._engine.wait()

    def look(self) -> None:
        self._best.update(measure(self._engine).energy, self._engine)

    def states(self) -> npt.NDArray[np.int8]:
        """Lowest configurations among those whose energies were evaluated, +1 and -1, (reads, sites)."""
        return self._best.spins(0)

    def present(self) -> npt.NDArray[np.int8]:
        """Present configurations, +1 and -1, (reads, sites)."""
        return present_configurations(self._engine)(0)


Reads = EngineReads | Annealer


def reads_of(
    model: Ising,
    replicas: int,
    dynamics: Dynamics,
    device: str,
    threads: int | None,
    start: npt.ArrayLike | None,
    sweeps: float,
) -> Reads:
    """Return reads of a problem on a device, in the form that is fastest for ``sweeps`` at each temperature.

    Their bits do not depend on the form.
    """
    if resolve_device(device) == "cpu" and suits(model, replicas, sweeps):
        return Annealer(model, replicas, dynamics, threads, start)
    return EngineReads(create_engine(model, replicas, dynamics, device, threads, start))


class Schedule:
    """Inverse temperatures in order of use, with the sweeps at each, above 0; ``total`` is their sum.

    Energies are evaluated ``looks`` times, evenly spaced.
    """

    def __init__(self, betas: Betas, sweeps: Counts, looks: int = LOOKS) -> None:
        self.betas, self._sweeps, self._ends = betas, sweeps, np.cumsum(sweeps)
        self._begins = self._ends - sweeps
        self.total, self._marks = int(sweeps.sum()), _marks(len(betas), looks)

    def end_of_step(self, place: int) -> int:
        return int(self._ends[np.searchsorted(self._ends, place, "right")])

    def between(self, first: int, stop: int) -> tuple[Betas, Counts, Marks]:
        """Return the arguments of ``EngineReads.anneal`` for the sweeps from ``first`` to before ``stop``."""
        if not first and stop == self.total:
            return self.betas, self._sweeps, self._marks
        earliest, latest = np.searchsorted(self._ends, (first, stop - 1), "right").tolist()
        steps = slice(earliest, latest + 1)
        ends = self._ends[steps]
        counts = np.minimum(ends, stop) - np.maximum(self._begins[steps], first)
        return self.betas[steps], counts, self._marks[steps] & (ends <= stop)

    def squeezed(self, first: int, fitting: int, count: int) -> tuple[int, tuple[Betas, Counts, Marks]]:
        """Return the arguments for the first ``count`` sweeps, with the rest from ``first`` on thinned to ``fitting``.

        The sweeps are chosen at equal distances, the last one at the end. The number of the sweep that follows them is
        returned first. Energies are evaluated after the last.
        """
        rest = self.total - first
        places = first + np.floor(np.arange(1, count + 1) * (rest / fitting)).astype(np.int64) - 1
        places = np.clip(places, first, self.total - 1)
        if count == fitting:
            places[-1] = self.total - 1
        steps, counts = np.unique(np.searchsorted(self._ends, places, "right"), return_counts=True)
        looks = np.zeros(len(steps), np.bool_)
        looks[-1] = True
        return int(places[-1]) + 1, (self.betas[steps], counts, looks)


@lru_cache(maxsize=32)
def _marks(steps: int, looks: int) -> Marks:
    marks = np.zeros(steps, np.bool_)
    marks[[step - 1 for step in {round(steps * look / looks) for look in range(1, looks + 1)} if step]] = True
    return marks


class Done(NamedTuple):
    """Number of sweeps of each read, and whether the caller stopped the run."""

    sweeps: int
    interrupted: bool


NOTHING: Final = Done(0, False)


def anneal_reads(reads: Reads, schedule: Schedule, stop: Callable[[], bool] | None, end: float) -> Done:
    """Take reads through a schedule, as far as the time allows.

    ``stop`` is called at least after each inverse temperature; if it returns True, the run ends. ``end`` is the end of
    the run on the clock ``seconds_without_compiling``, or infinite. A schedule that takes longer is thinned to fewer
    sweeps, evenly chosen from all of it.
    """
    place, done = 0, 0
    pace = _Pace(reads, end)
    while place < schedule.total:
        fitting = pace.fitting(schedule.total - place)
        count = pace.portion(fitting)
        if fitting == schedule.total - place:
            following = place + count if stop is None else min(place + count, schedule.end_of_step(place))
            work = schedule.between(place, following)
        else:
            following, work = schedule.squeezed(place, fitting, 1 if stop is not None else count)
        pace.begin()
        reads.anneal(*work)
        swept = int(work[1].sum())
        pace.end(swept)
        place, done = following, done + swept
        if stop is not None and stop():
            reads.look()
            return Done(done, True)
    if not schedule.total:
        reads.look()
    return Done(done, False)


class _Pace:
    """Estimate of the sweeps that fit the time left until ``end``, and of those in one call."""

    def __init__(self, reads: Reads, end: float) -> None:
        self._end, self._limited = end, end < np.inf
        self._portions, self._most = Portions(reads), sweeps_a_portion(reads)
        self._probe = max(0.0, end - seconds_without_compiling()) * _PROBE
        self._began = self._seconds = 0.0
        self._sweeps, self._count, self._known = 0.0, 1, False
        self._squeezed, self._soon = False, _WAITED * self._probe / _PROBE  # on the clock

    def fitting(self, rest: int) -> int:
        """Return how many of the remaining sweeps fit, at least one; all of them until that is known.

        Sweeps become faster as replicas cool. If in the first third of the time not much is missing, all are tried.
        """
        if not self._limited:
            return rest
        left = max(0.0, self._end - seconds_without_compiling())
        if left and not self._known:
            return rest
        fitting = max(1, min(rest, int(self._sweeps / max(self._seconds, 1e-9) * left * _USED)))
        if fitting < rest and not self._squeezed:
            if left > self._soon and _MISSING * fitting >= rest:
                return rest
            self._squeezed = True
        return fitting

    def portion(self, fitting: int) -> int:
        if not self._limited:
            return min(self._portions.sweeps, fitting)
        few = max(1, fitting // _OF_REST) if self._known else fitting
        return min(few, self._count, self._most)

    def begin(self) -> None:
        self._portions.begin()
        self._began = seconds_without_compiling()

    def end(self, sweeps: int) -> None:
        """Record the duration of a portion of ``sweeps``; earlier portions count with half their weight."""
        self._portions.end()
        took = seconds_without_compiling() - self._began
        kept = 0.5 if self._known else 1.0
        self._seconds, self._sweeps = kept * self._seconds + took, kept * self._sweeps + sweeps
        self._count, self._known = _GROWTH * sweeps, self._known or self._seconds >= self._probe
