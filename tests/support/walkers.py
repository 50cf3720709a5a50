"""Tempering with a known relaxation time: replicas walk along a ladder and forget their start at its hot end alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Walked(NamedTuple):
    """Series of many runs.

    Attributes:
        permutation: Replica at each place, (steps, runs, samples, copies, places).
        energy: At the lowest place, (steps, runs, samples, copies).
        round_trips: Of each replica, (runs, samples, copies * places).
    """

    permutation: npt.NDArray[np.int64]
    energy: Array
    round_trips: npt.NDArray[np.int64]


def relaxation(places: int, rate: float) -> float:
    """Rounds of exchanges in which the slowest mode of a walk falls to 1/e: of one that is reflected at both ends.

    A replica that has exchanged goes on in the same direction in the next round, so that it keeps its direction over
    rate / (1 - rate) steps on average.
    """
    diffusion = rate / (1 - rate) / 2
    return places**2 / (np.pi**2 * diffusion)


def walk(
    shape: tuple[int, int, int, int], steps: int, thermalize: int, every: int, rate: float, memory: float, seed: int
) -> Walked:
    """Simulate runs whose replicas carry an energy that they draw anew at the hottest place.

    Args:
        shape: Runs, samples, copies and places.
        steps: Measurements.
        thermalize: Rounds of exchanges before the first one.
        every: Rounds between measurements.
        rate: Probability of each exchange.
        memory: Mean energy at the start, in units of its standard deviation; 0 is equilibrium.
        seed: Of the generator.
    """
    runs, samples, copies, places = shape
    random = np.random.default_rng(seed)
    chains = runs * samples * copies
    holder = np.tile(np.arange(places), (chains, 1))
    carried = memory + random.normal(size=(chains, places))
    came_from_cold = np.zeros((chains, places), np.int8)  # by place: 1 from the coldest, -1 from the hottest
    trips = np.zeros((chains, places), np.int64)
    rows, permutation, energy = np.arange(chains), [], []
    for round_ in range(1, thermalize + steps * every + 1):
        lower = np.arange(round_ % 2, places - 1, 2)
        chain, pair = np.nonzero(random.random((chains, len(lower))) < rate)
        below = lower[pair]
        for array in (holder, carried, came_from_cold):
            array[chain, below], array[chain, below + 1] = array[chain, below + 1], array[chain, below]
        carried[:, -1] = random.normal(size=chains)
        if round_ > thermalize:
            trips[rows, holder[:, -1]] += came_from_cold[:, -1] == 1
        came_from_cold[:, -1] = -1
        came_from_cold[came_from_cold[:, 0] == -1, 0] = 1
        if round_ > thermalize and (round_ - thermalize) % every == 0:
            permutation.append(holder.copy())
            energy.append(carried[:, 0] + random.normal(size=chains))
    replicas = np.array(permutation).reshape(steps, runs, samples, copies, places)
    return Walked(
        replicas + places * np.arange(copies)[:, None],
        np.array(energy).reshape(steps, runs, samples, copies),
        trips.reshape(runs, samples, copies * places),
    )
