"""Kernel instances as shared libraries of the CPU."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

SHIM: Final = Path(__file__).with_name("device.h")
# Without fused multiply-adds, as on the device; shared words are read as several types; libraries share no variables.
OPTIONS: Final = (
    *("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared", "-fno-gnu-unique"),
)
_ASM: Final = re.compile(r"\basm(?: volatile)?\(\s*(\"[^;]*;\".*?)\);", re.DOTALL)
_DYNAMIC: Final = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


def why_not() -> str | None:
    """What keeps kernels from being emulated here, None where nothing does."""
    return None if shutil.which("g++") and Path("/usr/include/ucontext.h").exists() else "needs g++ and ucontext.h"


def _operands(statement: str) -> list[str]:
    """Operands of an asm statement: what stands in brackets behind a constraint such as "=r"."""
    found = []
    for match in re.finditer(r'"[=+]?[rlnfd]"\(', statement):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(statement[end], 0)
            end += 1
        found.append(statement[match.end() : end - 1])
    return found


def _call(match: re.Match[str]) -> str:
    """An asm statement as a call of ``device.h``."""
    mnemonic = re.match(r'"([\w.]+)', match[1])
    assert mnemonic
    size = re.search(r'^"cp[^"]*\], (\d+);', match[1])  # of a copy, 16 bytes unless it says another number
    name = mnemonic[1].replace(".", "_") + (f"_{size[1]}" if size and size[1] != "16" else "")
    return f"ptx_{name}({', '.join(_operands(match[1]))});"


def translate(source: str) -> str:
    """CUDA C++ as C++."""
    return _DYNAMIC.sub(r"\1* const \2 = (\1*)emulation::shared_memory();", _ASM.sub(_call, source))


@cache
def compile_instance(source: str, expression: str, device: int) -> ctypes.CDLL:
    """A library with ``launch_instance(values, grid, threads)``; each device has variables of its own."""
    with tempfile.NamedTemporaryFile(prefix="emulated-", suffix=".so") as file:
        file.write(_compiled(source, expression))
        file.flush()
        return ctypes.CDLL(file.name)


@cache
def _compiled(source: str, expression: str) -> bytes:
    """The content of such a library, from disk where this or another process has compiled it before."""
    code = f"""#include "device.h"
{translate(source)}
static void instance(void** values) {{ emulation::call(&{expression}, values); }}
extern "C" void launch_instance(void** values, const unsigned* grid, unsigned threads) {{
    emulation::launch(instance, values, grid, threads);
}}
"""
    library = _built() / f"{hashlib.sha256(code.encode()).hexdigest()[:24]}.so"
    if not library.exists():
        _compile(code, library)
    return library.read_bytes()


@cache
def _built() -> Path:
    """The folder of what is compiled with this compiler and ``device.h``, whose parsed form is there too."""
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    key = "\n".join([version, *OPTIONS, SHIM.read_text()])
    folder = SHIM.parent / "__pycache__" / f"device-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    parsed = folder / f"{SHIM.name}.gch"
    if not parsed.exists():
        for former in folder.parent.glob("device-*"):
            if former != folder:
                shutil.rmtree(former, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _compile(SHIM.read_text(), parsed, "-x", "c++-header")
    return folder


def _compile(code: str, target: Path, *options: str) -> None:
    """Put what g++ makes of a source in its place; other processes never see a part of it."""
    with tempfile.TemporaryDirectory(prefix="emulated-") as folder:
        source, made = Path(folder, "kernel.cpp"), target.with_name(f".{os.getpid()}-{target.name}")
        source.write_text(code)
        command = ["g++", *OPTIONS, f"-I{target.parent}", f"-I{SHIM.parent}", *options, "-o", made, source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
        made.replace(target)
