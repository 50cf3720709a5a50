"""Many rounds of parallel tempering of one sample of a dense model in one call, as rounds of few replicas are short."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.moves.exchange.cpu import exchange
from spinsim.engine.moves.metropolis.dense.cpu_sweep import energies_from_fields, sweep_dense
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


@kernel
def temper_dense(  # type: ignore[no-untyped-def]
    up, local_fields, costs, visits, rows, fields, double_beta, zero_acceptance, ladder, exchanged, sample, key,
    half_sweep, times,
):  # fmt: skip
    """Rounds of sweeps of all replicas of a sample, each followed by exchanges of their temperatures.

    Args:
        up: As ``sweep_dense`` takes it, of all replicas, and so are the next four and the zero acceptance.
        local_fields: As ``sweep_dense`` takes them.
        costs: As ``sweep_dense`` takes them.
        visits: As ``sweep_dense`` takes them.
        rows: As ``sweep_dense`` takes them.
        fields: h in quanta, (sites,).
        double_beta: Twice the inverse temperatures times the quantum, (temperatures,).
        zero_acceptance: Probability of a flip that costs nothing.
        ladder: ``Ladder.steps``, copies.
        exchanged: A row of ``Exchange``, changed in place.
        sample: Its number.
        key: The two key words and the Philox rounds.
        half_sweep: Half-sweeps done so far.
        times: Rounds done so far, rounds to do, sweeps of each.
    """
    (steps, copies), (before, rounds, sweeps), (k0, k1, rng_rounds) = ladder, times, key
    place, attempts, accepts, trips, last_end = exchanged
    replicas = place.size
    energy, magnetization = np.empty((replicas, 1), np.int64), np.empty(replicas, np.int64)
    for done in range(rounds):
        of_replicas = double_beta[place]
        for first in range(0, replicas, LANES):
            some = slice(first, first + LANES)
            block = rng.counter_block(np.uint64(sample), np.uint64(first // LANES))
            sweep_dense(up[some], local_fields[some], costs, visits, rows, of_replicas[some], zero_acceptance,
                        (block, np.uint64(0)), key, half_sweep, sweeps)  # fmt: skip
        energies_from_fields(up, local_fields, fields, energy[:, 0], magnetization)
        exchange(
            energy, steps, copies, before + done, sample, (k0, k1), rng_rounds, place, attempts, accepts, trips,
            last_end,
        )  # fmt: skip
        half_sweep += np.uint64(sweeps * visits[2])
