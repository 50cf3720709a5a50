"""Default range of temperatures in which a problem is annealed or tempered.

On a lattice all sites are alike, and the range is a multiple of the root mean square local field. Other graphs may have
penalties, which are large in a random state and cancel in every good one. There, the range follows from the costs of
single flips at local minima. Descents at zero temperature find the minima, from the state of all spins down (the zero
state of a QUBO) and from random states.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.inputs.texts import COLD_SHARE, HOT_ACCEPTANCE, T_START, T_STOP
from spinsim.machine.compiled import kernel
from spinsim.model.couplings import distinct
from spinsim.model.ising import Ising
from spinsim.sampling.descents import local_minima

_DESCENTS: Final = 24
_MOST_SAMPLES: Final = 4
_MOST_VISITS: Final = 2**25  # largest number of visited neighbours, which limits the descents of large problems
_BINS: Final = 16  # number of bins in each octave of costs
_GAP_SHARE: Final = 1 / 2  # share of the flips that cost energy
_DIGITS: Final = 3  # digits of temperatures, so that the processor's rounding does not matter
_PRECISION: Final = 1e-6  # relative, of a temperature before it is rounded
_HOTTEST: Final = 10.0  # highest temperature of the search, in units of the largest cost
Costs = npt.NDArray[np.float64]


class Ends(NamedTuple):
    """First (hot) and last (cold) temperature of an anneal, in the unit of the couplings."""

    hot: float
    cold: float
    has_gap: bool = False  # True if most flips that cost energy share the least cost, as on lattices of couplings +-J


def automatic_temperatures(model: Ising) -> Ends:
    """Return the default first and last temperature of an anneal.

    On a lattice they are ``T_START`` and ``T_STOP`` times the root mean square local field. On other graphs they follow
    from the costs c_i of single flips at local minima. At the first temperature, the mean of exp(-c_i / T) over the
    flips that cost energy is ``HOT_ACCEPTANCE``. At the last, the sum of c_i exp(-c_i / T), the mean energy of
    independent excitations of a minimum, is ``COLD_SHARE`` times the mean height of the lower half of the minima above
    the lowest.
    ``COLD_SHARE`` times the mean height of the lower half of the minima above the lowest.
    """
    if model.lattice is None:
        found = _from_descents(model)
        if found is not None:
            return found
    scale = model.energy_scale or 1.0
    return Ends(T_START * scale, T_STOP * scale)


def _from_descents(model: Ising) -> Ends | None:
    """Return the range of a graph, or None if no flip costs energy."""
    samples = range(min(model.samples, _MOST_SAMPLES))
    number = max(4, min(_DESCENTS, _MOST_VISITS // (2 * model.bonds + model.sites)) // len(samples))
    minima = [local_minima(model, sample, number) for sample in samples]
    costs = np.concatenate([one.costs[one.costs > 0] for one in minima])
    if not costs.size:
        return None
    height = np.mean([_height(one.energies) for one in minima]) or np.median(costs)
    mantissa, octave = np.frexp(costs)
    bins = octave.astype(np.int64) * _BINS + ((2 * mantissa - 1) * _BINS).astype(np.int64)
    counts, sums = (np.bincount(bins - bins.min(), each) for each in (None, costs))
    counts, sums = counts[counts > 0].astype(np.float64), sums[counts > 0]
    mean, highest = sums / counts, _HOTTEST * float(costs.max())
    hot = _temperature(mean, counts, HOT_ACCEPTANCE * costs.size, highest)
    cold = _temperature(mean, sums, COLD_SHARE * float(height) * number * len(samples), hot)
    has_gap = bool(np.count_nonzero(costs == costs.min()) >= _GAP_SHARE * costs.size)
    unit = model.units.unit if model.units is not None else 1  # in it equal problems of other sizes are the same
    hot, cold = (float(f"{T / unit:.{_DIGITS}g}") * unit * model.quantum for T in (hot, cold))
    return Ends(hot, cold, has_gap)


def _height(energies: Costs) -> float:
    """Mean energy of the lower half of the minima above the lowest; if 0, the least difference of two minima, or 0."""
    above = np.sort(energies - energies.min())
    lower = float(above[: (len(above) + 1) // 2].mean())
    return lower or float(min(above[above > 0], default=0))


@kernel
def _temperature(costs, weights, wanted, highest):  # type: ignore[no-untyped-def]
    """Return the temperature, at most the highest, at which the sum of weights times exp(-cost / T) is ``wanted``."""
    low, high = costs[0] / LARGEST_EXPONENT, highest
    while high > low * (1 + _PRECISION):
        middle, total = np.sqrt(low * high), 0.0
        for k in range(costs.size):
            mantissa, power = exp_reduced(-min(costs[k] / middle, LARGEST_EXPONENT))
            total += weights[k] * math.ldexp(mantissa, int(power))
        if total > wanted:
            high = middle
        else:
            low = middle
    return np.sqrt(low * high)


def transition_temperature(model: Ising) -> float | None:
    """Estimate the transition of a ferromagnet on a lattice, or of an antiferromagnet on a bipartite one; else None.

    If all bonds are equal, it is exact, or the published value. Otherwise, with missing bonds, open boundaries or
    unequal axes, it scales with the transition of the Bethe lattice, (z - 1) <tanh(|J| / T)> = 1, of z neighbours.
    """
    lattice, (lowest, highest) = model.lattice, model.extreme_couplings
    known = None if lattice is None else lattice.cell.transition
    if lattice is None or known is None or lowest == highest == 0:
        return None
    if lowest < 0 and not (model.is_bipartite and highest <= 0):
        return None
    sizes, counts = np.unique(np.abs(distinct(model.couplings)), return_counts=True)
    shares, others = counts / counts.sum(), 2 * model.bonds / model.sites - 1
    if others * shares[sizes > 0].sum() <= 1:
        return None  # clusters of bonds are finite
    low, high = 0.0, others * float(sizes.max())
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        is_ordered = others * float((shares * np.tanh(sizes / middle)).sum()) > 1
        low, high = (middle, high) if is_ordered else (low, middle)
    return float(known * high * np.arctanh(1 / (lattice.cell.coordination - 1)))
