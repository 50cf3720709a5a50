"""``spinsim devices``: what this machine offers, and what is missing to use it."""

from __future__ import annotations

from spinsim.cli.saying import say
from spinsim.inputs.texts import count


def devices() -> None:
    """Say which engines can run here, on every rank where there are several."""
    from spinsim.mesh.places import answers
    from spinsim.mesh.ranks import name_of, why_not
    from spinsim.mesh.session import others

    lines = _of_this_process()
    missing, ranks = why_not(), 1 + len(others())
    lines.append(f"mpi   {missing}" if missing else f"mpi   ready: {ranks} rank{'s' if ranks > 1 else ''}")
    for line in lines:
        say(line)
    for place, found in zip(others(), answers([place.ask(_of_this_process) for place in others()]), strict=True):
        say(f"{place.ask(name_of, place.rank)()}:")
        for line in found:
            say(f"  {line}")


def _of_this_process() -> list[str]:
    """What a process can use."""
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
