"""The special cases of the packed updates that have CUDA kernels of their own."""

from __future__ import annotations

from enum import IntEnum
from math import log2
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.metropolis.packed.classes import OWN_PLANES

ZERO_PLANES: Final = round(-log2(1 - ZERO_ACCEPTANCE))
"""Flips that cost nothing are refused, under the default rule, where so many planes are all ones."""


class Limits(NamedTuple):
    """What decides flips at some temperatures, (parity of the degree, class, temperature).

    Attributes:
        certain: Whether a flip needs no random number.
        thresholds: Else its threshold.
    """

    certain: npt.NDArray[np.bool_]
    thresholds: npt.NDArray[np.uint64]


class Kind(IntEnum):
    """Special cases of the packed update with kernels of their own.

    ANY: none. PLAIN: only gains flip for certain, no field, the default zero-cost rule. COLD: besides, only the
    smallest cost is accepted with a probability of 2^-OWN_PLANES or more.
    """

    ANY = 0
    PLAIN = 1
    COLD = 2


class PackedPlan(Protocol):
    """What a special case follows from, of either packed update."""

    dynamics: Dynamics
    has_field: bool

    def limits(self, beta: npt.NDArray[np.float64]) -> Limits:
        """What decides flips at inverse temperatures ``beta``."""


def kind_of(plan: PackedPlan, beta: npt.NDArray[np.float64]) -> Kind:
    """The special case of a run at inverse temperatures ``beta``; its sites of odd degree are at most ``PLAIN``."""
    limits = plan.limits(np.unique(beta))
    if plan.has_field or plan.dynamics.zero_acceptance != ZERO_ACCEPTANCE or limits.certain.any():
        return Kind.ANY
    return Kind.PLAIN if (limits.thresholds[0, :2] >> np.uint64(64 - OWN_PLANES)).any() else Kind.COLD
