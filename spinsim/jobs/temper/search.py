"""Tempering as a search for low states: it goes on until its target is met or its time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.moves.exchange.ladder import Exchange
from spinsim.engine.protocols import Spins
from spinsim.jobs.ladder.rows import row_of
from spinsim.jobs.ladder.running import LadderPlan, LadderRun
from spinsim.jobs.temper.settings import Temper
from spinsim.run.common import Watch
from spinsim.run.sampled import Kept
from spinsim.run.saving import Saving
from spinsim.run.search import RESTARTS, SUMS, Restarts, Search
from spinsim.sampling import TemperFrame
from spinsim.sampling.portions import updates_a_sweep
from spinsim.store import RunFile
from spinsim.store.contents import Contents

Started = tuple[Engine, Iterator[TemperFrame | None]]
"""Replicas in their initial state, and their measurements from the first sweep on, without end."""
_COUNTED: Final = ("attempts", "accepts", "trips")
_OF_SAMPLES: Final = ("spins", *Exchange._fields)  # arrays of a snapshot that have a row for each sample
_OF_GROUPS: Final = "groups_"  # before names of checkpoints that hold all groups, where others hold the first one


def rows_of_search(plan: LadderPlan[Temper]) -> range:
    """Numbers of the measurements that are rows of the file: the first ones after thermalisation."""
    t = plan.config.temper
    first = -(-t.thermalize // t.measure_every)
    return range(first, first + plan.rows)


class TemperSearch(LadderRun):
    """A search under way: groups of copies side by side, which begin anew where they have met nothing lower for long.

    The first group searches alone for some sweeps, which is enough for easy problems, before the others join it. The
    engine then has the samples of one group after the other. Every measurement is a look at all energies; those of the
    first group after thermalisation are rows of the file, until these are full or the search begins anew.

    Args:
        start: Makes the replicas of so many groups, in the start of a number, 0 for the first.
    """

    def __init__(
        self,
        plan: LadderPlan[Temper],
        saving: Saving,
        watch: Watch,
        start: Callable[[int, int], Started],
        contents: Contents,
        search: Search,
    ) -> None:
        t, self._samples = plan.config.temper, plan.model.samples
        self._groups, self._only_first = t.number_of_groups, t.number_of_groups > 1
        super().__init__(plan, saving, watch, *start(0, 1), contents)
        self.best = Best(self.engine.model, self.engine.replicas, self._samples)
        self._start, self._search, self._every = start, search, t.measure_every
        self._rows, self._sweeps_of_first = rows_of_search(plan), t.sweeps_alone
        self._restarts, self._has_restarts = Restarts(t.restart_after or 0, self._samples), bool(t.restart_after)
        self._done = 0
        self._exchange = self.engine.begin_exchange()()

    def go_on(self, file: RunFile | Kept) -> None:
        """Search on, and write all rows that are to come."""
        self.begin()
        self._search.begin()
        go_on = self._search_on(file)
        while go_on is not None:
            go_on()
            go_on = self._search_on(file)
        self._write_again(file)

    def _search_on(self, file: RunFile | Kept) -> Callable[[], None] | None:
        """Search on with the present replicas; returns what makes the next ones, None where the search ends."""
        for frame in self._frames:
            if frame is not None:
                self._look(frame, file)
                if self._search.is_met:
                    return None
                if self._restarts.is_due(self._done - self._restarts.before):
                    return self._restart
            elif self._done and self._search.is_late():
                file.save(self.state())  # from which a search of a longer time goes on
                return None
            elif self._saving.due():
                self._save(file)
                self._saving.saved()
        return self._join if self._only_first else None

    def _join(self) -> None:
        """Let the other groups begin beside the first one."""
        first = self.engine.snapshot()
        self._make_all()
        every = self.engine.snapshot()
        self.engine.restore({name: _followed(array, every[name]) for name, array in first.items()})

    def _restart(self) -> None:
        """Begin anew with all groups, whose exchanges are counted from the last measurement on."""
        counted = {name: getattr(self._exchange, name) for name in _COUNTED}
        self._restarts.begin(self._done - self._restarts.before)
        self._make_all()
        every = self.engine.snapshot()
        self.engine.restore(every | {name: _followed(array, 0 * every[name]) for name, array in counted.items()})

    def _make_all(self) -> None:
        """Make the replicas of all groups of the present start."""
        del self._frames, self.engine  # the next ones may need their room
        self._only_first = False
        self.engine, self._frames = self._start(self._restarts.number, self._groups)

    def _look(self, frame: TemperFrame, file: RunFile | Kept) -> None:
        """Take in a measurement."""
        energy, spins = self._lowest_of_groups(frame)
        self.best.update(energy, spins)
        sweeps = (frame.step + 1) * self._every
        self._done, self._exchange = self._restarts.before + sweeps, frame.exchange
        self._search.look(energy, self._done)
        self._restarts.look(energy.min(axis=1), sweeps)
        if frame.step in self._rows and not self._restarts.number:
            row = frame.step - self._rows.start
            first = {
                name: value[: self._samples] for name, value in row_of(self._measured, frame).items() if np.ndim(value)
            }
            values = first | {"step": row, "sweep": (row + 1) * self._every}
            file.write(self.with_spins(values, frame.spins, frame.holder[: self._samples]))

    def _lowest_of_groups(self, frame: TemperFrame) -> tuple[npt.NDArray[np.float64], Spins]:
        """Lowest energy of each replica over all groups, (samples, replicas), and the states that have it."""
        energy = frame.replica_energy
        if len(energy) == self._samples:
            return energy, frame.spins
        of_groups = energy.reshape(-1, self._samples, energy.shape[1])
        group = of_groups.argmin(axis=0)
        return of_groups.min(axis=0), lambda k, r: frame.spins(int(group[k, r]) * self._samples + k, r)

    def _write_again(self, file: RunFile | Kept) -> None:
        """Write what is written again and again, as it was at the last measurement."""
        first = {name: getattr(self._exchange, name)[: self._samples] for name in _COUNTED}
        file.write_again(self._sums_of(self._exchange._replace(**first)))
        searched = {"done": np.array(self._done, np.int64)} | self._search.state()
        file.write_again({SUMS[name]: value for name, value in searched.items()})
        if self._has_restarts:
            file.write_again({RESTARTS: np.array(self._restarts.number, np.int64)})
        self.write_best(file)

    def updates_done(self) -> int:
        """Attempted spin updates so far, those of earlier starts among them."""
        return self._restarts.before * updates_a_sweep(self.engine) + super().updates_done()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state from which the search can go on, as a checkpoint holds it: with room for all groups."""
        state = super().state()
        if self._groups > 1:
            if self._only_first:
                state |= {name: self._with_room(state[name]) for name in _OF_SAMPLES}
            state |= {_OF_GROUPS + name: state[name] for name in _COUNTED}
            state |= {name: state[name][: self._samples] for name in _COUNTED}
        return state | {"done": np.array(self._done, np.int64)} | self._search.state() | self._restarts.state()

    def _with_room(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows of the first group, followed by as many for each of the others."""
        return np.concatenate([array, *[np.zeros_like(array)] * (self._groups - 1)])

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        self._restarts.restore(saved)
        if self._groups > 1:
            saved = saved | {name: saved[_OF_GROUPS + name] for name in _COUNTED}
            has_one = not self._restarts.number and saved["half_sweep"] <= self._sweeps_of_first * self.engine.colours
            if has_one:
                saved |= {name: saved[name][: self._samples] for name in _OF_SAMPLES}
        if self._restarts.number or (self._groups > 1 and not has_one):
            self._make_all()
        super().restore(saved)
        self._search.restore(saved)
        self._done, self._exchange = int(saved["done"]), self.engine.begin_exchange()()

    def in_memory(self, kept: Kept) -> dict[str, Any]:
        whole = super().in_memory(kept)
        restarts = self._restarts.number if self._has_restarts else None
        return whole | {"search": self._search.outcome(self._done, restarts)}

    @property
    def may_go_on(self) -> bool:
        return not self._search.is_met


def _followed(first: npt.NDArray[Any], every: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The rows of the first samples, followed by those of all samples behind them; a number as it is."""
    return np.concatenate([first, every[len(first) :]]) if first.ndim else first
