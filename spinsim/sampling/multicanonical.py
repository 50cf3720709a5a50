"""Walkers that visit all energies of a model evenly: Wang-Landau sampling, then multicanonical sampling.

A walker flips single spins at random sites. A flip from energy E to E' is accepted with probability
min(1, W(E') / W(E)), and the ideal weight is W = 1 / g, with g the number of states of an energy.

    learning    weights 1 / G(E), of each walker its own: G(E) is multiplied by a factor f at each visit. f is reduced
                to its root once every known energy was visited again, and follows 1 / time in the end.
    production  weights fixed, the same for all walkers of a sample: a proper Markov chain, whose visits give g(E)

Energies are numbers of a grid (``level``), whose step divides every cost of a flip. Acceptance probabilities are
compared with 64 random bits.

Sources: F. Wang, D. P. Landau, Phys. Rev. Lett. 86, 2050 (2001); R. E. Belardinelli, V. D. Pereyra, Phys. Rev. E 75,
046701 (2007); B. A. Berg, T. Neuhaus, Phys. Rev. Lett. 68, 9 (1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising

MOST_LEVELS: Final = 2**20
STREAM: Final = np.uint64(rng.Stream.MULTICANONICAL)
HALVES: Final = np.ldexp(1.0, -np.arange(67))  # exp(-LARGEST_EXPONENT) > 2^-66
TWO64: Final = 2.0**64
LOG_FACTOR, ATTEMPTS, IS_INVERSE = 0, 1, 2  # columns of ``schedule``: ln f, attempts, 1 once ln f follows 1 / time
_OF_WALKERS: Final = ("spins", "level", "density", "visits", "schedule", "round_trips", "heading")
_STATE: Final = (*_OF_WALKERS, "bottom")


class Grid(NamedTuple):
    """Energies of one sample as numbers of a grid."""

    step: int  # between neighbouring levels, in quanta
    low: int  # energy of level 0, in quanta
    zero: int  # first level at energy 0 or above; 0 is the mean energy at infinite temperature
    cap: int  # last level with its own weight; all higher ones share it


@kernel
def _walk(spins, level, density, visits, schedule, round_trips, heading, bonds, grid, block, key, time, learns):  # type: ignore[no-untyped-def]
    """Move walkers of one sample, one after the other; arrays have a row for each.

    ``density`` is ln G by level, -1 for levels that are not known yet. ``visits`` counts attempts by level, while
    learning those since ln f changed.
    """
    start, neighbour, coupling, field = bonds
    step, zero, cap, bottom = grid
    sites = field.size
    for w in range(level.size):
        now = level[w]
        for sweep in range(time[0], time[1]):
            word2, word3 = np.uint64(sweep), rng.counter_plane(np.uint64(sweep), STREAM, np.uint64(0))
            for k in range(sites):
                x0, x1, x2, x3 = rng.philox(np.uint64(k), block[w], rng.low32(word2), word3, key[0], key[1], key[2])
                # every site is as likely in both directions of a flip, so the rounding of its number does no harm
                i = np.int64((rng.low32(x0) * np.uint64(sites)) >> rng.SHIFT32)
                local = field[i]
                for e in range(start[i], start[i + 1]):
                    local += coupling[e] * spins[w, neighbour[e]]
                then = now + 2 * spins[w, i] * local // step
                here, there = min(now, cap), min(then, cap)
                if learns and density[w, there] < 0:  # a new energy: as rare as the rarest one so far
                    rarest = np.inf
                    for one in range(cap + 1):
                        if density[w, one] >= 0:
                            rarest = min(rarest, density[w, one])
                    density[w, there] = rarest
                rise = density[w, there] - density[w, here]
                accepted = rise <= 0
                if not accepted:
                    r, n = exp_reduced(-min(rise, LARGEST_EXPONENT))
                    probability = r * HALVES[np.int64(-n)]
                    uniform = rng.low32(x1) | (x2 << rng.SHIFT32)
                    accepted = probability >= 1.0 or uniform < np.uint64(probability * TWO64)
                if accepted:
                    spins[w, i] = -spins[w, i]
                    now, here = then, there
                if learns:
                    density[w, here] += schedule[w, LOG_FACTOR]
                    visits[w, here] += 1
                    continue
                visits[w, now] += 1
                if now >= zero:
                    round_trips[w] += heading[w] < 0
                    heading[w] = 1
                elif now <= bottom and heading[w] > 0:
                    heading[w] = -1
            if learns:
                known, missed = 0, 0
                for one in range(cap + 1):
                    known += density[w, one] >= 0
                    missed += density[w, one] >= 0 and visits[w, one] == 0
                schedule[w, ATTEMPTS] += sites
                if schedule[w, IS_INVERSE] == 0 and missed == 0:
                    schedule[w, LOG_FACTOR] *= 0.5
                    visits[w] = 0
                if schedule[w, LOG_FACTOR] <= known / schedule[w, ATTEMPTS]:
                    schedule[w, IS_INVERSE] = 1
                if schedule[w, IS_INVERSE] > 0:
                    schedule[w, LOG_FACTOR] = known / schedule[w, ATTEMPTS]
        level[w] = now


class Walkers:
    """Walkers of every sample of a model, from random spins; their moves are functions of the seed alone.

    Attributes:
        density: ln g of the weights, (samples, replicas, levels), -1 for unknown levels while they are learnt.
        visits: Attempts that ended at each level, ``int64`` likewise.
        round_trips: Round trips of each walker between energy 0 and the lowest energy, ``int64`` (samples, replicas).
        sweep: Sweeps so far.

    Raises:
        InputError: for energies of too many levels, and runs that exceed the memory or the random counters.
    """

    def __init__(
        self, model: Ising, replicas: int, seed: int, rounds: int, all_energies: bool, sweeps: int, threads: int | None
    ) -> None:
        rng.check_budget(
            groups=model.sites, samples=model.samples, blocks=replicas, half_sweeps=sweeps, block_name="walkers"
        )
        self.model, self.replicas, self._threads = model, replicas, Threads(threads)
        self._key = (*rng.split_seed(seed), rounds)
        step, levels = step_and_levels(model)
        near, self._bonds, self._grids = adjacency(model.graph), [], []
        shape = model.samples, replicas
        require((16 * levels + model.sites) * replicas * model.samples, f"{replicas} walkers at {levels} energies")
        for k in range(model.samples):
            couplings, fields = model.integer_couplings(k), model.integer_fields(k)
            bound, up = int(np.abs(couplings).sum() + np.abs(fields).sum()), -int(couplings.sum() + fields.sum())
            low = up - (up + bound) // step * step
            zero = -(low // step)
            self._bonds.append((near.start, near.neighbour, couplings[near.bond], fields))
            self._grids.append(Grid(step, low, zero, levels - 1 if all_energies else zero))
        up = rng.draw(seed, rng.Stream.START, group=np.arange(model.sites), sample=np.arange(model.samples)[:, None, None],
                      block=np.arange(replicas)[:, None])[0] & np.uint64(1)  # fmt: skip
        self.spins = 2 * up.astype(np.int8) - 1
        totals = model.energy(np.swapaxes(self.spins, 1, 2)) / model.quantum
        self.level = (totals - [[grid.low] for grid in self._grids]).astype(np.int64) // step
        self.density, self.visits = np.full((*shape, levels), -1.0), np.zeros((*shape, levels), np.int64)
        self.schedule = np.zeros((*shape, 3))
        self.schedule[..., LOG_FACTOR] = 1.0
        for grid, density, level in zip(self._grids, self.density, self.level, strict=True):
            density[np.arange(replicas), np.minimum(level, grid.cap)] = 0.0
        self.round_trips, self.heading = np.zeros(shape, np.int64), np.zeros(shape, np.int8)
        self.bottom = np.zeros(model.samples, np.int64)  # lowest known level
        self.sweep = 0

    @property
    def energies(self) -> npt.NDArray[np.float64]:
        """Energy of each level, (samples, levels)."""
        step = np.arange(self.visits.shape[2])
        return np.array([grid.low + grid.step * step for grid in self._grids]) * self.model.quantum

    @property
    def energy(self) -> npt.NDArray[np.float64]:
        """Total energy of each walker, (samples, replicas)."""
        return np.take_along_axis(self.energies, self.level, axis=1)

    def advance(self, sweeps: int, learns: bool) -> None:
        """Attempt a flip for each site, ``sweeps`` times; ``learns`` is True in the Wang-Landau stage."""
        parts = min(self.replicas, -(-self._threads.count // self.model.samples))
        ends = list(pairwise(self.replicas * k // parts for k in range(parts + 1)))
        time = self.sweep, self.sweep + sweeps
        self._threads.run(
            partial(self._advance, k, slice(*end), time, learns) for k in range(self.model.samples) for end in ends
        )
        self.sweep += sweeps

    def _advance(self, sample: int, some: slice, time: tuple[int, int], learns: bool) -> None:
        grid, block = self._grids[sample], np.arange(some.start, some.stop).astype(np.uint64)
        arrays = (getattr(self, name)[sample, some] for name in _OF_WALKERS)
        places = grid.step, grid.zero, grid.cap, int(self.bottom[sample])
        counters = rng.counter_block(np.uint64(sample), block)
        _walk(*arrays, self._bonds[sample], places, counters, self._key, time, learns)

    def fix_weights(self) -> None:
        """End learning: all walkers of a sample get the mean of their ln G, and visits are counted from now on."""
        for k, (density, grid) in enumerate(zip(self.density, self._grids, strict=True)):
            total, known = np.zeros(density.shape[1]), (density >= 0).sum(axis=0)
            for one in density:  # added up one by one, for the same bits everywhere
                total += np.where(one >= 0, one - one.max(), 0.0)
            mean, self.bottom[k] = total / np.maximum(known, 1), np.flatnonzero(known)[0]
            mean[known == 0] = mean[known > 0].min()
            mean[grid.cap + 1 :] = mean[grid.cap]
            density[:] = mean - mean.min()
        self.visits[:] = 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name, from which the walkers can continue."""
        return {name: getattr(self, name).copy() for name in _STATE} | {"sweep": np.array(self.sweep)}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        for name in _STATE:
            getattr(self, name)[:] = saved[name]
        self.sweep = int(saved["sweep"])


def step_and_levels(model: Ising) -> tuple[int, int]:
    """Return the greatest common divisor of the costs of all flips in quanta, and the number of levels at this step.

    Levels lie between the bounds of the energy; more than ``MOST_LEVELS`` are refused.
    """
    ends, step, bound = model.graph.edges, 0, 0
    for k in range(model.samples):
        couplings, fields = model.integer_couplings(k), model.integer_fields(k)
        local = fields.copy()
        for end in (0, 1):
            np.add.at(local, ends[:, end], couplings)
        step = int(np.gcd.reduce([step, 2 * int(np.gcd.reduce(local)), 4 * int(np.gcd.reduce(couplings))]))
        bound = max(bound, int(np.abs(couplings).sum() + np.abs(fields).sum()))
    step = step or 1
    levels = 2 * bound // step + 1
    if levels > MOST_LEVELS:
        raise InputError(
            f"the energies of {model.name} have {levels} levels, {step * model.quantum:.3g} apart, and at most "
            f"{MOST_LEVELS} are sampled: give couplings and fields that are small multiples of one number, such as +-1"
        )
    return step, levels
