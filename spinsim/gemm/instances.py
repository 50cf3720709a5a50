"""Every kernel instance that a product may ask for, so that all can be compiled ahead of use."""

from __future__ import annotations

from spinsim.gemm import factors, rungs, skinny, splitting, transposing


def instantiations() -> list[tuple[str, str]]:
    """Pairs of a kernel file and an expression that names a function or a template instance of it."""
    modules = rungs, splitting, transposing, factors, skinny
    return [instance for module in modules for instance in module.expressions()]
