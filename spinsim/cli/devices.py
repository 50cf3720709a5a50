"""``spinsim devices``: what this machine offers, and what is missing to use it."""

from __future__ import annotations

from spinsim.cli.saying import say


def devices() -> None:
    """Say which engines can run here."""
    import platform

    import llvmlite.binding as llvm

    from spinsim.cuda.device import names, why_not
    from spinsim.machine.memory import available_bytes, readable
    from spinsim.machine.threads import available_threads

    features = llvm.get_host_cpu_features()
    vectors = next((name for name in ("avx512f", "avx2", "avx", "neon", "sse2") if features.get(name)), "scalar")
    say(
        f"cpu   ready: {available_threads()} threads, {llvm.get_host_cpu_name()}, {vectors} vectors, "
        f"{readable(available_bytes())} of memory free, {platform.system()} {platform.machine()}"
    )
    missing = why_not()
    say(f"cuda  {missing}" if missing else f"cuda  ready: {', '.join(names())}")
