"""Walkers that visit all energies evenly: Wang-Landau sampling, then multicanonical sampling with fixed weights.

A walker flips single spins at random sites. A flip from E to E' is accepted with probability min(1, G(E) / G(E')), in
which G estimates the number of states g. While a walker learns, G(E) is multiplied by a factor f at each visit; f
becomes its root once all known energies were visited again, and follows 1 / time in the end. In production, all walkers
of a sample share fixed weights 1 / G. Energies are numbers of a grid (levels), whose step divides the cost of any flip.

Sources: F. Wang, D. P. Landau, Phys. Rev. Lett. 86, 2050 (2001); R. E. Belardinelli, V. D. Pereyra, Phys. Rev. E 75,
046701 (2007); B. A. Berg, T. Neuhaus, Phys. Rev. Lett. 68, 9 (1992).
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.moves.exchange import HALVES, TWO_64
from spinsim.errors import InputError
from spinsim.machine.compiled import kernel
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.graph import adjacency
from spinsim.model.hamiltonian import Integers
from spinsim.model.ising import Ising

MOST_LEVELS: Final = 2**20
STREAM: Final = np.uint64(rng.Stream.MULTICANONICAL)
STATE: Final = ("spins", "level", "density", "visits", "log_factor", "bottom", "round_trips", "heading", "sweep")


@kernel
def _walk(walkers, bonds, grid, block, key, time, learns):  # type: ignore[no-untyped-def]
    """Move walkers of one sample one after the other; arrays have a row for each, as ``Walkers`` describes them."""
    spins, level, density, visits, log_factor, bottom, round_trips, heading = walkers
    start, neighbour, coupling, field = bonds
    step, zero = grid  # levels above zero share its weight
    sites = field.size
    for w in range(level.size):
        now = level[w]
        for sweep in range(time[0], time[1]):
            word2, word3 = rng.low32(np.uint64(sweep)), rng.counter_plane(np.uint64(sweep), STREAM, np.uint64(0))
            for k in range(sites):
                x0, x1, x2, _ = rng.philox(np.uint64(k), block[w], word2, word3, key[0], key[1], key[2])
                # a flip and its reverse have the same site, so that rounding its number keeps detailed balance
                i = np.int64((rng.low32(x0) * np.uint64(sites)) >> rng.SHIFT32)
                local = field[i]
                for e in range(start[i], start[i + 1]):
                    local += coupling[e] * spins[w, neighbour[e]]
                then = now + 2 * spins[w, i] * local // step
                here, there = min(now, zero), min(then, zero)
                if learns and density[w, there] < 0:  # a new energy: as rare as the rarest so far
                    density[w, there] = np.min(density[w][density[w] >= 0])
                rise = density[w, there] - density[w, here]
                accepted = rise <= 0
                if not accepted:
                    r, n = exp_reduced(-min(rise, LARGEST_EXPONENT))
                    probability, uniform = r * HALVES[np.int64(-n)], rng.low32(x1) | (x2 << rng.SHIFT32)
                    accepted = probability >= 1.0 or uniform < np.uint64(probability * TWO_64)
                if accepted:
                    spins[w, i] = -spins[w, i]
                    now, here = then, there
                if learns:
                    density[w, here] += log_factor[w]
                    visits[w, here] += 1
                    continue
                visits[w, now] += 1
                if now >= zero:
                    round_trips[w] += heading[w] < 0
                    heading[w] = 1
                elif now <= bottom[w] and heading[w] > 0:
                    heading[w] = -1
            if learns:
                known = density[w] >= 0
                floor = np.sum(known) / ((sweep + 1.0) * sites)
                if heading[w] == 2 or log_factor[w] <= floor:
                    heading[w], log_factor[w] = 2, floor
                elif np.all(visits[w][known] > 0):
                    log_factor[w] *= 0.5
                    visits[w] = 0
        level[w] = now


class Walkers:
    """Walkers of every sample of a model, from random spins; their moves are functions of the seed alone.

    Arrays (samples, replicas, ...) are ``spins``; ``level``; ``density``, ln G by level, -1 where unknown; ``visits``,
    attempts that ended at each level, while learning since f changed; ``log_factor``, ln f; ``bottom``, the lowest
    known level; ``round_trips`` between energy 0 and it; ``heading``, -1 or 1 after a visit to it or to 0, while
    learning 2 once ln f follows 1 / time; and ``sweep``, (), sweeps so far.

    Raises:
        InputError: for energies of too many levels, and runs that exceed the memory or the random counters.
    """

    def __init__(self, model: Ising, replicas: int, seed: int, sweeps: int, threads: int | None) -> None:
        budget = {"groups": model.sites, "samples": model.samples, "blocks": replicas, "half_sweeps": sweeps}
        rng.check_budget(**budget, block_name="walkers")
        self.model, self._threads, self.sweep = model, Threads(threads), np.zeros((), np.int64)
        self._key, near, shape = (*rng.split_seed(seed), rng.ROUNDS), adjacency(model.graph), (model.samples, replicas)
        samples = [(model.integer_couplings(k), model.integer_fields(k)) for k in range(model.samples)]
        step = _step(model.graph.edges, samples)
        bound = max(int(np.abs(couplings).sum() + np.abs(fields).sum()) for couplings, fields in samples)
        levels = 2 * bound // step + 1
        if levels > MOST_LEVELS:
            raise InputError(
                f"the energies of {model.name} have {levels} levels, more than {MOST_LEVELS}: give couplings and "
                "fields that are small multiples of one number, such as +-1"
            )
        require((16 * levels + model.sites) * replicas * model.samples, f"{replicas} walkers at {levels} energies")
        self._given, lowest = [], np.zeros((model.samples, 1), np.int64)
        for k, (couplings, fields) in enumerate(samples):
            lowest[k] = (-couplings.sum() - fields.sum() + bound) % step - bound
            zero = int(-(lowest[k, 0] // step))  # first level at 0, the mean at infinite temperature, or above
            self._given.append(((near.start, near.neighbour, couplings[near.bond], fields), (step, zero)))
        self.energies = np.float64(model.quantum) * (lowest + step * np.arange(levels))  # (samples, levels)
        sample, block = np.arange(model.samples)[:, None, None], np.arange(replicas)[:, None]
        words = rng.draw(seed, rng.Stream.START, group=np.arange(model.sites), sample=sample, block=block)
        self.spins = 2 * (words[0] & np.uint64(1)).astype(np.int8) - 1
        totals = model.energy(np.swapaxes(self.spins, 1, 2)) / model.quantum
        self.level = (totals - lowest).astype(np.int64) // step
        self.density, self.visits = np.full((*shape, levels), -1.0), np.zeros((*shape, levels), np.int64)
        zeros = np.array([[zero] for _, (_, zero) in self._given])
        np.put_along_axis(self.density, np.minimum(self.level, zeros)[..., None], 0.0, axis=2)
        self.log_factor, self.heading = np.ones(shape), np.zeros(shape, np.int8)
        self.bottom, self.round_trips = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    @property
    def energy(self) -> npt.NDArray[np.float64]:
        """Total energy of each walker, (samples, replicas)."""
        return np.asarray(np.take_along_axis(self.energies, self.level, axis=1))

    def advance(self, sweeps: int, learns: bool) -> None:
        """Attempt a flip for each site, ``sweeps`` times; ``learns`` is True in the Wang-Landau stage."""
        samples, replicas = self.level.shape
        parts = min(replicas, -(-self._threads.count // samples))
        ends = list(pairwise(replicas * k // parts for k in range(parts + 1)))
        self._threads.run(partial(self._advance, k, *end, sweeps, learns) for k in range(samples) for end in ends)
        self.sweep += sweeps

    def _advance(self, sample: int, first: int, stop: int, sweeps: int, learns: bool) -> None:
        arrays = tuple(getattr(self, name)[sample, first:stop] for name in STATE[:-1])
        block = rng.counter_block(np.uint64(sample), np.arange(first, stop).astype(np.uint64))
        _walk(arrays, *self._given[sample], block, self._key, (int(self.sweep), int(self.sweep) + sweeps), learns)

    def fix_weights(self) -> None:
        """End learning: all walkers of a sample get the mean of their ln G, and visits are counted from now on."""
        for k, density in enumerate(self.density):
            known, zero = (density >= 0).sum(axis=0), self._given[k][1][1]
            total = np.zeros(density.shape[1])
            for one in density:  # added up one by one, for the same bits everywhere
                total += np.where(one >= 0, one - one.max(), 0.0)
            mean = total / np.maximum(known, 1)
            mean[known == 0] = mean[known > 0].min()
            mean[zero + 1 :] = mean[zero]
            density[:], self.bottom[k] = mean - mean.min(), np.flatnonzero(known)[0]
        self.visits[:], self.heading[:] = 0, 0


def _step(edges: npt.NDArray[np.int32], samples: list[tuple[Integers, Integers]]) -> int:
    """Return the greatest common divisor of the costs of all flips, from the couplings and fields of each sample."""
    step = 0
    for couplings, fields in samples:
        local = fields.copy()
        np.add.at(local, edges, couplings[:, None])
        step = int(np.gcd.reduce([step, 2 * int(np.gcd.reduce(local)), 4 * int(np.gcd.reduce(couplings))]))
    return step or 1
