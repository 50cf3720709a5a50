"""Numba's compiling of the functions of ``machine/compiled.py``: Numba is loaded with this module and no other."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from numba import config, extending, njit
from numba.core.registry import cpu_target

from spinsim.errors import InputError
from spinsim.machine.stored import MachineCode

if getattr(config, "DISABLE_JIT", 0):
    raise InputError("NUMBA_DISABLE_JIT is set, but kernels must be compiled: unset it")

_OPTIONS: Final[Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
_NO_WRAPPERS: Final[Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Make an entry point of Numba, which runs without the interpreter lock."""
    return njit(no_cfunc_wrapper=True, **_OPTIONS)(function)


def real_kernel(function: Callable[..., Any]) -> Any:
    """Make an entry point whose last bits are free: sums may be reordered and multiply-adds fused."""
    return njit(no_cfunc_wrapper=True, fastmath={"reassoc", "contract", "nsz"}, **_OPTIONS)(function)


def compiled_for(entry_point: Any, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], MachineCode | None]:
    """Compile an entry point for arguments of the types of these.

    Returns:
        The compiled function, and its machine code where another process can use it.
    """
    types = tuple(entry_point.typeof_pyval(argument) for argument in arguments)
    call = entry_point.compile(types)
    result = entry_point.overloads[types]
    library, module = result.library, result.library._final_module
    if library.has_dynamic_globals or result.lifted or result.reload_init:
        return call, None
    declared = [item.name for item in [*module.functions, *module.global_variables] if item.is_declaration]
    needs = tuple(name for name in declared if not name.startswith("llvm."))
    constants = pickle.dumps(list(result.environment.consts))
    names = result.fndesc.llvm_cpython_wrapper_name, result.fndesc.env_name
    return call, MachineCode(*names, needs, constants, bytes(library._get_compiled_object()))


def part(function: Callable[..., Any]) -> Any:
    """Compile a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
    return njit(forceinline=True, **_OPTIONS, **_NO_WRAPPERS)(function)


def body(function: Callable[..., Any]) -> Any:
    """Write a function into the one kernel that calls it, before that is compiled: it is never compiled alone."""
    return njit(inline="always", **_OPTIONS)(function)


def intrinsic(definition: Callable[..., Any]) -> Any:
    """Make an operation of its own, with the type by which Numba knows it wherever it is held."""
    made = extending.intrinsic(definition)
    typing = cpu_target.typing_context
    typing.refresh()
    made._numba_type_ = typing.resolve_value_type(made)
    return made


def make_known(function: Callable[..., Any]) -> None:
    """Let compiled functions call a function that stays one of Python."""
    extending.register_jitable(forceinline=True)(function)
