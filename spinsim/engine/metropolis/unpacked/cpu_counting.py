"""Energies and magnetisations of unpacked spins, as exact integers."""

from __future__ import annotations

import numpy as np

from spinsim.machine.compiled import kernel


@kernel
def total_energies(spins, edges, couplings, fields, energy, magnetization):  # type: ignore[no-untyped-def]
    """Add total energies in quanta and magnetisations of unpacked ``spins``, int8 (sites, replicas).

    Sums are below 2^53, where float64 is exact; vector units have no product of 64-bit integers.
    """
    total = np.zeros(energy.size)
    for b in range(edges.shape[0]):
        coupling = np.float64(couplings[b])
        one, other = spins[np.uint32(edges[b, 0])], spins[np.uint32(edges[b, 1])]
        for r in range(total.size):
            total[r] -= coupling * np.float64(one[r] * other[r])
    for i in range(spins.shape[0]):
        field = np.float64(fields[i])
        row = spins[i]
        for r in range(total.size):
            total[r] -= field * np.float64(row[r])
            magnetization[r] += row[r]
    for r in range(total.size):
        energy[r] += np.int64(total[r])


@kernel
def sum_spins(spins, sites, totals):  # type: ignore[no-untyped-def]
    """Add to ``totals`` (replicas,) each replica's sum over ``sites`` of ``spins``, int8 (all sites, replicas)."""
    for i in sites:
        row = spins[i]
        for r in range(totals.size):
            totals[r] += row[r]
