"""Import, call and identify a user's own functions.

A configuration names each of them as ``module:function``, which is imported, or by the name under which Python gave
it. Each is given arrays of its own, so that one that writes to them changes nothing for those after it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import keyword
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import CodeType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, OwnCodeError, argument
from spinsim.machine.files import has_directory
from spinsim.observables.batch import Batch

Measure = Callable[[Batch], Any]
Functions = Mapping[str, Measure]
Given = Functions | str | None  # functions as a call gives them: by name, or as the text of a configuration
_CODE_BITS: Final = 48  # of a number that tells code, below the version of Python, which compiles it


def text_of_measure(given: Given) -> str | None:
    """Returns what a configuration says of functions that a call gives."""
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
    """Returns the functions that the text of a configuration stands for, by the names of their series."""
    own = dict(given) if isinstance(given, Mapping) else {}
    names = names_of(text)
    for name in own.keys() - set(names):
        raise InputError(f"measure {name!r} is no observable of this run, which measures {text or 'none of its own'}")
    functions = {}
    for entry, name in zip((text or "").split(","), names, strict=False):
        if not name.isidentifier() or keyword.iskeyword(name) or name in functions:
            raise InputError(
                f"measure {entry!r} has no name of its own: give module:function, or a name such as parity"
            )
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
    """Returns what a function makes of a batch, on the host; OwnCodeError where it raises an exception."""
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
    own = error.__traceback__ and error.__traceback__.tb_next  # behind the call here
    said = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".: ")
    trace = "".join(traceback.format_exception(type(error), error, own))
    return OwnCodeError(f"{subject}, {said}: mend the function", trace)


@contextlib.contextmanager
def _kept_directory() -> Iterator[None]:
    """Go back to the working directory, in which the files of a run lie."""
    with contextlib.chdir(".") if has_directory() else contextlib.nullcontext():
        yield


def code_number(function: Any) -> int:
    """A number that tells the code of a function, whatever its comments; 0 where it is not Python's.

    What it calls does not count.
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
    """True for numbers of different code that one version of Python has compiled."""
    return bool(before and present) and before >> _CODE_BITS == present >> _CODE_BITS and before != present


def _parts(code: CodeType, words: str | None = None) -> Iterator[str]:
    """Everything of which code is made but for its docstring, names of files and numbers of lines."""
    yield code.co_code.hex()
    yield " ".join([*code.co_names, *code.co_varnames, *code.co_freevars])
    for constant in code.co_consts[words is not None and code.co_consts[:1] == (words,) :]:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        elif constant is not None:  # which stands in the place of a docstring
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
