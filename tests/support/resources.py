"""What every kernel instance takes of a multiprocessor, told by NVRTC on a machine that needs no GPU.

``python tests/support/resources.py`` prints it; with ``--record`` registers and spills also become the ceilings of
test_kernels.py. Compiling everything takes many minutes, so the ceilings stand beside a digest of the source that they
were measured of: the same source and the same compiler need no second look.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from instances import OF_ENGINES

from spinsim.cuda.compile import OPTIONS, source
from spinsim.gemm import product as matmul
from spinsim.gemm import special
from spinsim.transfer_matrix.cuda import instantiations as of_transfer

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
CEILINGS = Path(__file__).with_name("kernel_ceilings.toml")
UNIT = 8  # registers a thread, the step in which all these architectures allocate them
LONGEST_LOG = 3000  # one mistake in a template is told once for each instance
# What ptxas says of one kernel; the cumulative stack includes functions that were not inlined.
REPORT = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'.*?"
    r"(?P<frame>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(, used \d+ barriers)?"
    r"(, (?P<stack>\d+) bytes cumulative stack size)?(, (?P<shared>\d+) bytes smem)?",
    re.DOTALL,
)
COMMENT = re.compile(r"//[^\n]*")
INFO = re.compile(r"^ptxas (info|  ).*\n", re.MULTILINE)


def instantiations() -> list[tuple[str, str]]:
    """Every instance of the package, with its file."""
    return [*OF_ENGINES, *matmul.expressions(), *special.expressions(), *of_transfer()]


class Resources(NamedTuple):
    """Registers of a thread, its bytes of spills and stack, and the block's bytes of static shared memory."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int

    @property
    def spills(self) -> int:
        """Bytes that a thread stores and loads again for want of registers."""
        return self.spill_stores + self.spill_loads

    @classmethod
    def of(cls, report: re.Match[str]) -> Resources:
        """Read a match of ``REPORT``."""
        number = {key: int(value or 0) for key, value in report.groupdict().items() if key != "name"}
        stack = max(number["frame"], number["stack"])
        return cls(number["registers"], number["stores"], number["loads"], stack, number["shared"])


def why_not() -> str | None:
    """What keeps kernels from being compiled here, None where nothing does."""
    try:
        nvrtc_version()
    except (ImportError, RuntimeError) as error:  # the latter where CuPy finds no NVRTC
        return f"kernels are not compiled, install cupy-cuda13x and nvidia-cuda-nvrtc: {error}"
    return None


def nvrtc_version() -> str:
    """The compiler's, on which registers depend."""
    from cupy.cuda import nvrtc

    return ".".join(map(str, nvrtc.getVersion()))


def measure(code: str, expressions: Iterable[str], architecture: str) -> dict[str, Resources]:
    """Compile kernels of one program, named as for ``compile.kernel``."""
    from cupy.cuda import nvrtc

    expressions = list(expressions)
    program = nvrtc.createProgram(code, "kernels.cu", (), ())
    try:
        for expression in expressions:
            nvrtc.addNameExpression(program, expression)
        try:
            nvrtc.compileProgram(program, (*OPTIONS, f"-arch={architecture}", "--ptxas-options=-v"))
        except nvrtc.NVRTCError as error:
            raise RuntimeError(INFO.sub("", nvrtc.getProgramLog(program))[:LONGEST_LOG]) from error
        found = {match["name"]: match for match in REPORT.finditer(nvrtc.getProgramLog(program))}
        return {e: Resources.of(found[nvrtc.getLoweredName(program, e)]) for e in expressions}
    finally:
        nvrtc.destroyProgram(program)


def programs() -> dict[str, list[str]]:
    """All expressions of every kernel file."""
    files: dict[str, list[str]] = {}
    for file, expression in instantiations():
        files.setdefault(file, []).append(expression)
    return files


def digest(file: str) -> str:
    """SHA-256 of all that determines what the instances of a file compile to, but for comments and white space."""
    code = " ".join(COMMENT.sub("", source(file)).split())
    return hashlib.sha256("\n".join([code, *programs()[file], *OPTIONS]).encode()).hexdigest()


def measure_all(pool: ThreadPoolExecutor, files: Iterable[str]) -> dict[tuple[str, str], Future[dict[str, Resources]]]:
    """These files for every architecture, a program each; NVRTC leaves Python to other threads."""
    found = programs()
    return {(f, arch): pool.submit(measure, source(f), found[f], arch) for f, arch in product(files, ARCHITECTURES)}


def kept() -> dict[str, dict[str, Any]]:
    """Ceilings of the files that are as they were when they were recorded, by this compiler."""
    old = tomllib.loads(CEILINGS.read_text()) if CEILINGS.exists() else {}
    same = old["digests"] if old.get("nvrtc") == nvrtc_version() else {}
    return {file: old[file] for file in programs() if same.get(file) == digest(file)}


def main(record: bool, everything: bool) -> None:
    """Compile what has changed, or everything, and print what each instance takes.

    Args:
        record: Write registers, in whole units, and spills as the new ceilings.
        everything: Compile the files too that have not changed.
    """
    ceilings = {} if everything else kept()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = measure_all(pool, [file for file in programs() if file not in ceilings])
        for (file, arch), future in futures.items():
            for expression, used in future.result().items():
                taken = [-(-used.registers // UNIT) * UNIT, used.spills]
                ceilings.setdefault(file, {}).setdefault(expression, {})[arch] = taken
                sys.stdout.write(f"{file} {expression} {arch}: {used}\n")
    head = "# Written by tests/support/resources.py --record: registers in units of 8, bytes of spills."
    lines = [head, "", f'nvrtc = "{nvrtc_version()}"', "", "[digests]"]
    lines += [f'"{file}" = "{digest(file)}"' for file in programs()]
    for file, expressions in programs().items():
        lines += ["", f'["{file}"]']
        for expression in expressions:
            of = ", ".join(f"{arch} = {ceilings[file][expression][arch]}" for arch in ARCHITECTURES)
            lines.append(f'"{expression}" = {{ {of} }}')
    if record:
        CEILINGS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main("--record" in sys.argv[1:], "--all" in sys.argv[1:])
