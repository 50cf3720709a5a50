"""Tabu search for the lowest states of one problem: one CPU thread, exact energies, a budget of flips.

A search flips the best site whose flip is not forbidden, uphill too, and forbids to flip it back for a while (Glover,
Lü, Hao, 4OR 8, 239 (2010)). It ends when its best energy has not fallen for a number of steps. The ends of the first
searches, from random states, are a pool. Later searches begin at children of two of its states: of each connected set
of sites where these differ, a child has the better part; where that gives nothing new, half of the sites that differ,
by chance. A pool that no longer gains is given up, and all begins anew: another independent start.

Penalties are crossed by pairs: a flip upwards that costs a penalty, and a flip downwards that takes it away, are
chosen together (as swaps of independent sets: Wu, Hao, Glover, Ann. Oper. Res. 196, 611 (2012)). Whether pairs pay,
and how long flips should be forbidden, depends on the problem: searches from random states try several ways, and
mostly take the one of lowest average energy.

Random numbers of search k follow from the seed and k: initial bits and choices by Philox, and the seed of a xorshift
generator within the search. Bits thus depend on the seed, on the number of steps and on states that were offered.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.given import as_spins
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.graph import add_to_matrix, adjacency
from spinsim.model.ising import Ising
from spinsim.sampling import one_flip
from spinsim.sampling.one_flip import BEST, BEST_STEP, BLOCK, NUMBERS, PENDING, STEP, UNSAVED

Spins = npt.NDArray[np.int8]
Array = npt.NDArray[Any]

POOL: Final = 8  # states
FAILURES: Final = 16  # searches in a row that lower no energy, after which a pool is given up
PATIENCE: Final = 100  # steps a site without a lower energy, after which a search ends
FEWEST_STEPS: Final = 2_000
MOST_STEPS: Final = 1_000_000
DENSE: Final = 0.15  # share of all pairs that are coupled, from which on rows of a matrix are faster than lists
SHARES: Final = (
    0.015,
    0.03,
    0.05,
    0.08,
    0.13,
    0.2,
)  # of the sites: average number of steps for which a flip is forbidden
SPREADS: Final = (10, 20, 40, 80)  # of these steps in searches with pairs
FIRST_WAYS: Final = (2, 4, 7)  # ways that are tried twice before any other: short, long, pairs
LEAST_TENURE: Final = 7
_CHOICES, _BITS = 0, 1  # planes of the random numbers of a search
_LARGEST_SMALL: Final = 2**28


class _Way(NamedTuple):
    """How a search goes."""

    pairs: bool
    tenure: int  # steps for which a flip is forbidden at least
    spread: int  # more steps than these, by chance, below this number


class _State(NamedTuple):
    """Arrays of a search, as one_flip.py describes them."""

    spin: Spins
    best: Spins
    cost: Array
    side: Spins
    low: Array
    first: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    random: npt.NDArray[np.uint64]


class Tabu:
    """Tabu searches of one problem, which go on with each call of ``advance``.

    Args:
        model: A model of one sample.
        seed: Of all random numbers.
        start: A state to begin with, +1 and -1, shape (sites,); random if None.
        like: Another search of the same problem, whose arrays of couplings are shared.

    Attributes:
        starts: Independent starts begun, each with a pool of its own; those with states that were given do not count.

    Raises:
        InputError: for several samples, spins that do not fit, and if memory does not suffice.
    """

    def __init__(self, model: Ising, seed: int, start: npt.ArrayLike | None = None, like: Tabu | None = None) -> None:
        if model.samples != 1:
            raise InputError(f"a tabu search takes one sample, not {model.samples}: give model.of_samples(0, 1)")
        self._model, self._seed, sites = model, rng.check_seed(seed), model.sites
        self._unit: int
        self._problem: tuple[Array, ...]
        self._unit, self._problem = _in_units(model) if like is None else (like._unit, like._problem)
        _, _, weight, matrix, fields = self._problem
        self._is_symmetric, kind = not fields.any(), weight.dtype
        self._top = np.array([np.iinfo(kind).max], kind)
        blocks = -(-sites // BLOCK)
        self._is_wide = bool(matrix.size or 2 * model.bonds > sites * blocks)
        shares = [max(2, int(share * sites)) for share in SHARES]
        self._ways = [_Way(False, max(LEAST_TENURE, k) // 2 + 1, max(LEAST_TENURE, k)) for k in shares]
        self._ways += [_Way(True, LEAST_TENURE, spread) for spread in SPREADS]
        longest = max(way.tenure + way.spread for way in self._ways)
        self._state = _State(
            spin=np.ones(sites, np.int8),
            best=np.ones(sites, np.int8),
            cost=np.zeros(blocks * BLOCK, kind),
            side=np.zeros(blocks * BLOCK, np.int8),
            low=np.zeros((2, blocks), kind),
            first=np.full(longest + 1, -1, np.int64),
            after=np.full(sites, -1, np.int64),
            at=np.zeros(NUMBERS, np.int64),
            random=np.zeros(1, np.uint64),
        )
        self._patience = min(max(PATIENCE * sites, FEWEST_STEPS), MOST_STEPS)
        self._searches = 0  # begun
        self._way = -1  # of the search that goes on, -1 if there is none
        self._is_random = False  # True if it began at a random state
        self._base = 0  # energy in units where it began
        self._tries = np.zeros(len(self._ways), np.int64)  # searches from random states by each way
        self._sums = np.zeros(len(self._ways))  # of their energies
        self._pool, self._energies = np.empty((0, sites), np.int8), np.empty(0, np.int64)
        self._waiting = np.empty((0, sites), np.int8)  # states that were offered
        self._failures = 0
        self._is_helped = False  # True if the pool has descendants of states that were offered
        self._has_hit = False
        self._lowest, self._lowest_spins = np.iinfo(np.int64).max, np.ones(sites, np.int8)
        self.starts, self._hits = 1, 0
        if start is not None:
            self.offer(start)

    def advance(self, steps: int) -> None:
        """Take this number of steps, each of which flips one site."""
        while steps > 0:
            if self._way < 0:
                self._begin()
            way, at = self._ways[self._way], self._state.at
            steps = one_flip.search(
                steps, self._patience, self._problem, tuple(self._state), self._top, self._is_wide, *way
            )
            if at[STEP] - at[BEST_STEP] >= self._patience:
                self._end()

    @property
    def best_energy(self) -> float:
        """Lowest energy so far, without the model's offset; infinite before the first step."""
        lowest = min(self._lowest, self._now())
        return lowest * self._unit * self._model.quantum if lowest < np.iinfo(np.int64).max else np.inf

    @property
    def hits(self) -> int:
        """Number of independent starts that have met the best energy."""
        return self._hits if self._now() >= self._lowest else int(not self._is_helped)

    @property
    def best_spins(self) -> Spins:
        """State of the lowest energy so far, +1 and -1, shape (sites,)."""
        if self._now() < self._lowest:
            return (self._state.spin if self._state.at[UNSAVED] else self._state.best).copy()
        return self._lowest_spins.copy()

    def offer(self, spins: npt.ArrayLike) -> None:
        """Give a state of another method, +1 and -1, shape (sites,): the next search begins there.

        Raises:
            InputError: for another shape or other values.
        """
        given = as_spins(spins, self._model, 1, "spins")[0]
        self._note(given[0], int(one_flip.energy(self._problem, given[0])), counts=False)
        self._waiting = np.concatenate([self._waiting, given])

    def state(self) -> dict[str, Array]:
        """Return all that changes, as arrays, for ``restore``."""
        numbers = [self._searches, self._way, self._is_random, self._base, self._failures, self._is_helped]
        numbers += [self._has_hit, self._lowest, self.starts, self._hits]
        arrays = {name: array.copy() for name, array in self._state._asdict().items()}
        return arrays | {
            "numbers": np.array(numbers, np.int64),
            "tries": self._tries.copy(),
            "sums": self._sums.copy(),
            "pool": self._pool.copy(),
            "energies": self._energies.copy(),
            "waiting": self._waiting.copy(),
            "lowest_spins": self._lowest_spins.copy(),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a ``state`` of a search with the same model and seed."""
        for name, array in self._state._asdict().items():
            array[...] = state[name]
        searches, way, is_random, base, failures, is_helped, has_hit, lowest, starts, hits = map(int, state["numbers"])
        self._searches, self._way, self._is_random, self._base = searches, way, bool(is_random), base
        self._failures, self._is_helped, self._has_hit = failures, bool(is_helped), bool(has_hit)
        self._lowest, self.starts, self._hits = lowest, starts, hits
        self._tries, self._sums = state["tries"].copy(), state["sums"].copy()
        self._pool, self._energies = state["pool"].copy(), state["energies"].copy()
        self._waiting, self._lowest_spins = state["waiting"].copy(), state["lowest_spins"].copy()

    def _now(self) -> int:
        """Return the lowest energy, in units, of the search that goes on."""
        return self._base + 2 * int(self._state.at[BEST]) if self._way >= 0 else int(np.iinfo(np.int64).max)

    def _draw(self, plane: int, groups: int) -> npt.NDArray[np.uint64]:
        words = rng.draw(self._seed, rng.Stream.TABU, group=np.arange(groups), half_sweep=self._searches, plane=plane)
        return words.T.reshape(-1)

    def _begin(self) -> None:
        """Begin the next search."""
        choices = self._draw(_CHOICES, 2)
        state = self._state
        state.random[0] = choices[0] << np.uint64(32) | choices[1] | np.uint64(1)
        self._way = self._next_way(int(choices[2]))
        self._is_random = not len(self._waiting) and len(self._pool) < POOL
        if len(self._waiting):
            state.spin[:], self._waiting, self._is_helped = self._waiting[0], self._waiting[1:], True
        else:
            words = self._draw(_BITS, -(-self._model.sites // 128)).astype("<u4")
            bits = np.unpackbits(words.view(np.uint8), count=self._model.sites, bitorder="little").view(np.bool_)
            if self._is_random:
                state.spin[:] = np.where(bits, 1, -1)
            else:
                one = int(choices[3]) % POOL
                state.spin[:] = self._child(one, (one + 1 + int(choices[4]) % (POOL - 1)) % POOL, bits)
        state.first[:] = -1
        one_flip.prepare(self._problem, tuple(state), self._top, self._ways[self._way].pairs)
        state.at[:] = 0
        state.at[UNSAVED], state.at[PENDING] = 1, -1
        self._base = int(one_flip.energy(self._problem, state.spin))
        self._searches += 1

    def _next_way(self, choice: int) -> int:
        """Return the way of a search: that of lowest average energy, or one next to it, once some have been tried."""
        if self._tries[list(FIRST_WAYS)].min() < 2:
            return min(FIRST_WAYS, key=lambda way: int(self._tries[way]))
        tried = np.flatnonzero(self._tries)
        way = int(tried[np.argmin(self._sums[tried] / self._tries[tried])])
        other = way + (0, 0, -1, 1)[choice % 4]
        is_like = 0 <= other < len(self._ways) and self._ways[other].pairs == self._ways[way].pairs
        return other if is_like else way

    def _child(self, one: int, other: int, bits: npt.NDArray[np.bool_]) -> Spins:
        """Return a child of two states of the pool."""
        first, second = self._pool[one], self._pool[other]
        if self._is_symmetric and int(first.astype(np.int64) @ second) < 0:
            second = -second
        child: Spins = np.empty_like(first)
        seen, queue = np.empty(first.size, np.bool_), np.empty(first.size, np.int64)
        sets, taken = one_flip.recombine(first, second, child, seen, queue, self._problem, self._state.random)
        if not 0 < taken < sets:
            child[:] = np.where(bits, first, second)
        return child

    def _end(self) -> None:
        """Take the best state of a search into the pool, and give up a pool that no longer gains."""
        state, energy = self._state, self._now()
        if state.at[UNSAVED]:
            state.best[:] = state.spin
        if self._is_random:
            self._sums[self._way] += energy
            self._tries[self._way] += 1
        self._way = -1
        self._note(state.best, energy, counts=not self._is_helped)
        gains = energy < self._energies.min(initial=np.iinfo(np.int64).max)
        best = state.best * state.best[0] if self._is_symmetric else state.best
        if not (self._pool == best).all(axis=1).any():
            if len(self._pool) < POOL:
                self._pool, self._energies = np.append(self._pool, best[None], 0), np.append(self._energies, energy)
            elif energy <= self._energies.max():
                worst = int(np.argmax(self._energies))
                self._pool[worst], self._energies[worst] = best, energy
        self._failures = 0 if gains else self._failures + 1
        if self._failures >= FAILURES:
            self._pool, self._energies, self._failures = self._pool[:0], self._energies[:0], 0
            self.starts += not self._is_helped
            self._is_helped = self._has_hit = False

    def _note(self, spins: Spins, energy: int, counts: bool) -> None:
        """Note the lowest energy, and starts that have met it."""
        if energy < self._lowest:
            self._lowest, self._lowest_spins = energy, spins.copy()
            self._hits, self._has_hit = 0, False
        if energy == self._lowest and counts and not self._has_hit:
            self._hits, self._has_hit = self._hits + 1, True


def _in_units(model: Ising) -> tuple[int, tuple[Array, ...]]:
    """Return the largest common unit of a problem in quanta, and its arrays for the kernels."""
    couplings, fields = model.integer_couplings(0), model.integer_fields(0)
    unit = max(1, int(np.gcd(np.gcd.reduce(couplings), np.gcd.reduce(fields))))
    if unit > 1:
        couplings, fields = couplings // unit, fields // unit
    kind: Any = np.int32 if model.largest_local_field // unit < _LARGEST_SMALL else np.int64
    sites, bonds = model.sites, model.bonds
    is_dense = 2 * bonds > DENSE * sites**2
    size = 40 * bonds + (sites**2 * np.dtype(kind).itemsize if is_dense else 0)
    require(size, f"{sites} sites with {bonds} bonds", "choose another method")
    matrix = np.zeros((sites, sites) if is_dense else (0, 0), kind)
    if is_dense:
        add_to_matrix(model.graph, 2 * couplings, np.arange(sites), matrix)
        if np.count_nonzero(matrix) == 2 * bonds:  # then each entry is a bond
            return unit, (np.zeros(sites + 1, np.int64), np.empty(0, np.int32), np.empty(0, kind), matrix, fields)
    near = adjacency(model.graph)
    order = np.lexsort((near.neighbour, np.repeat(np.arange(sites), np.diff(near.start))))
    weight = (2 * couplings[near.bond[order]]).astype(kind)
    return unit, (near.start, near.neighbour[order], weight, matrix, fields)
