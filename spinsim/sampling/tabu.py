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
from spinsim.sampling import one_flip, tabu_pool
from spinsim.sampling.one_flip import BEST, BLOCK, UNSAVED
from spinsim.sampling.tabu_pool import (
    BASE,
    HITS,
    IS_HELPED,
    LOWEST,
    NO_ENERGY,
    NUMBERS,
    POOL,
    POOLED,
    STARTS,
    TAKEN,
    WAY,
)

Spins = npt.NDArray[np.int8]
Array = npt.NDArray[Any]

PATIENCE: Final = 100  # steps a site without a lower energy, after which a search ends
FEWEST_STEPS: Final = 2_000
MOST_STEPS: Final = 1_000_000
DENSE: Final = 0.08  # share of all pairs that are coupled, from which on rows of a matrix are faster than lists
SHARES: Final = 0.015, 0.03, 0.05, 0.08, 0.13, 0.2  # of the sites: steps for which a flip is forbidden, on average
SPREADS: Final = (10, 20, 40, 80)  # of these steps in searches with pairs
LEAST_TENURE: Final = 7
_LARGEST_SMALL: Final = 2**28


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


class _Known(NamedTuple):
    """Arrays of all searches so far, as tabu_pool.py describes them."""

    numbers: npt.NDArray[np.int64]
    tries: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]
    pool: Spins
    energies: npt.NDArray[np.int64]
    lowest: Spins


class Tabu:
    """Tabu searches of one problem, which go on with each call of ``advance``.

    Args:
        model: A model of one sample.
        seed: Of all random numbers.
        start: A state to begin with, +1 and -1, shape (sites,); random if None.
        like: Another search of the same problem, whose arrays of couplings are shared.

    Raises:
        InputError: for several samples, spins that do not fit, and if memory does not suffice.
    """

    def __init__(self, model: Ising, seed: int, start: npt.ArrayLike | None = None, like: Tabu | None = None) -> None:
        if model.samples != 1:
            raise InputError(f"a tabu search takes one sample, not {model.samples}: give model.of_samples(0, 1)")
        self._model, sites = model, model.sites
        self._keys = np.array(rng.split_seed(seed))
        self._unit: int
        self._problem: tuple[Array, ...]
        self._unit, self._problem = _in_units(model) if like is None else (like._unit, like._problem)
        _, _, weight, matrix, fields = self._problem
        self._is_symmetric, kind = not fields.any(), weight.dtype
        self._top = np.array([np.iinfo(kind).max], kind)
        blocks = -(-sites // BLOCK)
        self._is_wide = bool(matrix.size or 2 * model.bonds > sites * blocks)
        shares = [max(2, int(share * sites)) for share in SHARES]
        ways = [(False, max(LEAST_TENURE, k) // 2 + 1, max(LEAST_TENURE, k)) for k in shares]
        ways += [(True, LEAST_TENURE, spread) for spread in SPREADS]
        self._ways = np.array(ways, np.int64)
        longest = int(self._ways[:, 1:].sum(axis=1).max())
        self._state = _State(
            spin=np.ones(sites, np.int8),
            best=np.ones(sites, np.int8),
            cost=np.zeros(blocks * BLOCK, kind),
            side=np.zeros(blocks * BLOCK, np.int8),
            low=np.zeros((2, blocks), kind),
            first=np.full(longest + 1, -1, np.int64),
            after=np.full(sites, -1, np.int64),
            at=np.zeros(one_flip.NUMBERS, np.int64),
            random=np.zeros(1, np.uint64),
        )
        self._patience = min(max(PATIENCE * sites, FEWEST_STEPS), MOST_STEPS)
        self._known = _Known(
            numbers=np.zeros(NUMBERS, np.int64),
            tries=np.zeros(len(ways), np.int64),
            sums=np.zeros(len(ways)),
            pool=np.empty((POOL, sites), np.int8),
            energies=np.empty(POOL, np.int64),
            lowest=np.ones(sites, np.int8),
        )
        self._known.numbers[[WAY, LOWEST, STARTS]] = -1, NO_ENERGY, 1
        self._room = tuple(np.empty(sites, kind) for kind in (np.bool_, np.int8, np.int8, np.bool_, np.int64))
        self._waiting = np.empty((0, sites), np.int8)  # states that were offered
        if start is not None:
            self.offer(start)

    def advance(self, steps: int) -> None:
        """Take this number of steps, each of which flips one site."""
        numbers = self._known.numbers
        numbers[TAKEN] = 0
        tabu_pool.advance(
            steps, self._patience, self._problem, tuple(self._state), tuple(self._known), self._room, self._waiting,
            self._ways, self._is_wide, self._is_symmetric, self._keys, self._top,
        )  # fmt: skip
        self._waiting = self._waiting[numbers[TAKEN] :]

    @property
    def starts(self) -> int:
        """Independent starts begun, each with a pool of its own; those with states that were given do not count."""
        return int(self._known.numbers[STARTS])

    @property
    def best_energy(self) -> float:
        """Lowest energy so far, without the model's offset; infinite before the first step."""
        lowest = min(int(self._known.numbers[LOWEST]), self._now())
        return lowest * self._unit * self._model.quantum if lowest < NO_ENERGY else np.inf

    @property
    def hits(self) -> int:
        """Number of independent starts that have met the best energy."""
        numbers = self._known.numbers
        return int(numbers[HITS] if self._now() >= numbers[LOWEST] else numbers[IS_HELPED] == 0)

    @property
    def best_spins(self) -> Spins:
        """State of the lowest energy so far, +1 and -1, shape (sites,)."""
        if self._now() < self._known.numbers[LOWEST]:
            return (self._state.spin if self._state.at[UNSAVED] else self._state.best).copy()
        return self._known.lowest.copy()

    def _now(self) -> int:
        """Return the lowest energy, in units, of the search that goes on."""
        numbers = self._known.numbers
        return int(numbers[BASE]) + 2 * int(self._state.at[BEST]) if numbers[WAY] >= 0 else NO_ENERGY

    def offer(self, spins: npt.ArrayLike) -> None:
        """Give a state of another method, +1 and -1, shape (sites,): the next search begins there.

        Raises:
            InputError: for another shape or other values.
        """
        given = as_spins(spins, self._model, 1, "spins")[0]
        tabu_pool.note(given[0], one_flip.energy(self._problem, given[0]), False, tuple(self._known))
        self._waiting = np.concatenate([self._waiting, given])

    def state(self) -> dict[str, Array]:
        """Return all that changes, as arrays, for ``restore``."""
        known = self._known
        arrays = {name: array.copy() for name, array in self._state._asdict().items()}
        pooled = known.numbers[POOLED]
        return arrays | {
            "numbers": known.numbers[:POOLED].copy(),
            "tries": known.tries.copy(),
            "sums": known.sums.copy(),
            "pool": known.pool[:pooled].copy(),
            "energies": known.energies[:pooled].copy(),
            "waiting": self._waiting.copy(),
            "lowest_spins": known.lowest.copy(),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a ``state`` of a search with the same model and seed."""
        known, pooled = self._known, len(state["pool"])
        for name, array in self._state._asdict().items():
            array[...] = state[name]
        known.numbers[:POOLED], known.numbers[POOLED] = state["numbers"], pooled
        known.tries[:], known.sums[:], known.lowest[:] = state["tries"], state["sums"], state["lowest_spins"]
        known.pool[:pooled], known.energies[:pooled] = state["pool"], state["energies"]
        self._waiting = state["waiting"].copy()


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
