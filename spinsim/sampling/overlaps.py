"""Temperatures of a population that are chosen so that the energies at neighbours overlap by a given part.

The energies of a population at beta, in equilibrium, say how far those at beta' overlap with them: with the
normalised weights tau_i = R w_i / sum w, w_i = exp(-(beta' - beta) E_i), of its R replicas, the overlap of both
distributions is the mean of min(1, tau_i). What is missing to 1 is the part of the replicas that the resampling is
expected to remove, so that equal overlaps are equal parts removed.

A small population is annealed for this before the run, with random numbers of its own, and the run takes the
temperatures as they are: they do not depend on its own replicas, so that its estimate of Z has no bias. Everything
follows from the model and the dynamics alone, to the bit: weights are multiples of 2^-32, temperatures have six digits.

Sources: L. Yu. Barash, M. Weigel, M. Borovsky, W. Janke, L. N. Shchur, Comput. Phys. Commun. 220, 341 (2017); C. Amey,
J. Machta, Phys. Rev. E 97, 033301 (2018).
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine import Dynamics, create_engine
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import LANES
from spinsim.sampling.measure import measure
from spinsim.sampling.placement import first_samples, six_digits
from spinsim.sampling.population import Population, check_last

Array = npt.NDArray[np.float64]

REPLICAS: Final = 1024
"""Those of the pre-run, of all samples together, which fill words."""
_SWEEPS: Final = 10
_HALVINGS: Final = 40
_MOST: Final = 10_000


def overlapping_temperatures(
    model: Ising,
    last: float,
    overlap: float,
    dynamics: Dynamics,
    device: str = "auto",
    threads: int | None = None,
) -> Array:
    """Temperatures down to ``last`` whose neighbours overlap, the first one with infinity, by at least a given part.

    Samples have them together: at most eight take part, and the mean over these is what is given.

    Args:
        model: What is annealed.
        last: The last temperature.
        overlap: Between 0 and 1.
        dynamics: Of the run that follows; the pre-run has seeds of its own.
        device: ``auto``, ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads; no number changes the outcome.

    Raises:
        InputError: for a last temperature that is as good as infinite, and where there would be too many.
    """
    check_last(model, last)
    few = first_samples(model)
    own = replace(dynamics, seed=rng.derived_seed(dynamics.seed, 0))
    replicas = REPLICAS // few.samples // LANES * LANES
    engine = create_engine(few, replicas, own, device, threads, slabs=False, round_sweeps=_SWEEPS)
    population = Population(engine, 1, own.seed, own.rng_rounds)
    temperatures: list[float] = []
    beta = 0.0
    while not temperatures or temperatures[-1] > last:
        energy = measure(engine).energy
        temperature = _next(energy, beta, last, overlap)
        if len(temperatures) == _MOST or (temperatures and temperature >= temperatures[-1]):
            raise InputError(f"overlap {overlap:g} takes too many temperatures down to {last:g}: give a smaller one")
        population.resample(len(temperatures), (beta - 1 / temperature) * energy)
        temperatures.append(temperature)
        beta = 1 / temperature
        engine.set_beta(beta)
        engine.sweep(_SWEEPS)
    return np.array(temperatures)


def _next(energy: Array, beta: float, last: float, overlap: float) -> float:
    """The temperature after 1 / beta, by energies (samples, replicas) at beta."""
    above = energy - energy.min(axis=1, keepdims=True)
    far = 1 / last - beta
    if overlap_of(above, far) >= overlap:
        return last
    low, high = 0.0, far
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if overlap_of(above, middle) >= overlap else (low, middle)
    return max(last, six_digits(1 / (beta + high)))


def overlap_of(above: Array, step: float) -> float:
    """Overlap of the energies at an inverse temperature with those at one that is larger by a step.

    Args:
        above: Energies of replicas at the smaller one less the lowest of their sample, (samples, replicas).
        step: Of the inverse temperatures.

    Returns:
        The mean over samples, to the bit on every machine.
    """
    mantissa, power = exp_reduced(-np.minimum(step * above, LARGEST_EXPONENT))
    weight = np.ldexp(mantissa, power.astype(np.int64) + 32).astype(np.int64)
    total, replicas = weight.sum(axis=1), above.shape[1]
    shared = np.minimum(replicas * weight, total[:, None]).sum(axis=1)
    return fsum((shared / (replicas * total)).tolist()) / len(above)
