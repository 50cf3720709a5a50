"""Runs on a ladder of temperatures, or of points in space and time: plan, run and recount for both kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.given import set_spins
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.moves.houdayer import usual_every
from spinsim.engine.moves.move import OWN_MOVES, moves_of_run
from spinsim.engine.protocols import present_measurement
from spinsim.errors import InputError
from spinsim.inputs.texts import count, interval
from spinsim.jobs.ladder.result import (
    EXCHANGES,
    LOCAL,
    LOCAL_SUMS,
    TEMPERING,
    Places,
    contents_of_run,
    coordinates_of,
    ladder_in,
    placement_of,
    reduced_of_run,
)
from spinsim.machine.memory import require
from spinsim.model.ising import Ising, repeated
from spinsim.observables.quantities import Choice, Quantity, quantities_of
from spinsim.record import Record
from spinsim.result import result_of
from spinsim.run.execute import FileRow, FileRows, ReplicaRun, Run
from spinsim.run.own_observables import OwnObservables, OwnSums, functions_of
from spinsim.run.plan import AnyConfig, Plan, Saving, Watch, dynamics_of
from spinsim.run.recording import Recording
from spinsim.run.sums import Keeping, MeasurementSums, keeping_in, keeping_of, longer, sums_group, with_names
from spinsim.sampling import TemperFrame, place
from spinsim.sampling.placement import Placement
from spinsim.sampling.tempering import TemperFrames, frames_in_beta
from spinsim.saved import saved_of
from spinsim.settings.shared import AUTO
from spinsim.store.contents import MEASUREMENTS, REDUCED, Arrays
from spinsim.store.files import CONFIGURATIONS

_COPIES: Final = 4  # in memory: the sums, the increments of a measurement, a checkpoint being written


class LocalSums:
    """Sums of squares for local susceptibilities, replicas sorted by copy and point."""

    def __init__(self, engine: Engine, copies: int, places: int) -> None:
        model = engine.model
        if model.fields.any():
            raise InputError(
                f"local susceptibilities of {model.name}, which is in a field, would hold the square of each spin's "
                "average: leave local_susceptibility out"
            )
        shape = model.samples, copies, places, model.sites // model.graph.slices
        require(_COPIES * 8 * int(np.prod(shape)), "sums for local susceptibilities", "take fewer samples or copies")
        self._squares, self._measurements = engine.local_squares(), np.zeros(model.samples, np.int64)

    def add(self, frame: TemperFrame) -> None:
        self._squares.add(frame.spins, frame.holder)
        self._measurements += 1

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of the sums by path."""
        return dict(zip(LOCAL_SUMS.values(), (self._squares.sums(), self._measurements.copy()), strict=True))

    def restore(self, saved: Arrays) -> None:
        squares, self._measurements[...] = (saved[path] for path in LOCAL_SUMS.values())
        self._squares.set_sums(squares)


def with_usual_moves(config: AnyConfig, model: Ising, copies: int) -> AnyConfig:
    """Return a configuration with Houdayer moves added, if ``houdayer`` is ``auto`` and they pay."""
    t = config.of_job
    if t.houdayer != AUTO:
        return config
    every = usual_every(model, getattr(t, "searches", False)) if copies > 1 else None
    if every is None or "houdayer:" in (t.moves or ""):
        return config
    named = f"houdayer:{-(-every // t.swap_every) * t.swap_every}"
    return replace(config, **{config.job: replace(t, moves=f"{t.moves},{named}" if t.moves else named)})


def moves_in_words(moves: str | None, asked: str | None) -> str:
    """Return the moves between sweeps in words after a comma; empty if there are none and none were requested."""
    parts = [one.partition(":") for one in moves.split(",")] if moves else []
    words = [f"{name.title() if name in OWN_MOVES else name} moves {interval(int(n), 'sweep')}" for name, _, n in parts]
    if asked == AUTO and "houdayer:" not in (moves or ""):
        words.append("no Houdayer moves, as they would not pay")
    return "".join(f", {one}" for one in words)


class LadderPlan(Plan[AnyConfig]):
    """A run on a ladder that is ready to begin.

    The settings of its job have ``times``, ``to_place`` (None for a given ladder), ``points`` (the given ladder),
    ``points_of`` (points of placed values), ``measure``, and ``places``, the number of places as far as the
    configuration determines it.
    """

    rows_in_words = MEASUREMENTS, "measure less often"

    @property
    def wanted(self) -> Quantities:
        raise NotImplementedError

    def ladder(
        self, saving: Saving, watch: Watch, stored: Record | None
    ) -> tuple[Places, Placement | None, Keeping | None]:
        """Return the ladder, its placement if a pre-run places it, and the rows that an already begun record keeps."""
        t, run, placement, kept = self.of_job, self.config.run, None, None
        ladder: Places

        def couplings_at(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            placed = t.points_of(values)
            placed.check(self.model)
            return np.asarray(placed.couplings)

        if stored is not None:
            ladder, placement, kept = ladder_in(stored, self.model), placement_of(stored), keeping_in(stored)
        elif t.to_place is None:
            ladder = t.points
        else:
            dynamics = dynamics_of(self, t.start, t.zero_acceptance)
            how = dynamics, self.device, run.threads, watch.on_updates, watch.on_stage, lambda: saving.asked_to_stop
            values, placement = place(self.model, t.to_place, *how, couplings_at)
            ladder = t.points_of(values)
        ladder.check(self.model)
        return ladder, placement, kept

    def engine_on(self, ladder: Places, seed: int | None = None, groups: int = 1) -> Engine:
        run, t, start = self.config.run, self.of_job, self.start
        if start is not None and len(start) > 1:
            start = np.tile(start, (groups, 1, 1))
        dynamics = dynamics_of(self, t.start, t.zero_acceptance)
        model = self.model.once(repeated, groups) if groups > 1 else self.model
        dynamics = dynamics if seed is None else replace(dynamics, seed=seed)
        how = run.number_of_replicas * len(ladder), dynamics, self.device, run.threads, start
        return create_engine(model, *how, slabs=False, round_sweeps=self.round_sweeps)

    @property
    def choice(self) -> Choice:
        in_space = not self.wanted.times
        return Choice(self.config.run.number_of_replicas, self.wanted, in_space and self.model.is_bipartite)

    def keeping(self, contents: Record, stored: Keeping | None) -> Keeping:
        t, rows = self.of_job, self.rows
        if stored is None:
            return keeping_of(contents, rows, t.series, t.series_limit, self.save_every)
        return longer(stored, with_names(contents, stored.names), rows, t.series_limit, self.save_every)

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Run:
        return LadderRun(self, saving, watch, stored)

    @property
    def rows(self) -> int:
        return int(self.of_job.times.measurements)

    @property
    def replicas(self) -> int | None:
        """Replicas of each sample at all places; None if their number is still unknown."""
        wanted = self.of_job.to_place
        is_known = wanted is None or wanted.count is not None
        return self.config.run.number_of_replicas * int(self.of_job.places) if is_known else None

    @property
    def round_sweeps(self) -> int | None:
        return int(self.of_job.times.swap_every)

    def updates(self, replicas: int) -> int:
        return self.model.sites * self.model.samples * replicas * int(self.of_job.times.total)


COUNTED: Final = dict(zip(("attempts", "accepts", "trips"), EXCHANGES.values(), strict=True))
"""Paths of the exchange counts, by their names in an engine."""


class LadderRun(ReplicaRun):
    """A run on a ladder under way. All measurements are added up, and rows of some or all of them are kept."""

    def __init__(self, plan: LadderPlan[Any], saving: Saving, watch: Watch, stored: Record | None) -> None:
        t, choice, seed = plan.of_job, plan.choice, plan.config.run.seed
        ladder, placement, kept = plan.ladder(saving, watch, stored)
        engine = plan.engine_on(ladder)
        super().__init__(plan, saving, watch, engine)
        adds_local = getattr(t, "local_susceptibility", False)
        contents = contents_of_run(plan.model, choice, ladder, placement, adds_local)
        self._keeping = keeping = plan.keeping(contents, kept)
        self.planned, self.save_every = keeping.rows(plan.rows), keeping.rows(plan.save_every)
        self.thin = keeping.stride // max(1, (kept or keeping).stride) or 1
        reduced = reduced_of_run(plan.model, choice, ladder)
        functions = functions_of(t.measure, plan.measure)
        needs_each = adds_local or bool(functions)
        self._sums = MeasurementSums(reduced, keeping, needs_each, together=not (needs_each or self.save_every))
        contents = with_names(contents, keeping.names)
        contents.groups[REDUCED] = sums_group(
            reduced, keeping.stride, ladder.axis, coordinates_of(ladder), choice.wanted, t.measure_every
        )
        moves = moves_of_run(plan.moves, t.moves, f"ss.{plan.config.job}")
        how = watch.on_updates, saving.due, choice.wanted, None, moves, seed, self._sums
        self._frames = frames_in_beta(engine, ladder.couplings, t.times, choice.copies, *how)
        self._local = LocalSums(engine, choice.copies, len(ladder)) if adds_local else None
        axes = "sample", "copy", ladder.axis
        self._own = OwnObservables(functions, engine, axes, choice.copies, ladder.couplings, seed)
        self._measured = quantities_of(bool(choice.wanted.times))
        contents = self._own.in_contents(contents)
        self._own_sums = OwnSums(self._own)
        self.set_contents(self._own_sums.in_contents(contents))

    def rows(self, recording: Recording) -> Iterator[FileRow | FileRows | None]:
        stride, measurements = self._keeping.stride, self.plan.rows
        some = f"{count(self.planned, 'row')} of {count(measurements, 'measurement')}, and sums over all of them"
        self.begin(may_go_on=True, rows_in_words="" if stride == 1 else some)
        for frame in self._frames:
            if frame is None:
                yield None
                continue
            if isinstance(frame, TemperFrames):
                kept = self._keeping.among(frame.first, frame.several)
                if kept.start < kept.stop:
                    yield rows_of(self._measured, frame, kept, stride)
                continue
            if self._local is not None:
                self._local.add(frame)
            own = self._own.row(frame.spins, frame.step, frame.holder)
            self._own_sums.add(own)
            if self._keeping.has_row(frame.step):
                row = row_of(self._measured, frame) | own | {"step": frame.step // stride}
                yield self.with_spins(row, frame.spins, frame.holder)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        self._sums.record_lowest(self.best)
        local = {} if self._local is None else self._local.state()
        state = super().state() | local | self._sums.state() | self._own_sums.state()
        return state | {path: state.pop(name) for name, path in COUNTED.items()}

    def ended(self) -> tuple[Arrays, Arrays]:
        state = self.state()
        return state, state

    def set_state(self, saved: Arrays) -> None:
        super().set_state({**saved, **{name: saved[path] for name, path in COUNTED.items()}})
        if self._local is not None:
            self._local.restore(saved)
        self._sums.restore(saved, self.best)
        self._own_sums.restore(saved, self._sums.reduction.measurements)


def row_of(measured: Sequence[Quantity], frame: TemperFrame) -> dict[str, Any]:
    always = {"step": frame.step, "sweep": frame.sweep, "permutation": frame.measurement.holder}
    fields = frame.measurement._asdict() | frame.measurement.correlations._asdict()
    return always | {one.name: one.of(fields) for one in measured}


def rows_of(measured: Sequence[Quantity], frames: TemperFrames, kept: slice, stride: int) -> FileRows:
    """Return the rows that are kept of consecutive measurements."""
    fields = frames.measurement._asdict() | frames.measurement.correlations._asdict()
    numbers = np.arange(frames.first, frames.first + frames.several)[kept]
    series = {one.name: one.of(fields)[kept] for one in measured}
    always: dict[str, npt.NDArray[Any]] = {
        "sweep": (numbers + 1) * frames.every,
        "permutation": frames.measurement.holder[kept],
    }
    return FileRows(int(numbers[0]) // stride, always | series)


def recounted(result: Any, device: str, threads: int | None) -> Any:
    """Return the run restricted to its saved measurements, recounted from the saved spins.

    Replica c T + k of the engine is copy c at place k of T, because the engine makes no exchanges.
    """
    saved, rows = saved_of(result)
    model, (copies, places), wanted = result.model, saved.shape[2:], result.choice.wanted
    engine = create_engine(model, copies * places, Dynamics(), device, threads, slabs=False, round_sweeps=1)
    engine.set_ladder(result.places.couplings, copies)
    engine.prepare_measurements(1, wanted)
    unexchanged, measured = engine.begin_exchange()(), []
    for number, sweep in enumerate(result.sweep[rows]):
        set_spins(engine, saved.row(number).reshape(model.samples, copies * places, model.sites), unexchanged)
        frame = TemperFrame(number, int(sweep), present_measurement(engine, wanted))
        measured.append(row_of(quantities_of(bool(wanted.times)), frame))
    values: dict[str, npt.NDArray[Any]] = {}
    for name in (one.name for one in quantities_of(bool(wanted.times))):
        path = f"{MEASUREMENTS}/{name}"
        if path in result.record:
            values[path] = np.stack([each[name] for each in measured]).astype(result.record[path].dtype)
    kept = [f"{MEASUREMENTS}/{name}" for name in (*result.measured, "sweep")]
    values |= {path: np.asarray(result.record[path])[rows] for path in (*kept, f"{TEMPERING}/permutation")}
    counted = result.record.replaced(values)
    for name in (CONFIGURATIONS, REDUCED, LOCAL):  # groups that refer to all measurements
        counted.groups.pop(name, None)
    return result_of(result.job, counted, model)
