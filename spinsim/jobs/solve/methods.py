"""The methods of a portfolio: matching, anneals, tempering and tabu search, which are advanced by sweeps in turns.

A method looks at its states after every few sweeps. Its bits depend on its seed and on the sweeps it was advanced by,
not on how these were divided into turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine import Engine
from spinsim.engine.choosing import USUAL, groups_of_search
from spinsim.engine.moves.houdayer import dimension_of
from spinsim.engine.moves.move import moves_of_run
from spinsim.engine.update import ModelSizes
from spinsim.jobs.anneal.run import AnnealPlan, engine_of
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.calls import config_of_call
from spinsim.jobs.temper.run import TemperPlan
from spinsim.jobs.temper.settings import Temper
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.optimum.surfaces import SurfaceSearch, surface_of, tiles_surface
from spinsim.run.plan import NEVER, SILENT
from spinsim.run.search import Restarts, seed_of_start
from spinsim.sampling import Times
from spinsim.sampling.measure import measure, present_spins
from spinsim.sampling.portions import OnUpdates, updates_a_sweep
from spinsim.sampling.tabu import Tabu
from spinsim.sampling.tempering import tempering_in_beta
from spinsim.store.contents import Arrays

Spins = npt.NDArray[np.int8]
Look = Callable[[npt.NDArray[np.float64], Callable[[int], Spins]], bool]
"""Takes the energies of states and a function that returns the spins of one of them; returns True to stop."""
_FOREVER: Final = 1e12  # seconds: the portfolio decides when a search ends
_FLAT: Final = 2.6  # dimension of a graph, as it is estimated, below which Houdayer moves surpass all else
_COMES_DOWN: Final = 300  # sweeps in which copies on a ladder with Houdayer moves come down from random states
_ROUNDS: Final = 2  # in which matching surpasses anneals of large lattices
_DEVNULL: Final = Path(os.devnull)


def put_under(start: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return arrays by names that begin with ``start``."""
    return {start + name: array for name, array in arrays.items()}


def taken_from(start: str, saved: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays whose names begin with ``start``, without it."""
    return {name.removeprefix(start): array for name, array in saved.items() if name.startswith(start)}


class Tally:
    """Counts independent starts, and those that met the lowest energy of all."""

    def __init__(self) -> None:
        self.lowest, self.starts, self.hits = np.inf, 0, 0

    def add(self, energies: npt.NDArray[np.float64]) -> None:
        least = float(energies.min())
        if least < self.lowest:
            self.lowest, self.hits = least, 0
        self.starts += energies.size
        self.hits += int((energies == self.lowest).sum())

    def state(self) -> npt.NDArray[np.float64]:
        return np.array([self.lowest, self.starts, self.hits])

    def restore(self, saved: npt.NDArray[np.float64]) -> None:
        self.lowest, self.starts, self.hits = float(saved[0]), int(saved[1]), int(saved[2])


class Place(NamedTuple):
    """Where and how methods run."""

    seed: int  # of the whole portfolio
    device: str  # ``cpu`` or ``cuda``
    threads: int | None  # of the CPU
    gpus: str | None
    sized_for: str  # device for which numbers of replicas are chosen
    searches: int  # groups of copies on a CPU, and tabu searches

    def settings(self, number: int) -> dict[str, Any]:
        """Return the settings of the run of a method, by its number."""
        seed, gpus = self.seed_of(number), self.gpus if self.device == "cuda" else None
        return {"seed": seed, "time_limit": _FOREVER, "device": self.device, "threads": self.threads, "gpus": gpus}

    def seed_of(self, number: int) -> int:
        return rng.derived_seed(self.seed, number, rng.Stream.PORTFOLIO)


class Method:
    """A search that can be advanced, saved and continued.

    Attributes:
        sweeps: Sweeps done, of each replica.
        lowest: Lowest energy met.
        patience: Sweeps after which the method surpasses others that began better; 0 if it never surely does.
    """

    name: ClassVar[str]
    unit: ClassVar[int] = 1  # sweeps are done in multiples of it
    device_name: str = "cpu"
    patience: int = 0

    def __init__(self, model: Ising, place: Place, look: Look, on_updates: OnUpdates) -> None:
        self.model, self.sweeps, self.lowest = model, 0, np.inf
        self._tell, self._on_updates = look, on_updates
        self._tally = Tally()

    @staticmethod
    def applies(model: Ising) -> bool:
        """True if the method can search this model."""
        return True

    def advance(self, sweeps: int) -> None:
        """Do this many more sweeps, a multiple of ``unit``; fewer if a look says to stop."""
        raise NotImplementedError

    def offer(self, energy: float, spins: Spins) -> None:
        """Take in the best state of another method."""

    def starts(self, energy: float) -> tuple[int, int]:
        """Return the numbers of independent starts, and of those that met an energy."""
        every = Tally()
        every.restore(self._tally.state())
        if (running := self._running()).size:
            every.add(running)
        return every.starts, every.hits if every.lowest == energy else 0

    def _running(self) -> npt.NDArray[np.float64]:
        """Lowest energies of starts that are under way and already count."""
        return np.empty(0)

    def _look(self, energies: npt.NDArray[np.float64], spins_of: Callable[[int], Spins]) -> bool:
        self.lowest = min(self.lowest, float(energies.min()))
        return self._tell(energies, spins_of)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {"sweeps": np.array(self.sweeps), "lowest": np.array(self.lowest), "tally": self._tally.state()}

    def restore(self, saved: Arrays) -> None:
        self.sweeps, self.lowest = int(saved["sweeps"]), float(saved["lowest"])
        self._tally.restore(saved["tally"])


class Anneals(Method):
    """Anneals from random states one after the other, each twice as long as the one before up to a length."""

    name = "anneal"

    def __init__(self, model: Ising, place: Place, look: Look, on_updates: OnUpdates) -> None:
        super().__init__(model, place, look, on_updates)
        config = config_of_call(Anneal, model, place.settings(0) | {"growing": True})
        config = AnnealPlan.filled_in(config, model, place.sized_for)
        self._plan = AnnealPlan(config, model, place.device, _DEVNULL, {})
        self._number = -1
        self._begin()

    def _begin(self) -> None:
        self._number += 1
        self._settings = self._plan.config.anneal.of_anneal(self._number)
        self._ladder = self._settings.ladder
        self._engine: Any = engine_of(self._plan, self._number)
        self.device_name = self._engine.device_name
        self._least = np.full(self._engine.replicas, np.inf)

    def advance(self, sweeps: int) -> None:
        left, each = sweeps, updates_a_sweep(self._engine)
        while left:
            step, begun = divmod(self._engine.half_sweep // self._engine.colours, self._settings.sweeps)
            count = min(left, self._settings.sweeps - begun)
            self._engine.set_beta(1.0 / self._ladder[step])
            self._engine.sweep(count)
            self._on_updates(count * each)
            left, self.sweeps = left - count, self.sweeps + count
            if begun + count < self._settings.sweeps:
                continue
            energies, spins = measure(self._engine).energy[0], present_spins(self._engine)
            np.minimum(self._least, energies, out=self._least)
            stops = self._look(energies, partial(spins, 0))
            if step + 1 == len(self._ladder):
                self._tally.add(self._least)
                self._begin()
            if stops:
                return

    def state(self) -> dict[str, npt.NDArray[Any]]:
        own = {"number": np.array(self._number), "least": self._least.copy()}
        return super().state() | own | put_under("engine_", self._engine.snapshot())

    def restore(self, saved: Arrays) -> None:
        super().restore(saved)
        if (number := int(saved["number"])) != self._number:
            self._number = number - 1
            self._begin()
        self._least[...] = saved["least"]
        self._engine.restore(taken_from("engine_", saved))

    def _running(self) -> npt.NDArray[np.float64]:
        return np.asarray(self._least[self._least == self.lowest])  # others may still come lower


class Tempering(Method):
    """Groups of copies on ladders of temperatures, with Houdayer moves where they pay; they restart when stuck."""

    name, unit = "temper", 10

    def __init__(self, model: Ising, place: Place, look: Look, on_updates: OnUpdates) -> None:
        super().__init__(model, place, look, on_updates)
        given = place.settings(1) | {"houdayer": "auto"}
        if place.sized_for == "cpu":
            given["groups"] = groups_of_search(ModelSizes(model), "cpu", USUAL, place.searches)
        config = TemperPlan.filled_in(config_of_call(Temper, model, given), model, place.sized_for)
        self._plan = plan = TemperPlan(config, model, place.device, _DEVNULL, {})
        self._ladder, _, _ = plan.ladder(NEVER, SILENT, None)
        self._moves = moves_of_run((), config.temper.moves, "ss.temper")
        self._restarts = Restarts(config.temper.restart_after or 0, 1)
        is_flat = bool(self._moves) and model.once(dimension_of) < _FLAT  # Houdayer moves are all that it ever has
        self.patience = _COMES_DOWN if is_flat else 0
        self._begin()

    def _begin(self) -> None:
        t, seed = self._plan.config.temper, seed_of_start(self._plan.config.run.seed, self._restarts.number)
        self._seed = seed
        self._engine: Engine = self._plan.engine_on(self._ladder, seed, t.number_of_groups)
        self.device_name = self._engine.device_name
        self._saved: dict[str, npt.NDArray[Any]] | None = None  # with exchanges, which an engine without ladder lacks
        self._least = np.full(t.number_of_groups, np.inf)

    @property
    def _done(self) -> int:
        """Sweeps of the present start."""
        return self._engine.half_sweep // self._engine.colours

    def advance(self, sweeps: int) -> None:
        upto = self.sweeps + sweeps
        while self.sweeps < upto:
            if self._advance(upto - self.sweeps):
                return
            if self._restarts.is_due(self._done):
                self._tally.add(self._least)
                self._restarts.begin(self._done)
                self._begin()

    def _advance(self, sweeps: int) -> bool:
        """Do this many sweeps, or as many as come before a restart; return True if a look says to stop."""
        engine, choice, begun = self._engine, self._plan.choice, self._done
        times = Times(0, begun + sweeps, self.unit, self._plan.config.temper.swap_every)
        state, self._saved = self._saved or (engine.snapshot() if begun else None), None
        how = self._on_updates, None, choice.wanted, (), self._moves, self._seed
        frames = tempering_in_beta(engine, self._ladder.couplings, times, choice.copies, *how)
        if state is not None:
            engine.restore(state)
        for frame in frames:
            assert frame is not None  # noqa: S101  (nothing pauses it)
            energies = frame.replica_energy
            np.minimum(self._least, energies.min(axis=1), out=self._least)
            self.sweeps += self.unit
            self._restarts.look(energies.min(axis=1).min(keepdims=True), frame.sweep)
            if self._look(energies.ravel(), partial(_spins_of, frame.spins, energies.shape[1])):
                return True
            if self._restarts.is_due(frame.sweep):
                return False
        return False

    def _running(self) -> npt.NDArray[np.float64]:
        return np.asarray(self._least[np.isfinite(self._least)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        own, of_engine = {"least": self._least.copy()} | self._restarts.state(), self._saved or self._engine.snapshot()
        return super().state() | own | put_under("engine_", of_engine)

    def restore(self, saved: Arrays) -> None:
        super().restore(saved)
        before = self._restarts.number
        self._restarts.restore(saved)
        if self._restarts.number != before:
            self._begin()
        self._least[...] = saved["least"]
        if self.sweeps:
            self._saved = taken_from("engine_", saved)
            self._engine.restore(self._saved)


def _spins_of(spins: Callable[[int, int], Spins], replicas: int, number: int) -> Spins:
    return spins(*divmod(number, replicas))


class TabuSearches(Method):
    """Tabu searches of one spin, side by side on the threads of the CPU; a sweep is a flip for each site."""

    name = "tabu"

    def __init__(self, model: Ising, place: Place, look: Look, on_updates: OnUpdates) -> None:
        super().__init__(model, place, look, on_updates)
        self._searches = [Tabu(model, place.seed_of(2))]
        self._searches += [Tabu(model, place.seed_of(2 + k), like=self._searches[0]) for k in range(1, place.searches)]
        self._threads, self._given = Threads(place.threads), np.inf

    def advance(self, sweeps: int) -> None:
        sites = self.model.sites
        self._threads.run((partial(one.advance, sweeps * sites) for one in self._searches), sweeps * sites)
        self.sweeps += sweeps
        self._on_updates(sweeps * sites * len(self._searches))
        energies = np.array([one.best_energy for one in self._searches])
        if energies.min() < self._given:  # otherwise it is the state of another method
            self._look(energies, lambda k: self._searches[k].best_spins)

    def offer(self, energy: float, spins: Spins) -> None:
        self._given = min(self._given, energy)
        for one in self._searches:
            one.offer(spins)

    def starts(self, energy: float) -> tuple[int, int]:
        hits = sum(one.hits for one in self._searches if one.best_energy == energy)
        return sum(one.starts for one in self._searches), hits

    def state(self) -> dict[str, npt.NDArray[Any]]:
        state = super().state() | {"given": np.array(self._given)}
        for k, one in enumerate(self._searches):
            state |= put_under(f"{k}_", one.state())
        return state

    def restore(self, saved: Arrays) -> None:
        super().restore(saved)
        self._given = float(saved["given"])
        for k, one in enumerate(self._searches):
            one.restore(taken_from(f"{k}_", saved))


class Matchings(Method):
    """Searches on a surface, one after the other; a sweep is a matching, which optimises most sites at once."""

    name, unit = "matching", 2  # the first matching of all spins mostly fits none
    applies = staticmethod(tiles_surface)

    def __init__(self, model: Ising, place: Place, look: Look, on_updates: OnUpdates) -> None:
        super().__init__(model, place, look, on_updates)
        surface = model.once(surface_of)
        assert surface is not None  # noqa: S101
        self._search = SurfaceSearch(surface, place.seed_of(3))
        self.patience = _ROUNDS * self._search.turns

    def offer(self, energy: float, spins: Spins) -> None:
        self._search.offer(spins)

    def advance(self, sweeps: int) -> None:
        for _ in range(0, sweeps, self.unit):
            for _ in range(self.unit):
                self._search.advance()
            self.sweeps += self.unit
            self._on_updates(self.unit * self.model.sites)
            energy = np.array([self._search.lowest * self.model.quantum])
            if energy[0] < self.lowest and self._look(energy, lambda _: self._search.lowest_spins):
                return

    def starts(self, energy: float) -> tuple[int, int]:
        search = self._search
        return search.starts, search.hits if search.lowest * self.model.quantum == energy else 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return super().state() | put_under("search_", self._search.state())

    def restore(self, saved: Arrays) -> None:
        super().restore(saved)
        self._search.restore(taken_from("search_", saved))


METHODS: Final[dict[str, type[Any]]] = {one.name: one for one in (Matchings, Anneals, Tempering, TabuSearches)}
