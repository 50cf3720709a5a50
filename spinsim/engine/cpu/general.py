"""The general Metropolis update: any integer couplings and fields on any graph, one replica a lane of the vector unit.

Replica r of a sample takes word r % 4 of the Philox call with plane (r % 128) // 4 of block r // 128. That 32-bit word
decides unless it equals the top half of the 64-bit threshold; then the same word of plane + 32 is the lower half.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.cpu.compiled import kernel, part
from spinsim.packing import LANES

UPDATE: Final = np.uint64(rng.Stream.UPDATE)
REFINE: Final = np.uint64(LANES // 4)  # plane offset of the lower halves
TWO32: Final = 4294967296.0
SHIFT32: Final = np.uint64(32)
EXPONENT_BIAS: Final = np.int64(1023 + 32)  # so that the scaled probability is p * 2^32
MANTISSA_BITS: Final = np.int64(52)


@part
def draw(uniform, site, block, half_sweep, k0, k1, rounds, first_call, offset):  # type: ignore[no-untyped-def]
    """32-bit uniform integers of consecutive replicas, ``first_call`` on, as floats."""
    word3 = rng.counter_plane(half_sweep, UPDATE, np.uint64(first_call) + offset)
    low_sweep = rng.low32(half_sweep)
    for call in range(uniform.shape[0]):
        x0, x1, x2, x3 = rng.philox(site, block, low_sweep, word3 + np.uint64(call), k0, k1, rounds)
        uniform[call, 0] = np.float64(np.int64(rng.low32(x0)))
        uniform[call, 1] = np.float64(np.int64(rng.low32(x1)))
        uniform[call, 2] = np.float64(np.int64(rng.low32(x2)))
        uniform[call, 3] = np.float64(np.int64(rng.low32(x3)))


@part
def local_fields(local, field, spins, near, couplings):  # type: ignore[no-untyped-def]
    """Sum of J s over the neighbours plus h, for every replica, in the integers' own width."""
    for r in range(local.size):
        local[r] = field
    for k in range(near.size):
        coupling = couplings[k]
        row = spins[near[k]]
        for r in range(local.size):
            local[r] += coupling * row[r]


@part
def scaled_probabilities(spin, local, beta, zero_acceptance, mantissa, power, scaled):  # type: ignore[no-untyped-def]
    """Acceptance probability times 2^32 of every replica; more than 2^32 where the flip gains energy.

    ``scaled`` is the float view of ``power``.
    """
    for r in range(local.size):
        half_cost = np.float64(local[r] * spin[r])
        y = np.maximum(np.minimum(-2.0 * half_cost * beta[r], 1.0), -LARGEST_EXPONENT)
        mantissa[r], n = exp_reduced(y)
        power[r] = (np.int64(n) + EXPONENT_BIAS) << MANTISSA_BITS
    for r in range(local.size):
        half_cost = local[r] * spin[r]
        p = mantissa[r] * scaled[r]
        p = zero_acceptance * TWO32 if half_cost == 0 else p
        scaled[r] = 2.0 * TWO32 if half_cost < 0 else p


@part
def flip(spin, scaled, uniform):  # type: ignore[no-untyped-def]
    """Flip where the uniform lies below the threshold's top half; whether any replica lies on the edge."""
    edges = 0
    for r in range(spin.size):
        top = np.floor(scaled[r])
        spin[r] = -spin[r] if uniform[r] < top else spin[r]
        edges += np.int64(uniform[r] == top)
    return edges


@kernel
def sweep_general(  # type: ignore[no-untyped-def]
    spins, order, colour_start, start, near, couplings, fields, beta, zero_acceptance, block, first_call, key, rounds,
    half_sweep, sweeps,
):  # fmt: skip
    """Update some replicas (at most 128, a multiple of 4) of one sample.

    Args:
        spins: int8 (sites, replicas), +1 or -1, changed in place.
        order: Sites, colour by colour; colour c has ``order[colour_start[c]:colour_start[c + 1]]``.
        start, near: Neighbours in compressed rows.
        couplings: J of each of ``near`` in quanta, int32 or int64: the width that local fields fit.
        fields: h of each site in quanta, of the same type.
        beta: (replicas,) inverse temperature times the quantum.
        zero_acceptance: Probability of a flip that costs nothing.
        block: Counter word 1.
        first_call: Philox call of the first replica within its block of 128.
        key, rounds, half_sweep, sweeps: as in ``sweep_packed``.
    """
    k0, k1 = key
    replicas = beta.size
    local = np.empty(replicas, couplings.dtype)
    uniform = np.empty((replicas // 4, 4), np.float64)
    flat = uniform.reshape(replicas)
    lower = np.empty((replicas // 4, 4), np.float64)
    mantissa = np.empty(replicas, np.float64)
    power = np.empty(replicas, np.int64)
    scaled = power.view(np.float64)
    for _ in range(sweeps):
        for colour in range(colour_start.size - 1):
            for i in order[colour_start[colour] : colour_start[colour + 1]]:
                row = slice(start[i], start[i + 1])
                spin = spins[i]
                local_fields(local, fields[i], spins, near[row], couplings[row])
                scaled_probabilities(spin, local, beta, zero_acceptance, mantissa, power, scaled)
                draw(uniform, np.uint64(i), block, half_sweep, k0, k1, rounds, first_call, np.uint64(0))
                if flip(spin, scaled, flat):
                    draw(lower, np.uint64(i), block, half_sweep, k0, k1, rounds, first_call, REFINE)
                    for r in range(replicas):
                        rest = scaled[r] - np.floor(scaled[r])
                        if flat[r] == np.floor(scaled[r]) and lower[r // 4, r % 4] < np.floor(rest * TWO32):
                            spin[r] = -spin[r]
            half_sweep += np.uint64(1)
