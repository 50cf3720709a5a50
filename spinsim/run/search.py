"""The end of a search for low states: its targets are met, or its time is up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.inputs.numbers import read_grid
from spinsim.inputs.texts import Described, count
from spinsim.machine.compiled import seconds_without_compiling
from spinsim.model.ising import Ising
from spinsim.model.targets import check_targets, reached, value_name, value_of
from spinsim.record import Array as RecordArray
from spinsim.record import Record
from spinsim.store.contents import Arrays, Series, group_of

Array = npt.NDArray[np.float64]


def targets_of(model: Ising, text: str | None) -> Array | None:
    if text is None:
        return None
    return check_targets(model, read_grid("target", text, "a number, or one for each sample: -540,-538", any_sign=True))


GROUP: Final = "search"  # group of the outcome of a search that is a single run
LENGTHS: Final = ("time_limit", "anneals")  # settings that limit the length of a search


@dataclass(frozen=True, repr=False)
class Outcome(Described):
    """Outcome of any kind of search.

    Attributes:
        done: Amount of work done in all, in units of ``UNIT``; files have it in ``GROUP``.
        elapsed: Seconds of the whole search, not counting the compiling of kernels.
        target: Target of each sample in the problem's own terms, (samples,); None without a target.
        met_seconds: Time at which each sample's target was met, (samples,); NaN if it was not.
        met_after: Amount of work begun by then, ``int64`` (samples,); -1 if it was not met.
    """

    UNIT: ClassVar[str]
    GROUP: ClassVar[str]
    OWN: ClassVar[tuple[Series, ...]] = ()  # series of a kind of search, which come first in its group

    done: int
    elapsed: float
    target: Array | None
    met_seconds: Array
    met_after: npt.NDArray[np.int64]

    @property
    def _summary(self) -> dict[str, str]:
        met = f"{int(np.isfinite(self.met_seconds).sum())} of {count(len(self.met_seconds), 'target')} met"
        done = {"done": count(self.done, self.UNIT), "elapsed": f"{self.elapsed:.3g} s"}
        return done | ({} if self.target is None else {"target": met})

    @property
    def is_met(self) -> bool:
        """True if there were targets and all of them were met."""
        return self.target is not None and not np.isnan(self.met_seconds).any()

    @property
    def numbers(self) -> dict[str, Any]:
        numbers: dict[str, Any] = {"search_seconds": self.elapsed}
        if self.target is not None:
            when = self.met_seconds.tolist()
            numbers |= {"target": self.target.tolist(), "target_met": self.is_met, "target_met_seconds": when}
        return numbers

    @classmethod
    def series(cls) -> tuple[Series, ...]:
        """Datasets of a file that are rewritten at checkpoints, named like the attributes."""
        units = f"{cls.UNIT}s"
        return (
            *cls.OWN,
            Series("done", (), np.int64, f"{units} of the whole search"),
            Series("elapsed", (), np.float64, "time of the whole search", "s"),
            Series("met_seconds", ("sample",), np.float64, "time at which the target was met", "s"),
            Series("met_after", ("sample",), np.int64, f"{units} begun by then, -1 where it was not met"),
        )

    @classmethod
    def of(cls, values: Arrays, target: Array | None) -> Self:
        """Return the outcome from arrays, named like the attributes."""
        own: dict[str, Any] = {name: array if array.ndim else array.item() for name, array in values.items()}
        return cls(target=target, **own)

    @classmethod
    def read(cls, record: Record) -> Self | None:
        """Return the outcome in a record, or None for a run that is no search of this kind."""
        if cls.GROUP not in record.groups:
            return None
        group = record.groups[cls.GROUP]
        values = {s.name: np.asarray(group[s.name]) for s in cls.series() if s.name in group}
        return cls.of(values, group.get("target"))

    def verdict(self, model: Ising, lowest: Array) -> str:
        """Return one line on whether lowest energies (samples,) met the targets; empty without targets."""
        if self.target is None:
            return ""
        done = count(int(self.met_after.max()) if self.is_met else self.done, self.UNIT)
        missed, samples = int(np.isnan(self.met_seconds).sum()), len(self.target)
        if not missed:
            targets = f"target {self.target[0]:.15g}" if samples == 1 else f"targets of {samples} samples"
            return f"{targets} met after {done}, {self.met_seconds.max():.3g} s"
        if samples == 1:
            best = float(value_of(model, lowest)[0])
            return f"target {self.target[0]:.15g} not met in {self.elapsed:.3g} s, {done}; best {best:.15g}"
        return f"targets of {missed} of {samples} samples not met in {self.elapsed:.3g} s, {done}"


@dataclass(frozen=True, repr=False)
class Searched(Outcome):
    """Outcome of a search that is a single run, in sweeps, including those before the first measurement and all starts.

    Attributes:
        restarts: Number of restarts; None if the search never restarts.
    """

    UNIT = "sweep"
    GROUP = GROUP
    OWN = (Series("restarts", (), np.int64, "times that the search began anew"),)

    restarts: int | None = None

    @property
    def numbers(self) -> dict[str, Any]:
        return {"search_sweeps": self.done, "search_restarts": self.restarts or 0, **super().numbers}


def search_group(
    kind: type[Outcome], lengths: Mapping[str, int], target: Array | None, without: tuple[Series, ...] = ()
) -> Record:
    """Return the group of a kind of search, without some of its series, and with the target of each sample."""
    words = "target, a cut or an energy with its constant"
    given = {} if target is None else {"target": RecordArray(np.array(target), ("sample",), words)}
    return group_of([one for one in kind.series() if one not in without], lengths, given)


def has_met_target(record: Record) -> bool:
    """True if a record belongs to a finished search that has met its targets."""
    if "finished" not in record.attributes:
        return False
    groups = [record.groups[name] for name in (GROUP, "anneals") if name in record.groups]
    return any(not np.isnan(group["met_seconds"]).any() for group in groups if "target" in group)


class Search:
    """Decides when a search ends, and records when each sample's target is met.

    The clock stands still while kernels are compiled, and includes the time before an interruption.

    ``target`` and ``time_limit`` are settings of the job. For a single sample, ``on_note`` is called with each new best
    value, in words. ``group`` is the group of the outcome.
    """

    group: ClassVar[str] = GROUP

    def __init__(
        self, model: Ising, target: str | None, time_limit: float | None, on_note: Callable[[str], None]
    ) -> None:
        self._model, self.target, self._on_note = model, targets_of(model, target), on_note
        self._lowest_met = math.inf
        self._limit = math.inf if time_limit is None else time_limit
        self.met_seconds = np.full(model.samples, np.nan)  # time at which each sample's target was met, NaN until then
        self.met_after = np.full(model.samples, -1)  # the caller's amount of work done by then, -1 until then
        self._before, self._began = 0.0, seconds_without_compiling()

    def begin(self) -> None:
        self._began = seconds_without_compiling()

    @property
    def elapsed(self) -> float:
        return self._before + seconds_without_compiling() - self._began

    @property
    def is_met(self) -> bool:
        return self.target is not None and not np.isnan(self.met_seconds).any()

    def is_late(self) -> bool:
        return self.elapsed >= self._limit

    @property
    def is_over(self) -> bool:
        return self.is_met or self.is_late()

    def look(self, energy: Array, after: int) -> None:
        """Take in energies (samples, replicas) of states that are kept, after this amount of work."""
        lowest = energy.min(axis=1)
        if self._model.samples == 1:
            if not lowest[0] < self._lowest_met:  # only a lower energy can meet anything new
                return
            self._lowest_met = float(lowest[0])
            self._on_note(f"best {value_name(self._model)} {float(value_of(self._model, self._lowest_met)):.10g}")
        if self.target is not None:
            new = np.isnan(self.met_seconds) & reached(self._model, lowest, self.target)
            self.met_seconds[new], self.met_after[new] = self.elapsed, after

    def outcome(self, done: int, **others: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the outcome by path, after this amount of work; ``others`` are named without a path."""
        met = {"met_seconds": self.met_seconds.copy(), "met_after": self.met_after.copy()}
        values = {"done": np.array(done, np.int64), "elapsed": np.array(self.elapsed), **met, **others}
        return {f"{self.group}/{name}": array for name, array in values.items()}

    def restore(self, saved: Arrays) -> None:
        elapsed, *met = (saved[f"{self.group}/{name}"] for name in ("elapsed", "met_seconds", "met_after"))
        self._before, (self.met_seconds, self.met_after) = float(elapsed), (array.copy() for array in met)
        self.begin()


def goal(target: str | None, time_limit: float | None, model: Ising) -> str:
    words = [] if target is None else [f"until the {value_name(model)} meets {target}"]
    words += [] if time_limit is None else [f"for at most {time_limit:g} s"]
    return " or ".join(words)


_RESTARTS: Final = (f"{GROUP}/restarts", "restart_before", "restart_since", "restart_lowest")
_MOST_DOUBLINGS: Final = 40


def seed_of_start(seed: int, number: int) -> int:
    """Return the seed of a start, by its number; the first start has the seed of the run."""
    return rng.derived_seed(seed, number, rng.Stream.RESTART) if number else seed


class Restarts:
    """Counts restarts, and decides when the next one is due.

    A start ends when for ``after`` sweeps no sample has met a state lower than all before in this start. Each later
    start waits twice as long, so that too short a wait slows a search by no more than a factor.
    """

    def __init__(self, after: int, samples: int) -> None:
        self.number, self.before = 0, 0  # number of restarts, and sweeps of all earlier starts
        self._after, self._since = after, 0
        self._lowest = np.full(samples, np.inf)

    def look(self, lowest: npt.NDArray[np.float64], sweeps: int) -> None:
        """Take in the lowest energy of each sample, (samples,), after this number of sweeps of the present start."""
        if (lowest < self._lowest).any():
            self._since = sweeps
            np.minimum(self._lowest, lowest, out=self._lowest)

    def is_due(self, sweeps: int) -> bool:
        return self._after > 0 and sweeps - self._since >= self._after << min(self.number, _MOST_DOUBLINGS)

    def begin(self, sweeps: int) -> None:
        self.number += 1
        self.before += sweeps
        self._since = 0
        self._lowest[:] = np.inf

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state for checkpoints; empty if there are no restarts."""
        if not self._after:
            return {}
        numbers = (np.array(value, np.int64) for value in (self.number, self.before, self._since))
        return dict(zip(_RESTARTS, (*numbers, self._lowest.copy()), strict=True))

    def restore(self, saved: Arrays) -> None:
        if self._after:
            self.number, self.before, self._since = (int(saved[name]) for name in _RESTARTS[:3])
            self._lowest = saved[_RESTARTS[3]].copy()
