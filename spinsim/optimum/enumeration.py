"""Lowest states of small problems by comparing all states, and the number of ground states.

A state is a number whose bit i is set where spin i is -1. Its low bits are the *inner* spins, all of whose states are
compared at once; the others, the *outer* spins, go through a Gray code, in which one spin flips from each number to the
next:

    inner    E(p) of their couplings alone, for each of 2^inner patterns p, computed once
    outer    energy without inner spins, and local fields of all spins; one flip for each 2^inner states
    sums     energy of pattern p in these fields, by doubling: with bit b set, 2 field_b more than without

so that a state costs two additions and a comparison, in vectors. Without fields one spin is held at +1, which halves
the work. A GPU finds the lowest energy of each chunk of states; those that matter are then compared here.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.compiled import inlined, kernel
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.optimum.enumeration_cuda import INNER, LEAST, SERIAL, lowest_of_chunks

MOST: Final = 48  # sites, whose states take a day
_INNER: Final = 11  # spins whose patterns fit the nearest cache
_SMALL: Final = 2**30  # energies in quanta below which all sums fit 32 bits
_PORTIONS: Final = 4  # of the work for each thread
Integers = npt.NDArray[Any]  # int32 or int64


class LowestStates(NamedTuple):
    """Distinct lowest states, the lowest first."""

    energies: npt.NDArray[np.float64]  # (states,), without the model's offset
    spins: npt.NDArray[np.int8]  # (states, sites)
    ground_states: int  # number of states of the lowest energy, all of them


def lowest_states(
    model: Ising, states: int = 1, gpu: int | None = None, threads: Threads | None = None
) -> LowestStates:
    """The lowest ``states`` of a model of one sample; of states of one energy, those of the lowest numbers.

    Each site doubles the time: one processor took 2 s for 36 sites without fields if values are a few units, and 4 s
    otherwise (November 2026).

    Args:
        model: Of at most ``MOST`` sites.
        states: How many lowest states are wanted.
        gpu: Number of the GPU that compares, where there are enough states for one.
        threads: Those that compare on the CPU; by default all processors.

    Raises:
        InputError: for more than ``MOST`` sites.
    """
    if model.sites > MOST:
        raise InputError(f"{model.sites} sites have too many states to compare them all: the limit is {MOST} sites")
    couplings, fields = _dense(model)
    is_even = not fields.any()
    if is_even:  # the last spin stays +1
        couplings, fields = np.ascontiguousarray(couplings[:-1, :-1]), couplings[-1, :-1].copy()
    free, kept, pool = len(fields), -(-states // 2) if is_even else states, threads or Threads()
    inner = min(_INNER, free)
    portions = [(1 << (free - inner)) * k // (_PORTIONS * pool.count) for k in range(_PORTIONS * pool.count + 1)]
    ranges = list(pairwise(portions))
    if gpu is not None and free >= LEAST:
        inner, ranges = _lowest_chunks(gpu, couplings, fields, kept)
    inside, start = _energies(couplings[:inner, :inner]), np.iinfo(fields.dtype).max
    found, tasks = list[Found](), []
    for first, stop in ranges:
        if first < stop:
            found.append(Found(np.full(kept, start, fields.dtype), np.full(kept, -1, np.int64), np.zeros(1, np.int64)))
            tasks.append(partial(_compare, couplings, fields, inside, first, stop, found[-1]))
    pool.run(tasks)
    return _merged(model, found, is_even, states)


def _lowest_chunks(gpu: int, couplings: Integers, fields: Integers, kept: int) -> tuple[int, list[tuple[int, int]]]:
    """Inner spins, and ranges of outer numbers that have the lowest states, of chunks that a GPU has compared."""
    in_chunk = INNER + max(0, min(SERIAL, len(fields) - LEAST))
    patterns = (couplings[:INNER, :INNER], couplings[INNER:in_chunk, INNER:in_chunk])
    lowest = lowest_of_chunks(gpu, couplings, fields, *map(_energies, patterns))
    limit = np.partition(lowest, min(kept, lowest.size) - 1)[min(kept, lowest.size) - 1]
    inner = min(_INNER, in_chunk)
    size = 1 << (in_chunk - inner)
    return inner, [(k * size, (k + 1) * size) for k in np.flatnonzero(lowest <= limit).tolist()]


class Found(NamedTuple):
    """Lowest states of a portion of all states."""

    energies: Integers  # (kept,), in quanta
    states: npt.NDArray[np.int64]  # (kept,)
    number: npt.NDArray[np.int64]  # (1,), number of states of the lowest energy


def _dense(model: Ising) -> tuple[Integers, Integers]:
    """Couplings (sites, sites) and fields in quanta."""
    couplings, fields = np.zeros((model.sites, model.sites), np.int64), model.integer_fields(0)
    for ends in (model.graph.edges.T, model.graph.edges.T[::-1]):
        np.add.at(couplings, tuple(ends), model.integer_couplings(0))
    kind: Any = np.int32 if np.abs(couplings).sum() // 2 + np.abs(fields).sum() < _SMALL else np.int64
    return couplings.astype(kind), fields.astype(kind)


def _energies(couplings: Integers) -> Integers:
    """Energies of all patterns of spins without fields, (2^spins,)."""
    energies = np.zeros(1, couplings.dtype)
    for b, row in enumerate(couplings):
        local = np.zeros(1, couplings.dtype)
        for coupling in row[:b]:
            local = np.concatenate([local + coupling, local - coupling])
        energies = np.concatenate([energies - local, energies + local])
    return energies


def _merged(model: Ising, found: list[Found], is_even: bool, states: int) -> LowestStates:
    """The lowest states of all portions; of an even energy each with its mirror image."""
    energies, numbers = (np.concatenate([some[k] for some in found]) for k in (0, 1))
    lowest = energies.min()
    ground = sum(int(some.number[0]) for some in found if some.energies.min() == lowest)
    energies, numbers = energies[numbers >= 0], numbers[numbers >= 0]
    order = np.lexsort([numbers, energies])[:states]
    spins = (1 - 2 * (numbers[order, None] >> np.arange(model.sites) & 1)).astype(np.int8)
    energies = energies[order] * model.quantum
    if is_even:
        spins, energies = np.stack([spins, -spins], axis=1).reshape(-1, model.sites), np.repeat(energies, 2)
    return LowestStates(energies[:states], spins[:states], ground << is_even)


@inlined
def _keep(energy: int, state: int, room: Found) -> None:
    """Keep a state instead of the last one, by energy and number, and put the new last one first."""
    energies, states = room.energies, room.states
    if energy == energies[0] and states[0] >= 0 and state > states[0]:
        return
    energies[0], states[0], last = energy, state, 0
    for k in range(1, len(energies)):
        if energies[k] > energies[last] or (energies[k] == energies[last] and states[k] > states[last]):
            last = k
    energies[0], energies[last] = energies[last], energies[0]
    states[0], states[last] = states[last], states[0]


@kernel
def _compare(couplings, fields, inside, first, stop, room):  # type: ignore[no-untyped-def]
    """Compare all states whose outer spins have the Gray codes of numbers from ``first`` on."""
    inner, size, local = 0, inside.size, fields.copy()
    while 1 << inner < size:
        inner += 1
    code, energy = first ^ (first >> 1), 0
    for o in range(inner, local.size):
        spin = -1 if code >> (o - inner) & 1 else 1
        energy -= spin * local[o]
        for j in range(local.size):
            local[j] += spin * couplings[o, j]
    sums, lowest = np.empty_like(inside), room.energies[0]
    for number in range(first, stop):
        sums[0] = energy
        for b in range(inner):
            sums[0] -= local[b]
        for b in range(inner):
            half, more = (
                np.uint64(1 << b),
                2 * local[b],
            )  # without a sign, as an index that may be negative costs vectors
            for p in range(half):
                sums[half + p] = sums[p] + more
        least = sums[0]
        for p in range(size):
            sums[p] += inside[p]
            least = min(least, sums[p])
        if least <= room.energies[0]:
            for p in range(size):
                if sums[p] <= room.energies[0]:
                    if sums[p] < lowest:
                        lowest, room.number[0] = sums[p], 0
                    room.number[0] += sums[p] == lowest
                    _keep(sums[p], code << inner | p, room)
        following = (number + 1) ^ ((number + 1) >> 1)
        o, changed = inner, code ^ following
        while changed > 1:
            o, changed = o + 1, changed >> 1
        if o < local.size:
            spin = -1 if following >> (o - inner) & 1 else 1
            energy -= 2 * spin * local[o]
            for j in range(local.size):
                local[j] += 2 * spin * couplings[o, j]
        code = following
