"""The general update of cpu_sweep.py where an energy has two terms, each with an inverse temperature of its own.

A flip that costs x = beta_0 dE_0 + beta_1 dE_1 is decided as ``acceptance_of_terms`` of acceptance.py says. The screen
knows x to within the rounding of ``size`` = |beta_0 dE_0| + |beta_1 dE_1|: it leaves terms that nearly cancel to the
exact comparison, and so sums that are infinite or undefined at very low temperatures.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.acceptance import LARGEST_EXPONENT, NEARLY_NOTHING, ROUND, exp_reduced
from spinsim.engine.moves.metropolis.unpacked.cpu_sweep import (
    EXPONENT_BIAS,
    HALVE,
    MANTISSA_BITS,
    MARGIN,
    NOUGHT,
    REFINE,
    SLACK,
    TWO32,
    TWO32_32,
    decide,
    draw,
    exp_32,
    local_fields,
)
from spinsim.machine.compiled import kernel, part

ROUNDING: Final = np.float32(2.0**-20)  # four times the error of x, of ``size``
CANCELLED: Final = np.float32(2.0**-17)  # |x| of ``size`` from which on the margin holds; 8 times ROUNDING
NOTHING: Final = np.float32(NEARLY_NOTHING / 2)  # a ``size`` that costs nearly nothing for sure
SOMETHING: Final = np.float32(2 * NEARLY_NOTHING)  # a cost that does not


@part
def screen_terms(  # type: ignore[no-untyped-def]
    spin, ones, others, double_beta, zero_acceptance, uniform, mantissa, power, scaled, cost, size, flips
):
    """``screen`` of two terms, whose local fields are ``ones`` and ``others``; ``cost`` and ``size`` are room."""
    first_beta, other_beta = double_beta[0], double_beta[1]
    for r in range(ones.size):
        first = np.float32(ones[r] * spin[r]) * first_beta[r]
        other = np.float32(others[r] * spin[r]) * other_beta[r]
        x = first + other
        cost[r] = x
        size[r] = abs(first) + abs(other)
        mantissa[r], power[r] = exp_32(-x)
    close = np.int64(0)
    for r in range(ones.size):
        p = mantissa[r] * scaled[r]
        p = TWO32_32 if cost[r] < NOUGHT else p
        is_nothing = size[r] <= NOTHING
        p = zero_acceptance if is_nothing else p
        u = np.float32(np.int32(uniform[r] >> HALVE))
        margin = p * (MARGIN + size[r] * ROUNDING) + SLACK
        flips[r] = u < p
        known = is_nothing | (abs(cost[r]) > size[r] * CANCELLED + SOMETHING)
        close += np.int64((not known) | ((u < p + margin) & (u > p - margin)))
    return close


@part
def scaled_probabilities_of_terms(  # type: ignore[no-untyped-def]
    spin, ones, others, double_beta, zero_acceptance, mantissa, power, scaled, cost
):
    """``scaled_probabilities`` of two terms; ``cost`` is room."""
    first_beta, other_beta = double_beta[0], double_beta[1]
    for r in range(ones.size):
        x = np.float64(ones[r] * spin[r]) * first_beta[r] + np.float64(others[r] * spin[r]) * other_beta[r]
        cost[r] = x
        y = -x if x < LARGEST_EXPONENT else -LARGEST_EXPONENT
        y = y if y < 0.0 else 0.0
        mantissa[r], n = exp_reduced(y)
        scaled[r] = n + ROUND
    for r in range(ones.size):
        power[r] = (power[r] + EXPONENT_BIAS) << MANTISSA_BITS
    for r in range(ones.size):
        p = mantissa[r] * scaled[r]
        certain = 2.0 * TWO32 if cost[r] < 0.0 else p
        scaled[r] = zero_acceptance * p if abs(cost[r]) <= NEARLY_NOTHING else certain


@kernel
def sweep_general_terms(  # type: ignore[no-untyped-def]
    spins, order, colour_start, start, middle, near, couplings, fields, double_beta, zero_acceptance, block, first_call,
    key, rounds, half_sweep, sweeps,
):  # fmt: skip
    """``sweep_general`` of two terms.

    Args:
        spins: As there.
        order: As there.
        colour_start: As there.
        start: As there.
        middle: Of the neighbours of site i, those before ``middle[i]`` are by bonds of term 0.
        near: As there.
        couplings: As there.
        fields: As there; they belong to term 0.
        double_beta: Twice the inverse temperature of each term times the quantum, (2, positions).
        zero_acceptance: Factor of the probability of a flip that costs nearly nothing.
        block: As there.
        first_call: As there.
        key: As there.
        rounds: As there.
        half_sweep: As there.
        sweeps: As there.
    """
    k0, k1 = key
    replicas = double_beta.shape[1]
    beta_32, zero_32 = double_beta.astype(np.float32), np.float32(zero_acceptance * 0.5 * TWO32)
    ones, others = np.empty(replicas, couplings.dtype), np.empty(replicas, couplings.dtype)
    flips = np.empty(replicas, np.bool_)
    upper, lower = np.empty((4, replicas // 4), np.uint32), np.empty((4, replicas // 4), np.uint32)
    uniform, refined = upper.reshape(replicas), lower.reshape(replicas)
    mantissa_32, power_32 = np.empty(replicas, np.float32), np.empty(replicas, np.int32)
    cost_32, size_32 = np.empty(replicas, np.float32), np.empty(replicas, np.float32)
    mantissa, power, cost = np.empty(replicas), np.empty(replicas, np.int64), np.empty(replicas)
    scaled_32, scaled = power_32.view(np.float32), power.view(np.float64)
    for _ in range(sweeps):
        for colour in range(colour_start.size - 1):
            for i in order[colour_start[colour] : colour_start[colour + 1]]:
                first, other = slice(start[i], middle[i]), slice(middle[i], start[i + 1])
                spin, site = spins[i], np.uint64(i)
                local_fields(ones, fields[i], spins, near[first], couplings[first])
                local_fields(others, 0, spins, near[other], couplings[other])
                draw(upper, site, block, half_sweep, k0, k1, rounds, first_call)
                if screen_terms(spin, ones, others, beta_32, zero_32, uniform, mantissa_32, power_32, scaled_32,
                                cost_32, size_32, flips):  # fmt: skip
                    scaled_probabilities_of_terms(
                        spin, ones, others, double_beta, zero_acceptance, mantissa, power, scaled, cost
                    )
                    draw(lower, site, block, half_sweep, k0, k1, rounds, first_call + REFINE)
                    decide(scaled, uniform, refined, flips)
                for r in range(replicas):
                    spin[r] = -spin[r] if flips[r] else spin[r]
            half_sweep += np.uint64(1)
