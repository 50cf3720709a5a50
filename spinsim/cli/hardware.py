"""What benchmarks say of the machine, and the check that they share."""

from __future__ import annotations

from spinsim.errors import InputError


def check_repeats(repeats: int) -> None:
    """Refuse to time nothing."""
    if repeats < 1:
        raise InputError(f"repeats {repeats} are too few: give at least 1")


def machine(device: str, threads: int | None) -> str:
    """The first GPU's name, or the processor's and how many threads it works with; ``device`` is cpu or cuda."""
    import llvmlite.binding as llvm

    from spinsim.cuda.device import names
    from spinsim.machine.threads import available_threads

    if device == "cuda":
        return names()[0]
    return f"CPU {llvm.get_host_cpu_name()}, {threads or available_threads()} threads"
