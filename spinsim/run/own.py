"""Observables of a user's own: functions of a batch of configurations, measured along with those of the program.

A file has a series for each beside the others, whose further axes are ``<name>_axis_0`` and so on, and says of each
which code it had.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.engine.protocols import Spins, bits_of
from spinsim.errors import InputError, another_path
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.observables.batch import Batch
from spinsim.observables.table import TABLE
from spinsim.packing import unpacked_spins
from spinsim.record import Record
from spinsim.run.functions import Functions, are_of_other_code, call_measure, code_number
from spinsim.store.contents import COORDINATES, MEASUREMENTS, Contents, Series

OWN_SERIES: Final = "own observable "  # how the long name of a series begins
_CODE: Final = "_code"  # behind a function's name, in the name of the attribute that tells its code
REPLICAS: Final = ("sample", "replica")  # the first axes of what a function returns of an anneal


def on_ladder(axis: str) -> tuple[str, str, str]:
    return "sample", "copy", axis


Axes = tuple[str, ...]
Holder = npt.NDArray[np.integer] | None  # replica at each place of a ladder, (samples, copies, places)
Scales = dict[str, npt.NDArray[np.generic]]  # axes by name


class Own:
    """The functions of a run, tried on the initial configurations of its engine.

    ``axes`` are the first ones of what a function returns, ``REPLICAS`` or those ``on_ladder``; where there is a
    ladder, it has ``copies`` and inverse temperatures ``beta``.
    """

    def __init__(
        self, functions: Functions, engine: Engine, axes: Axes, copies: int = 0, beta: Any = 0.0, seed: int = 1
    ) -> None:
        self._beta, self._seed, self._state = beta, seed, axes
        self._functions, self._model, self._replicas = functions, engine.model, engine.replicas
        by_place = (copies, engine.replicas // copies) if copies else (engine.replicas,)
        self._shape = engine.model.samples, *by_place
        self._xp: ModuleType = np
        self.series: tuple[Series, ...] = ()  # of the file, one for each function
        self._scales: Scales = {}
        if functions:
            if engine.device_name != "cpu":
                self._xp = importlib.import_module("cupy")
            needed = 4 * prod(self._shape) * engine.model.sites
            require(needed, "the spins that measure is given", "measure nothing of your own, or have fewer replicas")
            self._try(engine.spins)

    def _try(self, spins: Spins) -> None:
        batch, tried = self._batch(spins), dict[str, npt.NDArray[Any]]()
        forms: dict[str, tuple[tuple[int, ...], type]] = {}
        for name, function in self._functions.items():
            values = tried[name] = call_measure(name, function, batch)
            kind = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float64}.get(values.dtype.kind)
            if kind is None:
                raise InputError(f"measure {name} returns {values.dtype}: return floats or whole numbers")
            if not values.size:
                raise InputError(f"measure {name} returns the shape {values.shape}: return a number at least")
            if values.shape[: len(self._shape)] != self._shape:
                raise InputError(
                    f"measure {name} returns the shape {values.shape}: return a number for each configuration, "
                    f"{self._shape} for {', '.join(self._state)}, or more axes behind these"
                )
            forms[name] = (0, *values.shape), kind
        self.series, self._scales = _described(forms, self._state)
        for series in self.series:
            self._checked(series, tried[series.name])

    def in_contents(self, contents: Contents) -> Contents:
        """Returns contents that have their series too."""
        taken = {one.name for one in contents.series} | set(contents.scales) | {o.name for o in TABLE}
        taken |= {*COORDINATES, "spins"}
        for one in self.series:
            if one.name in taken or one.name.endswith(("_error", "_tau", "_trusted")):
                raise InputError(f"measure {one.name!r} is a name that results have for something else: choose another")
        codes = {f"{name}{_CODE}": code_number(function) for name, function in self._functions.items()}
        said = {**contents.numbers.get(MEASUREMENTS, {}), **{name: code for name, code in codes.items() if code}}
        return with_series(
            replace(contents, numbers={**contents.numbers, MEASUREMENTS: said}), self.series, self._scales
        )

    def row(
        self, spins: Spins, number: int, holder: Holder = None, beta: float | None = None, model: Ising | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Returns what the functions return of a moment, by name; InputError for another form than at first.

        Without a ``holder`` replicas stand in their own order; ``beta`` and ``model`` are the present ones where there
        is no ladder and where a field changes.
        """
        if not self.series:
            return {}
        batch = self._batch(spins, holder)
        batch = replace(batch, number=number, beta=self._beta if beta is None else beta, model=model or self._model)
        return {
            one.name: self._checked(one, call_measure(one.name, self._functions[one.name], batch))
            for one in self.series
        }

    def _checked(self, series: Series, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        shape = (*self._shape, *(len(self._scales[axis]) for axis in series.axes[len(self._shape) :]))
        if values.shape != shape or (values.dtype.kind not in "biu" and series.dtype is np.int64):
            raise InputError(
                f"measure {series.name} returns {values.dtype} {values.shape} now, {np.dtype(series.dtype)} {shape} "
                "at first: return one form always"
            )
        if series.dtype is np.int64 and values.max() > np.iinfo(np.int64).max:
            raise InputError(
                f"measure {series.name} returns {values.max()}: return whole numbers below 2^63, or floats"
            )
        with np.errstate(over="ignore"):  # of wider floats
            numbers: npt.NDArray[Any] = values.astype(series.dtype)
        if not np.isfinite(numbers).all():
            raise InputError(f"measure {series.name} returns numbers that are not finite: return finite ones")
        return numbers

    def _batch(self, spins: Spins, holder: Holder = None) -> Batch:
        if holder is None:
            holder = np.broadcast_to(np.arange(self._replicas).reshape(self._shape[1:]), self._shape)
        samples, sites = len(holder), self._model.sites
        bits = np.stack([bits_of(spins, k, self._replicas)[holder[k]] for k in range(samples)])
        axes = (*self._state, "site")
        if self._xp is np:
            return Batch(unpacked_spins(bits, sites), axes, self._model, self._xp, self._beta, self._seed)
        flat = self._xp.unpackbits(self._xp.asarray(bits).ravel(), bitorder="little")
        ones = flat.reshape(*bits.shape[:-1], -1)[..., :sites].astype(np.int8)
        spins_there = self._xp.ascontiguousarray(2 * ones - 1)
        return Batch(spins_there, axes, self._model, self._xp, self._beta, self._seed)


def with_series(contents: Contents, series: tuple[Series, ...], scales: Scales) -> Contents:
    return replace(contents, series=(*contents.series, *series), scales={**contents.scales, **scales})


SeriesOfOwn = tuple[tuple[Series, ...], Scales]
"""Series of own observables, and the axes that they have of their own."""


def _described(forms: Mapping[str, tuple[tuple[int, ...], type]], first: Axes) -> SeriesOfOwn:
    """The series of observables by name, of which shapes, steps and samples first, and types are given."""
    series, scales = [], Scales()
    for name, (shape, kind) in forms.items():
        further = {f"{name}_axis_{k}": np.arange(n) for k, n in enumerate(shape[1 + len(first) :])}
        series.append(Series(name, (*first, *further), kind, f"{OWN_SERIES}{name}"))
        scales |= further
    return tuple(series), scales


def check_series(path: Path, stored: Record, contents: Contents) -> None:
    for name in names_in(stored):
        now = next(one for one in contents.series if one.name == name)
        series = stored[now.path]
        if (series.shape[1:], series.dtype) != (contents.shape(now), np.dtype(now.dtype)):
            raise InputError(
                f"measure {name} returns {np.dtype(now.dtype)} {contents.shape(now)}, {path} has {series.dtype} "
                f"{series.shape[1:]}: give the function that the run began with"
            )


def check_code(path: Path, stored: Record, functions: Functions) -> None:
    """Refuse functions whose code is not that with which the run of a file began."""
    for name, function in functions.items():
        before = int(stored.group(MEASUREMENTS).attributes.get(f"{name}{_CODE}", 0))
        if are_of_other_code(before, code_number(function)):
            raise InputError(
                f"measure {name} has other code than when {path} began: give the function that the run began with, "
                f"or {another_path()}"
            )


def names_in(record: Record) -> list[str]:
    """The names of a user's own observables that a record has."""
    return [name for name, one in record.group(MEASUREMENTS).arrays.items() if one.long_name.startswith(OWN_SERIES)]


def measured_in(record: Record) -> dict[str, npt.NDArray[Any]]:
    """A user's own observables, by their names."""
    return {name: np.asarray(record[f"{MEASUREMENTS}/{name}"]) for name in names_in(record)}
