"""A run of replicas that exchange the places of a ladder: what all jobs that temper share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.engine import Engine
from spinsim.engine.moves.exchange.ladder import Exchange
from spinsim.run.common import AnyConfig, Plan, Watch, dynamics_of
from spinsim.run.ladder_layout import TEMPERING, Measured, placement_of, row_of
from spinsim.run.own import Own, check_series, names_of
from spinsim.run.reducing import EVERYTHING, Keeping, MeasurementSums, keeping_in, keeping_of, longer, with_names
from spinsim.run.sampled import Kept, SampledRun
from spinsim.run.saving import NEVER, Saving
from spinsim.sampling import TemperFrame, place
from spinsim.sampling.placement import Betas, Placed, Placement
from spinsim.store import RunFile
from spinsim.store.layout import MEASUREMENTS, Layout


class LadderPlan(Plan[AnyConfig]):
    """A run on a ladder that is ready to begin.

    The table of its job has ``times``, ``to_place`` (None where the ladder is given), ``measure`` and ``places``, how
    many there will be as far as the configuration tells. A ladder is what the job takes for one, of any kind.
    """

    def new_ladder(self, saving: Saving, watch: Watch) -> tuple[Any, Placement | None]:
        """The ladder of a new run, and how it was placed if that was asked for."""
        raise NotImplementedError

    def ladder_in(self, file: h5py.File) -> Any:
        """The ladder that the run of a file has begun with."""
        raise NotImplementedError

    def run_on(
        self, ladder: Any, placement: Placement | None, saving: Saving, watch: Watch, stored: Keeping | None = None
    ) -> LadderRun:
        """The run on a ladder, about to begin; ``stored`` are the rows that its file keeps, where it has been begun."""
        raise NotImplementedError

    def keeping(self, layout: Layout, stored: Keeping | None) -> Keeping:
        """The rows that the run keeps, of a file with this layout."""
        t, rows = self.of_job, self.rows
        if stored is None:
            return keeping_of(layout, rows, t.series, t.series_limit, self.save_every)
        return longer(stored, with_names(layout, stored.names), rows, t.series_limit, self.save_every)

    def result_of(self, ladder: Any, placement: Placement | None, found: dict[str, Any]) -> Any:
        """The result of a run in memory, of what ``LadderRun.in_memory`` returns."""
        raise NotImplementedError

    def carry_out(self, begun: bool, saving: Saving, watch: Watch) -> None:
        """Run it into its file."""
        if begun:
            with store.open_to_read(self.path) as file:
                ladder, placement, stored = self.ladder_in(file), placement_of(file), keeping_in(file)
        else:
            (ladder, placement), stored = self.new_ladder(saving, watch), None
        run = self.run_on(ladder, placement, saving, watch, stored)
        if begun and self.of_job.measure:
            check_series(self.path, run.layout)
        run.complete(begun)

    def in_memory(self, watch: Watch) -> Any:
        """Run it without a file and return its result."""
        ladder, placement = self.new_ladder(NEVER, watch)
        run = self.run_on(ladder, placement, NEVER, watch)
        found = run.in_memory(Kept(run.layout, run.rows, MEASUREMENTS, "measure less often"))
        measured = {name: found.pop(name) for name in names_of(self.of_job.measure)}
        return self.result_of(ladder, placement, found | {"measured": measured})

    @property
    def of_job(self) -> Any:
        """The table of its job."""
        return getattr(self.config, self.config.job)

    @property
    def rows(self) -> int:
        """Rows of the finished file, one for each measurement."""
        return int(self.of_job.times.measurements)

    @property
    def replicas(self) -> int | None:
        """Replicas of each sample at all places; None where these are yet to be placed."""
        wanted = self.of_job.to_place
        placed = wanted is None or wanted.count is not None
        return self.config.run.number_of_replicas * int(self.of_job.places) if placed else None

    @property
    def round_sweeps(self) -> int | None:
        """Sweeps between exchanges."""
        return int(self.of_job.times.swap_every)

    def updates(self, replicas: int) -> int:
        """Attempted spin updates of the whole run with this many replicas of each sample, at all places."""
        return self.model.sites * self.model.samples * replicas * int(self.of_job.times.total)


def placed_ladder(plan: LadderPlan[Any], saving: Saving, watch: Watch, betas: Betas | None = None) -> Placed:
    """The ladder of a new run that is to be placed, by replicas of any start.

    Args:
        plan: Of the run.
        saving: Says when to give up.
        watch: Hears how it goes.
        betas: Inverse temperatures of a ladder, or couplings in space and in time; by default of temperatures.
    """

    def stop() -> bool:
        return saving.asked_to_stop

    table, threads = plan.of_job, plan.config.run.threads
    dynamics = dynamics_of(plan, table.start, table.zero_acceptance)
    how = dynamics, plan.device, threads, watch.on_updates, watch.on_stage, stop, betas
    return place(plan.model, table.to_place, *how)


class Added(Protocol):
    """Sums to which measurements are added instead of being written one by one."""

    @property
    def paths(self) -> Mapping[str, str]:
        """Paths of the datasets that hold it, by the names under which checkpoints do."""

    def add(self, frame: TemperFrame) -> None:
        """Add a measurement."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All so far, by the names under which checkpoints hold it."""

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what a checkpoint holds."""


class LadderRun(SampledRun):
    """A run on a ladder under way.

    Args:
        plan: What is run.
        saving: Says when to save.
        watch: Hears how it goes.
        engine: The replicas in their initial state.
        frames: Its measurements as tempering yields them, on this engine.
        layout: Of its file.
        table: Quantities that are measured.
        own: Observables of the user's own, if there are any.
        added: What measurements add up to, if that is wanted.
        keeping: The rows that it keeps.
        sums: The measurements added up, where not all rows are kept.
        stored: The rows that its file keeps, where it has been begun.
    """

    def __init__(
        self,
        plan: Plan[Any],
        saving: Saving,
        watch: Watch,
        engine: Engine,
        frames: Iterator[TemperFrame | None],
        layout: Layout,
        table: Sequence[Measured],
        own: Own | None = None,
        added: Added | None = None,
        keeping: Keeping = EVERYTHING,
        sums: MeasurementSums | None = None,
        stored: Keeping | None = None,
    ) -> None:
        super().__init__(plan, saving, watch, engine)
        self._keeping, self._sums, self._stored = keeping, sums, stored or keeping
        self._added, self._own = added, own
        self._frames, self._row = frames, row_of(table)
        self.layout = layout if own is None else own.in_layout(layout)

    @property
    def rows(self) -> int:
        """Rows of the finished file."""
        return self._keeping.rows(super().rows)

    @property
    def save_every(self) -> int:
        """Rows for each one at which configurations are saved; 0 where none are."""
        return self._keeping.rows(super().save_every)

    @property
    def rows_in_words(self) -> str:
        """Which measurements have rows, in words; empty where all have."""
        if not self._keeping.is_reduced:
            return ""
        return f"{self.rows} rows of {super().rows} measurements, and sums over all of them"

    @property
    def thin(self) -> int:
        """Rows of the shorter run that is made longer for each one that its file keeps."""
        return self._keeping.stride // max(1, self._stored.stride) or 1

    def go_on(self, file: RunFile | Kept) -> None:
        """Write all rows that are to come, and a state from which the run can be extended."""
        self.begin()
        for frame in self._frames:
            if frame is None:
                self._save(file)
                self._saving.saved()
                continue
            if self._sums is None:
                self.best.update(frame.replica_energy, frame.spins)
            if self._added is not None:
                self._added.add(frame)
            if self._keeping.has_row(frame.step):
                own = {} if self._own is None else self._own.row(frame.spins, frame.holder)
                row = self._row(frame) | own | {"step": frame.step // self._keeping.stride}
                file.write(self.with_spins(row, frame.spins, frame.holder))
        self._save(file, is_last=True)

    def _save(self, file: RunFile | Kept, is_last: bool = False) -> None:
        """Write what is written again and again, the checkpoint last; sums when the run ends, as they are large.

        Sweeps go on while a checkpoint is written.
        """
        if self._sums is not None:
            self._sums.take_lowest(self.best)
        self._write_again(file)
        state = self.state()
        if is_last and self._sums is not None:
            file.write_again(self._sums.datasets(state))
        file.save(state, wait=is_last)

    def _write_again(self, file: RunFile | Kept) -> None:
        """Write exchanges, sums and lowest states as they are now."""
        file.write_again(self._sums_of(self.engine.begin_exchange()()))
        if self._added is not None:
            file.write_again({self._added.paths[name]: value for name, value in self._added.state().items()})
        self.write_best(file)

    @staticmethod
    def _sums_of(e: Exchange) -> dict[str, npt.NDArray[np.int64]]:
        """Datasets of the exchange, by path."""
        return {
            f"{TEMPERING}/attempts": e.attempts,
            f"{TEMPERING}/accepts": e.accepts,
            f"{TEMPERING}/round_trips": e.trips,
        }

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state from which the run can go on, as a checkpoint holds it."""
        added = {} if self._added is None else self._added.state()
        return super().state() | added | ({} if self._sums is None else self._sums.state())

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        super().restore(saved)
        if self._added is not None:
            self._added.restore(saved)
        if self._sums is not None:
            self._sums.restore(saved, self.best)

    def in_memory(self, kept: Kept) -> dict[str, Any]:
        """Carry the run out without a file; returns what its result takes of it, sums too, by the names there."""
        found, added = super().in_memory(kept), {} if self._added is None else self._added.paths
        if self._sums is not None:
            found["reduced"] = self._sums.run(self._plan.config)
        exchanges = {path.rpartition("/")[2]: path for path in kept.sums if path.startswith(TEMPERING)}
        return found | {name: kept.sums[path] for name, path in {**exchanges, **added}.items()}

    @property
    def may_go_on(self) -> bool:
        """True, as every run can be made longer with more sweeps."""
        return True
