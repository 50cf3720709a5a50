"""User-defined observables: functions of a batch of configurations, measured along with those of the program.

A configuration names each of them as ``module:function``, which is imported, or by the name that was used in Python.
Each function gets its own copies of the arrays, so that writing to them does not affect other functions. A file has a
series for each observable, whose further axes are ``<name>_axis_0`` and so on, and a number that identifies its code.
Runs on a ladder also add the observables up at every measurement, in addition to the rows that they keep.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import json
import keyword
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.engine.measuring.reduction import LEVELS, block_of, merge_blocks
from spinsim.engine.protocols import Spins, bits_of
from spinsim.errors import InputError, OwnCodeError, another_path, argument
from spinsim.machine.files import has_directory
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.observables.batch import Batch, module_of, spins_of
from spinsim.observables.table import TABLE
from spinsim.record import Array, Record
from spinsim.store.contents import COORDINATES, LABELS, MEASUREMENTS, REDUCED, STEP, Series, group_of, rows_in

Measure = Callable[[Batch], Any]
Functions = Mapping[str, Measure]
Given = Functions | str | None  # functions in the form of a call: by name, or as the text of a configuration
_CODE_BITS: Final = 48  # bits of the number that identifies code, below the version of Python, which compiles the code


def text_of_measure(given: Given) -> str | None:
    """Return the configuration text for the functions of a call."""
    if given is None or isinstance(given, str):
        return given or None
    if not isinstance(given, Mapping):
        raise InputError(f"measure {given!r} is no mapping: give functions by name such as {{'parity': parity}}")
    for name, function in given.items():
        if not callable(function):
            raise InputError(f"measure {name!r} is {function!r}, not a function: give one that takes a batch of spins")
    return ",".join(map(str, given)) or None


def names_of(text: str | None) -> list[str]:
    return [entry.strip().rpartition(":")[2] for entry in text.split(",")] if text else []


def functions_of(text: str | None, given: Given = None) -> dict[str, Measure]:
    """Return the functions that the text of a configuration names, by the names of their series."""
    own = dict(given) if isinstance(given, Mapping) else {}
    names = names_of(text)
    for name in own.keys() - set(names):
        raise InputError(f"measure {name!r} is no observable of this run, which measures {text or 'none of its own'}")
    functions = {}
    for entry, name in zip((text or "").split(","), names, strict=False):
        if not name.isidentifier() or keyword.iskeyword(name) or name in functions:
            raise InputError(f"measure {entry!r} has no name of its own: give module:function or a name such as parity")
        functions[name] = own[name] if name in own else _imported(entry.strip())
    return functions


def _imported(entry: str) -> Measure:
    module, colon, name = entry.rpartition(":")
    if not colon:
        raise InputError(
            f"the run measures {name}, a function that was given in Python: give it again by its name, "
            f"ss.resume(path, measure={{{name!r}: ...}}), or as module:{name} from the beginning"
        )
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        with _kept_directory():
            function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{argument('measure', entry)} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        raise _failure(f"{argument('measure', entry)} cannot be imported", error) from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    if not callable(function):
        raise InputError(f"{argument('measure', entry)} is no function: give one that takes a batch of spins")
    return function  # type: ignore[no-any-return]


def call_measure(name: str, function: Measure, batch: Batch) -> npt.NDArray[Any]:
    """Call a function with a batch and return the values on the host; OwnCodeError if it raises an exception."""
    try:
        with _kept_directory():
            values = function(replace(batch, spins=batch.spins.copy(), beta=copy(batch.beta)))
        if np.ma.is_masked(values):
            raise InputError(f"measure {name} returns masked values: fill them in, such as by values.filled(0)")
        return np.asarray(values.get() if hasattr(values, "get") else values)
    except InputError:
        raise
    except Exception as error:
        raise _failure(f"measure {name} has failed", error) from error


def _failure(subject: str, error: BaseException) -> OwnCodeError:
    own = error.__traceback__ and error.__traceback__.tb_next  # skips the frame of the call here
    said = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
    trace = "".join(traceback.format_exception(type(error), error, own))
    return OwnCodeError(f"{subject}, {said}: mend the function", trace)


@contextlib.contextmanager
def _kept_directory() -> Iterator[None]:
    """Return to the working directory after the block, because it holds the run's files."""
    with contextlib.chdir(".") if has_directory() else contextlib.nullcontext():
        yield


def code_number(function: Any) -> int:
    """Return a number that identifies the code of a function, except comments; 0 if it is not a Python function.

    Code of functions that it calls does not count.
    """
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__") and not isinstance(function, type):
        function = getattr(function, "py_func", getattr(function, "__call__", None))  # noqa: B004
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return 0
    digest = hashlib.sha256("\n".join(_parts(code, function.__doc__)).encode()).digest()
    return sys.version_info.minor << _CODE_BITS | int.from_bytes(digest[: _CODE_BITS // 8])


def are_of_other_code(before: int, present: int) -> bool:
    """True if the numbers belong to different code that the same version of Python compiled."""
    return bool(before and present) and before >> _CODE_BITS == present >> _CODE_BITS and before != present


def _parts(code: CodeType, words: str | None = None) -> Iterator[str]:
    """Yield all parts of code except its docstring, file names and line numbers."""
    yield code.co_code.hex()
    yield " ".join([*code.co_names, *code.co_varnames, *code.co_freevars])
    for constant in code.co_consts[words is not None and code.co_consts[:1] == (words,) :]:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        elif constant is not None:  # None takes the place of a docstring
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


OWN_SERIES: Final = "own observable "  # prefix of the long name of a series
_CODE: Final = "_code"  # suffix of the attribute, named after a function, with its code number
REPLICAS: Final = ("sample", "replica")  # first axes of what a function returns in an anneal


Axes = tuple[str, ...]
Holder = npt.NDArray[np.integer] | None  # replica at each place of a ladder, (samples, copies, places)
Rows = dict[str, npt.NDArray[Any]]  # values that functions return at one moment, by the functions' names
_BLOCKS: Final = (64, 32, 16)
_BLOCK_BYTES: Final = 2**26  # largest size of the block sums of all observables before the number of blocks is reduced
_IN_FILE: Final = {
    "block_sums": "sums over the measurements of a block, averaged over copies",
    "level_sums": "sums of sums over so many consecutive measurements, of their distance from the first value",
    "level_squares": "sums of the squares of these sums",
}
_PARTS: Final = (*_IN_FILE, "level_open", "first_value")


class OwnObservables:
    """The user-defined functions of a run, tested on the initial configurations of its engine.

    ``axes`` are the first axes of their values: ``REPLICAS``, or those of a ladder. A ladder has ``copies`` and the
    inverse temperatures ``beta``.
    """

    def __init__(
        self, functions: Functions, engine: Engine, axes: Axes, copies: int = 0, beta: Any = 0.0, seed: int = 1
    ) -> None:
        self._beta, self._seed, self._state = beta, seed, axes
        self._functions, self._model, self._replicas = functions, engine.model, engine.replicas
        by_place = (copies, engine.replicas // copies) if copies else (engine.replicas,)
        self._shape = engine.model.samples, *by_place
        self._xp: ModuleType = module_of(engine.device_name if functions else "cpu")
        self.arrays: dict[str, Array] = {}  # of the record: one array without rows for each function
        if functions:
            needed = 4 * prod(self._shape) * engine.model.sites
            require(needed, "the spins that measure is given", "measure nothing of your own, or have fewer replicas")
            self._try(engine.spins)

    def _try(self, spins: Spins) -> None:
        batch, tried = self._batch(spins), dict[str, npt.NDArray[Any]]()
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
            further = (f"{name}_axis_{k}" for k in range(values.ndim - len(self._shape)))
            axes = (STEP, *self._state, *further)
            self.arrays[name] = Array(np.empty((0, *values.shape), kind), axes, f"{OWN_SERIES}{name}")
        for name, values in tried.items():
            self._checked(name, values)

    def in_contents(self, contents: Record) -> Record:
        """Return contents with the arrays of the observables added."""
        coming = [(name, one) for group in contents.groups.values() for name, one in rows_in(group).items()]
        taken = {name for name, _ in coming} | {axis for _, one in contents.paths() for axis in one.axes}
        taken |= {*COORDINATES, "spins"} | {o.name for o in TABLE}
        for name in self.arrays:
            if name in taken or name.endswith(("_error", "_tau", "_trusted")):
                raise InputError(f"measure {name!r} is a name that results have for something else: choose another")
        codes = {f"{name}{_CODE}": code_number(function) for name, function in self._functions.items()}
        more = contents.copy()
        more.groups[MEASUREMENTS].arrays |= self.arrays
        more.groups[MEASUREMENTS].attributes.update({name: code for name, code in codes.items() if code})
        return more

    def row(
        self, spins: Spins, number: int, holder: Holder = None, beta: float | None = None, model: Ising | None = None
    ) -> Rows:
        """Return the values of all functions at one moment, by name; InputError if their form has changed.

        Without ``holder``, replicas are in their own order. ``beta`` and ``model`` are the present ones, for runs
        without a ladder and in a changing field.
        """
        if not self.arrays:
            return {}
        batch = self._batch(spins, holder)
        batch = replace(batch, number=number, beta=self._beta if beta is None else beta, model=model or self._model)
        return {
            name: self._checked(name, call_measure(name, function, batch)) for name, function in self._functions.items()
        }

    def _checked(self, name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        form = self.arrays[name].values
        shape, dtype = form.shape[1:], form.dtype
        if values.shape != shape or (values.dtype.kind not in "biu" and dtype == np.int64):
            raise InputError(
                f"measure {name} returns {values.dtype} {values.shape} now, {dtype} {shape} at first: return one form"
            )
        if dtype == np.int64 and values.max() > np.iinfo(np.int64).max:
            raise InputError(f"measure {name} returns {values.max()}: return whole numbers below 2^63, or floats")
        with np.errstate(over="ignore"):  # of wider floats
            numbers: npt.NDArray[Any] = values.astype(dtype)
        if not np.isfinite(numbers).all():
            raise InputError(f"measure {name} returns numbers that are not finite: return finite ones")
        return numbers

    def _batch(self, spins: Spins, holder: Holder = None) -> Batch:
        if holder is None:
            holder = np.broadcast_to(np.arange(self._replicas).reshape(self._shape[1:]), self._shape)
        samples, sites = len(holder), self._model.sites
        bits = np.stack([bits_of(spins, k, self._replicas)[holder[k]] for k in range(samples)])
        spins_there = spins_of(bits, sites, self._xp)
        return Batch(spins_there, (*self._state, "site"), self._model, self._xp, self._beta, self._seed)


class OwnSums:
    """Sums of observables over the measurements of a run on a ladder, averaged over copies: blocks and levels.

    Arrays are (samples, blocks or levels, places, ...); the first value lacks the second axis. The sums are added up as
    in ``cpu_reduction``, which serves the program's observables.
    """

    def __init__(self, observables: OwnObservables) -> None:
        self._rows, self.measurements = observables.arrays, 0
        shapes = {name: one.values.shape[1:2] + one.values.shape[3:] for name, one in self._rows.items()}
        room = 8 * sum(map(prod, shapes.values()))
        self._blocks = next((n for n in _BLOCKS if n * room <= _BLOCK_BYTES), _BLOCKS[-1])
        require(2.0 * room * (self._blocks + 3 * LEVELS), "sums of observables of your own", "return smaller arrays")
        second = {"block_sums": (self._blocks,), "first_value": ()}
        self._arrays = {
            (name, part): np.zeros((shape[0], *second.get(part, (LEVELS,)), *shape[1:]))
            for name, shape in shapes.items()
            for part in _PARTS
        }

    def in_contents(self, contents: Record) -> Record:
        """Return contents with the sums added."""
        if not self._rows:
            return contents
        more, second = contents.copy(), ("own_block", "own_level", "own_level")
        group, labels = more.groups[REDUCED], {"own_level": [2**k for k in range(LEVELS)]}
        group.attributes[LABELS] = json.dumps(json.loads(group.attributes[LABELS]) | labels)
        for name, one in self._rows.items():
            lengths = dict(zip(one.axes, one.values.shape, strict=True))
            lengths |= {"own_block": self._blocks, "own_level": LEVELS}
            sums = [
                Series(f"{name}_{part}", (one.axes[1], axis, *one.axes[3:]), np.float64, words)
                for (part, words), axis in zip(_IN_FILE.items(), second, strict=True)
            ]
            group.arrays |= group_of(sums, lengths).arrays
        return more

    def add(self, row: Rows) -> None:
        """Add the next measurement."""
        number, self.measurements = self.measurements, self.measurements + 1
        block, is_merged = block_of(self._blocks, number)
        for name, values in row.items():
            blocks, sums, squares, waiting, first = (self._arrays[name, part] for part in _PARTS)
            mean = values.mean(axis=1, dtype=np.float64)
            if is_merged:
                merge_blocks(blocks, 1)
            blocks[:, block] += mean
            if number == 0:
                first[...] = mean
            mean -= first
            for level in range(LEVELS):
                sums[:, level] += mean
                squares[:, level] += mean**2
                if (number >> level) & 1 == 0:
                    waiting[:, level] = mean
                    break
                mean = waiting[:, level] + mean

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays; those stored in files are named by path."""
        return {_where(*key): array.copy() for key, array in self._arrays.items()}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]], measurements: int) -> None:
        self.measurements = measurements
        for key, array in self._arrays.items():
            array[...] = saved[_where(*key)]


def _where(name: str, part: str) -> str:
    """Return the path of an array in a file, or its name in checkpoints."""
    return f"{REDUCED}/{name}_{part}" if part in _IN_FILE else f"own_{name}_{part}"


def own_sums_in(record: Record) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
    """Return the sums of user-defined observables in a record, by name and part; empty for older files."""
    group = record.group(REDUCED)
    return {
        name: {part: np.asarray(group[f"{name}_{part}"]) for part in _IN_FILE}
        for name in names_in(record)
        if f"{name}_block_sums" in group
    }


def check_series(path: Path, stored: Record, contents: Record) -> None:
    for name in names_in(stored):
        now, before = contents[f"{MEASUREMENTS}/{name}"], stored[f"{MEASUREMENTS}/{name}"]
        if (before.shape[1:], before.dtype) != (now.shape[1:], now.dtype):
            raise InputError(
                f"measure {name} returns {now.dtype} {now.shape[1:]}, {path} has {before.dtype} {before.shape[1:]}: "
                "give the function that the run began with"
            )


def check_code(path: Path, stored: Record, functions: Functions) -> None:
    """Refuse functions whose code has changed since the run of a file began."""
    for name, function in functions.items():
        before = int(stored.group(MEASUREMENTS).attributes.get(f"{name}{_CODE}", 0))
        if are_of_other_code(before, code_number(function)):
            raise InputError(
                f"measure {name} has other code than when {path} began: give the function that the run began with, "
                f"or {another_path()}"
            )


def names_in(record: Record) -> list[str]:
    """Names of the user-defined observables in a record."""
    return [name for name, one in record.group(MEASUREMENTS).arrays.items() if one.long_name.startswith(OWN_SERIES)]


def measured_in(record: Record) -> dict[str, npt.NDArray[Any]]:
    """User-defined observables in a record, by name."""
    return {name: np.asarray(record[f"{MEASUREMENTS}/{name}"]) for name in names_in(record)}
