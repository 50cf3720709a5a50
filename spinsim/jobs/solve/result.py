"""Result of a solve run: the best state, how far to trust it, and further low states."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.time_to_solution import CONFIDENCE, WANTED, Estimate, in_words, seconds_in_words
from spinsim.errors import MissingError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import Described, count
from spinsim.model.ising import Ising
from spinsim.model.targets import value_name, value_of
from spinsim.packing import unpacked_spins
from spinsim.record import Record
from spinsim.result import Result
from spinsim.run.search import GROUP, Outcome
from spinsim.solution import Lowest, Solution, solutions
from spinsim.store.contents import BITS, BYTE, ENERGY, LABELS, Series

FIXED, SOLVED, BOUNDED = "all sites could be fixed", "all parts were solved exactly", "it meets a proven bound"
PROOFS: Final = "", FIXED, SOLVED, BOUNDED
"""Reasons why an answer is optimal, by number; the first one stands for none."""
SIZES: Final = "sizes"
"""Attribute of the group: the device for which numbers of replicas were chosen, and the number of parallel searches."""
FIXED_WORDS: Final = "fixed"
"""Attribute of the group: how many sites needed no search, and why."""
_OF_METHODS: Final = (
    Series("seconds", ("method",), np.float64, "time of each method", "s"),
    Series("sweeps", ("method",), np.int64, "sweeps of each method"),
    Series("lowest", ("method",), np.float64, "lowest energy met by each method", ENERGY),
    Series("starts", ("method",), np.int64, "independent starts of each method"),
    Series("hits", ("method",), np.int64, "starts that met the lowest energy of all"),
    Series("improved_seconds", ("improvement",), np.float64, "time of each improvement", "s"),
    Series("improved_energy", ("improvement",), np.float64, "energy of each improvement", ENERGY),
    Series("state_energy", ("state",), np.float64, "energies of distinct low states", ENERGY),
    Series("state_bits", ("state", BYTE), np.uint8, f"distinct low states, {BITS}"),
    Series("state_failed", ("state",), np.bool_, "true for states that are not feasible"),
    Series("sites", (), np.int64, "sites that were searched, after what could be solved exactly"),
    Series("tested", ("outcome",), np.int64, "states tested for feasibility, and those that were feasible"),
    Series("bound", (), np.float64, "proven bound below all energies", ENERGY),
    Series("proof", (), np.int64, f"reason why the best state is optimal: {dict(enumerate(PROOFS))}"),
)


@dataclass(frozen=True, repr=False)
class Solved(Outcome):
    """Outcome of a solve run; arrays over methods are in the order of ``SolveResult.methods``.

    Energies exclude the constant of the problem. ``bound`` is below all energies, minus infinity where none is known;
    ``proof`` is the number of a sentence of ``PROOFS``. ``sites`` were searched, the others solved exactly. ``tested``
    has the numbers of tested and of feasible states.
    """

    UNIT: ClassVar[str] = "turn"
    GROUP: ClassVar[str] = GROUP
    OWN: ClassVar[tuple[Series, ...]] = _OF_METHODS

    seconds: npt.NDArray[np.float64]
    sweeps: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int64]
    improved_seconds: npt.NDArray[np.float64]
    improved_energy: npt.NDArray[np.float64]
    state_energy: npt.NDArray[np.float64]
    state_bits: npt.NDArray[np.uint8]
    state_failed: npt.NDArray[np.bool_]
    sites: int
    tested: npt.NDArray[np.int64]
    bound: float
    proof: int


@dataclass(frozen=True, repr=False)
class Quality(Described):
    """How far to trust the best state of a search.

    Attributes:
        proof: Why the state is optimal, in words; empty without a proof.
        bound: Proven bound in the problem's own terms: no energy is lower (no cut is larger); None where none is known.
        gap: Relative distance of the best value from the bound; 0 for a proven optimum, None without a bound.
        hits: Independent starts that met the best energy, of all methods.
        starts: Independent starts of all methods: anneals of single replicas, groups of copies that temper, restarts of
            tabu searches.
        missed: Estimated probability that a better state was missed: 0 with a proof, else 1 / hits. It is 1 for a
            single hit or none, which say nothing. This rule of thumb was calibrated (docs/benchmarks/optimisation.md).
        time_to_solution: Seconds in which the search meets the best energy with probability 99 %, with the interval of
            one standard error, from hits as a Poisson process in time; with a proof the time of the search.
    """

    proof: str
    bound: float | None
    gap: float | None
    hits: int
    starts: int
    missed: float
    time_to_solution: Estimate

    @property
    def is_proven(self) -> bool:
        """True if the best state is proven to be optimal."""
        return bool(self.proof)

    @property
    def _summary(self) -> dict[str, str]:
        if self.proof:
            return {"quality": f"optimal: {self.proof}"}
        met = f"met by {self.hits} of {count(self.starts, 'independent start')}"
        words = f"heuristic, no proof; a better one was missed with probability up to {self.missed:.2g}"
        gap = {} if self.gap is None else {"gap": f"{100 * self.gap:.3g} % from a proven bound"}
        return {"hits": met, "quality": words} | gap

    @property
    def sentence(self) -> str:
        return "; ".join(self._summary.values())


def time_to_solution(hits: int, seconds: float) -> Estimate:
    """Seconds in which a Poisson process with this number of hits in a time has one with probability 99 %."""
    if not seconds:
        return Estimate(0.0, 0.0, 0.0)
    from scipy.special import gammaincinv

    factor = -math.log1p(-WANTED) * seconds
    tail = (1 - CONFIDENCE) / 2
    least = float(gammaincinv(hits, tail)) if hits else 0.0
    most = float(gammaincinv(hits + 1, 1 - tail))
    ends = factor / most, factor / least if least else math.inf
    return Estimate(factor / hits if hits else math.inf, *ends)


class LowState(NamedTuple):
    """One of the distinct low states.

    Attributes:
        solution: The state in terms of the problem.
        is_feasible: False if the given test refused it.
        distance: Number of spins that differ from the best state; without fields of the state or its reverse, whichever
            is nearer.
        droplets: Sizes of the connected clusters of these spins, falling.
    """

    solution: Solution
    is_feasible: bool
    distance: int
    droplets: list[int]


@public
@dataclass(frozen=True, repr=False)
class SolveResult(Result):
    """The best state that a search met, and how far to trust it.

    Attributes:
        model: The problem.
        search: Time, turns, methods and states of the search.
        record: The whole run as named arrays, as stored in its file.
        job: Name of the job, the command that makes such runs.
        series_group: Group of ``record`` with the outcome.
    """

    job = "solve"
    series_group = GROUP

    model: Ising
    search: Solved
    record: Record = field(default_factory=Record)

    @property
    def methods(self) -> list[str]:
        """Names of the methods that took turns; empty if everything was solved exactly."""
        return methods_in(self.record)

    @property
    def best_energy(self) -> npt.NDArray[np.float64]:
        """Energy of the best state without the constant, (1, 1); ``best.energy`` includes it."""
        return np.asarray(self.record["best/energy"])

    @property
    def best_spins(self) -> npt.NDArray[np.int8]:
        """The best state, ``int8`` (1, sites)."""
        return np.asarray(self.record["best/spins"])

    @property
    def cut(self) -> float:
        """Best cut of a MaxCut instance; InputError for other problems."""
        return float(self.model.cut(self.best_energy[0, 0]))

    @cached_property
    def quality(self) -> Quality:
        """How far to trust the best state."""
        s, energy = self.search, float(self.best_energy[0, 0])
        hits = int(s.hits.sum())
        proof = PROOFS[s.proof]
        bound = gap = None
        if math.isfinite(s.bound):
            bound = float(value_of(self.model, s.bound))
            best = float(value_of(self.model, energy))
            gap = 0.0 if proof else abs(best - bound) / max(abs(best), abs(bound), 1e-300)
        missed = 0.0 if proof else 1 / max(1, hits)
        times = Estimate(*[s.elapsed] * 3) if proof else time_to_solution(hits, s.elapsed)
        return Quality(proof, bound, gap, hits, int(s.starts.sum()), missed, times)

    @cached_property
    def states(self) -> list[LowState]:
        """The distinct low states that were kept, from the best one; ``--states`` sets their number."""
        s = self.search
        spins = unpacked_spins(s.state_bits, self.model.sites)
        found = []
        for energy, one, failed in zip(s.state_energy, spins, s.state_failed, strict=True):
            solution = solutions(self.model, Lowest(np.array([[energy]]), one[None]))[0]
            found.append(LowState(solution, not failed, *_apart(self.model, spins[0], one)))
        return found

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins)

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"turns": f"{count(self.search.done, 'turn')} in {self.search.elapsed:.3g} s"}

    @property
    def _findings(self) -> dict[str, str]:
        if not np.isfinite(self.best_energy).all():
            return {}
        best = float(value_of(self.model, self.best_energy[0, 0]))
        met = self.search.verdict(self.model, self.best_energy[:, 0])
        said = {"best": f"{value_name(self.model)} {best:.15g}", "quality": self.quality.sentence}
        said |= {"feasible": "no state that was met is feasible"} if self.search.state_failed[:1].any() else {}
        return said | ({"target": met} if met else {})


def _apart(model: Ising, first: npt.NDArray[np.int8], other: npt.NDArray[np.int8]) -> tuple[int, list[int]]:
    """Return the number of sites at which two states differ, and the sizes of the clusters of these sites."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    differs = first != other
    if not np.any(model.fields) and 2 * differs.sum() > len(differs):
        differs = ~differs
    ends = model.graph.edges
    both = ends[differs[ends].all(axis=1)]
    shape = (len(differs), len(differs))
    _, labels = connected_components(coo_array((np.ones(len(both)), both.T), shape=shape), directed=False)
    sizes = np.bincount(labels[differs])
    return int(differs.sum()), sorted(sizes[sizes > 0].tolist(), reverse=True)


def methods_in(record: Record) -> list[str]:
    """Names of the methods of a run; none if everything was solved exactly."""
    names: list[str] = json.loads(record.groups[GROUP].attributes[LABELS])["method"]
    return names


def read(record: Record, model: Ising) -> SolveResult:
    search = Solved.read(record)
    if search is None:
        raise MissingError(f"the search of {model.name} was stopped before its first checkpoint: begin it again")
    return SolveResult(model, search, record)


def time_in_words(quality: Quality) -> str:
    return in_words(quality.time_to_solution, seconds_in_words)
