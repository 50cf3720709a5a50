"""Tempering as a search for low states: it goes on until its target is met or its time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.jobs.temper.settings import Temper
from spinsim.run.common import Plan, Watch
from spinsim.run.kept import Kept
from spinsim.run.ladder import LadderRun
from spinsim.run.saving import Saving
from spinsim.run.search import SUMS, Search
from spinsim.sampling import TemperFrame
from spinsim.store import RunFile
from spinsim.store.layout import Layout


class TemperSearch(LadderRun):
    """A search under way.

    Every measurement is a look at all energies; those after thermalisation are rows of the file until these are full.

    Args:
        plan: What is run.
        saving: Says when to save.
        watch: Hears how it goes.
        engine: The replicas in their initial state.
        frames: Its measurements on this engine from the first sweep on, without end.
        layout: Of its file.
        row: Returns the row of the file that a measurement is.
        search: Says when it ends.
    """

    def __init__(
        self,
        plan: Plan[Temper],
        saving: Saving,
        watch: Watch,
        engine: Engine,
        frames: Iterator[TemperFrame | None],
        layout: Layout,
        row: Callable[[TemperFrame], dict[str, Any]],
        search: Search,
    ) -> None:
        super().__init__(plan, saving, watch, engine, frames, layout, row)
        t = plan.config.temper
        self._search, self._before, self._every = search, -(-t.thermalize // t.measure_every), t.measure_every
        self._done = 0
        self._exchange = self.engine.begin_exchange()()

    def go_on(self, file: RunFile | Kept) -> None:
        """Search on, and write all rows that are to come."""
        self.begin()
        self._search.begin()
        for frame in self._frames:
            if frame is not None:
                self._look(frame, file)
                if self._search.is_met:
                    break
            elif self._done and self._search.is_late():
                file.save(self.state())  # from which a search of a longer time goes on
                break
            elif self._saving.due():
                self._save(file)
                self._saving.saved()
        self._write_again(file)

    def _look(self, frame: TemperFrame, file: RunFile | Kept) -> None:
        """Take in a measurement."""
        energy = frame.replica_energy
        self.best.update(energy, frame.spins)
        self._done, self._exchange = (frame.step + 1) * self._every, frame.exchange
        self._search.look(energy, self._done)
        row = frame.step - self._before
        if 0 <= row < self._plan.rows:
            values = self._row(frame) | {"step": row, "sweep": (row + 1) * self._every}
            file.write(self.with_spins(values, frame.spins, frame.holder))

    def _write_again(self, file: RunFile | Kept) -> None:
        """Write what is written again and again, as it was at the last measurement."""
        file.write_again(self._sums_of(self._exchange))
        file.write_again({SUMS[name]: value for name, value in self._searched().items()})
        self.write_best(file)

    def _searched(self) -> dict[str, npt.NDArray[Any]]:
        return {"done": np.array(self._done, np.int64)} | self._search.state()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state from which the search can go on, as a checkpoint holds it."""
        return super().state() | self._searched()

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""
        super().restore(saved)
        self._search.restore(saved)
        self._done, self._exchange = int(saved["done"]), self.engine.begin_exchange()()

    def in_memory(self, kept: Kept) -> dict[str, Any]:
        """Carry the search out without a file; returns what its result takes of it."""
        return super().in_memory(kept) | {"search": self._search.outcome(self._done)}

    @property
    def may_go_on(self) -> bool:
        """Whether the search can be made longer: where its targets are not met."""
        return not self._search.is_met
