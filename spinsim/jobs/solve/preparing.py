"""A problem before its search: what can be fixed or solved exactly, and the model of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.inputs.texts import count
from spinsim.jobs.solve.result import FIXED, PROOFS, SOLVED
from spinsim.machine.threads import Threads
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.optimum.enumeration import LowestStates, lowest_states
from spinsim.optimum.exact import FEW, ground_state
from spinsim.optimum.fixing import reduce
from spinsim.optimum.surfaces import surface_state, tiles_surface

Spins = npt.NDArray[np.int8]
_SOLVED: Final = PROOFS.index(SOLVED)
_WORTH_A_LATTICE: Final = 0.5  # part of a lattice or torus that may be left for a search of a graph to be faster


class Prepared:
    """What is left of a problem to be searched.

    Attributes:
        rest: Model of all parts without an exact solution, side by side; None if nothing is left.
        shift: Energy of a state of the problem minus the energy of its part in ``rest``.
        proof: Number of the sentence of ``PROOFS`` if nothing is left, else 0.
        words: How many sites need no search, and why; empty where all do.
        known: Lowest states of the whole problem, as far as they are known.
        bound: Proven lower bound of all energies, as far as one is known; else -inf.
        met: A low state that was met on the way; None if there is none.

    Args:
        states: How many low states are wanted; 0 leaves the problem as it is. Removed sites have their best value in
            all of them.
        seconds: Time that drawing a planar graph, or matching on a surface, may take.
        seed: Of the search on a surface.
        time_limit: Seconds after which that search begins no further matching, so that what is left depends on the
            machine.
    """

    def __init__(
        self, model: Ising, states: int, device: str, threads: int | None, seconds: float, seed: int, time_limit: float
    ) -> None:
        self._model, self.shift, self.proof, self.words = model, 0.0, 0, ""
        self.rest: Ising | None = model
        self._undo: Callable[[Spins], Spins] = lambda spins: spins
        self.known = LowestStates(np.empty(0), np.empty((0, model.sites), np.int8), 0)
        self.bound = -np.inf
        self.met: Spins | None = None
        if states > 1 and model.sites <= FEW[device]:
            gpu = 0 if device == "cuda" else None
            self.known = lowest_states(model, states * (1 if model.fields.any() else 2), gpu, Threads(threads))
            self.rest, self.proof = None, _SOLVED
        elif states:
            self._fix(device, threads, seconds, seed, time_limit)
            if states > 1 and self.proof:  # one state is known, and more are wanted
                known = self.known.spins[:1] if len(self.known.spins) else self.whole(np.ones(1, np.int8))[None]
                self.bound = float(model.energy(known)[0])
                self.known = LowestStates(np.array([self.bound]), known, 0)
                self.rest, self.shift, self.proof, self.words = model, 0.0, 0, ""
                self._undo = lambda spins: spins

    def _fix(self, device: str, threads: int | None, seconds: float, seed: int, time_limit: float) -> None:
        model, is_surface = self._model, tiles_surface(self._model)
        if model.lattice is not None or is_surface:
            spins = ground_state(model, device, threads, 0.0)  # what is left of them cannot be drawn at once
            if spins is not None:
                self._solved_by(spins)
                return
        reduced = None if is_surface and _has_equal_sizes(model) else reduce(model)
        if reduced is None or (is_surface and sum(map(len, reduced.sites)) > _WORTH_A_LATTICE * model.sites):
            self._match(seconds, seed, time_limit)
            return
        exact = [ground_state(part, device, threads, seconds) for part in reduced.parts]
        left = [part for part, spins in zip(reduced.parts, exact, strict=True) if spins is None]
        remaining = sum(part.sites for part in left)
        if remaining > (model.sites - 1 if model.lattice is None else _WORTH_A_LATTICE * model.sites):
            return  # as lattices are searched faster than other graphs
        ends = np.cumsum([part.sites for part in left])

        def whole(spins: Spins) -> Spins:
            pieces = iter(np.split(spins, ends[:-1]))
            return reduced.undo([next(pieces) if one is None else one for one in exact])

        self._undo, self.rest = whole, joined(left, model.name) if left else None
        self.words = _in_words(reduced.counts, model.sites - remaining, exact)
        some = np.ones(max(1, remaining), np.int8)
        of_rest = 0.0 if self.rest is None else float(self.rest.energy(some[None])[0])
        self.shift = float(model.energy(self.whole(some)[None])[0]) - of_rest
        if self.rest is None:
            self.proof = _SOLVED if exact else PROOFS.index(FIXED)

    def _solved_by(self, spins: Spins) -> None:
        self.known = LowestStates(self._model.energy(spins[None])[:1], spins[None], 0)
        self.rest, self.proof = None, _SOLVED

    def _match(self, seconds: float, seed: int, time_limit: float) -> None:
        """Find a bound on a surface, and mostly the lowest state."""
        state = surface_state(self._model, seconds, seed, time_limit)
        if state is not None:
            self.bound = state.bound
            if state.is_proven:
                self._solved_by(state.spins)
            else:
                self.met = state.spins

    def whole(self, spins: Spins) -> Spins:
        """Return the best state of the whole problem with these spins of ``rest``."""
        return np.asarray(self._undo(spins), np.int8)


def _has_equal_sizes(model: Ising) -> bool:
    """True if all couplings have the same size, so that no site of a torus can be removed."""
    sizes = np.abs(model.integer_couplings(0))
    return bool((sizes == sizes[0]).all())


def joined(parts: Sequence[Ising], name: str) -> Ising:
    """Return one model of several without bonds between them; sites and bonds follow each other."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.sites for part in parts)])
    edges = [part.graph.edges + start for part, start in zip(parts, starts, strict=False)]
    values: list[list[Any]] = [[part.couplings[0] for part in parts], [part.fields[0] for part in parts]]
    for kind, sizes in zip(values, ("bonds", "sites"), strict=True):
        for k, part in enumerate(parts):
            kind[k] = np.broadcast_to(kind[k], getattr(part, sizes)).astype(np.float64)
    couplings, fields = (np.concatenate(kind) for kind in values)
    return Ising(Graph(int(starts[-1]), np.concatenate(edges).astype(np.int32)), couplings, fields, name=name)


def _in_words(counts: dict[str, int], gone: int, exact: list[Spins | None]) -> str:
    """Say how many sites need no search, and why."""
    why = [f"{number} {name}" for name, number in counts.items() if number and name != "components"]
    solved = sum(spins is not None for spins in exact)
    why += [f"{count(solved, 'part')} solved exactly"] * (solved > 0)
    return f"{count(gone, 'site')} without a search ({', '.join(why)})" if gone else ""
