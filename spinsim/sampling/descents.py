"""Descents at zero temperature: sites are flipped in order, repeatedly, as long as that lowers the energy."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.machine.compiled import kernel
from spinsim.machine.memory import require
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising

_AT_ONCE: Final = 64
_BYTES_A_BOND: Final = 32  # for neighbours and couplings in compressed rows
_SEED: Final = 0  # minima belong to the problem, not to a run
Array = npt.NDArray[np.float64]


class Minima(NamedTuple):
    """Local minima of one sample: energies and costs of single flips, whole numbers of quanta."""

    energies: Array  # (descents,)
    costs: Array  # (sites, descents)


def local_minima(model: Ising, sample: int, number: int) -> Minima:
    """Descend from the state of all spins down, then from random states, ``number`` in all."""
    words = rng.draw(_SEED, rng.Stream.PRE_RUN, group=np.arange(model.sites)[:, None], sample=sample, half_sweep=1)
    bits = np.arange(number - 1)
    words = words[bits // 32, :, 0] >> (bits % 32).astype(np.uint64)[:, None]
    spins = np.full((model.sites, number), -1.0)
    spins[:, 1:] += 2.0 * (words.T & np.uint64(1))
    local = _descend_all(model, sample, spins)
    fields = model.integer_fields(sample)[:, None]
    return Minima(-((local + fields) * spins).sum(axis=0) / 2, 2 * local * spins)


def descended(model: Ising, sample: int, configurations: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return the local minima below configurations of +1 and -1, (configurations, sites), of one sample."""
    ends = np.empty_like(configurations, np.int8)
    for first in range(0, len(ends), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        spins = np.ascontiguousarray(configurations[some].T, np.float64)
        _descend_all(model, sample, spins)
        ends[some] = spins.T
    return ends


def _descend_all(model: Ising, sample: int, spins: Array) -> Array:
    """Descend in place from spins (sites, descents), and return the final local fields in quanta."""
    require(_BYTES_A_BOND * model.bonds, f"{model.sites} sites with {model.bonds} bonds", "give temperatures")
    near = adjacency(model.graph)
    couplings = model.integer_couplings(sample).astype(np.float64)[near.bond]
    local = np.repeat(model.integer_fields(sample).astype(np.float64)[:, None], spins.shape[1], axis=1)
    _descend(near.start, near.neighbour, couplings, spins, local, np.empty(spins.shape[1]))
    return local


@kernel
def _descend(start, neighbour, couplings, spins, local, change):  # type: ignore[no-untyped-def]
    """Flip sites as long as that lowers the energy.

    ``spins`` (sites, descents) are +-1. ``local`` (sites, descents) begins as the fields without neighbours and ends as
    the local fields: whole numbers below 2^53, whose sums are exact. Descents are contiguous, so that one loop changes
    a neighbour's fields in all of them.
    """
    sites, descents = spins.shape
    for i in range(sites):
        for e in range(start[i], start[i + 1]):
            for d in range(descents):
                local[i, d] += couplings[e] * spins[neighbour[e], d]
    lowered = True
    while lowered:
        lowered = False
        for i in range(sites):
            flips = False
            for d in range(descents):
                change[d] = 0.0
                if spins[i, d] * local[i, d] < 0:
                    spins[i, d] = -spins[i, d]
                    change[d] = 2 * spins[i, d]
                    flips = True
            if not flips:
                continue
            lowered = True
            for e in range(start[i], start[i + 1]):
                j, coupling = neighbour[e], couplings[e]
                for d in range(descents):
                    local[j, d] += coupling * change[d]
