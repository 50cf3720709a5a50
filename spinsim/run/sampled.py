"""Runs of replicas, ready to begin and under way: what annealing, tempering and all that samples share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.bits import States
from spinsim.engine import Engine
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.protocols import Spins, bits_of
from spinsim.machine.memory import require
from spinsim.run.common import NEVER, AnyConfig, Plan, Saving, Watch, check_disk, engine_attributes
from spinsim.run.functions import names_of
from spinsim.run.identity import make_room, open_own
from spinsim.run.own import Holder, check_series
from spinsim.sampling import BestSlices, InField
from spinsim.sampling.portions import updates_a_sweep
from spinsim.saved import in_memory
from spinsim.store import RunFile
from spinsim.store.contents import BEST, Arrays, BestSpins, Contents, rows_at
from spinsim.store.schema import CONFIGURATIONS, with_configurations


class Kept:
    """Every row of the series of a run, and what is written again and again: a ``RunFile`` in memory.

    ``in_words`` names rows in a refusal and says how to have fewer; ``keeps_rows`` is False where a run is only timed.
    """

    def __init__(self, contents: Contents, rows: int, in_words: tuple[str, str], keeps_rows: bool = True) -> None:
        self._keeps_rows, self._rows, rows = keeps_rows, 0, rows * keeps_rows
        require(2 * contents.room(rows), f"a record of {rows} {in_words[0]}", in_words[1])
        self._every = {s.group: contents.every(s.group) for s in contents.series}
        self._groups: dict[str, dict[str, npt.NDArray[Any]]] = {group: {} for group in self._every}
        for s in contents.series:
            self._groups[s.group][s.name] = np.empty((rows // self._every[s.group], *contents.shape(s)), s.dtype)
        self.sums: dict[str, npt.NDArray[Any]] = {}  # datasets that were written again and again, by path

    def write(self, row: Mapping[str, Any]) -> None:
        if not self._keeps_rows:
            return
        self._rows = max(self._rows, row["step"] + 1)
        for group, series in self._groups.items():
            for own in rows_at(self._every[group], [row]):
                for name, values in series.items():
                    values[own["step"]] = own[name]

    def written(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        if not self._keeps_rows:
            raise TimedError
        return {
            group: {name: values[: self._rows // self._every[group]] for name, values in series.items()}
            for group, series in self._groups.items()
        }

    def write_again(self, values: Arrays) -> None:
        self.sums.update(values)

    def write_best(self, energy: npt.NDArray[np.float64], spins: BestSpins) -> None:
        self.write_again(store.arrays_of_best(energy, spins, f"{BEST}/"))

    def save(self, arrays: Arrays, wait: bool = True) -> None:
        """Nothing: there is no other process that could go on."""


class TimedError(Exception):
    """A run of which nothing is kept has ended."""


class SampledPlan(Plan[AnyConfig]):
    """A run of replicas that is ready to begin."""

    rows_in_words: ClassVar[tuple[str, str]]
    """What rows are called where they do not fit in memory, and how to have fewer."""

    def run(self, saving: Saving, watch: Watch, begun: bool) -> Any:
        """The ``SampledRun`` that is about to begin, or to go on where its file has been begun."""
        raise NotImplementedError

    def result(self, run: Any, fields: dict[str, Any]) -> Any:
        """The result of a run in memory, of the fields that this gave."""
        raise NotImplementedError

    def carry_out(self, begun: bool, saving: Saving, watch: Watch) -> None:
        run = self.run(saving, watch, begun)
        if begun and self.of_job.measure:
            check_series(self.path, run.contents)
        run.complete(begun)

    def in_memory(self, watch: Watch) -> Any:
        run = self.run(NEVER, watch, begun=False)
        fields = run.in_memory(Kept(run.contents, run.rows, self.rows_in_words, watch.keeps_rows))
        measured = {name: fields.pop(name) for name in names_of(self.of_job.measure)}
        result = self.result(run, fields | {"measured": measured})
        self.write_solution(result)
        return result


class SampledRun(ABC):
    """A run of replicas under way."""

    engine: Engine | InField | BestSlices  # replicas of the run
    best: Best  # the lowest states met, without the energy of a field that changes

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
        return self._plan.rows

    @property
    def save_every(self) -> int:
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
        best = store.arrays_of_best(self.best.energy, self.best.spins, "best_")
        return self.engine.snapshot() | {name: array.copy() for name, array in best.items()}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        self.engine.restore(saved)
        self.best.energy, sites = saved["best_energy"], self.engine.model.sites
        self.best.spins = States(saved["best_bits"], sites) if "best_bits" in saved else saved["best_spins"]

    def with_spins(self, row: Mapping[str, Any], spins: Spins, holder: Holder = None) -> Mapping[str, Any]:
        """Returns a row of the file together with the configurations of its moment, if they are saved at this row.

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

    def write_best(self, file: RunFile | Kept) -> None:
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
        return int(self.engine.half_sweep // self.engine.colours) * updates_a_sweep(self.engine)

    def in_memory(self, kept: Kept) -> dict[str, Any]:
        """Carry the run out without a file; returns what its result takes of it, by the names there."""
        self.go_on(kept)
        groups, plan = kept.written(), self._plan
        fields: dict[str, Any] = {}
        for group, series in groups.items():
            fields |= {} if group == CONFIGURATIONS else series
        del fields["step"]
        best = {"best_energy": self.best.energy, "best_spins": store.as_shown(self.best.spins, self.engine.model)}
        others = engine_attributes(self.engine) | {"finished": store.stamp()}
        fields["attributes"] = lambda: plan.attributes | others
        return fields | best | {"configurations": in_memory(self.contents, groups)}

    @property
    def may_go_on(self) -> bool:
        """True if the finished run can be made longer, from the last state that was saved."""
        return False

    def complete(self, begun: bool) -> None:
        """Carry the run out into its file, from its newest checkpoint; where ``begun`` it may be of a shorter run."""
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
