"""Anneals one after the other: a search that goes on until its target is met, its time is up or all are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.inputs.checks import as_floats
from spinsim.inputs.texts import count
from spinsim.jobs.anneal.settings import AnnealSettings
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.model.problems.targets import met
from spinsim.run.search import Outcome, Search, target_in, targets_of, with_search
from spinsim.store import open_to_read
from spinsim.store.contents import ENERGY, Contents, DamageError, Series, group_of, length_of

Array = npt.NDArray[np.float64]

ANNEALS: Final = "anneals"
"""The group of the anneals of a search."""
_BYTES: Final = 2**22  # of recorded energies
_FEWEST, _MOST = 8, 4096
_SERIES: Final = (
    Series("energy", ("anneal", "sample", "replica"), np.float64, "lowest energy met in the anneal", ENERGY, ANNEALS),
    Series("sweeps", ("anneal",), np.int64, "sweeps of the anneal, 0 of those that were not begun", "1", ANNEALS),
    Series("planned", ("anneal",), np.int64, "sweeps of the whole anneal", "1", ANNEALS),
    Series("seconds", ("anneal",), np.float64, "time of the anneal", "s", ANNEALS),
)
"""Recorded of each anneal."""


@dataclass(frozen=True)
class Anneals(Outcome):
    """The anneals of a search, of which the first is the run of the same settings without a search.

    ``done`` counts those too that are not in these arrays: of very many the first are recorded.

    Attributes:
        energy: Lowest energy that each replica met in each anneal, (anneals, samples, replicas), of the Ising model.
        sweeps: Sweeps of each, ``int64`` (anneals,): fewer than ``planned`` where the search ended within it.
        planned: Sweeps that each has when it goes on to its end, likewise.
        seconds: Time of each, without the compiling of kernels, (anneals,).
    """

    UNIT: ClassVar[str] = "anneal"
    GROUP: ClassVar[str] = ANNEALS
    OWN: ClassVar[tuple[Series, ...]] = _SERIES

    energy: Array
    sweeps: npt.NDArray[np.int64]
    planned: npt.NDArray[np.int64]
    seconds: Array

    @property
    def numbers(self) -> dict[str, Any]:
        return {"anneals": self.done, **super().numbers}

    @property
    def line(self) -> str:
        """Number of anneals and their time, a line of reports."""
        return f"Anneals        {self.done} in {self.elapsed:.3g} s"

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Marks of the anneals that went on to their end, (anneals,)."""
        return np.asarray(self.sweeps == self.planned)

    def hits(self, model: Ising, target: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """Number of replicas that met a target, by default that of the search, in each anneal, (anneals, samples)."""
        given = self.target if target is None else as_floats(target, "target")
        wanted = np.atleast_1d(np.asarray(given, np.float64))
        hits = [met(model, energy, wanted).sum(axis=1) for energy in self.energy]
        return np.asarray(hits, np.int64).reshape(len(self.energy), -1)

    @classmethod
    def of(cls, values: Mapping[str, npt.NDArray[Any]], target: Array | None) -> Self:
        """Returns the anneals that arrays by the names of attributes say, which may have room for more."""
        return super().of({**values, **{s.name: values[s.name][: int(values["done"])] for s in _SERIES}}, target)

    @property
    def datasets(self) -> dict[str, npt.NDArray[Any]]:
        """Datasets of a file by path, with a row at least."""
        rows = self.energy, self.sweeps, self.planned, self.seconds
        each = _recorded(max(1, len(self.sweeps)), self.energy.shape[1:], rows)
        return super().datasets | {s.path: each[s.name] for s in _SERIES}

    def in_contents(self, contents: Contents) -> Contents:
        """Contents that have room for them."""
        return with_anneals(contents, max(1, len(self.sweeps)), self.target)


_SAVED_AS: Final = {"done": "anneals_done"} | {s.name: f"anneal_{s.name}" for s in _SERIES}
"""Names under which checkpoints hold attributes that they would not know by their own name."""
SUMS: Final = {_SAVED_AS.get(s.name, s.name): s.path for s in Anneals.series()}
"""Paths of what is written again and again, by the names under which checkpoints hold it."""


class AnnealSearch(Search):
    """The anneals of a run under way; the only one of a run that is no search.

    Args:
        on_note: As that of ``Search``.
        recorded: Anneals that a file has room for which was begun before, 0 where there is none.

    Attributes:
        number: Number of the present anneal, from 0.
        recorded: How many of them are recorded one by one; none of a single anneal that nothing ends early.
    """

    def __init__(
        self,
        model: Ising,
        replicas: int,
        settings: AnnealSettings,
        on_note: Callable[[str], None] = lambda words: None,
        recorded: int = 0,
    ) -> None:
        self.target = targets_of(model, settings.target)
        super().__init__(model, self.target, settings.time_limit, on_note)
        self._most = settings.anneals or (None if settings.ends_early else 1)
        shape, size = (model.samples, replicas), model.samples * replicas
        fit = min(_MOST, max(_FEWEST, _BYTES // (8 * size)))
        self.recorded = (max(recorded, settings.anneals or 0) or fit) if settings.is_search else 0
        if self.recorded * size > _BYTES:  # the question itself takes longer than an easy problem
            require(32.0 * self.recorded * size, count(self.recorded, "anneal"), "give fewer")
        self._each: list[tuple[Any, ...]] = []  # in the order of _SERIES
        self.number, self._lowest, self._since = 0, np.full(shape, np.inf), 0.0

    def look_at(self, energy: Array) -> None:
        """Take in energies (samples, replicas) of the present anneal, of states that are kept."""
        np.minimum(self._lowest, energy, out=self._lowest)
        self.look(energy, self.number + 1)

    @property
    def is_last(self) -> bool:
        """True if no anneal is to follow the present one."""
        return self.is_over or self.number + 1 == self._most

    def end_anneal(self, sweeps: int, planned: int) -> None:
        """Record the present anneal, after so many of its planned sweeps."""
        now = self.elapsed
        if self.number < self.recorded:
            self._each.append((self._lowest, sweeps, planned, now - self._since))
        self.number += 1
        self._lowest, self._since = np.full_like(self._lowest, np.inf), now

    def _values(self, rows: int) -> dict[str, npt.NDArray[Any]]:
        """All anneals that are over, by the names of attributes; with room for so many rows."""
        each = _recorded(rows, self._lowest.shape, zip(*self._each, strict=True))
        return each | {"done": np.array(self.number, np.int64)} | super().state()

    def written(self) -> dict[str, npt.NDArray[Any]]:
        """All anneals that are over, by the names under which checkpoints hold it."""
        return {_SAVED_AS.get(name, name): values for name, values in self._values(self.recorded).items()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All so far; nothing where nothing is recorded."""
        if not self.recorded:
            return {}
        return self.written() | {"anneal_lowest": self._lowest, "anneal_since": np.array(self._since)}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        if self.recorded:
            super().restore(saved)
            self.number = int(saved["anneals_done"])
            rows = [saved[_SAVED_AS[s.name]][: self.number] for s in _SERIES]
            self._each = list(zip(*rows, strict=True))
            self._lowest, self._since = saved["anneal_lowest"].copy(), float(saved["anneal_since"])

    def in_contents(self, contents: Contents) -> Contents:
        """Contents that have room for them; the same where nothing is recorded."""
        return with_anneals(contents, self.recorded, self.target) if self.recorded else contents

    def result(self) -> Anneals | None:
        """Returns what came out; None where nothing is recorded."""
        return Anneals.of(self._values(len(self._each)), self.target) if self.recorded else None


def _recorded(rows: int, shape: tuple[int, ...], columns: Iterable[Any]) -> dict[str, npt.NDArray[Any]]:
    """Arrays for each anneal, with room for so many, of these samples and replicas, by the names of series."""
    each: dict[str, npt.NDArray[Any]] = {}
    for series in _SERIES:
        empty = np.nan if series.dtype is np.float64 else 0
        each[series.name] = np.full((rows, *shape[: len(series.axes) - 1]), empty, series.dtype)
    for values, first in zip(each.values(), columns, strict=False):
        values[: len(first)] = first
    return each


def with_anneals(contents: Contents, anneals: int, target: Array | None) -> Contents:
    """Contents with a group of so many anneals and the target of each sample."""
    contents = replace(contents, scales={**contents.scales, "anneal": np.arange(anneals)})
    return with_search(contents, target, Anneals)


def with_those_of(file: h5py.File, contents: Contents) -> Contents:
    """Contents with the anneals that a file holds, by its own axes."""
    if ANNEALS not in file:
        return contents
    group = group_of(file, ANNEALS)
    anneals = length_of(group, "anneal")
    if not anneals:
        raise DamageError("its search has no anneals")
    return with_anneals(contents, anneals, target_in(file, ANNEALS))


def recorded_in(path: Path) -> int:
    """Returns how many anneals a file has room for; 0 where it is of no search."""
    with open_to_read(path) as file:
        return length_of(group_of(file, ANNEALS), "anneal") if ANNEALS in file else 0
