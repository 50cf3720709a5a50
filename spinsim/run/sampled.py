"""A run of replicas under way: what annealing, tempering and whatever else samples with an engine share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.bits import States
from spinsim.engine import Engine
from spinsim.engine.measuring.lowest import Best
from spinsim.engine.protocols import Spins, bits_of
from spinsim.machine.memory import require
from spinsim.run.common import Plan, Watch, check_disk, engine_attributes, updates_done
from spinsim.run.identity import make_room, open_own
from spinsim.run.saving import Saving
from spinsim.sampling import BestSlices, InField
from spinsim.saved import in_memory
from spinsim.store import RunFile
from spinsim.store.contents import BEST, Contents, arrays_of_best, rows_at
from spinsim.store.schema import with_configurations


class Kept:
    """Every row of the series of a run, and what is written again and again: a ``RunFile`` in memory.

    Series of groups that have a row at every so many-th row of the run alone are kept apart.

    Args:
        what: Names them in a refusal.
        mend: Says there how to have fewer.

    Attributes:
        series: All rows of each series, by name.
        sparse: Rows of the series of groups that have fewer, by the group's name and their own.
        sums: Datasets that were written again and again, by path.

    Raises:
        InputError: where they do not fit in memory.
    """

    def __init__(self, contents: Contents, rows: int, what: str, mend: str) -> None:
        require(2 * contents.room(rows), f"a record of {rows} {what}", mend)
        self.series: dict[str, npt.NDArray[Any]] = {}
        self.sparse: dict[str, dict[str, npt.NDArray[Any]]] = {name: {} for name in contents.numbers}
        self._every = {name: contents.every(name) for name in contents.numbers}
        for s in contents.series:
            room: npt.NDArray[Any] = np.empty((rows // contents.every(s.group), *contents.shape(s)), s.dtype)
            self.sparse.get(s.group, self.series)[s.name] = room
        self.sums: dict[str, npt.NDArray[Any]] = {}
        self._rows = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Take in the row of number ``row["step"]``."""
        step = row["step"]
        self._rows = max(self._rows, step + 1)
        for name, series in self.series.items():
            series[step] = row[name]
        for sparse, group in self.sparse.items():
            for own in rows_at(self._every[sparse], [row]):
                for name, series in group.items():
                    series[own["step"]] = own[name]

    def written(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, dict[str, npt.NDArray[Any]]]]:
        """Returns series, and those of groups that have fewer rows, as far as they were written."""
        sparse = {
            name: {one: values[: self._rows // self._every[name]] for one, values in group.items()}
            for name, group in self.sparse.items()
        }
        return {name: values[: self._rows] for name, values in self.series.items()}, sparse

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take in datasets of fixed size, by path."""
        self.sums.update(values)

    def write_best(self, energy: npt.NDArray[np.float64], spins: npt.NDArray[np.int8] | States) -> None:
        """Take in the lowest states met so far."""
        self.write_again({f"{BEST}/{name}": array for name, array in arrays_of_best(energy, spins).items()})

    def save(self, arrays: Mapping[str, npt.NDArray[Any]], wait: bool = True) -> None:
        """Nothing: there is no other process that could go on."""


class TimedError(Exception):
    """A run of which nothing is kept has ended."""


class NothingKept(Kept):
    """Takes rows of any number and has none of them: of runs that are only timed."""

    def __init__(self) -> None:
        self.sums = {}

    def write(self, row: Mapping[str, Any]) -> None:
        """Forget a row."""

    def write_again(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Forget datasets."""

    def written(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, dict[str, npt.NDArray[Any]]]]:
        """Raise ``TimedError``, as there is no result."""
        raise TimedError


def kept_by(watch: Watch, contents: Contents, rows: int, what: str, mend: str) -> Kept:
    """Return room for the rows of a run in memory, as ``Kept`` takes it; none where the run is only timed."""
    return Kept(contents, rows, what, mend) if watch.keeps_rows else NothingKept()


def _with(plan: Plan[Any], others: Mapping[str, str]) -> dict[str, str]:
    """The attributes of a plan together with others."""
    return plan.attributes | dict(others)


class SampledRun(ABC):
    """A run of replicas under way.

    Attributes:
        engine: Replicas of the run.
        best: The lowest states met, without the energy of a field that changes.
    """

    def __init__(self, plan: Plan[Any], saving: Saving, watch: Watch, engine: Engine | InField | BestSlices) -> None:
        self._plan, self._saving, self._watch, self.engine = plan, saving, watch, engine
        self.best = Best(engine.model, engine.replicas)

    @property
    def contents(self) -> Contents:
        """Contents of its file, with room for configurations where they are saved."""
        return self._contents

    @contents.setter
    def contents(self, measured: Contents) -> None:
        self._contents = with_configurations(measured, self.save_every, self.engine.model.sites)

    @property
    def rows(self) -> int:
        """Rows of the finished file."""
        return self._plan.rows

    @property
    def save_every(self) -> int:
        """Rows for each one at which configurations are saved; 0 where none are."""
        return self._plan.save_every

    @property
    def thin(self) -> int:
        """Rows of the shorter run that is made longer for each one that its file keeps."""
        return 1

    @abstractmethod
    def go_on(self, file: RunFile | Kept) -> None:
        """Write all rows that are to come."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state from which the run can go on, as a checkpoint holds it; arrays that do not change later."""
        best = store.arrays_of_best(self.best.energy, self.best.spins)
        return self.engine.snapshot() | {f"best_{name}": array.copy() for name, array in best.items()}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        self.engine.restore(saved)
        self.best.energy, sites = saved["best_energy"], self.engine.model.sites
        self.best.spins = States(saved["best_bits"], sites) if "best_bits" in saved else saved["best_spins"]

    def with_spins(
        self, row: Mapping[str, Any], spins: Spins, holder: npt.NDArray[np.integer] | None = None
    ) -> Mapping[str, Any]:
        """Returns a row of the file together with the configurations of its moment, if they are saved at this row.

        Args:
            row: Values of the row by the names of series, ``step`` among them.
            spins: Gives the configuration of a sample and replica at the moment of the row.
            holder: Replicas in the order in which they are saved, such as the one at each temperature, (samples, ...);
                by default all of them, (samples, replicas).
        """
        every, model = self.save_every, self.engine.model
        if not every or (row["step"] + 1) % every:
            return row
        if holder is None:
            holder = np.broadcast_to(np.arange(self.engine.replicas), (model.samples, self.engine.replicas))
        bits = np.stack([bits_of(spins, k, self.engine.replicas)[holder[k]] for k in range(len(holder))])
        sweep = self.engine.half_sweep // self.engine.colours  # of a run whose rows do not tell it
        return {"sweep": sweep, **row, "measurement": row["step"], "spins": bits}

    def write_best(self, file: RunFile | Kept) -> None:
        """Write the lowest states met, if a measurement has shown any yet."""
        if np.isfinite(self.best.energy).all():
            file.write_best(self.best.energy, self.best.spins)

    def begin(self) -> None:
        """Say to who watches that the run begins, or goes on from its present state."""
        self._watch.on_parts(lambda: self.engine.part_rates())
        self._watch.on_size(self.file_bytes, self.rows_in_words)
        self._watch.on_stage("", self._plan.updates(self.engine.replicas), self.updates_done())

    @property
    def file_bytes(self) -> int:
        """Size of the finished file at most; what can be compressed takes less."""
        saved = sum(array.nbytes for array in self.state().values()) if self.may_go_on else 0
        spins = self.best.spins.bits if isinstance(self.best.spins, States) else self.best.spins
        lowest = self.best.energy.nbytes + spins.nbytes
        model = store.stored_bytes(self.engine.model)
        return int(self.contents.room(self.rows) + self.contents.sums_bytes + saved + lowest + model)

    @property
    def rows_in_words(self) -> str:
        """Which measurements have rows, in words; empty where all have."""
        return ""

    def updates_done(self) -> int:
        """Attempted spin updates so far, those before the run was interrupted among them."""
        return updates_done(self.engine)

    def in_memory(self, kept: Kept) -> dict[str, Any]:
        """Carry the run out without a file; returns what its result takes of it, by the names there."""
        self.go_on(kept)
        series, sparse = kept.written()
        return {name: values for name, values in series.items() if name != "step"} | {
            "best_energy": self.best.energy,
            "best_spins": store.as_shown(self.best.spins, self.engine.model),
            "configurations": in_memory(self.contents, sparse),
            "attributes": partial(_with, self._plan, engine_attributes(self.engine) | {"finished": store.stamp()}),
        }

    @property
    def may_go_on(self) -> bool:
        """True if the finished run can be made longer, from the last state that was saved."""
        return False

    def complete(self, begun: bool) -> None:
        """Carry the run out into its file, from the newest checkpoint that this has.

        Args:
            begun: True if the file is there already, perhaps of a shorter run.
        """
        plan, rows, like = self._plan, self.rows, self.state()
        if not begun or plan.extends:
            check_disk(plan.path, plan.model, self.engine.replicas, self.contents, rows)
        if not begun:
            attributes = plan.attributes | engine_attributes(self.engine)
            store.create(plan.path, plan.model, self.contents, rows, attributes, self.engine.replicas, like)
        elif plan.extends:
            make_room(plan, self.contents, rows, like, self.thin)
        with open_own(plan, begun) as file:
            if file.has_bytes and isinstance(self.best.spins, States):
                self.best.spins = np.asarray(self.best.spins)
                like = self.state()
            saved, damaged = file.saved(like)
            del like  # which takes much of large lattices
            if damaged:
                self._watch.on_warning(damaged)
            file.forget_summary()
            if saved is not None:
                self.restore(saved)
            self.go_on(file)
            file.finish(self.may_go_on)
