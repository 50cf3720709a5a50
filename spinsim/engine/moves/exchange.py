"""Parallel tempering: replicas of one copy exchange temperatures, never configurations.

Replica c T + k belongs to copy c, one of ``copies`` independent ones, and begins with temperature k of T, counted from
the coldest. A round is some sweeps, then one attempt for every other pair of neighbouring temperatures: pairs of even
lower index in even rounds, of odd lower index in odd rounds. The pair (t, t + 1), held by replicas of energy E_t and
E_{t+1}, is exchanged with probability min(1, exp(-(beta_t - beta_{t+1}) (E_{t+1} - E_t))), decided by a 64-bit uniform
of the stream ``SWAP``: group = copy * (T - 1) + t, half-sweep field = number of the round. Where the energy has two
terms, a temperature is a pair of numbers and the exponent a sum over both.

A replica completes a round trip when it returns to the hottest temperature after visiting the hottest and then the
coldest one.

This module has the ladder and its exchanges on the CPU; exchange_cuda.py has the exchanges on GPUs.

Source: K. Hukushima, K. Nemoto, J. Phys. Soc. Jpn. 65, 1604 (1996).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, check_beta, check_betas, exp_reduced
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.measuring.sums import Counts
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel, part, step
from spinsim.model.graph import MOST_TERMS
from spinsim.model.ising import Ising

NOWHERE, FROM_HOT, FROM_COLD = range(3)
"""End of the ladder that a replica visited last; the coldest end counts only after the hottest."""

MOST_TEMPERATURES: Final = 2**15

ONE_TERM: Final = "give one for each temperature, as two take a model that states the term of each bond"
"""Advice if an update does not take inverse temperatures of two terms."""

NO_LADDER: Final = "no ladder of temperatures is set: call set_ladder first, and again after set_beta"


class Exchange(NamedTuple):
    """State of the exchange of temperatures."""

    place: npt.NDArray[np.int32]  # temperature index of each replica, int32 (samples, replicas)
    attempts: npt.NDArray[np.int64]  # attempts of each pair (t, t + 1), all copies, (samples, temperatures - 1)
    accepts: npt.NDArray[np.int64]  # accepted attempts, same shape
    trips: npt.NDArray[np.int64]  # round trips of each replica, int64 (samples, replicas)
    last_end: npt.NDArray[np.int8]  # end of the ladder that each replica visited last, int8 (samples, replicas)

    def copied(self) -> Exchange:
        return Exchange._make(array.copy() for array in self)


@dataclass(frozen=True)
class Ladder:
    """Inverse temperatures of every copy.

    Raises:
        InputError: for no temperatures, ``beta`` that does not descend, no copies or too many replicas.
    """

    # from the coldest, descending, (temperatures,); or of both terms, (temperatures, 2), in an order in which
    # neighbours differ. A single temperature is never exchanged.
    beta: npt.NDArray[np.float64]
    copies: int  # independent copies of the ladder in each sample

    def __post_init__(self) -> None:
        count = len(self.beta)
        beta = check_betas(self.beta, count) if np.ndim(self.beta) == 2 else check_beta(self.beta, np.size(self.beta))
        object.__setattr__(self, "beta", beta)
        if not 1 <= count <= MOST_TEMPERATURES:
            raise InputError(f"{count} temperatures make no ladder: give 1 to {MOST_TEMPERATURES}")
        if beta.ndim == 1 and not (np.diff(beta) < 0).all():
            raise InputError("temperatures of a ladder must all differ and come from the lowest to the highest")
        if beta.ndim == 2 and not (np.diff(beta, axis=0) != 0).any(axis=1).all():
            raise InputError("neighbouring points of a ladder must differ: leave out what stands there twice")
        if self.copies < 1:
            raise InputError(f"{self.copies} copies cannot be simulated: give a whole number, at least 1")

    @classmethod
    def of_engine(cls, beta: npt.ArrayLike, copies: int, replicas: int, temperatures: tuple[int, ...] = (1,)) -> Ladder:
        """Create a ladder for an engine; each replica takes one of the numbers ``temperatures`` of beta values.

        If each replica needs two, the ladder's ``beta`` always gets two columns.

        Raises:
            InputError: for an invalid ladder, or one that does not fit the engine.
        """
        values = np.atleast_1d(np.asarray(beta, np.float64))
        if values.ndim > 1 and (MOST_TERMS not in temperatures or values.shape[1:] != (MOST_TERMS,)):
            rule = "give (temperatures,) or (temperatures, 2)" if MOST_TERMS in temperatures else ONE_TERM
            raise InputError(f"inverse temperatures of a ladder have shape {values.shape}: {rule}")
        ladder = cls(values, copies)
        if 1 not in temperatures and values.ndim == 1:
            ladder = cls(np.stack([ladder.beta] * MOST_TERMS, axis=-1), copies)
        if ladder.replicas != replicas:
            raise InputError(
                f"{copies} copies of {ladder.temperatures} temperatures are {ladder.replicas} replicas, "
                f"but the engine has {replicas}: make it with as many"
            )
        return ladder

    @property
    def temperatures(self) -> int:
        return len(self.beta)

    @property
    def replicas(self) -> int:
        return self.copies * self.temperatures

    def steps(self, model: Ising) -> npt.NDArray[np.float64]:
        """Return beta_t - beta_{t+1} times the model's quantum, (temperatures - 1, terms)."""
        return np.ascontiguousarray(-np.diff(self.beta.reshape(self.temperatures, -1), axis=0) * model.quantum)

    def begin(self, samples: int) -> Exchange:
        shape, pairs = (samples, self.replicas), (samples, self.temperatures - 1)
        place = np.tile(np.arange(self.temperatures, dtype=np.int32), (samples, self.copies))
        last_end = np.where(place == self.temperatures - 1, FROM_HOT, NOWHERE).astype(np.int8)
        return Exchange(
            place, np.zeros(pairs, np.int64), np.zeros(pairs, np.int64), np.zeros(shape, np.int64), last_end
        )


def holders(place: npt.NDArray[np.int32], copies: int) -> npt.NDArray[np.int64]:
    """Replica at each temperature, (samples, copies, temperatures), from ``place`` (samples, replicas)."""
    samples, replicas = place.shape
    ladder, replica = _numbers(samples, copies, replicas // copies)
    holder = np.empty(replica.shape, np.int64)
    holder.reshape(-1)[ladder + place.reshape(replica.shape)] = replica
    return holder


@lru_cache(maxsize=8)
def _numbers(samples: int, copies: int, temperatures: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First number of each copy's ladder, (samples, copies, 1), and its replicas, (samples, copies, temperatures)."""
    replicas = copies * temperatures
    ladder = np.arange(0, samples * replicas, temperatures).reshape(samples, copies, 1)
    return ladder, np.tile(np.arange(replicas).reshape(copies, temperatures), (samples, 1, 1))


@lru_cache(maxsize=8)
def copy_pairs(copies: int) -> npt.NDArray[np.int64]:
    """Pairs of copies whose overlaps are measured, (pairs, 2): (0, 1), (0, 2), ..., (1, 2), ..."""
    pairs = np.stack(np.triu_indices(copies, 1), axis=1)
    pairs.flags.writeable = False
    return pairs


OF_SAMPLES: Final = ("spins", *Exchange._fields)
"""Arrays of an engine's state with a row for each sample; ``NUMBERS`` are the values shared by all samples."""
NUMBERS: Final = ("half_sweep", "round")


def snapshot_of(
    spins: npt.NDArray[np.uint64], half_sweep: int, round_: int, exchange: Exchange | None
) -> dict[str, npt.NDArray[np.generic]]:
    """State that an engine saves: packed spins, counters and, with a ladder, the exchange state."""
    saved: dict[str, npt.NDArray[np.generic]] = {"spins": spins, "half_sweep": np.array(half_sweep, np.int64)}
    if exchange is None:
        return saved
    return saved | {"round": np.array(round_, np.int64)} | exchange.copied()._asdict()


def state_of(
    saved: Mapping[str, npt.NDArray[Any]], own: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Engine state from a checkpoint, which also holds the search and the lowest states; ``own`` selects the rows."""
    rows = {name: own(saved[name]) for name in OF_SAMPLES if name in saved}
    return rows | {name: saved[name] for name in NUMBERS if name in saved}


def exchange_of(saved: Mapping[str, npt.NDArray[Any]]) -> Exchange:
    return Exchange(*(np.array(saved[name]) for name in Exchange._fields))


SWAP = np.uint64(rng.Stream.SWAP)
SHIFT = np.uint64(32)
TWO_64 = 2.0**64
Times = tuple[int, int, int]  # rounds done so far, rounds to do, sweeps per round
HALVES = 0.5 ** np.arange(128.0)  # exact powers of two of probabilities


@part
def uniforms(group, round_, sample, key, rounds, random):  # type: ignore[no-untyped-def]
    """Draw the uniforms of pairs with the numbers ``group``."""
    k0, k1 = key
    word1 = rng.counter_block(np.uint64(sample), np.uint64(0))
    word2, word3 = rng.low32(np.uint64(round_)), rng.counter_plane(np.uint64(round_), SWAP, np.uint64(0))
    for i in range(group.size):
        x0, x1, _, _ = rng.philox(np.uint64(group[i]), word1, word2, word3, k0, k1, rounds)
        random[i] = (rng.low32(x0) << SHIFT) | rng.low32(x1)


@part
def decide(cost, random, accepted):  # type: ignore[no-untyped-def]
    """Set ``accepted`` to 1 where a uniform lies below exp(-cost) or the cost is not positive, else 0."""
    for i in range(cost.size):
        mantissa, power = exp_reduced(-min(max(cost[i], 0.0), LARGEST_EXPONENT))
        probability = mantissa * HALVES[np.int64(-power)]
        accepted[i] = np.int64((probability >= 1.0) | (random[i] < np.uint64(probability * TWO_64)))


@kernel
def exchange(energy, steps, copies, round_, sample, key, rounds, place, attempts, accepts, trips, last_end):  # type: ignore[no-untyped-def]
    """Do one round for a sample, from ``energy`` (replicas, terms) in quanta and ``steps`` (pairs, terms).

    The last five arguments are a sample's ``Exchange``. All copies are decided in one loop, and exchanged without
    branches, which a processor could not predict.
    """
    # Pairs (t, t + 1) of a round, in each copy of T temperatures; the arrays have one copy after the other:
    #
    #     t           0   1   2   3   4   5      holder[copy T + t]      replica at temperature t
    #     even = 0    |---|   |---|   |---|      place[replica]          temperature of a replica
    #     even = 1        |---|   |---|          cost[copy tried + i]    cost of exchanging pair t = even + 2 i
    pairs, even = steps.shape[0], round_ % 2
    if pairs == 0:  # with one temperature, replicas are at the hot end
        for r in range(last_end.size):
            last_end[r] = FROM_HOT
        return
    temperatures = pairs + 1
    tried = (temperatures - even) // 2
    holder, group = np.empty(copies * temperatures, np.int64), np.empty(copies * tried, np.int64)
    cost, random = np.zeros(copies * tried), np.empty(copies * tried, np.uint64)
    accepted = np.empty(copies * tried, np.int64)
    for copy in range(copies):
        first, before = copy * temperatures, copy * tried
        holds = holder[first : first + temperatures]
        for r in range(first, first + temperatures):
            holds[place[r]] = r
        for i in range(tried):
            group[before + i] = copy * pairs + even + 2 * i
        for term in range(steps.shape[1]):
            for i in range(tried):
                t = even + 2 * i
                # Over the terms: beta_t - beta_{t+1}, times the energy of t + 1 minus that of t.
                cost[before + i] += steps[t, term] * np.float64(energy[holds[t + 1], term] - energy[holds[t], term])
    uniforms(group, round_, sample, key, rounds, random)
    decide(cost, random, accepted)
    for copy in range(copies):
        holds = holder[copy * temperatures : (copy + 1) * temperatures]
        exchanged = accepted[copy * tried : (copy + 1) * tried]
        for i in range(tried):
            t = even + 2 * i
            cold, hot = holds[t], holds[t + 1]
            # -1 is all ones: XOR with ``swapped`` exchanges both numbers if accepted, and else nothing.
            swapped = (cold ^ hot) & -exchanged[i]
            holds[t], holds[t + 1] = cold ^ swapped, hot ^ swapped
            attempts[t] += 1
            accepts[t] += exchanged[i]
        for t in range(temperatures):
            place[holds[t]] = t
        cold, hot = holds[0], holds[pairs]
        # A round trip ends at the hot end if the replica's last end was the cold one.
        trips[hot] += last_end[hot] == FROM_COLD
        last_end[hot] = FROM_HOT
        if cold != hot and last_end[cold] == FROM_HOT:
            last_end[cold] = FROM_COLD


@step
def keep_exchange(now, row, kept):  # type: ignore[no-untyped-def]
    """Copy one sample's arrays of an ``Exchange`` into row ``row`` of the arrays ``kept``."""
    place, attempts, accepts, trips, last_end = now
    places, all_attempts, all_accepts, all_trips, ends = kept
    for r in range(place.size):
        places[row, r], all_trips[row, r], ends[row, r] = place[r], trips[r], last_end[r]
    for t in range(attempts.size):
        all_attempts[row, t], all_accepts[row, t] = attempts[t], accepts[t]


class CpuTempering:
    """Exchanges of one engine's replicas, for any update."""

    def __init__(self, ladder: Ladder, model: Ising, dynamics: Dynamics) -> None:
        self.ladder, self.steps = ladder, ladder.steps(model)
        self.exchange, self.round = ladder.begin(model.samples), 0
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics

    def attempt(self, counts: Counts) -> None:
        copies = self.ladder.copies
        energy = counts.energy[..., None] if self.ladder.beta.ndim == 1 else counts.by_term
        for k, row in enumerate(energy, self._dynamics.first_sample):
            state = self.of_sample(k - self._dynamics.first_sample)
            exchange(row, self.steps, copies, self.round, k, self._key, self._dynamics.rng_rounds, *state)
        self.round += 1

    def of_sample(self, sample: int) -> tuple[npt.NDArray[Any], ...]:
        """Return one sample's arrays of ``exchange``, which kernels change in place."""
        return tuple(array[sample] for array in self.exchange)
