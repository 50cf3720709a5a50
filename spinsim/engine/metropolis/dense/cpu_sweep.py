"""The update of dense models: local fields of every replica are kept, and a flip adds a row of couplings to them.

Order, random numbers, screen and exact comparison are those of unpacked/cpu_sweep.py, so that trajectories are too.
"""

from __future__ import annotations

import numpy as np

from spinsim.engine.metropolis.unpacked.cpu_sweep import (
    HALVE,
    MARGIN,
    NOUGHT,
    REFINE,
    SLACK,
    TWO32,
    TWO32_32,
    decide,
    draw,
    exp_32,
    scaled_probabilities,
)
from spinsim.machine.compiled import kernel, part


@part
def screen(spin, local, double_beta, zero_acceptance, uniform, mantissa, power, scaled, flips):  # type: ignore[no-untyped-def]
    """``screen`` of unpacked/cpu_sweep.py with fields rounded to float32, whose sign and zero are exact."""
    for r in range(local.size):
        half_cost = np.float32(local[r]) * np.float32(spin[r])
        mantissa[r], power[r] = exp_32(-(half_cost * double_beta[r]))
    close = np.int64(0)
    for r in range(local.size):
        half_cost = np.float32(local[r]) * np.float32(spin[r])
        p = mantissa[r] * scaled[r]
        p = zero_acceptance if half_cost == NOUGHT else p
        p = TWO32_32 if half_cost < NOUGHT else p
        u = np.float32(np.int32(uniform[r] >> HALVE))
        margin = p * MARGIN + SLACK
        flips[r] = u < p
        close += np.int64((u < p + margin) & (u > p - margin))
    return close


@part
def add_row(fields, row, spin):  # type: ignore[no-untyped-def]
    """Change a replica's ``fields`` by the flip of a ``spin``, where ``row`` are twice the couplings to it."""
    if spin > 0:
        for k in range(row.size):
            fields[k] -= row[k]
    else:
        for k in range(row.size):
            fields[k] += row[k]


@kernel
def begin_fields(spins, local_fields, order, double_couplings):  # type: ignore[no-untyped-def]
    """Make ``local_fields`` (replicas, sites) those of ``spins`` (sites, replicas); they are those of spins -1."""
    for r in range(local_fields.shape[0]):
        for k in range(order.size):
            if spins[order[k], r] > 0:
                add_row(local_fields[r], double_couplings[k], np.int8(-1))


@kernel
def energies_from_fields(spins, local_fields, order, fields, energy, magnetization):  # type: ignore[no-untyped-def]
    """Add energies in quanta, -1/2 times the sum of s (local field + h), and magnetisations, both (replicas,)."""
    for r in range(energy.size):
        total = np.int64(0)
        for k in range(order.size):
            spin = spins[order[k], r]
            both = np.int64(local_fields[r, k]) + fields[k]
            total += both if spin > 0 else -both
            magnetization[r] += spin
        energy[r] -= total // 2


@kernel
def sweep_dense(  # type: ignore[no-untyped-def]
    spins, local_fields, visits, double_couplings, double_beta, zero_acceptance, counter, key, half_sweep, sweeps
):  # fmt: skip
    """Update a chunk of replicas of one sample.

    Args:
        spins: int8 (sites, 4 * calls), +1 or -1, changed in place, in the order of unpacked/cpu_sweep.py.
        local_fields: Sums of J s over the neighbours plus h in quanta, (4 * calls, sites in order), changed in place.
        visits: Sites in order, the colour of each, and how many colours there are.
        double_couplings: 2 J in quanta, (sites in order, sites in order), of the type of the fields.
        double_beta: Twice the inverse temperature times the quantum, of every replica.
        zero_acceptance: Probability of a flip that costs nothing.
        counter: Counter word 1, and the Philox call of the chunk's first replica within its block of 128.
        key: The two key words and the Philox rounds, 7 or 10.
        half_sweep: Half-sweeps done so far.
        sweeps: Sweeps to do.
    """
    (order, colour, colours), (block, first_call), (k0, k1, rounds) = visits, counter, key
    replicas = double_beta.size
    beta_32, zero_32 = double_beta.astype(np.float32), np.float32(zero_acceptance * 0.5 * TWO32)
    local, wide = np.empty(replicas, local_fields.dtype), np.empty(replicas, np.int64)
    flips = np.empty(replicas, np.bool_)
    upper, lower = np.empty((4, replicas // 4), np.uint32), np.empty((4, replicas // 4), np.uint32)
    uniform, refined = upper.reshape(replicas), lower.reshape(replicas)
    mantissa_32, power_32 = np.empty(replicas, np.float32), np.empty(replicas, np.int32)
    mantissa, power = np.empty(replicas), np.empty(replicas, np.int64)
    scaled_32, scaled = power_32.view(np.float32), power.view(np.float64)
    for _ in range(sweeps):
        for k in range(order.size):
            site, time = np.uint64(order[k]), half_sweep + np.uint64(colour[k])
            spin, row = spins[site], double_couplings[k]
            for r in range(replicas):
                local[r] = local_fields[r, k]
            draw(upper, site, block, time, k0, k1, rounds, first_call)
            if screen(spin, local, beta_32, zero_32, uniform, mantissa_32, power_32, scaled_32, flips):
                for r in range(replicas):
                    wide[r] = local[r]
                scaled_probabilities(spin, wide, double_beta, zero_acceptance, mantissa, power, scaled)
                draw(lower, site, block, time, k0, k1, rounds, first_call + REFINE)
                decide(scaled, uniform, refined, flips)
            for r in range(replicas):
                if flips[r]:
                    add_row(local_fields[r], row, spin[r])
                    spin[r] = -spin[r]
        half_sweep += np.uint64(colours)
