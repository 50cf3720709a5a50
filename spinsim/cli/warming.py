"""``spinsim warm-up``: kernels compiled ahead of the runs that need them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from spinsim.cli.saying import say
from spinsim.inputs.texts import count

if TYPE_CHECKING:
    from spinsim.jobs.warming import Warmed


def warm_up(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Jobs whose kernels are compiled: anneal, temper ...  [all]", metavar="JOB..."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="Where they will run: auto, cpu or cuda.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing.")] = False,
) -> None:
    """Compile the kernels of common runs now, for images of containers and batch jobs; later runs then compile none.

    Compiled kernels are kept beside the package, or in the user's cache where that cannot be written, or in the
    folder that NUMBA_CACHE_DIR names. They serve processors of the same kind.
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
