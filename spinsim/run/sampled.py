"""Runs of replicas, ready to begin and under way: what annealing, tempering and all that samples share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.protocols import Spins, bits_of
from spinsim.packing import States
from spinsim.record import Record
from spinsim.run.common import AnyConfig, Plan, Saving, Watch, engine_attributes
from spinsim.run.identity import check_stored_state
from spinsim.run.own import Holder, check_series
from spinsim.run.recording import Recording
from spinsim.sampling import BestSlices, InField
from spinsim.sampling.portions import updates_a_sweep
from spinsim.saved import with_configurations
from spinsim.store.contents import BEST, Contents, arrays_of_best
from spinsim.store.files import check_disk
from spinsim.store.models import stored_bytes

_BEST: dict[str, str] = {f"best_{name}": f"{BEST}/{name}" for name in ("energy", "spins", "bits")}


class SampledPlan(Plan[AnyConfig]):
    """A run of replicas that is ready to begin."""

    rows_in_words: ClassVar[tuple[str, str]]
    """What rows are called where they do not fit in memory, and how to have fewer."""

    def run(self, saving: Saving, watch: Watch, stored: Record | None) -> Any:
        """The ``SampledRun`` that is about to begin, or to go on from the record of its file."""
        raise NotImplementedError

    def carry_out(self, saving: Saving, watch: Watch, in_file: bool, stored: Record | None = None) -> Record:
        run: SampledRun = self.run(saving, watch, stored)
        if stored is not None and self.of_job.measure:
            check_series(self.path, stored, run.contents)
        return run.carry_out(in_file, stored)


class SampledRun(ABC):
    """A run of replicas under way."""

    saved_as: ClassVar[Mapping[str, str]] = {}
    """Paths of datasets that say the same as arrays of checkpoints, by the names of these arrays."""

    engine: Engine | InField | BestSlices  # replicas of the run
    best: Best  # the lowest states met, without the energy of a field that changes

    def __init__(self, plan: Plan[Any], saving: Saving, watch: Watch, engine: Engine | InField | BestSlices) -> None:
        self._plan, self._saving, self._watch, self.engine = plan, saving, watch, engine
        self.best = Best(engine.model, engine.replicas)

    @property
    def contents(self) -> Contents:
        """Contents of its record, with room for configurations where they are saved."""
        return self._contents

    @contents.setter
    def contents(self, measured: Contents) -> None:
        self._contents = with_configurations(measured, self.save_every, self.engine.model.sites)

    @property
    def rows(self) -> int:
        return self._plan.rows

    @property
    def save_every(self) -> int:
        return self._plan.save_every

    @property
    def thin(self) -> int:
        """Rows of the shorter run that is made longer for each one that its file keeps."""
        return 1

    @abstractmethod
    def go_on(self, recording: Recording) -> None:
        """Record all rows that are to come."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state from which the run can go on, as a checkpoint holds it; arrays that do not change later."""
        best = arrays_of_best(self.best.energy, self.best.spins, "best_")
        return self.engine.snapshot() | {name: array.copy() for name, array in best.items()}

    def final_state(self) -> dict[str, npt.NDArray[Any]]:
        """The state of the finished run, from which it can be made longer."""
        return self.state()

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        self.engine.restore(saved)
        self.best.energy, sites = saved["best_energy"], self.engine.model.sites
        self.best.spins = States(saved["best_bits"], sites) if "best_bits" in saved else saved["best_spins"]

    def with_spins(self, row: Mapping[str, Any], spins: Spins, holder: Holder = None) -> Mapping[str, Any]:
        """Returns a row together with the configurations of its moment, if they are saved at this row.

        ``holder`` are the replicas in the order in which they are saved, (samples, ...), by default all of them.
        """
        every, model = self.save_every, self.engine.model
        if not every or (row["step"] + 1) % every:
            return row
        if holder is None:
            holder = np.broadcast_to(np.arange(self.engine.replicas), (model.samples, self.engine.replicas))
        bits = np.stack([bits_of(spins, k, self.engine.replicas)[holder[k]] for k in range(len(holder))])
        sweep = self.engine.half_sweep // self.engine.colours  # of a run whose rows do not tell it
        return {"sweep": sweep, **row, "measurement": row["step"], "spins": bits}

    def write_best(self, recording: Recording) -> None:
        if np.isfinite(self.best.energy).all():
            recording.write_best(self.best.energy, self.best.spins)

    def begin(self) -> None:
        """Say to who watches that the run begins, or goes on from its present state."""
        self._watch.on_parts(lambda: self.engine.part_rates())
        self._watch.on_size(self.file_bytes, self.rows_in_words)
        self._watch.on_stage("", self._plan.updates(self.engine.replicas), self.updates_done())

    @property
    def file_bytes(self) -> int:
        """Size of the finished file at most."""
        saved = sum(array.nbytes for array in self.state().values()) if self.may_go_on else 0
        spins = self.best.spins.bits if isinstance(self.best.spins, States) else self.best.spins
        lowest = self.best.energy.nbytes + spins.nbytes
        model = stored_bytes(self.engine.model)
        return int(self.contents.room(self.rows) + self.contents.sums_bytes + saved + lowest + model)

    @property
    def rows_in_words(self) -> str:
        """Which measurements have rows, in words; empty where all have."""
        return ""

    def updates_done(self) -> int:
        return int(self.engine.half_sweep // self.engine.colours) * updates_a_sweep(self.engine)

    @property
    def may_go_on(self) -> bool:
        """True if the finished run can be made longer, from the last state that was saved."""
        return False

    def carry_out(self, in_file: bool, stored: Record | None) -> Record:
        """Carry the run out, in memory or into the file of its plan, from the last checkpoint of what is ``stored``."""
        plan, words = self._plan, type(self._plan).rows_in_words  # type: ignore[attr-defined]
        where = engine_attributes(self.engine)
        recording = Recording(plan, self.contents, self.rows, where, words, self._watch.keeps_rows)
        if not in_file:
            self.go_on(recording)
            return recording.finish()
        if stored is None or plan.extends:
            constant = stored_bytes(plan.model) + 8 * self.engine.replicas * plan.model.samples + 2**17
            check_disk(plan.path, self.contents.room(self.rows) + 3 * self.contents.sums_bytes + constant)
        with recording.in_file(stored, self.engine.replicas, _BEST | dict(self.saved_as), self.thin):
            saved = recording.checkpoint()
            if saved is not None:
                check_stored_state(plan.path, saved, self.state())
                self.restore(saved)
            self.go_on(recording)
            return recording.finish(self.final_state() if self.may_go_on else None)
