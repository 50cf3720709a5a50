"""Sources of the CPU's kernels: machine code that was made from others is out of date."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
_MAKING: Final = ("machine.compiler", "machine.intrinsics")
"""Modules that decide how all kernels are compiled."""
_IMPORT: Final = re.compile(rb"^[ \t]*from spinsim\.?([\w.]*) import[ \t]*(\([^)]*\)|.*)", re.M)
_IMPORTED_NAME: Final = re.compile(rb"(\w+)(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:,|\)|#|$)", re.M)
_COMPILED: Final = re.compile(rb"^@(?:kernel|real_kernel|part|body|inlined|intrinsic)$", re.M)


@cache
def source_digest(module: str) -> str:
    """SHA-256 of all files that the kernels of a module of the package inline or take constants from."""
    return hashlib.sha256(b"".join(_digest(path) for path in sorted(sources(module)))).hexdigest()


@cache
def sources(module: str) -> frozenset[Path]:
    """Find the files that a module's kernels are made from: its own, and what these import of each other."""
    files: set[Path] = set()
    left = [_file(name) for name in (module.removeprefix("spinsim."), *_MAKING)]
    while left:
        path = left.pop()
        if path not in files:
            files.add(path)
            left += _imported(path)
    return frozenset(files)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files with compiled functions that a file imports from, and those of constants: of names in capitals."""
    return tuple(_followed(path))


def _followed(path: Path) -> Iterator[Path]:
    for home, listed in _IMPORT.findall(_content(path)):
        names = [name.decode() for name in _IMPORTED_NAME.findall(listed)]
        module = _file(home.decode())
        if any(name.isupper() for name in names) or _COMPILED.search(_content(module)):
            yield module
        inside = (_file(f"{home.decode()}.{name}".lstrip(".")) for name in names if module.name == "__init__.py")
        yield from (file for file in inside if file.name != "__init__.py" and file.is_file())


def _file(module: str) -> Path:
    """Name the file of a module, given without ``spinsim.``.

    An empty folder of a module's name, left by an earlier version in a working tree, is none, as for Python itself.
    """
    path = _ROOT.joinpath(*module.split(".")) if module else _ROOT
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _digest(path: Path) -> bytes:
    """SHA-256 of a file's name in the package and its content."""
    return hashlib.sha256(path.relative_to(_ROOT).as_posix().encode() + b"\0" + _content(path)).digest()
