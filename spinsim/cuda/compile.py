"""Compile kernel sources: inline headers, fill in numbers and structs of the host, pick instantiations by name.

Numbers and structs that host and device share are stated once, in Python. In a source ``HOST(rng.ROUNDS)`` stands for
the number ``spinsim.rng.ROUNDS``. ``CHECK_STRUCT(Key, cuda.launch.KEY);`` asserts that the C++ struct has the members,
their sizes and offsets and the size of that NumPy type.
"""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

import numpy as np

from spinsim.machine.compiled import compiling, said_to_compile
from spinsim.machine.memory import on_gpu
from spinsim.machine.threads import available_threads

_NUMBER: Final = re.compile(r"\bHOST\(([\w.]+)\)")
_STRUCT: Final = re.compile(r"\bCHECK_STRUCT\(([\w<>, ]+), ([\w.]+)\);")


def stated(name: str) -> Any:
    """The object that a dotted name below ``spinsim`` names, such as ``rng.Stream.UPDATE``."""
    return resolve_name(f"spinsim.{name}")


def _number(match: re.Match[str]) -> str:
    return str(int(stated(match[1])))


def _assertion(match: re.Match[str]) -> str:
    struct, name = match.groups()
    kind: np.dtype[np.void] = stated(name)
    members = [(member, how[0].itemsize, how[1]) for member, how in (kind.fields or {}).items()]
    sizes = [f"sizeof({struct}) == {kind.itemsize}", *(f"sizeof({struct}::{m}) == {size}" for m, size, _ in members)]
    offsets = [f"__builtin_offsetof({struct}, {m}) == {offset}" for m, _, offset in members]
    said = f'"{struct} is not laid out as {name}"'
    # Older versions of NVRTC do not know offsets; g++ compiles the same source for the emulation and does.
    return "\n".join([
        f"static_assert({' && '.join(sizes)}, {said});",
        "#ifndef __CUDACC_RTC__",
        f"static_assert({' && '.join(offsets)}, {said});",
        "#endif",
    ])  # fmt: skip


def fill_in(source: str) -> str:
    """Replace the names of numbers and structs in a kernel source by numbers and assertions."""
    return _STRUCT.sub(_assertion, _NUMBER.sub(_number, source))


Instances = tuple[tuple[str, str], ...]
"""Pairs of a kernel file and an expression that names a function or a template instance of it."""

FLAGS: Final = ("false", "true")
OPTIONS: Final = ("-std=c++17", "--fmad=false")
_INCLUDE: Final = re.compile(r'^#include "([\w/]+\.cuh)"\n', re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*")
_BOUNDS: Final = re.compile(r"(?:__launch_bounds__|OF_CLUSTERS)\((?:[^()]|\([^()]*\))*\)")
_ARGUMENTS: Final = re.compile(r"(?<=\w)<[^<>;{}]*>")  # of templates
_KERNEL: Final = re.compile(r"__global__\s+void\s+(?P<name>\w+)\((?P<parameters>[^()]*)\)")


def _folder() -> Traversable:
    """Folder of the kernels: next to ``spinsim`` in a checkout, else installed as a package."""
    in_checkout = Path(__file__).parents[2] / "kernels"
    return in_checkout if (in_checkout / "random/philox.cuh").is_file() else files("spinsim.kernels")


def source(name: str) -> str:
    """A kernel file with its local headers inlined, each once, and the values from Python filled in.

    CuPy's kernel cache is keyed by the source text, which must therefore contain all that is compiled.
    """
    seen: set[str] = set()

    def inline(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = _folder().joinpath(file).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: inline(match[1]), text)

    return fill_in(inline(name))


@cache
def signatures(file: str) -> dict[str, tuple[str, ...]]:
    """Names of the parameters of every kernel in a file, in order, by the kernel's name."""
    text = _BOUNDS.sub("", _COMMENT.sub("", _folder().joinpath(file).read_text()))
    return {
        kernel["name"]: tuple(parameter.split()[-1].lstrip("*&") for parameter in kernel["parameters"].split(","))
        for kernel in _KERNEL.finditer(_ARGUMENTS.sub("", text))
    }


def parameters(file: str, expression: str) -> tuple[str, ...]:
    return signatures(file)[expression.partition("<")[0]]


MOST_AT_ONCE: Final = 8  # kernels that are compiled side by side


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(MOST_AT_ONCE, available_threads()), "compile")


@cache
def begin(device: int, file: str, expression: str) -> Future[Any]:
    """Have a thread compile a kernel for a device: a function or a template instance of ``file``.

    A run needs some ten kernels, which take up to seconds each. They are compiled side by side, and the run begins with
    the first.
    """
    import cupy

    return _threads().submit(_compiled, cupy, device, file, expression)


def _compiled(cupy: Any, device: int, file: str, expression: str) -> Any:
    with on_gpu(device), said_to_compile(f"{file}: {expression}", waited_for=False):
        module = cupy.RawModule(code=source(file), options=OPTIONS, name_expressions=(expression,))
        return module.get_function(expression)


def kernel(device: int, file: str, expression: str) -> Any:
    with compiling():
        try:
            return begin(device, file, expression).result()
        except BaseException:
            begin.cache_clear()  # a compilation that failed, such as for lack of memory, may succeed later
            raise


def finish() -> None:
    """Wait for all kernels whose compiling has begun; no other can be compiled afterwards."""
    _threads().shutdown()


def instance(name: str, *parameters: object) -> str:
    return f"{name}<{', '.join(str(p).lower() if isinstance(p, bool | np.bool_) else str(p) for p in parameters)}>"
