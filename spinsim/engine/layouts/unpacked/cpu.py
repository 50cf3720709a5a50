"""The order of unpacked replicas in memory, and their energies and magnetisations as exact integers."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.machine.compiled import kernel

WORDS: Final = 4  # replicas that one Philox call serves, with a word for each


def by_word(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Replica order to the order of ``sweep_general`` along the last axis."""
    shape = values.shape
    return values.reshape(*shape[:-1], -1, WORDS).swapaxes(-1, -2).reshape(shape)


def by_replica(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The inverse of ``by_word``."""
    return values.reshape(WORDS, -1).T.reshape(-1)


@kernel
def total_energies(spins, edges, of_first, couplings, fields, energy, magnetization):  # type: ignore[no-untyped-def]
    """Add total energies in quanta and magnetisations of unpacked ``spins``, int8 (sites, replicas).

    Sums are below 2^53, where float64 is exact; vector units have no product of 64-bit integers.

    Args:
        spins: The spins, +1 or -1.
        edges: End sites of the bonds, (bonds, 2).
        of_first: How many of them, the first ones, belong to term 0, as all fields do.
        couplings: J of each bond in quanta.
        fields: h of each site in quanta.
        energy: (1 or 2 terms, replicas), added to.
        magnetization: (replicas,), added to.
    """
    for term in range(energy.shape[0]):
        total = np.zeros(magnetization.size)
        first, stop = (of_first, edges.shape[0]) if term else (0, of_first)
        for b in range(first, stop):
            coupling = np.float64(couplings[b])
            one, other = spins[np.uint32(edges[b, 0])], spins[np.uint32(edges[b, 1])]
            for r in range(total.size):
                total[r] -= coupling * np.float64(one[r] * other[r])
        for i in range(0 if term else spins.shape[0]):
            field = np.float64(fields[i])
            row = spins[i]
            for r in range(total.size):
                total[r] -= field * np.float64(row[r])
                magnetization[r] += row[r]
        for r in range(total.size):
            energy[term, r] += np.int64(total[r])


@kernel
def sum_spins(spins, sites, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (replicas,) each replica's sum over ``sites`` of ``spins``, int8 (all sites, replicas)."""
    for i in sites:
        row = spins[i]
        for r in range(totals.size):
            totals[r] += row[r]
