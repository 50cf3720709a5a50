"""Proven lower bounds of all energies of a model.

Three bounds are tried, the best is kept and raised to the next energy that the model can have:

    all terms satisfied   -sum |J| - sum |h|, at once.
    frustrated cycles     a linear program (``cycles.py``), best for sparse graphs: it often proves optima of two- and
                          three-dimensional lattices. It is never below the roof dual bound, once it has converged.
    semidefinite          by the mixing method (``semidefinite.py``), best for dense graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from spinsim.machine.compiled import seconds_without_compiling
from spinsim.model.ising import Ising
from spinsim.optimum.cycles import cycle_bounds
from spinsim.optimum.pairs import Pairs, attainable_from, with_ghost
from spinsim.optimum.semidefinite import seconds_needed, semidefinite_bounds

_BONDS_A_NODE: Final = 4  # up to which cycles come first
_SHARE: Final = 0.5  # of the time for the second method
Method = Callable[[Pairs, float], Iterator[int]]


class Bound(NamedTuple):
    """A proven lower bound of the energy, without the model's offset."""

    energy: float
    method: str
    seconds: float  # that it took


def lower_bound(model: Ising, seconds: float, target: float | None = None) -> Bound:
    """Return the best proven lower bound of the energy of a model of one sample, in about ``seconds``.

    Args:
        model: One sample; of several the first is taken.
        seconds: Time limit. The result depends on it, but is proven whenever the search ends.
        target: The lowest energy known, if any: a bound that reaches it proves it, and ends the search.
    """
    began, pairs = seconds_without_compiling(), with_ghost(model)
    best, method = attainable_from(pairs, -pairs.size), "all terms satisfied"
    enough = None if target is None else round(target / model.quantum)
    methods: list[tuple[str, Method]] = [("frustrated cycles", cycle_bounds)]
    if seconds_needed(pairs.nodes) < _SHARE * seconds:
        is_sparse = len(pairs.ends) <= _BONDS_A_NODE * pairs.nodes
        methods.insert(is_sparse, ("semidefinite", semidefinite_bounds))
    for turn, (name, bounds) in enumerate(methods, 1):
        left = seconds - (seconds_without_compiling() - began)
        for found in chain([-pairs.size], bounds(pairs, left if turn == len(methods) else left * (1 - _SHARE))):
            if (raised := attainable_from(pairs, found)) > best:
                best, method = raised, name
            if enough is not None and best >= enough:
                return Bound(best * model.quantum, method, seconds_without_compiling() - began)
    return Bound(best * model.quantum, method, seconds_without_compiling() - began)
