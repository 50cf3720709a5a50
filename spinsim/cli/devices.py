"""``spinsim devices``: engines that this machine offers; ``spinsim warm-up``: their kernels, compiled ahead of runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from spinsim.cli.flags import Flag
from spinsim.cli.saying import say
from spinsim.inputs.texts import count

if TYPE_CHECKING:
    from spinsim.jobs.warming import Warmed


def devices() -> None:
    """Say which engines can run here, on every rank where there are several."""
    from spinsim.parallel.places import answers
    from spinsim.parallel.ranks import name_of, why_not
    from spinsim.parallel.session import others

    lines = _of_this_process()
    missing, ranks = why_not(), 1 + len(others())
    lines.append(f"mpi   {missing}" if missing else f"mpi   ready: {ranks} rank{'s' if ranks > 1 else ''}")
    say(*lines)
    there = answers([place.request(_of_this_process) for place in others()])
    for place, lines_there in zip(others(), there, strict=True):
        say(f"{place.request(name_of, place.rank)()}:", *(f"  {line}" for line in lines_there))


def _of_this_process() -> list[str]:
    import platform

    import llvmlite.binding as llvm

    from spinsim.cuda.device import names, why_not
    from spinsim.machine.memory import available_bytes, readable
    from spinsim.machine.threads import available_threads

    features = llvm.get_host_cpu_features()
    vectors = next((name for name in ("avx512f", "avx2", "avx", "neon", "sse2") if features.get(name)), "scalar")
    missing = why_not()
    return [
        f"cpu   ready: {count(available_threads(), 'thread')}, {llvm.get_host_cpu_name()}, {vectors} vectors, "
        f"{readable(available_bytes())} of memory free, {platform.system()} {platform.machine()}",
        f"cuda  {missing}" if missing else f"cuda  ready: {', '.join(names())}",
    ]


def machine(device: str, threads: int | None) -> str:
    """The first GPU's name, or the processor's and how many threads it works with; ``device`` is cpu or cuda."""
    import llvmlite.binding as llvm

    from spinsim.cuda.device import names
    from spinsim.machine.threads import available_threads

    if device == "cuda":
        return names()[0]
    return f"CPU {llvm.get_host_cpu_name()}, {threads or available_threads()} threads"


def warm_up(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Jobs whose kernels are compiled: anneal, temper ...  [all]", metavar="JOB..."),
    ] = None,
    device: Annotated[str, Flag("--device", help="Device of the later runs: auto, cpu or cuda.")] = "auto",
    quiet: Annotated[bool, Flag("--quiet", help="Print nothing.")] = False,
) -> None:
    """Compile the kernels of common runs ahead of time, for container images and batch jobs.

    Later runs then compile nothing. Kernels are kept in the package's folder, or in the user's cache if that cannot be
    written, or in the folder NUMBA_CACHE_DIR. They serve processors of the same kind. Files
    that other users (root excepted) can write to are never used.
    """
    from spinsim.jobs.warming import warm_up
    from spinsim.machine.stored import writable_folder

    def tell(warmed: Warmed) -> None:
        if not quiet:
            made = f"{count(len(warmed.kernels), 'kernel')} in {warmed.seconds:.1f} s" if warmed.kernels else "ready"
            say(f"{warmed.job:8} {warmed.model:27} {made}")

    began = time.perf_counter()
    made = sum(len(warmed.kernels) for warmed in warm_up(jobs or None, device, on_warmed=tell))
    if not quiet:
        all_of_them = f"{count(made, 'kernel')} compiled" if made else "All kernels were compiled already"
        say(f"{all_of_them}, {time.perf_counter() - began:.1f} s; they are kept in {writable_folder()}")
