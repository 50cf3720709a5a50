"""A Gaussian random field: at each site of each sample a number of its own, of mean 0."""

from __future__ import annotations

from math import inf

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.errors import InputError
from spinsim.model.drawing import gaussian, uniforms


def check_random_field(deviation: float) -> None:
    """Refuse what is no standard deviation of fields.

    Raises:
        InputError: for a number that is negative or not finite.
    """
    if not 0 <= deviation < inf:
        raise InputError(f"random field {deviation} is no standard deviation: give a finite number, at least 0")


def random_fields(sites: int, samples: int, seed: int, deviation: float) -> npt.NDArray[np.float64]:
    """Fields (samples, sites) of mean 0 and this standard deviation, multiples of 2^-24."""
    fields = np.empty((samples, sites))
    for sample, row in enumerate(fields):
        for where, uniform in uniforms(seed, rng.Stream.RANDOM_FIELD, sample, sites):
            row[where] = gaussian(uniform, deviation)
    return fields
