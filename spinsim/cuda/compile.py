"""Kernel sources to modules: local headers inlined, instantiations picked by name."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

OPTIONS: Final = ("-std=c++17", "--fmad=false")
_INCLUDE: Final = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)


def _folder() -> Traversable:
    """Where the kernels are: installed as a package, or beside ``spinsim`` in a checkout that is imported in place."""
    try:
        return files("spinsim.kernels")
    except ModuleNotFoundError:
        return Path(__file__).parents[2] / "kernels"


def source(name: str) -> str:
    """A kernel file with its local headers inlined, each once.

    CuPy's kernel cache is keyed by the source text, which must therefore contain all that is compiled.
    """
    seen: set[str] = set()

    def inline(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = _folder().joinpath(file).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: inline(match[1]), text)

    return inline(name)


@cache
def kernel(device: int, file: str, expression: str) -> Any:
    """A compiled kernel on a device: ``expression`` names a function or a template instance of ``file``."""
    import cupy

    with cupy.cuda.Device(device):
        module = cupy.RawModule(code=source(file), options=OPTIONS, name_expressions=(expression,))
        return module.get_function(expression)


def instance(name: str, *parameters: object) -> str:
    """A template instance as C++ writes it."""
    return f"{name}<{', '.join(str(p).lower() for p in parameters)}>"
