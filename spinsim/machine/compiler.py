"""Compilation with Numba of the functions of ``machine/compiled.py``. No other module loads Numba."""

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
    """Code that becomes part of other code and is optimised there, which halves the time to compile."""

    def _optimize_final_module(self) -> None:
        """Leave the code unoptimised."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, as there is no address."""
        return 0

    @property
    def codegen(self) -> Any:
        """Return an object that ignores the environment, which has no address yet."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Ignore the environment."""


class _Linking(Compiler):
    """Compiler of functions that other functions call."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        mine = library or _Linked(target.codegen(), "linked")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, mine, *rest)  # type: ignore[no-untyped-call]


class _Borrowing(_Linking):
    """Compiler of steps, which count no references because they create and return no arrays."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a step, and refuse one that could lose an array or free it too early."""
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
    # counting references to the caller's arrays took 7 % of short rounds
    "step": _OPTIONS | _CALLED | {"forceinline": True, "_nrt": False, "pipeline_class": _Borrowing},
    "body": _OPTIONS | {"inline": "always"},
}
"""Numba options of functions that others call, by the names of the decorators in ``machine/compiled.py``."""


def of_numba(function: Callable[..., Any], way: str) -> Any:
    """Convert a function for calls by other compiled functions.

    An intrinsic has no options. It gets the attribute by which Numba recognises its type anywhere.
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
    """Compile an entry point for arguments of these types.

    Returns:
        The compiled function, and its machine code if another process can use it.
    """
    types = tuple(entry.typeof_pyval(argument) for argument in arguments)
    call = entry.compile(types)
    try:
        return call, _machine_code(entry.overloads[types])
    except AttributeError:  # a Numba version with other internals: each process compiles anew
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
    """Let compiled functions call these Python functions, and empty the list."""
    while functions:
        extending.register_jitable(forceinline=True)(functions.pop())
