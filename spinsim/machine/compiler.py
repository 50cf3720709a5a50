"""Numba's compiling of the functions of ``machine/compiled.py``: Numba is loaded with this module and no other."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from numba import config, extending, njit
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.core.types import Dispatcher

from spinsim.errors import InputError
from spinsim.machine.stored import MachineCode

if getattr(config, "DISABLE_JIT", 0):
    raise InputError("NUMBA_DISABLE_JIT is set, but kernels must be compiled: unset it")

_OPTIONS: Final[Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": True}


class _Linked(JITCodeLibrary):
    """Code that is taken into other code: it is optimised there, and no machine code is made of it alone.

    Both took half of the time of compiling, and the optimised kernels are as fast.
    """

    def _optimize_final_module(self) -> None:
        """Leave the code as it is."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address."""
        return 0

    @property
    def codegen(self) -> Any:
        """Return who sets the environment of its function, which has no place yet."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Set none."""


class _Linking(Compiler):
    """Compiles functions that others call."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        mine = library or _Linked(target.codegen(), "linked")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, mine, *rest)  # type: ignore[no-untyped-call]


class _Borrowing(_Linking):
    """Compiles steps, which make and return no arrays: they count no references."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a step, and refuse one by which an array could be lost or freed too early."""
        result: Any = super().compile_extra(function)  # type: ignore[no-untyped-call]
        state = self.state
        returned = [(function.__name__, state.return_type)]
        for call, signature in state.calltypes.items():
            if (
                isinstance(call, ir.Expr)
                and call.op == "call"
                and isinstance(state.typemap[call.func.name], Dispatcher)
            ):
                returned.append((f"a function that {function.__name__} calls", signature.return_type))
        for name, kind in returned:
            if state.targetctx.data_model_manager[kind].contains_nrt_meminfo():
                raise TypeError(f"{name} returns an array, which no step can: make it a part")
        return result


_CALLED: Final[Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Linking}
_ENTERED: Final[Any] = {"no_cfunc_wrapper": True}
_FAST: Final[Any] = {"fastmath": {"reassoc", "contract", "nsz"}}


WAYS: Final[dict[str, dict[str, Any]]] = {
    "kernel": _OPTIONS | _CALLED,
    "real_kernel": _OPTIONS | _CALLED | _FAST,
    "part": _OPTIONS | _CALLED | {"forceinline": True},
    # counting references to arrays, which are the caller's, took 7 % of short rounds
    "step": _OPTIONS | _CALLED | {"forceinline": True, "_nrt": False, "pipeline_class": _Borrowing},
    "body": _OPTIONS | {"inline": "always"},
}
"""Numba's options of functions that others call, as the decorators of ``machine/compiled.py`` are called."""


def of_numba(function: Callable[..., Any], way: str) -> Any:
    """Make a function one that other compiled functions call.

    An intrinsic, whose way has no options, gets the type by which Numba knows it wherever it is held.
    """
    if way in WAYS:
        return njit(**WAYS[way])(function)
    made: Any = extending.intrinsic(function)
    typing = cpu_target.typing_context
    typing.refresh()
    made._numba_type_ = typing.resolve_value_type(made)
    return made


def entry_point(function: Callable[..., Any], way: str) -> Any:
    return njit(**_OPTIONS, **_ENTERED, **(_FAST if way == "real_kernel" else {}))(function)


def compiled_for(entry: Any, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], MachineCode | None]:
    """Compile an entry point for arguments of the types of these.

    Returns:
        The compiled function, and its machine code where another process can use it.
    """
    types = tuple(entry.typeof_pyval(argument) for argument in arguments)
    call = entry.compile(types)
    try:
        return call, _machine_code(entry.overloads[types])
    except AttributeError:  # a version of Numba that is built otherwise inside: its code is made anew by each process
        return call, None


def _machine_code(result: Any) -> MachineCode | None:
    library, module = result.library, result.library._final_module
    if library.has_dynamic_globals or result.lifted or result.reload_init:
        return None
    declared = [item.name for item in [*module.functions, *module.global_variables] if item.is_declaration]
    needs = tuple(name for name in declared if not name.startswith("llvm."))
    constants = pickle.dumps(list(result.environment.consts))
    names = result.fndesc.llvm_cpython_wrapper_name, result.fndesc.env_name
    return MachineCode(*names, needs, constants, bytes(library._get_compiled_object()))


def learn(functions: list[Callable[..., Any]]) -> None:
    """Let compiled functions call functions that stay ones of Python, and empty the list of them."""
    while functions:
        extending.register_jitable(forceinline=True)(functions.pop())
